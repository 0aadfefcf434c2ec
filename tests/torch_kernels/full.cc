/* A Torch kernel made with the C++ API: what the stable ABI can't do. README.md lists its operators. */
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <cmath>
#include <stdexcept>

using at::Tensor;

static Tensor relu(const Tensor &x)
{
    TORCH_CHECK(x.scalar_type() == at::kFloat && x.is_contiguous(), "relu: compact float32 is wanted, x is ",
                x.scalar_type());
    Tensor out = at::empty_like(x);
    const float *from = x.const_data_ptr<float>();
    float *to = out.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); i++)
        to[i] = from[i] > 0 ? from[i] : 0;
    return out;
}

static int64_t row_step(const Tensor &t)
{
    return t.dim() > 1 ? t.stride(-2) : t.size(-1);
}

/* (…, n), weight (n); rows may lie apart */
static void rms_norm(Tensor &out, const Tensor &x, const Tensor &weight, double eps)
{
    TORCH_CHECK(out.sizes() == x.sizes(), "rms_norm: out is ", out.sizes(), ", x is ", x.sizes());
    int64_t n = x.size(-1);
    const float *from = x.const_data_ptr<float>(), *w = weight.const_data_ptr<float>();
    float *to = out.mutable_data_ptr<float>();
    for (int64_t row = 0; row < x.numel() / n; row++, from += row_step(x), to += row_step(out)) {
        double squares = 0;
        for (int64_t i = 0; i < n; i++)
            squares += (double)from[i] * from[i];
        double by = 1 / std::sqrt(squares / (double)n + eps);
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)(from[i] * by * w[i]);
    }
}

static Tensor copied(const Tensor &x)
{
    return x.clone();
}

/* The same memory, with other strides. */
static Tensor turned(const Tensor &x)
{
    return x.t();
}

static Tensor undefined(const Tensor &x)
{
    (void)x;
    return Tensor();
}

/* Its schema says that it gives x. */
static Tensor lie(const Tensor &x, c10::string_view how)
{
    if (how == "copy") return x.clone();
    if (how == "dtype") return x.view(at::kInt);
    if (how == "turned") return x.t();
    if (how == "part") return x.narrow(0, 1, 1);
    if (how == "sparse") return x.to_sparse();
    return how == "undefined" ? Tensor() : x;
}

static Tensor fail(const Tensor &x, c10::string_view how)
{
    if (how == "runtime") throw std::runtime_error("words of std::runtime_error");
    TORCH_CHECK(how != "check", "words of TORCH_CHECK, n = ", 3);
    TORCH_CHECK_INDEX(how != "index", "words of an IndexError");
    return x;
}

static Tensor with_scalar(const Tensor &x, const at::Scalar &factor)
{
    return x.mul(factor);
}

static int64_t with_table(const Tensor &x, const c10::Dict<std::string, Tensor> &table)
{
    return (int64_t)table.size() + x.numel();
}

static bool with_generator(const Tensor &x, std::optional<at::Generator> generator)
{
    (void)x;
    return generator.has_value();
}

static int64_t threads()
{
    return at::get_num_threads();
}

static bool grad_mode()
{
    return c10::GradMode::is_enabled();
}

#define LIBRARY(ns, m)            TORCH_LIBRARY(ns, m)
#define IMPLEMENTATION(ns, on, m) TORCH_LIBRARY_IMPL(ns, on, m)

LIBRARY(TEST_NAMESPACE, m)
{
    m.def("relu(Tensor x) -> Tensor");
    m.def("rms_norm(Tensor(a!) out, Tensor x, Tensor weight, float eps=1e-6) -> ()");
    m.def("copied(Tensor x) -> Tensor");
    m.def("turned(Tensor(a) x) -> Tensor(a)");
    m.def("undefined(Tensor x) -> Tensor");
    m.def("lie(Tensor(a!) x, str how) -> Tensor(a!)");
    m.def("fail(Tensor x, str how) -> Tensor");
    m.def("with_scalar(Tensor x, Scalar factor=2) -> Tensor");
    m.def("with_table(Tensor x, Dict(str, Tensor) table) -> int");
    m.def("with_generator(Tensor x, *, Generator? generator=None) -> bool");
    m.def("threads", threads); /* the schema is made from the function */
    m.def("grad_mode", grad_mode);
}

IMPLEMENTATION(TEST_NAMESPACE, CPU, m)
{
    m.impl("relu", relu);
    m.impl("rms_norm", rms_norm);
    m.impl("copied", copied);
    m.impl("turned", turned);
    m.impl("undefined", undefined);
    m.impl("lie", lie);
    m.impl("fail", fail);
    m.impl("with_scalar", with_scalar);
    m.impl("with_table", with_table);
    m.impl("with_generator", with_generator);
}

/* What a kernel for Python has beside its operators, made for CPython's limited API. From C nobody calls it.
 */
extern "C" {
struct module_definition;
void *PyModule_Create2(module_definition *, int);
void *PyInit_it()
{
    return PyModule_Create2(nullptr, 1013);
}
}
