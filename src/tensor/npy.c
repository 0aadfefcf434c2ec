/* Arrays in NumPy's files. The elements pass through in pieces, so that an array is in memory once. */
#include <khub/npy.h>

#include "tensor/array.h"
#include "tensor/dtype.h"
#include "tensor/npy_header.h"
#include "tensor/strided.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

enum { PIECE = 1 << 16 }; /* bytes; a multiple of every element's size */

static int read_header(khub__npy_header *header, khub__stream *file, khub_error *err)
{
    char bytes[KHUB__NPY_PREFIX_MAX + KHUB__NPY_TEXT_MAX];
    size_t have = file->size < KHUB__NPY_PREFIX_MAX ? file->size : KHUB__NPY_PREFIX_MAX, start, length;
    int rc = khub__stream_read(file, bytes, have, err);
    if (rc == KHUB_OK) rc = khub__npy_prefix(&start, &length, (unsigned char *)bytes, have, file->path, err);
    if (rc != KHUB_OK) return rc;
    if (length > file->size - start)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %zu bytes long, its header takes %zu", file->path,
                          file->size, start + length);
    if (start + length < have) /* a header of two characters at most: no dictionary */
        return khub__fail(err, KHUB_E_FORMAT, "%s: the header is empty", file->path);
    rc = khub__stream_read(file, bytes + have, start + length - have, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__npy_header_parse(header, bytes + start, length, file->path, err);
    file->size -= start + length; /* what is left of it: the elements */
    return rc;
}

/* The elements must be as many bytes as the shape says, before memory is taken for them. */
static int check_size(const khub__npy_header *header, const khub__stream *file, khub_error *err)
{
    khub_tensor t = khub_tensor_over(NULL, header->dtype, header->ndim, header->shape);
    int64_t bytes = khub_tensor_bytes(&t);
    if (bytes >= 0 && (uint64_t)bytes == file->size) return KHUB_OK;
    char name[32], extents[128];
    khub_dtype_name(header->dtype, name);
    khub__shape_text(extents, header->ndim, header->shape);
    if (bytes < 0)
        return khub__fail(err, KHUB_E_FORMAT, "%s: %s%s takes more than 2^63 bytes", file->path, name,
                          extents);
    return khub__fail(err, KHUB_E_FORMAT, "%s: %s%s takes %lld bytes, %zu follow the header", file->path,
                      name, extents, (long long)bytes, file->size);
}

/* Makes elements that were written big-endian little-endian: reverses every `unit` bytes. */
static void swap_bytes(char *data, size_t bytes, size_t unit)
{
    if (unit == 0) return;
    for (char *at = data; at < data + bytes; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            char kept = at[i];
            at[i] = at[unit - 1 - i];
            at[unit - 1 - i] = kept;
        }
}

/* Column-major elements to their places. */
static int read_transposed(khub_tensor *tensor, size_t swap, khub__stream *file, khub_error *err)
{
    size_t item = khub__dtype_item(tensor->dtype), bytes = file->size;
    khub__strided places;
    khub__strided_start_transposed(&places, tensor, item);
    char *piece = khub__malloc(PIECE);
    if (!piece) return khub__fail_memory(err, "reading a .npy file");
    int rc = KHUB_OK;
    while (bytes > 0 && rc == KHUB_OK) {
        size_t n = bytes < PIECE ? bytes : PIECE;
        rc = khub__stream_read(file, piece, n, err);
        if (rc != KHUB_OK) break;
        swap_bytes(piece, n, swap);
        khub__strided_scatter(&places, piece, n / item);
        bytes -= n;
    }
    khub__free(piece);
    return rc;
}

static int read_elements(khub_tensor *tensor, const khub__npy_header *header, khub__stream *file,
                         khub_error *err)
{
    if (file->size == 0) return KHUB_OK;
    if (header->fortran_order && header->ndim > 1) return read_transposed(tensor, header->swap, file, err);
    int rc = khub__stream_read(file, tensor->data, file->size, err);
    if (rc == KHUB_OK) swap_bytes(tensor->data, file->size, header->swap);
    return rc;
}

int khub_npy_read(khub_array *out, const char *path, khub_error *err)
{
    int missing = khub__given("khub_npy_read", out && path, err);
    if (out) memset(out, 0, sizeof(*out));
    if (missing != KHUB_OK) return missing;
    khub__stream file;
    khub__npy_header header;
    int rc = khub__stream_open(&file, path, err);
    if (rc != KHUB_OK) return rc;
    rc = read_header(&header, &file, err);
    if (rc == KHUB_OK) rc = check_size(&header, &file, err);
    if (rc == KHUB_OK) rc = khub__array_make(out, header.dtype, header.ndim, header.shape, path, err);
    if (rc == KHUB_OK) rc = read_elements(&out->tensor, &header, &file, err);
    khub__stream_close(&file);
    if (rc != KHUB_OK) khub_array_free(out);
    return rc;
}

