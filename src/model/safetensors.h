/* The safetensors format: a JSON header and the bytes of tensors, mapped and not copied. */
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include <khub/tensor.h>

typedef struct khub__safetensors khub__safetensors;

/* One tensor of a file; everything is the file's. */
typedef struct khub__stored {
    const char *name;
    const char *type; /* as the file says it: "F32", "F8_E8M0" */
    khub_dtype dtype; /* lanes 0: `type` has no khub_dtype */
    int32_t ndim;
    int64_t shape[KHUB_MAX_NDIM];
    const void *data; /* aligned as the file has it: not at all, perhaps */
    size_t bytes;
    size_t begin; /* of the data within the file's data section */
} khub__stored;

/* Maps `path` and checks the whole header: sizes, types, shapes, that the tensors cover the data section
 * without overlap or hole. KHUB_E_NOTFOUND, KHUB_E_IO, KHUB_E_FORMAT (the file, the tensor and the fact),
 * KHUB_E_UNSUPPORTED (an unknown type, more than KHUB_MAX_NDIM axes), KHUB_E_NOMEM. */
int khub__safetensors_open(khub__safetensors **out, const char *path, khub_error *err);

/* The same over `length` bytes of memory, borrowed until close; `name` stands for the file in messages. */
int khub__safetensors_over(khub__safetensors **out, const void *data, size_t length, const char *name,
                           khub_error *err);

void khub__safetensors_close(khub__safetensors *file); /* NULL is a no-op */

/* NULL when there is none of that name. */
const khub__stored *khub__safetensors_find(const khub__safetensors *file, const char *name);

size_t khub__safetensors_count(const khub__safetensors *file);
const khub__stored *khub__safetensors_at(const khub__safetensors *file, size_t i); /* by name in byte order */
const char *khub__safetensors_path(const khub__safetensors *file);

/* Tells the system that the pages read so far aren't needed for now; they come back when touched. */
void khub__safetensors_relax(const khub__safetensors *file);

#endif
