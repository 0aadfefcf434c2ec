/* khub: the Kernel Hub for C. All of libkhub; <khub/model.h>, <khub/standard.h> are libkhub-model's. */
#ifndef KHUB_H
#define KHUB_H

#include <khub/export.h>
#include <khub/error.h>
#include <khub/memory.h>
#include <khub/log.h>
#include <khub/tensor.h>
#include <khub/npy.h>
#include <khub/numerics.h>
#include <khub/function.h>
#include <khub/platform.h>
#include <khub/variant.h>
#include <khub/hub.h>
#include <khub/cache.h>
#include <khub/signature.h>
#include <khub/trust.h>
#include <khub/lock.h>
#include <khub/verify.h>
#include <khub/kernel.h>
#include <khub/gpu.h>
#include <khub/check.h>
#include <khub/pack.h>
#include <khub/sbom.h>
#include <khub/mapping.h>
#include <khub/layer.h>

#endif