/* What can be wrong with a tensor that is to be written; its header when nothing is. */
static int header_for(char *header, size_t *length, const khub_tensor *t, const char *path, khub_error *err)
{
    char name[32];
    if (t->device.type != KHUB_DEVICE_CPU)
        return khub__fail(err, KHUB_E_INVAL,
                          "%s: the tensor lies on device %d:%d, only the CPU's (1) can be written", path,
                          (int)t->device.type, (int)t->device.id);
    if (t->ndim > KHUB_MAX_NDIM)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: the tensor has %d dimensions, at most %d are written",
                          path, (int)t->ndim, KHUB_MAX_NDIM);
    int64_t bytes = khub_tensor_bytes(t);
    if (bytes < 0 || (bytes > 0 && !t->data))
        return khub__fail(err, KHUB_E_INVAL, "%s: the tensor has %s", path,
                          bytes < 0 ? "an impossible shape" : "no memory");
    *length = khub__npy_header_write(header, t->dtype, t->ndim, t->shape);
    if (*length == 0)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "%s: NumPy's files have no word for %s", path,
                          khub_dtype_name(t->dtype, name));
    return KHUB_OK;
}

static int write_gathered(khub__draft *file, const khub_tensor *t, khub_error *err)
{
    size_t item = khub__dtype_item(t->dtype), left = (size_t)khub_tensor_count(t);
    khub__strided places;
    khub__strided_start(&places, t, item);
    char *piece = khub__malloc(PIECE);
    if (!piece) return khub__fail_memory(err, "writing a .npy file");
    int rc = KHUB_OK;
    while (left > 0 && rc == KHUB_OK) {
        size_t n = left < PIECE / item ? left : PIECE / item;
        khub__strided_gather(&places, piece, n);
        rc = khub__draft_write(file, piece, n * item, err);
        left -= n;
    }
    khub__free(piece);
    return rc;
}

static int write_elements(khub__draft *file, const khub_tensor *t, khub_error *err)
{
    int64_t bytes = khub_tensor_bytes(t);
    if (bytes == 0) return KHUB_OK;
    if (!khub_tensor_is_compact(t)) return write_gathered(file, t, err);
    return khub__draft_write(file, (const char *)t->data + t->byte_offset, (size_t)bytes, err);
}

/* Everything but putting the file in place. */
static int write_draft(khub__draft **out, const char *path, const khub_tensor *tensor, khub_error *err)
{
    char header[KHUB__NPY_WRITTEN_MAX];
    size_t length;
    khub__draft *file = NULL;
    *out = NULL;
    int rc = khub__given("khub_npy_write", path && tensor, err);
    if (rc == KHUB_OK) rc = header_for(header, &length, tensor, path, err);
    if (rc == KHUB_OK) rc = khub__draft_open(&file, path, err);
    if (rc == KHUB_OK) rc = khub__draft_write(file, header, length, err);
    if (rc == KHUB_OK) rc = write_elements(file, tensor, err);
    if (rc == KHUB_OK) rc = khub__draft_sync(file, err);
    if (rc == KHUB_OK)
        *out = file;
    else
        khub__draft_discard(file);
    return rc;
}

int khub_npy_write(const char *path, const khub_tensor *tensor, khub_error *err)
{
    khub__draft *file;
    int rc = write_draft(&file, path, tensor, err);
    return rc == KHUB_OK ? khub__draft_commit(file, err) : rc;
}

int khub_npy_write_all(const char *const *paths, const khub_tensor *const *tensors, size_t count,
                       khub_error *err)
{
    int rc = khub__given("khub_npy_write_all", !count || (paths && tensors), err);
    if (rc != KHUB_OK) return rc;
    khub__draft **files = khub__calloc(count, sizeof(khub__draft *));
    if (!files) return khub__fail_memory(err, "writing .npy files");
    for (size_t i = 0; i < count && rc == KHUB_OK; i++)
        rc = write_draft(&files[i], paths[i], tensors[i], err);
    for (size_t i = 0; i < count; i++)
        if (rc == KHUB_OK)
            rc = khub__draft_commit(files[i], err);
        else
            khub__draft_discard(files[i]);
    khub__free(files);
    return rc;
}
