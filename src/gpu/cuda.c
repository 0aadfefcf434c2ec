/* CUDA over its driver API. The primary context of a device is the one that the CUDA runtime uses, too, so
 * that a kernel with a runtime of its own shares memory and streams. */
#include "gpu/driver.h"

#define CU_RESULT    int
#define CU_DEVICE    int
#define CU_ATTRIBUTE int
#define CU_ADDRESS   void *
#define CU_CONTEXT   void *
#define CU_STREAM    void *
#define CU_EVENT     void *

static khub__gpu_calls calls;

static struct {
#define CU_SHARED(member, symbol, parameters)
#define CU_FUNCTION(member, symbol, parameters) int(*member) parameters;
#include "gpu/cuda_list.inc"
#undef CU_SHARED
#undef CU_FUNCTION
} cu;

#define CU_FUNCTION(member, symbol, parameters)
#define CU_SHARED(member, symbol, parameters)                                                                \
    _Static_assert(_Generic(calls.member, int(*) parameters : 1, default : 0), #symbol);
#include "gpu/cuda_list.inc"
#undef CU_SHARED
#undef CU_FUNCTION

static const khub__gpu_symbol symbols[] = {
#define CU_SHARED(member, symbol, parameters)   {#symbol, &calls.member},
#define CU_FUNCTION(member, symbol, parameters) {#symbol, &cu.member},
#include "gpu/cuda_list.inc"
#undef CU_SHARED
#undef CU_FUNCTION
    {NULL, NULL}};

static int open_device(void **context, int index)
{
    int device = 0, rc = cu.get(&device, index);
    return rc ? rc : cu.retain(context, device);
}

static int close_device(int index)
{
    int device = 0, rc = cu.get(&device, index);
    return rc ? rc : cu.release(device);
}

static int enter(void *context, void **before)
{
    int rc = cu.get_current(before);
    return rc || *before == context ? rc : cu.set_current(context);
}

static int leave(void *before)
{
    return cu.set_current(before);
}

static int copy_over(void *to, void *to_context, void *from, void *from_context, size_t bytes, void *stream)
{
    return cu.copy_over(to, to_context, from, from_context, bytes, stream);
}

/* CU_DEVICE_ATTRIBUTE_…: CLOCK_RATE in kHz, MULTIPROCESSOR_COUNT, COMPUTE_CAPABILITY_MAJOR and _MINOR. */
enum { CLOCK_RATE = 13, MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76 };

static int attribute_of(int index, int attribute)
{
    int device = 0, value = 0, rc = cu.get(&device, index);
    if (rc == 0) rc = cu.attribute(&value, attribute, device);
    return rc == 0 ? value : 0;
}

/* float32 multiply-adds that a multiprocessor starts at each clock: "CUDA C++ Programming Guide", Arithmetic
 * Instructions, its table by capability. */
static double flops(int index)
{
    int major = attribute_of(index, MAJOR), minor = attribute_of(index, MINOR);
    double each = major == 7 || (major == 8 && minor == 0) ? 64 : major >= 8 ? 128 : 0;
    return 2 * each * attribute_of(index, MULTIPROCESSORS) * 1e3 * attribute_of(index, CLOCK_RATE);
}

static const char *code_name(int code)
{
    const char *text = NULL;
    return cu.name(code, &text) == 0 ? text : NULL;
}

static const char *code_words(int code)
{
    const char *text = NULL;
    return cu.words(code, &text) == 0 ? text : NULL;
}

const khub__gpu_driver khub__gpu_cuda = {
    .name = "cuda",
    .device_type = KHUB_DEVICE_CUDA,
    .library = "libcuda.so.1",
    .symbols = symbols,
    .calls = &calls,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .leave = leave,
    .copy_over = copy_over,
    .flops = flops,
    .code_name = code_name,
    .code_words = code_words,
};
