/* The safetensors format: what a good file holds, and every way a header can lie. */
#include "unit.h"

#include "model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A file in memory: `header` with its length in front, and `data` bytes of 0, 1, 2, ... behind. */
struct file {
    unsigned char *bytes;
    size_t length;
};

static struct file make(const char *header, size_t data)
{
    size_t n = strlen(header);
    struct file f = {malloc(8 + n + data), 8 + n + data};
    for (int i = 0; i < 8; i++)
        f.bytes[i] = (unsigned char)((uint64_t)n >> (8 * i));
    memcpy(f.bytes + 8, header, n);
    for (size_t i = 0; i < data; i++)
        f.bytes[8 + n + i] = (unsigned char)i;
    return f;
}

START_TEST(good_file)
{
    struct file f = make("{\"__metadata__\":{\"format\":\"pt\"},"
                         "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                         "\"scalar\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[8,16]},"
                         "\"empty\":{\"dtype\":\"BF16\",\"shape\":[3,0],\"data_offsets\":[8,8]},"
                         "\"a\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[16,18]}}   ",
                         18);
    khub_error err = {0};
    khub__safetensors *st;
    ck_khub_ok(khub__safetensors_over(&st, f.bytes, f.length, "f", &err), &err);
    ck_assert_uint_eq(khub__safetensors_count(st), 4);
    ck_assert_str_eq(khub__safetensors_at(st, 0)->name, "a");
    ck_assert_str_eq(khub__safetensors_at(st, 3)->name, "scalar");
    ck_assert_ptr_null(khub__safetensors_at(st, 4));
    const khub__stored *b = khub__safetensors_find(st, "b");
    ck_assert_int_eq(b->ndim, 2);
    ck_assert_int_eq(b->shape[0], 2);
    ck_assert_int_eq(b->dtype.code, KHUB_DTYPE_FLOAT);
    ck_assert_int_eq(b->dtype.bits, 32);
    ck_assert_uint_eq(b->bytes, 8);
    ck_assert_int_eq(*(const unsigned char *)b->data, 0);
    ck_assert_int_eq(*(const unsigned char *)khub__safetensors_find(st, "scalar")->data, 8);
    ck_assert_int_eq(*(const unsigned char *)khub__safetensors_find(st, "a")->data, 16);
    ck_assert_int_eq(khub__safetensors_find(st, "a")->dtype.lanes, 0);
    ck_assert_uint_eq(khub__safetensors_find(st, "empty")->bytes, 0);
    ck_assert_ptr_null(khub__safetensors_find(st, "c"));
    ck_assert_ptr_null(khub__safetensors_find(st, "__metadata__"));
    khub__safetensors_close(st);
    free(f.bytes);
}
END_TEST

START_TEST(nothing_but_a_header)
{
    struct file f = make("{}", 0);
    khub_error err = {0};
    khub__safetensors *st;
    ck_khub_ok(khub__safetensors_over(&st, f.bytes, f.length, "f", &err), &err);
    ck_assert_uint_eq(khub__safetensors_count(st), 0);
    ck_assert_ptr_null(khub__safetensors_find(st, "a"));
    khub__safetensors_close(st);
    free(f.bytes);
}
END_TEST

#define ONE(dtype, shape, offsets)                                                                           \
    "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                                                   \
    "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first                                         \
    "},\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

