# CUDA's compiler, KHUB_NVCC, and how it is called for the kernels: khub_nvcc_flags.
find_program(KHUB_NVCC nvcc PATHS /usr/local/cuda/bin DOC "CUDA's compiler")
# Sums and products in the order of the source, each rounded, as for the CPU (flags.cmake). A register that is spilled is an error.
set(khub_nvcc_flags -x cu -std=c++20 -O3 -fmad=false -DKHUB_ISA=cuda -DKHUB_ISA_CUDA
    -I${PROJECT_SOURCE_DIR}/kernels/common -I${PROJECT_SOURCE_DIR}/kernels/common/cuda -isystem ${KHUB_TVM_FFI}/include
    -Werror all-warnings -Xptxas -warn-spills,-warn-lmem-usage)
