/* A Torch kernel of the stable ABI with every kind of argument and result that this ABI has. README.md lists
 * its operators. */
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

using torch::headeronly::Layout;
using torch::headeronly::MemoryFormat;
using torch::headeronly::ScalarType;
using torch::stable::Device;
using torch::stable::Tensor;
template <typename T> using maybe = std::optional<T>;
template <typename T> using list = std::vector<T>;

/* Values in words: what arrived, compared as text. */
static std::string word(int64_t x)
{
    return std::to_string(x);
}

static std::string word(bool x)
{
    return x ? "true" : "false";
}

/* In base 16: every bit. */
static std::string word(double x)
{
    char text[40];
    snprintf(text, sizeof(text), "%a", x);
    return text;
}

static std::string word(const std::string &x)
{
    return "'" + x + "'";
}

static std::string word(ScalarType dtype)
{
    return torch::headeronly::toString(dtype);
}

static std::string word(const Device &device)
{
    return "device " + word((int64_t)device.type()) + ":" + word((int64_t)device.index());
}

static std::string word(Layout layout)
{
    return "layout " + word((int64_t)layout);
}

static std::string word(MemoryFormat format)
{
    return "format " + word((int64_t)format);
}

static std::string word(const Tensor &t)
{
    std::string sizes, strides;
    for (int64_t i = 0; i < t.dim(); i++) {
        sizes += (i ? "," : "") + word(t.size(i));
        strides += (i ? "," : "") + word(t.stride(i));
    }
    return word(t.scalar_type()) + "[" + sizes + "] strides [" + strides + "] " + word(t.device());
}

template <typename T> static std::string word(const maybe<T> &x);
template <typename T> static std::string word(const list<T> &x)
{
    std::string out;
    for (size_t i = 0; i < x.size(); i++)
        out += (i ? ", " : "") + word((T)x[i]);
    return "[" + out + "]";
}

template <typename T> static std::string word(const maybe<T> &x)
{
    return x ? "some " + word(*x) : "none";
}

template <typename... T> static std::string words(const T &...x)
{
    std::string out;
    ((out += (out.empty() ? "" : "; ") + word(x)), ...);
    return out;
}

/* Calls f(position of an element in x, running number) in row-major order, whatever the strides. */
template <typename F> static void each(const Tensor &x, F f)
{
    list<int64_t> index((size_t)x.dim());
    for (int64_t n = 0; n < x.numel(); n++) {
        int64_t at = 0;
        for (int64_t i = 0; i < x.dim(); i++)
            at += index[(size_t)i] * x.stride(i);
        f(at, n);
        for (int64_t i = x.dim() - 1; i >= 0 && ++index[(size_t)i] == x.size(i); i--)
            index[(size_t)i] = 0;
    }
}

static list<float> values(const Tensor &x)
{
    STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float, "a float32 tensor is wanted, not ",
                    word(x.scalar_type()));
    list<float> out((size_t)x.numel());
    auto *from = (const float *)x.data_ptr();
    each(x, [&](int64_t at, int64_t n) { out[(size_t)n] = from[at]; });
    return out;
}

static void set(const Tensor &x, const list<float> &from)
{
    STD_TORCH_CHECK((size_t)x.numel() == from.size(), "out has ", x.numel(), " elements, ", from.size(),
                    " are wanted");
    auto *to = (float *)x.data_ptr();
    each(x, [&](int64_t at, int64_t n) { to[at] = from[(size_t)n]; });
}

static Tensor tensor_of(const Tensor &like, const list<float> &from)
{
    Tensor out = torch::stable::empty_like(like);
    set(out, from);
    return out;
}

template <typename F> static list<float> map(const Tensor &x, F f)
{
    list<float> v = values(x);
    for (float &e : v)
        e = f(e);
    return v;
}

static float twice_of(float e)
{
    return 2 * e;
}

static Tensor axpy(Tensor x, Tensor y, double alpha)
{
    list<float> a = values(x), b = values(y);
    STD_TORCH_CHECK(a.size() == b.size(), "x has ", a.size(), " elements and y ", b.size());
    for (size_t i = 0; i < a.size(); i++)
        a[i] = (float)alpha * a[i] + b[i];
    return tensor_of(x, a);
}

