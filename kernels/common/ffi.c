#include "ffi.h"

#include "overlap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Text that grows at its end within fixed room, and is cut there. */
typedef struct text {
    size_t used;
    char bytes[2048];
} text;

static void __attribute__((format(printf, 2, 3))) add(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(t->bytes + t->used, sizeof(t->bytes) - t->used, format, list);
    va_end(list);
    if (n > 0) t->used += (size_t)n;
    if (t->used >= sizeof(t->bytes)) t->used = sizeof(t->bytes) - 1;
}

/* Without a backtrace, for which TVMFFIErrorSetRaisedFromCStr reads a quarter of a second long in debug
 * information. */
static void set_raised(const char *kind, const char *message)
{
    TVMFFIByteArray words[] = {{kind, strlen(kind)}, {message, strlen(message)}, {"", 0}};
    TVMFFIObjectHandle error;
    if (TVMFFIErrorCreate(&words[0], &words[1], &words[2], &error) != 0) return; /* it raised one itself */
    TVMFFIErrorSetRaised(error);
    TVMFFIObjectDecRef(error);
}

int khub__raise(const khub__call *call, const char *kind, const char *format, ...)
{
    char words[512], whole[600];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof(words), format, list);
    va_end(list);
    snprintf(whole, sizeof(whole), "%s: %s", call->signature->name, words);
    set_raised(kind, whole);
    return -1;
}

int64_t khub__step(const DLTensor *t, int32_t axis)
{
    if (!t) return 0;
    int64_t step = t->dtype.bits / 8;
    if (t->strides) return step * t->strides[axis];
    for (int32_t i = t->ndim - 1; i > axis; i--)
        step *= t->shape[i];
    return step;
}

