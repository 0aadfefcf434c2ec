// A kernel as tvm-ffi's C++ headers make it.
#define TVM_FFI_DLL_EXPORT_INCLUDE_METADATA 1
#include <tvm/ffi/tvm_ffi.h>

namespace ffi = tvm::ffi;

static void add_one_cpu(ffi::TensorView x, ffi::TensorView y)
{
    if (x.ndim() != 1 || y.ndim() != 1) TVM_FFI_THROW(ValueError) << "x has " << x.ndim() << " dimensions, one is wanted";
    const float *from = static_cast<const float *>(x.data_ptr());
    float *to = static_cast<float *>(y.data_ptr());
    for (int64_t i = 0; i < x.shape()[0]; i++) to[i] = from[i] + 1;
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_one_cpu, add_one_cpu);
TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(add_one_cpu, "y = x + 1, one dimension");

static ffi::String join(ffi::String a, ffi::Optional<ffi::String> b)
{
    return b.has_value() ? ffi::String(std::string(a) + std::string(b.value())) : a;
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(join, join);

static double sum(ffi::Array<double> values, ffi::Map<ffi::String, ffi::Any>, ffi::Variant<int64_t, ffi::String>, ffi::Tuple<int64_t, bool>,
                  DLDataType, DLDevice, ffi::Shape, void *)
{
    double s = 0;
    for (double v : values) s += v;
    return s;
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(sum, sum);