static Tensor twice(Tensor x)
{
    return tensor_of(x, map(x, twice_of));
}

static int64_t twice_int(int64_t x)
{
    return 2 * x;
}

static Tensor twice_out(Tensor x, Tensor out)
{
    set(out, map(x, twice_of));
    return out;
}

static void scale_(Tensor x, double factor)
{
    set(x, map(x, [&](float e) { return (float)factor * e; }));
}

static std::tuple<Tensor, Tensor> several(Tensor x)
{
    return {tensor_of(x, map(x, twice_of)), tensor_of(x, map(x, [](float e) { return -e; }))};
}

/* The same from both ends. */
static std::tuple<int64_t, Tensor, int64_t> between(Tensor x)
{
    return {x.dim(), twice(x), x.numel()};
}

static std::tuple<Tensor, int64_t> mixed(Tensor x)
{
    return {twice(x), x.numel()};
}

static list<Tensor> pieces(Tensor x, int64_t n)
{
    list<Tensor> out;
    for (int64_t i = 0; i < n; i++)
        out.push_back(tensor_of(x, map(x, [&](float e) { return (float)i * e; })));
    return out;
}

static maybe<Tensor> perhaps(Tensor x, bool there)
{
    return there ? maybe<Tensor>(twice(x)) : std::nullopt;
}

static maybe<int64_t> perhaps_int(int64_t x)
{
    return x < 0 ? std::nullopt : maybe<int64_t>(x);
}

/* What comes in goes out. */
template <typename T> static T same(T x)
{
    return x;
}

/* Everything that can be an argument, in words. */
static std::string kinds(Tensor t, maybe<Tensor> ot, int64_t i, int64_t s, double f, bool b, std::string w,
                         ScalarType d, Device v, Layout l, MemoryFormat m, maybe<int64_t> oi,
                         maybe<double> of, maybe<bool> ob, maybe<std::string> ow, maybe<ScalarType> od,
                         maybe<Device> ov)
{
    return words(t, ot, i, s, f, b, w, d, v, l, m, oi, of, ob, ow, od, ov);
}

static std::string lists(list<int64_t> i, list<double> f, list<bool> b, list<std::string> w, list<Tensor> t,
                         list<maybe<Tensor>> ot, list<int64_t> pair, maybe<list<int64_t>> oi,
                         maybe<list<double>> of, list<ScalarType> d)
{
    return words(i, f, b, w, t, ot, pair, oi, of, d);
}

static std::string defaults(int64_t i, int64_t mean, double f, double whole, double small, bool b,
                            std::string w, std::string odd, ScalarType d, Device v, Layout l, MemoryFormat m,
                            list<int64_t> li, list<int64_t> none, list<int64_t> pair, list<double> lf,
                            list<bool> lb, maybe<Tensor> ot, maybe<int64_t> oi, maybe<double> of,
                            maybe<std::string> ow, maybe<ScalarType> od)
{
    return words(i, mean, f, whole, small, b, w, odd, d, v, l, m, li, none, pair, lf, lb, ot, oi, of, ow, od);
}

static std::string seen(Tensor x)
{
    return word(x);
}

static void nothing(Tensor x)
{
    (void)x;
}

static Tensor fail(Tensor x, std::string how, std::string text)
{
    if (how == "runtime") throw std::runtime_error(text);
    if (how == "number") throw 17;
    STD_TORCH_CHECK(how != "check", text);
    return x;
}

/* A static initialiser beside the registrations. */
static const std::string *initial = new std::string("made while it was loaded");
static std::string initialised()
{
    return *initial;
}

#define LIBRARY(ns, m)            STABLE_TORCH_LIBRARY(ns, m)
#define IMPLEMENTATION(ns, on, m) STABLE_TORCH_LIBRARY_IMPL(ns, on, m)