static int same_dtype(DLDataType a, DLDataType b)
{
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

static int is_index(DLDataType d)
{
    return d.code == kDLInt && (d.bits == 32 || d.bits == 64) && d.lanes == 1;
}

/* The types of a call's tensors, by type.h. */
static const DLDataType dtypes[TYPES] = {{kDLFloat, 32, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 16, 1}};
static const char *const dtype_names[TYPES] = {"float32", "bfloat16", "float16"};

/* Where the tensors are, and which types there are besides what signatures say. */
#if defined(KHUB_ISA_CUDA)
static const DLDeviceType device_here = kDLCUDA;
enum { TYPES_HERE = 1 << F16 };
#define DEVICE_NAME "CUDA"
#else
static const DLDeviceType device_here = kDLCPU;
enum { TYPES_HERE = 0 };
#define DEVICE_NAME "the CPU"
#endif

static int takes(const khub__call *call)
{
    return call->signature->dtypes | TYPES_HERE;
}

static void add_dtype(text *t, DLDataType d)
{
    static const struct {
        uint8_t code;
        const char *name;
    } names[] = {{kDLInt, "int"},
                 {kDLUInt, "uint"},
                 {kDLFloat, "float"},
                 {kDLBfloat, "bfloat"},
                 {kDLComplex, "complex"}};
    if (d.code == kDLBool && d.bits == 8) {
        add(t, "bool");
    } else {
        const char *name = NULL;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
            if (names[i].code == d.code) name = names[i].name;
        if (name)
            add(t, "%s%d", name, d.bits);
        else
            add(t, "dtype %d of %d bits", d.code, d.bits);
    }
    if (d.lanes != 1) add(t, "x%d", d.lanes);
}

static void add_shape(text *t, const DLTensor *tensor)
{
    add(t, "(");
    for (int32_t i = 0; i < tensor->ndim && i < 16; i++)
        add(t, i ? ", %lld" : "%lld", (long long)tensor->shape[i]);
    add(t, ")");
}

/* A shape of the signature in letters: "(…, 2n)". */
static void add_pattern(text *t, const char *shape)
{
    add(t, "(");
    for (const char *s = shape; *s; s++) {
        if (*s == '*')
            add(t, "...");
        else
            add(t, "%c", *s);
        if (s[1] && (*s < '0' || *s > '9')) add(t, ", ");
    }
    add(t, ")");
}

static const char *type_name(int32_t type)
{
    static const struct {
        int32_t type;
        const char *name;
    } names[] = {{kTVMFFINone, "None"},      {kTVMFFIInt, "an integer"},  {kTVMFFIBool, "a bool"},
                 {kTVMFFIFloat, "a float"},  {kTVMFFIRawStr, "a string"}, {kTVMFFISmallStr, "a string"},
                 {kTVMFFIStr, "a string"},   {kTVMFFITensor, "a tensor"}, {kTVMFFIDLTensorPtr, "a tensor"},
                 {kTVMFFIArray, "an array"}, {kTVMFFIDevice, "a device"}, {kTVMFFIDataType, "a dtype"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].type == type) return names[i].name;
    return "something else";
}

static int wrong_type(const khub__call *call, const khub__param *p, const TVMFFIAny *arg)
{
    static const char *const expected[] = {"a tensor", "a tensor", "a float", "a bool", "an integer"};
    return khub__raise(call, "TypeError", "%s is %s, %s%s is expected", p->name, type_name(arg->type_index),
                       expected[p->kind], p->optional ? " or None" : "");
}

/* What is known of a call while its arguments are checked. */
typedef struct checker {
    khub__call *call;
    const khub__param *typed;  /* the first tensor of the call's dtype; NULL: none yet */
    const khub__param *placed; /* the first tensor; NULL: none yet. For the CPU not kept */
    const khub__param *leads;  /* the first tensor with leading axes; NULL: none yet */
    const DLTensor *lead;      /* the same */
    int32_t leading;           /* how many */
} checker;

/* Raises "x is float64, " and what was expected; words cost more than a small call, so only failures make
 * them. */
static int wrong_dtype(const checker *c, const khub__param *p, const DLTensor *t)
{
    static const char *const lists[1 << TYPES] = {
        "nothing", "float32", "bfloat16", "float32 or bfloat16", [7] = "float32, bfloat16 or float16"};
    text words = {0};
    add(&words, "%s is ", p->name);
    add_dtype(&words, t->dtype);
    add(&words, ", ");
    if (p->indices)
        add(&words, "int32 or int64");
    else if (p->dtype.bits)
        add_dtype(&words, p->dtype);
    else if (c->typed)
        add(&words, "%s is %s", c->typed->name, dtype_names[c->call->type]);
    else
        add(&words, "%s", lists[takes(c->call)]);
    return khub__raise(c->call, "TypeError", "%s%s", words.bytes,
                       c->typed && !p->dtype.bits && !p->indices ? "" : " is expected");
}

/* A tensor has the dtype that its parameter names, or else that of the first such tensor. */
static int check_dtype(checker *c, const khub__param *p, const DLTensor *t)
{
    khub__call *call = c->call;
    if (p->indices) return is_index(t->dtype) ? 0 : wrong_dtype(c, p, t);
    if (p->dtype.bits) return same_dtype(t->dtype, p->dtype) ? 0 : wrong_dtype(c, p, t);
    if (c->typed) return same_dtype(t->dtype, dtypes[call->type]) ? 0 : wrong_dtype(c, p, t);
    for (int type = 0; type < TYPES && !c->typed; type++)
        if (takes(call) >> type & 1 && same_dtype(t->dtype, dtypes[type])) {
            call->type = type;
            c->typed = p;
        }
    return c->typed ? 0 : wrong_dtype(c, p, t);
}

/* Raises "x has shape (2, 3), (..., n) is expected with n = 4" and `more`. */
static int wrong_shape(const checker *c, const khub__param *p, const DLTensor *t, char letter,
                       const char *more)
{
    text words = {0};
    add(&words, "%s has shape ", p->name);
    add_shape(&words, t);
    add(&words, ", ");
    add_pattern(&words, p->shape);
    add(&words, " is expected");
    if (letter) add(&words, " with %c = %lld", letter, (long long)c->call->extent[(int)letter]);
    return khub__raise(c->call, "ValueError", "%s%s", words.bytes, more);
}

/* The axes that have letters, `axis` being the first; gives letters their extents. */
static int check_letters(checker *c, const khub__param *p, const DLTensor *t, int32_t axis)
{
    for (const char *s = p->shape + (*p->shape == '*'); *s; s++, axis++) {
        int64_t times = 1, extent = t->shape[axis];
        if (*s >= '0' && *s <= '9') times = *s++ - '0';
        int64_t *bound = &c->call->extent[(int)*s];
        if (extent % times) return wrong_shape(c, p, t, 0, "");
        if (*bound < 0) *bound = extent / times;
        if (*bound != extent / times) return wrong_shape(c, p, t, *s, "");
        if (extent == 0 && strchr(c->call->signature->not_empty, *s))
            return wrong_shape(c, p, t, 0, ", none of them 0");
    }
    return 0;
}

static int32_t letters_of(const char *shape)
{
    int32_t count = 0;
    for (; *shape; shape++)
        count += *shape >= 'a' && *shape <= 'z';
    return count;
}

static int check_leading(checker *c, const khub__param *p, const DLTensor *t, int32_t leading)
{
    if (!c->leads) {
        c->leads = p;
        c->lead = t;
        c->leading = leading;
        return 0;
    }
    if (leading == c->leading &&
        (leading == 0 || memcmp(t->shape, c->lead->shape, sizeof(int64_t) * (size_t)leading) == 0))
        return 0;
    text words = {0};
    add(&words, "%s has shape ", p->name);
    add_shape(&words, t);
    add(&words, ", %s has ", c->leads->name);
    add_shape(&words, c->lead);
    return khub__raise(c->call, "ValueError", "%s: the leading axes differ", words.bytes);
}

static int check_shape(checker *c, const khub__param *p, const DLTensor *t)
{
    int32_t leading = t->ndim - letters_of(p->shape);
    if (leading < 0 || (*p->shape != '*' && leading > 0)) return wrong_shape(c, p, t, 0, "");
    if (t->ndim > KHUB__MAX_AXES)
        return khub__raise(c->call, "ValueError", "%s has %d axes, at most %d are handled", p->name, t->ndim,
                           KHUB__MAX_AXES);
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] < 0) return wrong_shape(c, p, t, 0, ", none of them negative");
    if (*p->shape == '*' && check_leading(c, p, t, leading)) return -1;
    return check_letters(c, p, t, leading);
}

