# The kernels for CUDA: khub_kernel_cuda(NAME SOURCES) makes the build tvm-ffiXY-cuXY-… of khub/NAME of the loops in SOURCES. Included where
# KHUB_CUDA is on, which it turns off where there is no compiler of CUDA.
include(${PROJECT_SOURCE_DIR}/cmake/nvcc.cmake)
if(NOT KHUB_NVCC OR CMAKE_CROSSCOMPILING OR KHUB_SANITIZE)
    message(STATUS "No nvcc for this build: no kernels for CUDA")
    set(KHUB_CUDA OFF)
    return()
endif()
execute_process(COMMAND ${KHUB_NVCC} --version OUTPUT_VARIABLE nvcc_version COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" _ "${nvcc_version}")
set(variant_cuda tvm-ffi${tvm_ffi}-cu${CMAKE_MATCH_1}${CMAKE_MATCH_2}-${CMAKE_SYSTEM_PROCESSOR}-linux)
get_filename_component(toolkit ${KHUB_NVCC} REALPATH)
get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)

# No C++ of the host is needed beyond its syntax.
set(nvcc_flags ${khub_nvcc_flags} -Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-Wall,-Wextra)
set(pack_archs)
foreach(arch ${KHUB_CUDA_ARCHS})
    string(REPLACE "." "" number ${arch})
    list(APPEND nvcc_flags -gencode arch=compute_${number},code=sm_${number})
    list(APPEND pack_archs --arch ${arch})
endforeach()
list(APPEND nvcc_flags -gencode arch=compute_${number},code=compute_${number})
list(POP_BACK pack_archs last)
list(APPEND pack_archs ${last}+PTX)

khub_kernel_cuda_objects(kernel-queue common/cuda/queue.c)
target_include_directories(kernel-queue SYSTEM PRIVATE ${toolkit}/include)

# layers.json of the CPU's build, with what is different here: a dtype more, and calls that nobody should cut.
function(khub_kernel_cuda_layers to from)
    file(READ ${from} text)
    string(JSON count LENGTH "${text}" layers)
    math(EXPR last "${count} - 1")
    foreach(i RANGE ${last})
        string(JSON name MEMBER "${text}" layers ${i})
        string(JSON text SET "${text}" layers ${name} dtypes "[\"float32\", \"bfloat16\", \"float16\"]")
        string(JSON bfloat16 GET "${text}" layers ${name} tolerance bfloat16)
        string(JSON text SET "${text}" layers ${name} tolerance float16 "${bfloat16}")
        string(JSON text REMOVE "${text}" layers ${name} slices)
    endforeach()
    file(CONFIGURE OUTPUT ${to} CONTENT "${text}\n" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
endfunction()

function(khub_kernel_cuda name)
    set(objects)
    foreach(source ${ARGN})
        set(object ${CMAKE_CURRENT_BINARY_DIR}/${source}.o)
        add_custom_command(OUTPUT ${object}
            COMMAND ${KHUB_NVCC} ${nvcc_flags} -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
            DEPENDS ${source} DEPFILE ${object}.d
            COMMENT "Compiling khub/${name} for CUDA" VERBATIM)
        list(APPEND objects ${object})
    endforeach()
    add_library(kernel-${name}-cuda MODULE $<TARGET_OBJECTS:kernel-common-cuda> $<TARGET_OBJECTS:kernel-${name}-front-cuda>
                $<TARGET_OBJECTS:kernel-queue> ${objects})
    khub_kernel_link(kernel-${name}-cuda)
    # CUDA's runtime is inside: it opens the driver when it is called, and nothing has to be found before.
    target_link_libraries(kernel-${name}-cuda PRIVATE ${toolkit}/lib64/libcudart_static.a rt dl pthread)
    set(layers ${CMAKE_CURRENT_BINARY_DIR}/cuda/layers.json)
    khub_kernel_cuda_layers(${layers} ${CMAKE_CURRENT_SOURCE_DIR}/layers.json)
    khub_kernel_pack(${name} ${variant_cuda} kernel-${name}-cuda ${layers} ${pack_archs})
endfunction()
