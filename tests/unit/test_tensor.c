/* Dtypes, extents, strides, arrays. */
#include "unit.h"

#include <khub/npy.h>

#include <stdio.h>

static const int64_t BIG = INT64_C(1) << 62;

static const char *const names[] = {"bool",          "int8",       "int16",    "int32",     "int64",
                                    "uint8",         "uint16",     "uint32",   "uint64",    "float16",
                                    "float32",       "float64",    "bfloat16", "complex64", "complex128",
                                    "float8_e4m3fn", "float8_e5m2"};

START_TEST(dtype_names_there_and_back)
{
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        khub_dtype dtype;
        char buffer[32];
        ck_khub_ok(khub_dtype_parse(&dtype, names[i], &err), &err);
        ck_assert_str_eq(khub_dtype_name(dtype, buffer), names[i]);
        ck_assert_uint_eq(dtype.lanes, 1);
    }
}
END_TEST

START_TEST(dtype_unknown_names)
{
    static const char *const wrong[] = {"",         "float",     "float33", "Float32",
                                        "float32 ", "float32x4", "complex", "f4"};
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        khub_dtype dtype = {9, 9, 9};
        char words[64];
        snprintf(words, sizeof(words), "\"%s\" is no dtype", wrong[i]);
        ck_khub_fails(khub_dtype_parse(&dtype, wrong[i], &err), &err, KHUB_E_INVAL, words);
        ck_assert_int_eq(dtype.bits, 0);
    }
    khub_dtype dtype;
    ck_assert_int_eq(khub_dtype_parse(&dtype, NULL, NULL), KHUB_E_INVAL);
}
END_TEST

/* What tvm-ffi prints for the same bytes, where it prints at all. */
START_TEST(dtype_names_of_any_bytes)
{
    static const struct {
        khub_dtype dtype;
        const char *name;
    } table[] = {
        {{0, 4, 1}, "int4"},
        {{2, 32, 4}, "float32x4"},
        {{3, 64, 1}, "handle64"},
        {{6, 1, 1}, "bool1"},
        {{6, 8, 2}, "boolx2"},
        {{8, 8, 1}, "float8_e4m3"},
        {{9, 8, 65535}, "float8_e4m3b11fnuzx65535"},
        {{14, 8, 1}, "float8_e8m0fnu"},
        {{15, 6, 1}, "float6_e2m3fn"},
        {{17, 4, 2}, "float4_e2m1fnx2"},
        {{18, 8, 1}, "code18_8"},
        {{255, 255, 65535}, "code255_255x65535"},
        {{2, 32, 0}, "float32x0"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char buffer[32];
        ck_assert_str_eq(khub_dtype_name(table[i].dtype, buffer), table[i].name);
    }
}
END_TEST

typedef struct extents {
    int32_t ndim;
    int64_t shape[9];
    int64_t count;
} extents;

START_TEST(count)
{
    const extents table[] = {
        {0, {0}, 1},
        {1, {0}, 0},
        {1, {7}, 7},
        {3, {2, 3, 4}, 24},
        {1, {INT64_MAX}, INT64_MAX},
        {1, {-1}, -1},
        {2, {-1, -1}, -1},
        {2, {0, -1}, -1},
        {2, {BIG, 2}, -1}, /* 2^63 */
        {2, {BIG, 1}, BIG},
        {2, {BIG - 1, 2}, 2 * (BIG - 1)},
        {3, {BIG, BIG, 0}, 0},
        {3, {0, BIG, BIG}, 0},
        {3, {INT64_MAX, INT64_MAX, INT64_MAX}, -1},
        {2, {INT64_C(3037000500), INT64_C(3037000500)}, -1}, /* 2^63 + 4,192,... */
        {2, {INT64_C(3037000499), INT64_C(3037000499)}, INT64_C(9223372030926249001)},
        {9, {1, 1, 1, 1, 1, 1, 1, 1, 2}, 2},
        {-1, {0}, -1},
        {INT32_MIN, {0}, -1},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_tensor t = khub_tensor_f32(NULL, table[i].ndim, table[i].shape);
        ck_assert_int_eq(khub_tensor_count(&t), table[i].count);
    }
    khub_tensor none = khub_tensor_f32(NULL, 1, NULL);
    ck_assert_int_eq(khub_tensor_count(&none), -1);
}
END_TEST

START_TEST(bytes)
{
    const struct {
        khub_dtype dtype;
        int64_t n, bytes;
    } table[] = {
        {{2, 32, 1}, 3, 12},
        {{2, 32, 1}, 0, 0},
        {{2, 32, 1}, -3, -1},
        {{2, 32, 1}, INT64_MAX / 4, INT64_MAX / 4 * 4},
        {{2, 32, 1}, INT64_MAX / 4 + 1, -1}, /* 2^63 */
        {{0, 8, 1}, INT64_MAX, INT64_MAX},
        {{0, 8, 2}, INT64_MAX, -1},
        {{5, 128, 1}, INT64_MAX / 16, INT64_MAX / 16 * 16},
        {{5, 128, 1}, INT64_MAX / 16 + 1, -1},
        {{0, 4, 1}, 3, 2},           /* 12 bits */
        {{0, 4, 1}, INT64_MAX, BIG}, /* (2^63 - 1) / 2 rounded up */
        {{0, 1, 1}, 9, 2},
        {{15, 6, 1}, 4, 3},
        {{0, 1, 1}, INT64_MAX, INT64_C(1) << 60},
        {{2, 32, 4}, 2, 32},
        {{255, 255, 65535}, 1, 2088929}, /* 16,711,425 bits */
        {{255, 255, 65535}, INT64_MAX / 8, -1},
        {{2, 0, 1}, 5, 0},
        {{2, 32, 0}, INT64_MAX, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_tensor t = khub_tensor_over(NULL, table[i].dtype, 1, &table[i].n);
        ck_assert_int_eq(khub_tensor_bytes(&t), table[i].bytes);
    }
}
END_TEST

START_TEST(compactness)
{
    static const struct {
        int32_t ndim;
        int64_t shape[3], strides[3];
        int compact;
    } table[] = {
        {0, {0}, {0}, 1},        {1, {5}, {1}, 1},
        {1, {5}, {2}, 0},        {1, {5}, {-1}, 0},
        {1, {5}, {0}, 0},        {1, {1}, {77}, 1},
        {2, {2, 3}, {3, 1}, 1},  {2, {2, 3}, {1, 2}, 0},
        {2, {2, 3}, {4, 1}, 0},  {3, {2, 1, 3}, {3, -9, 1}, 1},
        {2, {0, 3}, {8, 8}, 1}, /* nothing there to have gaps */
        {2, {-2, 3}, {3, 1}, 0}, {2, {INT64_MAX, INT64_MAX}, {INT64_MAX, 1}, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_tensor t = khub_tensor_f32(NULL, table[i].ndim, table[i].shape);
        ck_assert_int_eq(khub_tensor_is_compact(&t), 1);
        t.strides = (int64_t *)(uintptr_t)table[i].strides;
        ck_assert_msg(khub_tensor_is_compact(&t) == table[i].compact, "row %zu", i);
    }
}
END_TEST

START_TEST(array_is_zeroed_and_aligned)
{
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        khub_array a;
        khub_dtype dtype;
        ck_khub_ok(khub_dtype_parse(&dtype, names[i], &err), &err);
        ck_khub_ok(khub_array_new(&a, dtype, 2, (int64_t[]){3, 5}, &err), &err);
        ck_assert_int_eq(a.tensor.ndim, 2);
        ck_assert_ptr_eq(a.tensor.shape, a.shape);
        ck_assert_ptr_null(a.tensor.strides);
        ck_assert_int_eq(a.tensor.device.type, KHUB_DEVICE_CPU);
        ck_assert_uint_eq((uintptr_t)a.tensor.data % 64, 0);
        ck_assert_int_eq(khub_tensor_bytes(&a.tensor), 15 * dtype.bits / 8);
        for (int k = 0; k < 15 * dtype.bits / 8; k++)
            ck_assert_int_eq(((char *)a.tensor.data)[k], 0);
        khub_array_free(&a);
        ck_assert_ptr_null(a.tensor.data);
        khub_array_free(&a); /* zeroed: nothing to do */
    }
    khub_array_free(NULL);
}
END_TEST

START_TEST(array_without_elements_has_no_memory)
{
    khub_error err = {0};
    khub_array a;
    ck_khub_ok(khub_array_new(&a, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), 3, (int64_t[]){BIG, 0, BIG}, &err),
               &err);
    ck_assert_ptr_null(a.tensor.data);
    ck_assert_int_eq(khub_tensor_count(&a.tensor), 0);
    khub_array_free(&a);
    ck_khub_ok(khub_array_new(&a, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), 0, NULL, &err), &err);
    ck_assert_int_eq(khub_tensor_count(&a.tensor), 1);
    ck_assert_int_eq(*(int *)a.tensor.data, 0);
    khub_array_free(&a);
}
END_TEST

