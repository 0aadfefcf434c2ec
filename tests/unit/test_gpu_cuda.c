/* Our declarations of the CUDA driver's functions against those of its header; built where there is one. */
#include "unit.h"

#include <cuda.h>

#define CU_RESULT    CUresult
#define CU_DEVICE    CUdevice
#define CU_ATTRIBUTE CUdevice_attribute
#define CU_ADDRESS   CUdeviceptr
#define CU_CONTEXT   CUcontext
#define CU_STREAM    CUstream
#define CU_EVENT     CUevent
/* Each must be declared there, with these parameters: else this doesn't compile. */
#define CU_FUNCTION(member, symbol, parameters)                                                              \
    _Static_assert(_Generic(&symbol, CUresult(*) parameters : 1, default : 0), #symbol);
#define CU_SHARED CU_FUNCTION
#include "gpu/cuda_list.inc"

START_TEST(types_have_the_sizes_that_we_give_them)
{
    ck_assert_uint_eq(sizeof(CUresult), sizeof(int));
    ck_assert_uint_eq(sizeof(CUdevice), sizeof(int));
    ck_assert_uint_eq(sizeof(CUdeviceptr), sizeof(unsigned long long));
    ck_assert_uint_eq(sizeof(CUstream), sizeof(void *));
    ck_assert_int_eq(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP, 3);
    ck_assert_int_eq(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13);
    ck_assert_int_eq(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16);
    ck_assert_int_eq(CUDA_ERROR_OUT_OF_MEMORY, 2);
    ck_assert_int_eq(CUDA_ERROR_NO_DEVICE, 100);
    ck_assert_int_eq(CUDA_ERROR_INVALID_DEVICE, 101);
    ck_assert_int_eq(CUDA_ERROR_INVALID_CONTEXT, 201);
    ck_assert_int_eq(CUDA_ERROR_INVALID_HANDLE, 400);
}
END_TEST

UNIT("gpu_cuda", types_have_the_sizes_that_we_give_them)
