/* Reads "IN OUT MODE" from each line of stdin and copies the array in IN to OUT: as it is (copy), or a view
 * of it with its axes reversed (transpose) or its last axis backwards (flip). Prints a line for each: "ok
 * float32 2 3", or a status and its words. For tests that compare with NumPy. */
#include <khub/npy.h>

#include <stdio.h>

static void view(khub_tensor *t, int64_t *shape, int64_t *strides, const char *mode)
{
    const khub_tensor all = *t;
    int64_t step = 1;
    for (int32_t i = t->ndim; i-- > 0; step *= all.shape[i]) {
        int32_t to = mode[0] == 't' ? t->ndim - 1 - i : i;
        shape[to] = all.shape[i];
        strides[to] = step;
    }
    t->shape = shape;
    if (mode[0] != 'c') t->strides = strides;
    if (mode[0] != 'f' || t->ndim == 0 || khub_tensor_count(t) == 0) return;
    int32_t last = t->ndim - 1;
    t->byte_offset = (uint64_t)((shape[last] - 1) * t->dtype.bits / 8);
    strides[last] = -1;
}

int main(void)
{
    char in[1000], out[1000], mode[20], dtype[32];
    while (scanf("%999s %999s %19s", in, out, mode) == 3) {
        khub_array a;
        khub_error err = {0};
        int64_t shape[KHUB_MAX_NDIM], strides[KHUB_MAX_NDIM];
        int rc = khub_npy_read(&a, in, &err);
        if (rc == KHUB_OK) {
            khub_tensor t = a.tensor;
            view(&t, shape, strides, mode);
            rc = khub_npy_write(out, &t, &err);
        }
        printf("%s", rc == KHUB_OK ? "ok" : khub_status_name(rc));
        if (rc == KHUB_OK)
            printf(" %s", khub_dtype_name(a.tensor.dtype, dtype));
        else
            printf(" %s", err.message);
        for (int32_t i = 0; rc == KHUB_OK && i < a.tensor.ndim; i++)
            printf(" %lld", (long long)a.shape[i]);
        putchar('\n');
        khub_array_free(&a);
    }
    return 0;
}