/* On the device of this library, and on one of them. */
static int check_device(checker *c, const khub__param *p, const DLTensor *t)
{
    if (t->device.device_type != device_here)
        return khub__raise(c->call, "ValueError",
                           "%s is on a device of DLPack's type %d, " DEVICE_NAME " is expected", p->name,
                           (int)t->device.device_type);
    if (device_here == kDLCPU) return 0;
    if (!c->placed) c->placed = p, c->call->device = t->device;
    if (t->device.device_id == c->call->device.device_id) return 0;
    return khub__raise(c->call, "ValueError", "%s is on " DEVICE_NAME " device %d, %s is on %d", p->name,
                       (int)t->device.device_id, c->placed->name, (int)c->call->device.device_id);
}

/* Where the elements lie: the last axis without gaps, and nothing written twice. */
static int check_memory(const checker *c, const khub__param *p, const DLTensor *t)
{
    int empty = 0;
    for (int32_t i = 0; i < t->ndim; i++)
        empty |= t->shape[i] == 0;
    if (empty) return 0;
    if (!t->data) return khub__raise(c->call, "ValueError", "%s has elements and no memory", p->name);
    if (device_here != kDLCPU && (uintptr_t)khub__data(t) % (t->dtype.bits / 8 ? t->dtype.bits / 8 : 1))
        return khub__raise(c->call, "ValueError", "%s isn't aligned to its elements of %d bytes", p->name,
                           t->dtype.bits / 8);
    for (int32_t i = 0; i < t->ndim && t->strides; i++) {
        if (t->shape[i] == 1) continue;
        if (i == t->ndim - 1 && t->strides[i] != 1)
            return khub__raise(c->call, "ValueError", "%s's last axis has stride %lld, 1 is expected",
                               p->name, (long long)t->strides[i]);
        if (p->kind == KHUB__OUT && t->strides[i] == 0)
            return khub__raise(c->call, "ValueError", "%s's axis %d has stride 0 and is written", p->name, i);
    }
    return 0;
}

