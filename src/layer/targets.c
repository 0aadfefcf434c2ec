#include "layer/targets.h"

#include "base/error.h"
#include "gpu/gpu.h"

#include <stdio.h>

static const char *const devices[KHUB__DEVICES] = {
    [KHUB__DEVICE_ANY] = "*",     [KHUB__DEVICE_CPU] = "cpu",       [KHUB__DEVICE_CUDA] = "cuda",
    [KHUB__DEVICE_ROCM] = "rocm", [KHUB__DEVICE_MPS] = "mps",       [KHUB__DEVICE_XPU] = "xpu",
    [KHUB__DEVICE_NPU] = "npu",   [KHUB__DEVICE_NEURON] = "neuron", [KHUB__DEVICE_TPU] = "tpu"};

#define DEVICE_WORDS "cpu, cuda, rocm, mps (or metal), xpu, npu, neuron, tpu"

const char *khub__device_name(khub__device device)
{
    return devices[device];
}

static int is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && !memcmp(text, word, length);
}

/* KHUB__DEVICES: none. */
static khub__device find_device(const char *text, size_t length)
{
    if (is_word(text, length, "metal")) return KHUB__DEVICE_MPS;
    for (int i = 0; i < KHUB__DEVICES; i++)
        if (is_word(text, length, devices[i])) return (khub__device)i;
    return KHUB__DEVICES;
}

int khub__is_device_word(const char *text)
{
    return find_device(text, strcspn(text, ":")) != KHUB__DEVICES;
}

int khub__has_capabilities(khub__device device)
{
    return device == KHUB__DEVICE_CUDA || device == KHUB__DEVICE_ROCM;
}

enum { LARGEST = 99999 }; /* no device comes near; keeps ranges comparable */

/* Digits at *at; moves *at behind them. -1: there are none, or they say more than LARGEST. */
static int32_t take_number(const char **at)
{
    const char *start = *at;
    int32_t number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if ((number = number * 10 + (**at - '0')) > LARGEST) return -1;
    return *at == start ? -1 : number;
}

/* "75-89", "90", "90-". 0: it is none of them. */
static int take_range(khub__target *out, const char *text)
{
    const char *at = text;
    out->min = out->max = take_number(&at);
    if (out->min < 0) return 0;
    if (*at != '-') return !*at;
    at++;
    out->max = *at ? take_number(&at) : KHUB__CAPABILITY_LAST;
    return out->max >= 0 && !*at;
}

static int no_capabilities(const char *text, const char *where, khub_error *err)
{
    return khub__fail(err, KHUB_E_FORMAT, "%s: \"%.60s\": only cuda and rocm have capabilities", where, text);
}

int khub__target_parse(khub__target *out, const char *text, const char *where, khub_error *err)
{
    size_t length = strcspn(text, ":");
    *out = (khub__target){KHUB__DEVICE_ANY, 0, KHUB__CAPABILITY_LAST};
    out->device = find_device(text, length);
    if (out->device == KHUB__DEVICES)
        return khub__fail(err, KHUB_E_FORMAT, "%s: \"%.60s\" is no device: " DEVICE_WORDS ", or \"*\"", where,
                          text);
    if (!text[length]) return KHUB_OK;
    if (!khub__has_capabilities(out->device)) return no_capabilities(text, where, err);
    if (!take_range(out, text + length + 1))
        return khub__fail(
            err, KHUB_E_FORMAT,
            "%s: \"%.60s\": a range of capabilities is MIN-MAX, N or MIN-, up to %d (7.5 is 75)", where, text,
            LARGEST);
    return out->min <= out->max
               ? KHUB_OK
               : khub__fail(err, KHUB_E_FORMAT, "%s: \"%.60s\" is a range that ends before it starts", where,
                            text);
}

const char *khub__target_text(char out[KHUB__TARGET_MAX], const khub__target *target)
{
    const char *device = devices[target->device];
    if (khub__target_is_whole(target))
        snprintf(out, KHUB__TARGET_MAX, "%s", device);
    else if (target->max == KHUB__CAPABILITY_LAST)
        snprintf(out, KHUB__TARGET_MAX, "%s:%d-", device, (int)target->min);
    else if (target->min == target->max)
        snprintf(out, KHUB__TARGET_MAX, "%s:%d", device, (int)target->min);
    else
        snprintf(out, KHUB__TARGET_MAX, "%s:%d-%d", device, (int)target->min, (int)target->max);
    return out;
}

int khub__target_same(const khub__target *a, const khub__target *b)
{
    return a->device == b->device && a->min == b->min && a->max == b->max;
}

int khub__target_is_whole(const khub__target *target)
{
    return target->min == 0 && target->max == KHUB__CAPABILITY_LAST;
}

/* Of "gfx942" and "gfx90a" the last two are minor version and stepping, hexadecimal. */
static int32_t capability_of_gfx(const char *at)
{
    int32_t major = 0;
    size_t length = strcspn(at, ":");
    if (length < 3 || strspn(at, "0123456789abcdef") < length) return KHUB__CAPABILITY_UNKNOWN;
    for (const char *end = at + length - 2; at < end; at++) {
        if (*at > '9' || (major = major * 10 + (*at - '0')) > LARGEST / 10 - 1)
            return KHUB__CAPABILITY_UNKNOWN;
    }
    return *at > '9' ? KHUB__CAPABILITY_UNKNOWN : major * 10 + (*at - '0');
}

