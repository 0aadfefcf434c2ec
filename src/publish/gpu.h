#ifndef PUBLISH_GPU_H
#define PUBLISH_GPU_H

#include "publish/object.h"

/* Adds the architectures of the code in a section: of fat binaries (".nv_fatbin"), and of bundles
 * (".hip_fatbin"). What can't be read is passed over. */
void khub__cuda_read(khub__object *out, const char *data, size_t length);
void khub__hip_read(khub__object *out, const char *data, size_t length);

#endif