static const DLTensor *tensor_of(const TVMFFIAny *arg)
{
    if (arg->type_index == kTVMFFIDLTensorPtr) return arg->v_ptr;
    /* a tensor object: its DLTensor stands after the header */
    if (arg->type_index == kTVMFFITensor)
        return (const DLTensor *)((const char *)arg->v_obj + sizeof(TVMFFIObject));
    return NULL;
}

static int check_tensor(checker *c, const khub__param *p, const DLTensor *t)
{
    if (check_device(c, p, t) || check_memory(c, p, t) || check_dtype(c, p, t) || check_shape(c, p, t))
        return -1;
    return 0;
}

/* An integer counts as a float and as a bool, as it does for tvm-ffi. */
static int check_argument(checker *c, int i, const TVMFFIAny *arg)
{
    khub__call *call = c->call;
    const khub__param *p = &call->signature->params[i];
    int32_t type = arg->type_index;
    if (p->kind == KHUB__FLOAT) {
        call->arg[i].f64 = type == kTVMFFIInt ? (double)arg->v_int64 : arg->v_float64;
        return type == kTVMFFIFloat || type == kTVMFFIInt ? 0 : wrong_type(call, p, arg);
    }
    if (p->kind == KHUB__BOOL) {
        call->arg[i].flag = arg->v_int64 != 0;
        return type == kTVMFFIBool || type == kTVMFFIInt ? 0 : wrong_type(call, p, arg);
    }
    if (p->kind == KHUB__INT) {
        call->arg[i].i64 = type == kTVMFFIInt ? arg->v_int64 : 0;
        return type == kTVMFFIInt || (p->optional && type == kTVMFFINone) ? 0 : wrong_type(call, p, arg);
    }
    const DLTensor *t = tensor_of(arg);
    call->arg[i].tensor = t;
    if (t) return check_tensor(c, p, t);
    return p->optional && type == kTVMFFINone ? 0 : wrong_type(call, p, arg);
}

/* Raises when tensor `out`, which is written, shares memory with another, unless that is the one it may be.
 */
static int check_overlap(const khub__call *call, int out, int other)
{
    const khub__param *p = &call->signature->params[out], *q = &call->signature->params[other];
    const DLTensor *a = call->arg[out].tensor, *b = call->arg[other].tensor;
    int may_be = p->may_be && strcmp(p->may_be, q->name) == 0;
    if ((may_be && khub__same_memory(a, b)) || !khub__overlap(a, b)) return 0;
    if (may_be)
        return khub__raise(call, "ValueError", "%s overlaps %s; it may be the same memory or another",
                           p->name, q->name);
    return khub__raise(call, "ValueError", "%s overlaps %s", p->name, q->name);
}

static int is_tensor(const khub__call *call, int i)
{
    khub__kind kind = call->signature->params[i].kind;
    return (kind == KHUB__TENSOR || kind == KHUB__OUT) && call->arg[i].tensor;
}

/* docs/layers.md says what an output may share. Outputs stand before inputs in every signature. */
static int check_overlaps(const khub__call *call)
{
    const khub__signature *s = call->signature;
    for (int out = 0; out < s->count && s->params[out].kind == KHUB__OUT; out++) {
        if (!call->arg[out].tensor) continue;
        for (int i = out + 1; i < s->count; i++)
            if (is_tensor(call, i) && check_overlap(call, out, i)) return -1;
    }
    return 0;
}

