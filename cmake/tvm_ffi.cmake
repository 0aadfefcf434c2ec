# tvm_ffi_version: MAJOR.MINOR.PATCH of the package in KHUB_TVM_FFI, as its header says.
if(KHUB_TVM_FFI)
    file(READ "${KHUB_TVM_FFI}/include/tvm/ffi/c_api.h" api)
    foreach(part MAJOR MINOR PATCH)
        string(REGEX MATCH "define TVM_FFI_VERSION_${part} ([0-9]+)" _ "${api}")
        list(APPEND tvm_ffi_version ${CMAKE_MATCH_1})
    endforeach()
    list(JOIN tvm_ffi_version "." tvm_ffi_version)
endif()