LIBRARY(TEST_NAMESPACE, m)
{
    m.def("axpy(Tensor x, Tensor y, float alpha=1.0) -> Tensor");
    m.def("twice(Tensor x) -> Tensor");
    m.def("twice.int(int x) -> int");
    m.def("twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
    m.def("scale_(Tensor(a!) x, float factor) -> ()");
    m.def("several(Tensor x) -> (Tensor twice, Tensor minus)");
    m.def("between(Tensor x) -> (int, Tensor, int)");
    m.def("mixed(Tensor x) -> (Tensor, int)");
    m.def("pieces(Tensor x, int n=2) -> Tensor[]");
    m.def("perhaps(Tensor x, bool there=True) -> Tensor?");
    m.def("perhaps_int(int x) -> int?");
    m.def("same_float(float x) -> float");
    m.def("same_bool(bool x) -> bool");
    m.def("same_str(str x) -> str");
    m.def("same_dtype(ScalarType x) -> ScalarType");
    m.def("same_device(Device x) -> Device");
    m.def("same_ints(int[] x) -> int[]");
    m.def("same_floats(float[] x) -> float[]");
    m.def("same_strings(str[] x) -> str[]");
    m.def("kinds(Tensor t, Tensor? ot, int i, SymInt s, float f, bool b, str w, ScalarType d, Device v, "
          "Layout l, MemoryFormat m, int? oi, "
          "float? of, bool? ob, str? ow, ScalarType? od, Device? ov) -> str");
    m.def("lists(int[] i, float[] f, bool[] b, str[] w, Tensor[] t, Tensor?[] ot, int[2] pair, int[]? oi, "
          "float[]? of, ScalarType[] d) -> "
          "str");
    m.def(
        "defaults(int i=-3, int mean=Mean, float f=2.5, float whole=3, float small=1e-05, bool b=True, str "
        "w=\"so\", str odd=\"it's \\\"so\\\"\", "
        "ScalarType d=bfloat16, Device v=\"cpu\", Layout l=strided, MemoryFormat m=contiguous_format, int[] "
        "li=[1, -2, 3], int[] none=[], "
        "int[2] pair=4, float[] lf=[0.5, 2], bool[] lb=[True, False], Tensor? ot=None, int? oi=None, "
        "float? of=0.25, str? ow=None, "
        "ScalarType? od=None) -> str");
    m.def("seen(Tensor x) -> str");
    m.def("nothing(Tensor x) -> ()");
    m.def("fail(Tensor x, str how, str text=\"\") -> Tensor");
    m.def("initialised() -> str");
    m.def("elsewhere(Tensor x) -> Tensor");
    m.def("unfinished(Tensor x) -> Tensor");
}

IMPLEMENTATION(TEST_NAMESPACE, CPU, m)
{
    m.impl("axpy", TORCH_BOX(&axpy));
    m.impl("twice", TORCH_BOX(&twice));
    m.impl("twice.out", TORCH_BOX(&twice_out));
    m.impl("scale_", TORCH_BOX(&scale_));
    m.impl("several", TORCH_BOX(&several));
    m.impl("between", TORCH_BOX(&between));
    m.impl("mixed", TORCH_BOX(&mixed));
    m.impl("pieces", TORCH_BOX(&pieces));
    m.impl("perhaps", TORCH_BOX(&perhaps));
    m.impl("kinds", TORCH_BOX(&kinds));
    m.impl("lists", TORCH_BOX(&lists));
    m.impl("seen", TORCH_BOX(&seen));
    m.impl("nothing", TORCH_BOX(&nothing));
    m.impl("fail", TORCH_BOX(&fail));
}

/* Without a tensor there is no device to choose by. */
IMPLEMENTATION(TEST_NAMESPACE, CompositeExplicitAutograd, m)
{
    m.impl("twice.int", TORCH_BOX(&twice_int));
    m.impl("perhaps_int", TORCH_BOX(&perhaps_int));
    m.impl("same_float", TORCH_BOX(&same<double>));
    m.impl("same_bool", TORCH_BOX(&same<bool>));
    m.impl("same_str", TORCH_BOX(&same<std::string>));
    m.impl("same_dtype", TORCH_BOX(&same<ScalarType>));
    m.impl("same_device", TORCH_BOX(&same<Device>));
    m.impl("same_ints", TORCH_BOX(&same<list<int64_t>>));
    m.impl("same_floats", TORCH_BOX(&same<list<double>>));
    m.impl("same_strings", TORCH_BOX(&same<list<std::string>>));
    m.impl("defaults", TORCH_BOX(&defaults));
    m.impl("initialised", TORCH_BOX(&initialised));
}

IMPLEMENTATION(TEST_NAMESPACE, CUDA, m)
{
    m.impl("elsewhere", TORCH_BOX(&twice));
}