START_TEST(headers_that_lie)
{
    static const struct {
        const char *header;
        size_t data;
        int status;
        const char *words;
    } table[] = {
        {"", 0, KHUB_E_FORMAT, "not valid JSON"},
        {"[]", 0, KHUB_E_FORMAT, "f.safetensors: is an array"},
        {"{\"t\":1}", 0, KHUB_E_FORMAT, "tensor \"t\": isn't an object"},
        {"{\"t\":{}}", 0, KHUB_E_FORMAT, "\"dtype\" isn't a string"},
        {ONE("7", "[]", "[0,4]"), 4, KHUB_E_FORMAT, "\"dtype\" isn't a string"},
        {ONE("\"F31\"", "[]", "[0,4]"), 4, KHUB_E_UNSUPPORTED,
         "f.safetensors: tensor \"t\": unknown dtype \"F31\""},
        {ONE("\"F32\"", "4", "[0,4]"), 4, KHUB_E_FORMAT, "\"shape\" isn't an array"},
        {ONE("\"F32\"", "[-1]", "[0,4]"), 4, KHUB_E_FORMAT, "\"shape\" holds"},
        {ONE("\"F32\"", "[1.0]", "[0,4]"), 4, KHUB_E_FORMAT, "\"shape\" holds"},
        {ONE("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, KHUB_E_UNSUPPORTED, "has 9 axes"},
        {ONE("\"F32\"", "[1]", "[0]"), 4, KHUB_E_FORMAT, "isn't a pair"},
        {ONE("\"F32\"", "[1]", "[0,\"4\"]"), 4, KHUB_E_FORMAT, "isn't a pair"},
        {ONE("\"F32\"", "[1]", "[-4,0]"), 4, KHUB_E_FORMAT, "data_offsets are [-4, 0]"},
        {ONE("\"F32\"", "[1]", "[4,0]"), 4, KHUB_E_FORMAT, "data_offsets are [4, 0]"},
        {ONE("\"F32\"", "[2]", "[0,8]"), 4, KHUB_E_FORMAT, "the file holds 4 bytes of data"},
        {ONE("\"F32\"", "[1]", "[0,9223372036854775807]"), 4, KHUB_E_FORMAT,
         "the file holds 4 bytes of data"},
        {ONE("\"F32\"", "[2]", "[0,4]"), 4, KHUB_E_FORMAT, "F32 of shape [2] doesn't fill that"},
        {ONE("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0, KHUB_E_FORMAT, "doesn't fill that"},
        {ONE("\"F32\"", "[4611686018427387904]", "[0,0]"), 0, KHUB_E_FORMAT, "doesn't fill that"},
        {ONE("\"F4\"", "[3]", "[0,1]"), 1, KHUB_E_FORMAT, "doesn't fill that"},
        {ONE("\"F32\"", "[1]", "[4,8]"), 8, KHUB_E_FORMAT,
         "tensor \"t\": starts at byte 4 of the data, the one before ends at 0 (a hole)"},
        {ONE("\"F32\"", "[1]", "[0,4]"), 5, KHUB_E_FORMAT,
         "the tensors end at byte 4 of the data, the file holds 5"},
        {TWO("[0,4]", "[2,6]"), 6, KHUB_E_FORMAT,
         "tensor \"y\": starts at byte 2 of the data, the one before ends at 4 (they overlap)"},
        {TWO("[0,4]", "[0,4]"), 4, KHUB_E_FORMAT, "they overlap"},
        {TWO("[0,4]", "[5,9]"), 9, KHUB_E_FORMAT, "a hole"},
        {"{\"t\":{},\"t\":{}}", 0, KHUB_E_FORMAT, "duplicate"},
        {"{\"__metadata__\":[]}", 0, KHUB_E_FORMAT, "\"__metadata__\" is an array"},
        {"{\"__metadata__\":{\"a\":1}}", 0, KHUB_E_FORMAT, "\"a\" is an integer, a string"},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4,
         KHUB_E_FORMAT, "too big integer"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct file f = make(table[i].header, table[i].data);
        khub__safetensors *st = (void *)&f;
        ck_khub_fails(khub__safetensors_over(&st, f.bytes, f.length, "f.safetensors", &err), &err,
                      table[i].status, table[i].words);
        ck_assert_ptr_null(st);
        free(f.bytes);
    }
}
END_TEST

/* A product that would overflow is no lie when a later extent is 0. */
START_TEST(empty_after_a_large_extent)
{
    struct file f = make(ONE("\"F32\"", "[4611686018427387904,4,0]", "[0,0]"), 0);
    khub_error err = {0};
    khub__safetensors *st;
    ck_khub_ok(khub__safetensors_over(&st, f.bytes, f.length, "f", &err), &err);
    ck_assert_uint_eq(khub__safetensors_find(st, "t")->bytes, 0);
    khub__safetensors_close(st);
    free(f.bytes);
}
END_TEST

START_TEST(lengths_that_lie)
{
    struct file f = make(ONE("\"F32\"", "[1]", "[0,4]"), 4);
    khub_error err = {0};
    khub__safetensors *st;
    for (size_t n = 0; n < f.length; n++) { /* cut off anywhere */
        int rc = khub__safetensors_over(&st, f.bytes, n, "f", &err);
        ck_assert_int_eq(rc, KHUB_E_FORMAT);
        khub_error_clear(&err);
    }
    ck_khub_fails(khub__safetensors_over(&st, f.bytes, 7, "f", &err), &err, KHUB_E_FORMAT, "7 bytes long");
    memset(f.bytes, 0xff, 8);
    ck_khub_fails(khub__safetensors_over(&st, f.bytes, f.length, "f", &err), &err, KHUB_E_FORMAT,
                  "18446744073709551615");
    memcpy(f.bytes, "\x00\x00\x00\x01\0\0\0\0", 8);
    ck_khub_fails(khub__safetensors_over(&st, f.bytes, f.length, "f", &err), &err, KHUB_E_FORMAT,
                  "the file is shorter");
    memcpy(f.bytes, "\x00\x00\x00\x10\0\0\0\0", 8);
    ck_khub_fails(khub__safetensors_over(&st, f.bytes, f.length, "f", &err), &err, KHUB_E_FORMAT,
                  "100,000,000");
    free(f.bytes);
}
END_TEST

START_TEST(deep_header)
{
    char *deep = malloc(1000001);
    memset(deep, '[', 1000000);
    memcpy(deep, "{\"a\":", 5);
    deep[1000000] = 0;
    struct file f = make(deep, 0);
    khub_error err = {0};
    khub__safetensors *st;
    ck_khub_fails(khub__safetensors_over(&st, f.bytes, f.length, "f", &err), &err, KHUB_E_FORMAT,
                  "nested deeper");
    free(f.bytes);
    free(deep);
}
END_TEST

START_TEST(from_a_file)
{
    char path[] = "/tmp/khub-safetensors-XXXXXX";
    struct file f = make(ONE("\"F32\"", "[1]", "[0,4]"), 4);
    int fd = mkstemp(path);
    ck_assert_int_eq((int)write(fd, f.bytes, f.length), (int)f.length);
    khub_error err = {0};
    khub__safetensors *st;
    ck_khub_ok(khub__safetensors_open(&st, path, &err), &err);
    ck_assert_str_eq(khub__safetensors_path(st), path);
    khub__safetensors_relax(st); /* the data comes back when it is read */
    ck_assert_int_eq(memcmp(khub__safetensors_find(st, "t")->data, "\0\1\2\3", 4), 0);
    khub__safetensors_close(st);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_khub_fails(khub__safetensors_open(&st, path, &err), &err, KHUB_E_FORMAT, "0 bytes long");
    close(fd);
    unlink(path);
    ck_khub_fails(khub__safetensors_open(&st, path, &err), &err, KHUB_E_NOTFOUND, path);
    ck_khub_fails(khub__safetensors_open(&st, "/tmp", &err), &err, KHUB_E_FORMAT, "directory");
    free(f.bytes);
}
END_TEST

UNIT("safetensors", good_file, nothing_but_a_header, headers_that_lie, empty_after_a_large_extent,
     lengths_that_lie, deep_header, from_a_file)