START_TEST(array_that_cannot_be)
{
    const khub_dtype f32 = khub_dtype_of(KHUB_DTYPE_FLOAT, 32);
    const struct {
        khub_dtype dtype;
        int32_t ndim;
        int64_t shape[9];
        int status;
        const char *words;
    } table[] = {
        {f32, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, KHUB_E_INVAL, "an array of 9 dimensions: 0 to 8"},
        {f32, -1, {0}, KHUB_E_INVAL, "of -1 dimensions"},
        {f32, 2, {3, -4}, KHUB_E_INVAL, "float32[3,-4]: a negative extent"},
        {f32,
         1,
         {BIG},
         KHUB_E_INVAL,
         "float32[4611686018427387904]: a negative extent, or more than 2^63 bytes"},
        {f32, 8, {BIG, BIG, BIG, BIG, BIG, BIG, BIG, BIG}, KHUB_E_INVAL, ",...]: a negative"},
        {f32,
         1,
         {BIG / 4},
         KHUB_E_NOMEM,
         "float32[1152921504606846976]: out of memory for 4611686018427387904 bytes"},
        {khub_dtype_of(KHUB_DTYPE_INT, 8),
         1,
         {INT64_MAX},
         KHUB_E_NOMEM,
         "int8[9223372036854775807]: out of memory for 9223372036854775807 bytes"},
        {khub_dtype_of(KHUB_DTYPE_FLOAT, 0), 1, {1}, KHUB_E_INVAL, "float0[1]: the dtype has no size"},
        {{KHUB_DTYPE_FLOAT, 32, 0}, 1, {1}, KHUB_E_INVAL, "float32x0[1]: the dtype has no size"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_array a;
        ck_khub_fails(khub_array_new(&a, table[i].dtype, table[i].ndim, table[i].shape, &err), &err,
                      table[i].status, table[i].words);
        ck_assert_ptr_null(a.memory);
        khub_array_free(&a);
    }
}
END_TEST

UNIT("tensor", dtype_names_there_and_back, dtype_unknown_names, dtype_names_of_any_bytes, count, bytes,
     compactness, array_is_zeroed_and_aligned, array_without_elements_has_no_memory, array_that_cannot_be)