int32_t khub__capability_of(const char *arch)
{
    if (!arch) return KHUB__CAPABILITY_UNKNOWN;
    if (!strncmp(arch, "gfx", 3)) return capability_of_gfx(arch + 3);
    int32_t major = take_number(&arch);
    if (major < 0 || major > LARGEST / 10 - 1 || *arch != '.') return KHUB__CAPABILITY_UNKNOWN;
    arch++;
    return *arch >= '0' && *arch <= '9' && !arch[1] ? major * 10 + (*arch - '0') : KHUB__CAPABILITY_UNKNOWN;
}

int khub__on_parse(khub__on *out, const char *text, khub_error *err)
{
    size_t length = strcspn(text, ":");
    *out = (khub__on){find_device(text, length), KHUB__CAPABILITY_UNKNOWN, NULL};
    if (out->device == KHUB__DEVICES || out->device == KHUB__DEVICE_ANY)
        return khub__fail(err, KHUB_E_INVAL, "\"%.60s\" is no device: " DEVICE_WORDS, text);
    if (!text[length]) return KHUB_OK;
    const char *at = text + length + 1;
    out->capability = take_number(&at);
    if (out->capability < 0 || *at)
        return khub__fail(err, KHUB_E_INVAL,
                          "\"%.60s\": a device and its capability is wanted (7.5 is 75): cuda:75", text);
    if (!khub__has_capabilities(out->device))
        return khub__fail(err, KHUB_E_INVAL, "\"%.60s\": only cuda and rocm have capabilities", text);
    return KHUB_OK;
}

static int of_gpu(khub__on *out, khub_gpu *gpu, khub_error *err)
{
    char backend[32];
    const char *name = khub_gpu_name(gpu), *arch = khub__gpu_arch(gpu);
    snprintf(backend, sizeof(backend), "%.*s", (int)strcspn(name, ":"), name);
    int rc = khub__on_parse(out, backend, err);
    out->capability = khub__capability_of(*arch ? arch : NULL);
    out->gpu = gpu;
    return rc;
}

int khub__on_take(khub__on *out, const char *device, khub_gpu *gpu, khub_error *err)
{
    khub__on said = {KHUB__DEVICES, KHUB__CAPABILITY_UNKNOWN, NULL};
    int rc = device ? khub__on_parse(&said, device, err) : KHUB_OK;
    *out = said;
    if (rc == KHUB_OK && gpu) rc = of_gpu(out, gpu, err);
    if (rc == KHUB_OK && gpu && device && said.device != out->device)
        return khub__fail(err, KHUB_E_INVAL, "the device is \"%.60s\", and the GPU is %s", device,
                          khub_gpu_name(gpu));
    return rc;
}

enum {
    INFERENCE = KHUB_MODE_INFERENCE,
    TRAINING = KHUB_MODE_TRAINING,
    COMPILE = KHUB_MODE_COMPILE,
    FALLBACK = KHUB_MODE_FALLBACK
};

static const struct {
    int bit;
    const char *word;
} words[] = {{INFERENCE, "inference"}, {TRAINING, "training"}, {COMPILE, "compile"}, {FALLBACK, "fallback"}};

/* The bit of one word; 0: none. */
static int find_mode(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (is_word(text, length, words[i].word)) return words[i].bit;
    return 0;
}

int khub__is_mode_word(const char *text)
{
    for (;; text++) {
        size_t length = strcspn(text, "|");
        if (find_mode(text, length)) return 1;
        text += length;
        if (!*text) return 0;
    }
}

int khub__mode_is_entry(int mode)
{
    return mode == FALLBACK || mode == INFERENCE || mode == TRAINING || mode == (INFERENCE | COMPILE) ||
           mode == (TRAINING | COMPILE);
}

static int wrong_mode(const char *text, const char *where, khub_error *err)
{
    return khub__fail(
        err, KHUB_E_FORMAT,
        "%s: \"%.60s\" is no mode: inference, training, inference|compile, training|compile, fallback", where,
        text);
}

int khub__mode_parse(int *out, const char *text, const char *where, khub_error *err)
{
    *out = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "|");
        int bit = find_mode(at, length);
        if (!bit || *out & bit) return wrong_mode(text, where, err);
        *out |= bit;
        at += length;
        if (!*at) break;
    }
    return khub__mode_is_entry(*out) ? KHUB_OK : wrong_mode(text, where, err);
}

const char *khub__mode_text(int mode)
{
    switch (mode) {
    case INFERENCE:
        return "inference";
    case TRAINING:
        return "training";
    case INFERENCE | COMPILE:
        return "inference|compile";
    case TRAINING | COMPILE:
        return "training|compile";
    case FALLBACK:
        return "fallback";
    default:
        return "?";
    }
}

int khub_mode_parse(int *out, const char *text, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__given("khub_mode_parse", out && text, err);
    if (rc != KHUB_OK || khub__mode_parse(out, text, "mode", &why) == KHUB_OK) return rc;
    return khub__fail(err, KHUB_E_INVAL, "%s", why.message);
}

const char *khub_mode_name(int mode)
{
    return khub__mode_text(mode);
}

const int *khub__mode_order(int mode)
{
    /* What serves training serves inference, and what can be compiled runs without, too; never the other way.
     */
    static const int inference[] = {INFERENCE, INFERENCE | COMPILE, TRAINING, TRAINING | COMPILE, FALLBACK,
                                    0};
    static const int training[] = {TRAINING, TRAINING | COMPILE, FALLBACK, 0};
    static const int inference_compile[] = {INFERENCE | COMPILE, TRAINING | COMPILE, FALLBACK, 0};
    static const int training_compile[] = {TRAINING | COMPILE, FALLBACK, 0};
    switch (mode) {
    case INFERENCE:
        return inference;
    case TRAINING:
        return training;
    case INFERENCE | COMPILE:
        return inference_compile;
    case TRAINING | COMPILE:
        return training_compile;
    default:
        return NULL;
    }
}
