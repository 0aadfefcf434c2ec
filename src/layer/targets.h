/* Where an entry of a mapping applies: a device, its capabilities, and a mode, and how they are written. */
#ifndef LAYER_TARGETS_H
#define LAYER_TARGETS_H

#include <khub/gpu.h>
#include <khub/mapping.h>

typedef enum khub__device {
    KHUB__DEVICE_ANY, /* "*": every device that has no entry of its own */
    KHUB__DEVICE_CPU,
    KHUB__DEVICE_CUDA,
    KHUB__DEVICE_ROCM,
    KHUB__DEVICE_MPS,
    KHUB__DEVICE_XPU,
    KHUB__DEVICE_NPU,
    KHUB__DEVICE_NEURON,
    KHUB__DEVICE_TPU,
    KHUB__DEVICES
} khub__device;

/* Of which device, and which capabilities of it: both ends belong to the range. The whole range stands for
 * every device of the kind, also one whose capability nobody knows. */
typedef struct khub__target {
    khub__device device;
    int32_t min, max; /* 0 … KHUB__CAPABILITY_LAST */
} khub__target;

enum { KHUB__CAPABILITY_LAST = INT32_MAX, KHUB__CAPABILITY_UNKNOWN = -1 };

/* "cpu", "*", "cuda:75-89", "cuda:90", "cuda:90-". KHUB_E_FORMAT: "WHERE: fact". */
int khub__target_parse(khub__target *out, const char *text, const char *where, khub_error *err);

/* "cuda:75-89"; "*" for every device. */
enum { KHUB__TARGET_MAX = 40 };
const char *khub__target_text(char out[KHUB__TARGET_MAX], const khub__target *target);
int khub__target_same(const khub__target *a, const khub__target *b);
int khub__target_is_whole(const khub__target *target); /* every capability */

const char *khub__device_name(khub__device device); /* "cuda"; "*"; static */
int khub__has_capabilities(khub__device device);
/* 1: the word begins as a device does ("cuda:x"), so it wasn't meant as a mode. */
int khub__is_device_word(const char *text);

/* A device that kernels are wanted for. */
typedef struct khub__on {
    khub__device device; /* not ANY */
    int32_t capability;  /* or KHUB__CAPABILITY_UNKNOWN */
    khub_gpu *gpu;       /* borrowed: that one; NULL: calls are the program's matter */
} khub__on;

/* What the arch of a device makes of its capability: "9.0" is 90, "gfx942" 94; else
 * KHUB__CAPABILITY_UNKNOWN. NULL is unknown, too. */
int32_t khub__capability_of(const char *arch);

/* "cpu", "cuda", "cuda:89". KHUB_E_INVAL. */
int khub__on_parse(khub__on *out, const char *text, khub_error *err);

/* `gpu` where there is one; `device`, which must be its backend then, or NULL; neither: out->device is
 * KHUB__DEVICES. KHUB_E_INVAL. */
int khub__on_take(khub__on *out, const char *device, khub_gpu *gpu, khub_error *err);

/* "inference", "training|compile", "fallback". KHUB_E_FORMAT: "WHERE: fact". */
int khub__mode_parse(int *out, const char *text, const char *where, khub_error *err);
const char *khub__mode_text(int mode); /* static */
/* 1: one of its words is a mode's. */
int khub__is_mode_word(const char *text);
/* 1: a mode that an entry can have. */
int khub__mode_is_entry(int mode);

/* The modes that a slot's mode is looked for under, in order, ending with 0; NULL: no mode of a slot. */
const int *khub__mode_order(int mode);

#endif
