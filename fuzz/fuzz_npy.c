/* khub_npy_read on any bytes: no crash, no memory beyond what the file's size allows, and what is accepted is
 * a tensor that is written and read again to the same bits. */
#include <khub/npy.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a file that lives in memory, reached through /proc. */
static const char *put(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) fd = memfd_create("input", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    return path;
}

static void check(int holds)
{
    if (!holds) abort();
}

static void write_and_read(const khub_array *a)
{
    static char path[64];
    khub_array b;
    snprintf(path, sizeof(path), "/dev/shm/khub-fuzz-%ld.npy", (long)getpid());
    check(khub_npy_write(path, &a->tensor, NULL) == KHUB_OK && khub_npy_read(&b, path, NULL) == KHUB_OK);
    int64_t bytes = khub_tensor_bytes(&a->tensor);
    check(bytes == khub_tensor_bytes(&b.tensor) && a->tensor.ndim == b.tensor.ndim);
    check(memcmp(&a->tensor.dtype, &b.tensor.dtype, sizeof(khub_dtype)) == 0);
    check(memcmp(a->shape, b.shape, sizeof(a->shape)) == 0);
    check(bytes == 0 || memcmp(a->tensor.data, b.tensor.data, (size_t)bytes) == 0);
    khub_array_free(&b);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub_array a;
    khub_error err = {0};
    int rc = khub_npy_read(&a, put(data, size), &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK) == (err.message[0] == 0));
    if (rc != KHUB_OK) return 0;
    int64_t bytes = khub_tensor_bytes(&a.tensor);
    check(bytes >= 0 && (uint64_t)bytes < size && khub_tensor_is_compact(&a.tensor));
    if (size % 8 == 0) write_and_read(&a); /* one in eight: it costs a system call or ten */
    khub_array_free(&a);
    return 0;
}