int khub__check(khub__call *call, const khub__signature *signature, const TVMFFIAny *args, int32_t n)
{
    call->signature = signature;
    call->type = F32;
    call->device = (DLDevice){device_here, 0};
    for (int letter = 'a'; letter <= 'z'; letter++)
        call->extent[letter] = -1;
    if (n != signature->count) {
        text words = {0};
        for (int i = 0; i < signature->count; i++)
            add(&words, i ? ", %s" : "%s", signature->params[i].name);
        return khub__raise(call, "TypeError", "%d arguments given, %d expected: %s", n, signature->count,
                           words.bytes);
    }
    checker c = {.call = call};
    for (int i = 0; i < n; i++)
        if (check_argument(&c, i, &args[i])) return -1;
    if (check_overlaps(call)) return -1;
    call->isa = khub__isa_get();
    if (call->isa >= 0) return 0;
    char why[160];
    khub__isa_why(why, sizeof(why));
    return khub__raise(call, "RuntimeError", "%s", why);
}

static int give(const text *t, TVMFFIAny *result)
{
    TVMFFIByteArray bytes = {t->bytes, t->used};
    return TVMFFIStringFromByteArray(&bytes, result);
}

/* As tvm-ffi's own exports write it: JSON that holds the type schema, JSON again, as a string. */
int khub__metadata(const khub__signature *signature, TVMFFIAny *result)
{
    static const char *const types[] = {"DLTensor*", "DLTensor*", "float", "bool", "int"};
    const char *const quote = "\\\"";
    text t = {0};
    add(&t,
        "{\"type_schema\":\"{%stype%s:%sffi.Function%s,%snamed_args%s:{%sreturn%s:[{%stype%s:%s%s%s}],%"
        "sparams%s:[",
        quote, quote, quote, quote, quote, quote, quote, quote, quote, quote, quote,
        signature->returns ? signature->returns : "None", quote, quote, quote);
    for (int i = 0; i < signature->count; i++) {
        const khub__param *p = &signature->params[i];
        if (i) add(&t, ",");
        if (p->optional)
            add(&t, "{%stype%s:%sOptional%s,%sargs%s:[", quote, quote, quote, quote, quote, quote);
        add(&t, "{%stype%s:%s%s%s}", quote, quote, quote, types[p->kind], quote);
        if (p->optional) add(&t, "]}");
    }
    add(&t, "]}}\"}");
    return give(&t, result);
}

int khub__doc(const khub__signature *signature, TVMFFIAny *result)
{
    text t = {0};
    add(&t, "%s(", signature->name);
    for (int i = 0; i < signature->count; i++) {
        const khub__param *p = &signature->params[i];
        add(&t, "%s%s%s", i ? ", " : "", p->name, p->optional ? "?" : "");
        if (p->shape) add(&t, " ");
        if (p->shape) add_pattern(&t, p->shape);
    }
    add(&t, ")\n\n%s", signature->doc);
    return give(&t, result);
}

/* docs/bench.md: which path the library takes. */
static const khub__signature kernel_isa_signature = {
    .name = "kernel_isa",
    .doc = "The instruction set that the functions of this library use: \"portable\", \"avx2\", \"avx512\", "
           "\"neon\", on a GPU \"cuda\".",
    .not_empty = "",
    .returns = "ffi.String",
};

TVM_FFI_DLL_EXPORT int __tvm_ffi_kernel_isa(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result);
int __tvm_ffi_kernel_isa(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)
{
    khub__call call;
    (void)self;
    if (khub__check(&call, &kernel_isa_signature, args, n)) return -1;
    const char *name = khub__isa_name(call.isa);
    TVMFFIByteArray bytes = {name, strlen(name)};
    return TVMFFIStringFromByteArray(&bytes, result);
}
KHUB__EXPORT_TEXT(_metadata_kernel_isa, khub__metadata, kernel_isa)
KHUB__EXPORT_TEXT(_doc_kernel_isa, khub__doc, kernel_isa)
