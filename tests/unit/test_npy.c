/* NumPy's files: what is read, what is refused and in which words, what is written. tests/oracle asks NumPy
 * itself. */
#include "failing_memory.h"
#include "unit.h"

#include <khub/npy.h>

#include "base/file.h"
#include "base/memory.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/khub-npy-XXXXXX", path[64];

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a.npy", dir);
}

/* Nothing may be left in the directory but a.npy, if that. */
static void finish(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

static void write_file(const void *data, size_t length)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, length, f), length);
    ck_assert_int_eq(fclose(f), 0);
}

/* A file of version `version` with this header and `n` elements bytes 0, 1, 2, … */
static void write_npy(int version, const char *header, size_t n)
{
    static unsigned char bytes[20000];
    size_t length = strlen(header), start_at = version == 1 ? 10 : 12;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[7] = 0;
    memset(bytes + 8, 0, 4);
    bytes[8] = length & 255;
    bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + start_at, header, length);
    for (size_t i = 0; i < n; i++)
        bytes[start_at + length + i] = (unsigned char)i;
    write_file(bytes, start_at + length + n);
}

static void expect(const char *dtype, int32_t ndim, const int64_t *shape, const unsigned char *bytes,
                   size_t n)
{
    khub_error err = {0};
    khub_array a;
    char name[32];
    ck_khub_ok(khub_npy_read(&a, path, &err), &err);
    ck_assert_str_eq(khub_dtype_name(a.tensor.dtype, name), dtype);
    ck_assert_int_eq(a.tensor.ndim, ndim);
    for (int32_t i = 0; i < ndim; i++)
        ck_assert_int_eq(a.tensor.shape[i], shape[i]);
    ck_assert_int_eq(khub_tensor_bytes(&a.tensor), (int64_t)n);
    if (n) ck_assert_mem_eq(a.tensor.data, bytes, n);
    ck_assert_uint_eq((uintptr_t)a.tensor.data % 64, 0);
    khub_array_free(&a);
}

static void refuse(int status, const char *words)
{
    khub_error err = {0};
    khub_array a;
    int rc = khub_npy_read(&a, path, &err);
    ck_assert_msg(strstr(err.message, path) != NULL, "the file isn't named: %s", err.message);
    ck_assert_ptr_null(a.memory);
    ck_khub_fails(rc, &err, status, words);
}

START_TEST(forms_of_the_header)
{
    static const char *const same[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}",
        "{\"shape\":(2,3),\"descr\":\"<i2\",\"fortran_order\":False}\n",
        "  { 'shape' : ( 2 , 3 , ) , 'fortran_order' : False , 'descr' : '=i2' , } \t\r\n",
        "{'descr': 'i2', 'fortran_order': False, 'shape': (2L, 3L), }\n",
        "{'descr': '|i2', 'fortran_order': False, 'shape': (\n2,\n3), }\n",
    };
    static const unsigned char counted[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    start();
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        for (int version = 1; version <= 3; version++) {
            write_npy(version, same[i], 12);
            expect("int16", 2, (int64_t[]){2, 3}, counted, 12);
        }
    finish();
}
END_TEST

START_TEST(ranks_and_nothing)
{
    static const unsigned char counted[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    start();
    write_npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8);
    expect("float64", 0, NULL, counted, 8);
    write_npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': ()}", 8);
    expect("float64", 0, NULL, counted, 8);
    write_npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (8,)}", 8);
    expect("uint8", 1, (int64_t[]){8}, counted, 8);
    write_npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 1, 2, 1, 2, 1, 1, 2)}", 8);
    expect("uint8", 8, (int64_t[]){1, 1, 2, 1, 2, 1, 1, 2}, (const unsigned char[]){0, 4, 2, 6, 1, 5, 3, 7},
           8);
    write_npy(1, "{'descr': '<c16', 'fortran_order': True, 'shape': (3, 0)}", 0);
    expect("complex128", 2, (int64_t[]){3, 0}, NULL, 0);
    finish();
}
END_TEST

START_TEST(order_and_byte_order)
{
    start();
    write_npy(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 12);
    expect("int16", 2, (int64_t[]){2, 3}, (const unsigned char[]){1, 0, 5, 4, 9, 8, 3, 2, 7, 6, 11, 10}, 12);
    write_npy(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}", 8);
    expect("complex64", 1, (int64_t[]){1}, (const unsigned char[]){3, 2, 1, 0, 7, 6, 5, 4}, 8);
    /* ml_dtypes' types keep this machine's order whatever the header says */
    write_npy(1, "{'descr': '>V2', 'fortran_order': False, 'shape': (1,)}", 2);
    expect("bfloat16", 1, (int64_t[]){1}, (const unsigned char[]){0, 1}, 2);
    finish();
}
END_TEST

START_TEST(headers_that_lie)
{
    static const struct {
        const char *header;
        size_t bytes;
        int status;
        const char *words;
    } table[] = {
#define HEADER(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
        {HEADER("'<f4'", "False", "(3,)"), 11, KHUB_E_FORMAT,
         "float32[3] takes 12 bytes, 11 follow the header"},
        {HEADER("'<f4'", "False", "(3,)"), 13, KHUB_E_FORMAT,
         "float32[3] takes 12 bytes, 13 follow the header"},
        {HEADER("'<f4'", "False", "(3,)"), 0, KHUB_E_FORMAT, "takes 12 bytes, 0 follow"},
        {HEADER("'<f4'", "False", "(0,)"), 1, KHUB_E_FORMAT, "float32[0] takes 0 bytes, 1 follow"},
        {HEADER("'<f4'", "False", "(1073741824, 1073741824)"), 4, KHUB_E_FORMAT,
         "takes 4611686018427387904 bytes"},
        {HEADER("'<f4'", "False", "(2305843009213693952,)"), 4, KHUB_E_FORMAT, "more than 2^63 bytes"},
        {HEADER("'<f4'", "False", "(4294967296, 4294967296)"), 4, KHUB_E_FORMAT, "more than 2^63 bytes"},
        {HEADER("'<f4'", "False", "(9223372036854775807,)"), 4, KHUB_E_FORMAT, "more than 2^63 bytes"},
        {HEADER("'<f4'", "False", "(9223372036854775808,)"), 4, KHUB_E_FORMAT,
         "an extent of more than 2^63 - 1"},
        {HEADER("'<f4'", "False", "(18446744073709551617,)"), 4, KHUB_E_FORMAT,
         "an extent of more than 2^63 - 1"},
        {HEADER("'<f4'", "False", "(-1,)"), 4, KHUB_E_FORMAT, "negative extent"},
        {HEADER("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4, KHUB_E_UNSUPPORTED, "more than 8 dimensions"},
        {HEADER("'<f4'", "False", "(1)"), 4, KHUB_E_FORMAT, "\",\" after a single extent"},
        {HEADER("'<f4'", "False", "(,)"), 4, KHUB_E_FORMAT, "an extent is expected where it says ,)"},
        {HEADER("'<f4'", "False", "(1 1)"), 4, KHUB_E_FORMAT, "\",\" or \")\" is expected"},
        {HEADER("'<f4'", "False", "(01,)"), 4, KHUB_E_FORMAT, "leading zeros"},
        {HEADER("'<f4'", "False", "(1.0,)"), 4, KHUB_E_FORMAT,
         "\",\" or \")\" is expected where it says .0,)"},
        {HEADER("'<f4'", "False", "1"), 4, KHUB_E_FORMAT, "a tuple is expected"},
        {HEADER("'<f4'", "False", "(1,"), 4, KHUB_E_FORMAT, "an extent is expected where it says , }"},
        {HEADER("'<f4'", "1", "(1,)"), 4, KHUB_E_FORMAT,
         "True or False is expected where it says 1, 'shape'"},
        {HEADER("'<f4'", "false", "(1,)"), 4, KHUB_E_FORMAT, "True or False is expected"},
        {HEADER("4", "False", "(1,)"), 4, KHUB_E_FORMAT, "a string in quotes is expected where it says 4"},
        {HEADER("'\\x3cf4'", "False", "(1,)"), 4, KHUB_E_FORMAT, "a short plain word"},
        {HEADER("'0123456789012345678901234567890123456789'", "False", "(1,)"), 4, KHUB_E_FORMAT,
         "a short plain word"},
        {HEADER("'<f4", "False", "(1,)"), 4, KHUB_E_FORMAT, "\"<f4, \" is no dtype"},
        {HEADER("'x'", "False", "(1,)"), 4, KHUB_E_FORMAT, "\"x\" is no dtype"},
        {HEADER("''", "False", "(1,)"), 4, KHUB_E_FORMAT, "\"\" is no dtype"},
        {HEADER("'<'", "False", "(1,)"), 4, KHUB_E_FORMAT, "\"<\" is no dtype"},
        {HEADER("'|O'", "False", "(1,)"), 4, KHUB_E_UNSUPPORTED, "holds Python objects (\"|O\")"},
        {HEADER("'<U5'", "False", "(1,)"), 20, KHUB_E_UNSUPPORTED, "holds text"},
        {HEADER("'|S5'", "False", "(1,)"), 5, KHUB_E_UNSUPPORTED, "holds text"},
        {HEADER("'<M8[s]'", "False", "(1,)"), 8, KHUB_E_UNSUPPORTED, "holds dates"},
        {HEADER("'|V3'", "False", "(1,)"), 3, KHUB_E_UNSUPPORTED, "holds raw bytes"},
        {HEADER("'<f16'", "False", "(1,)"), 16, KHUB_E_UNSUPPORTED, "numbers of a size"},
        {HEADER("[('a', '<i4'), ('b', '<f4')]", "False", "(1,)"), 8, KHUB_E_UNSUPPORTED, "holds records"},
        {HEADER("('<i4', (2,))", "False", "(1,)"), 8, KHUB_E_UNSUPPORTED, "holds records"},
        {HEADER("'<f4'", "False", "(1,)") " x", 4, KHUB_E_FORMAT, "nothing more is expected where it says x"},
        {"{'descr': '<f4', 'fortran_order': False}", 4, KHUB_E_FORMAT, "has no \"shape\""},
        {"{'fortran_order': False, 'shape': ()}", 4, KHUB_E_FORMAT, "has no \"descr\""},
        {"{}", 4, KHUB_E_FORMAT, "has no \"descr\""},
        {"{'descr': '<f4', 'descr': '<f4'}", 4, KHUB_E_FORMAT, "\"descr\" is there twice"},
        {"{'shape': (), 'x': 1}", 4, KHUB_E_FORMAT, "\"x\" is none of NumPy's"},
        {"{'descr' '<f4'}", 4, KHUB_E_FORMAT, "\":\" is expected"},
        {"{'descr': '<f4' 'shape': ()}", 4, KHUB_E_FORMAT, "\",\" or \"}\" is expected"},
        {"{'descr': '<f4',", 0, KHUB_E_FORMAT, "a string in quotes is expected at its end"},
        {"[1]", 4, KHUB_E_FORMAT, "\"{\" is expected where it says [1]"},
        {"\xFF\x01", 4, KHUB_E_FORMAT, "where it says ??"},
        {" ", 4, KHUB_E_FORMAT, "the header is"},
#undef HEADER
    };
    start();
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        write_npy(1 + (int)i % 3, table[i].header, table[i].bytes);
        refuse(table[i].status, table[i].words);
    }
    finish();
}
END_TEST

START_TEST(prefixes_that_lie)
{
    static const struct {
        const char *bytes;
        size_t length;
        int status;
        const char *words;
    } table[] = {
        {"", 0, KHUB_E_FORMAT, "is no .npy file"},
        {"\x93NUMP", 5, KHUB_E_FORMAT, "is no .npy file"},
        {"PK\3\4 a zip file, like .npz", 20, KHUB_E_FORMAT, "is no .npy file"},
        {"\x93NUMPY", 6, KHUB_E_FORMAT, "ends after 6 bytes"},
        {"\x93NUMPY\1\0\2", 9, KHUB_E_FORMAT, "ends after 9 bytes"},
        {"\x93NUMPY\1\0\0\0", 10, KHUB_E_FORMAT, "\"{\" is expected at its end"},
        {"\x93NUMPY\1\0\0\0{}", 12, KHUB_E_FORMAT, "the header is empty"},
        {"\x93NUMPY\2\0\2\0\0", 11, KHUB_E_FORMAT, "ends after 11 bytes"},
        {"\x93NUMPY\2\0\0\0\0\0", 12, KHUB_E_FORMAT, "\"{\" is expected at its end"},
        {"\x93NUMPY\1\0\4\0{}", 12, KHUB_E_FORMAT, "is 12 bytes long, its header takes 14"},
        {"\x93NUMPY\4\0\0\0\0\0", 12, KHUB_E_UNSUPPORTED, "has version 4.0"},
        {"\x93NUMPY\1\1\0\0\0\0", 12, KHUB_E_UNSUPPORTED, "has version 1.1"},
        {"\x93NUMPY\0\0\0\0\0\0", 12, KHUB_E_UNSUPPORTED, "has version 0.0"},
        {"\x93NUMPY\2\0\377\377\377\377", 12, KHUB_E_FORMAT, "is 4294967295 bytes long, at most 10000"},
    };
    start();
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        write_file(table[i].bytes, table[i].length);
        refuse(table[i].status, table[i].words);
    }
    finish();
}
END_TEST

/* A good file cut anywhere is refused. */
START_TEST(truncated_anywhere)
{
    start();
    write_npy(2, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", 12);
    khub__bytes whole;
    khub_error err = {0};
    khub_array a;
    ck_khub_ok(khub__file_read(&whole, path, 1000, &err), &err);
    for (size_t n = 0; n < whole.length; n++) {
        write_file(whole.data, n);
        ck_assert_int_eq(khub_npy_read(&a, path, &err), KHUB_E_FORMAT);
        khub_error_clear(&err);
    }
    khub__bytes_free(&whole);
    finish();
}
END_TEST

START_TEST(what_is_no_file)
{
    start();
    refuse(KHUB_E_NOTFOUND, "No such file");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    refuse(KHUB_E_FORMAT, "is a device or pipe");
    unlink(path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    refuse(KHUB_E_FORMAT, "is a directory");
    rmdir(path);
    finish();
}
END_TEST

/* The bytes that numpy.save makes of np.array([[1, 2], [3, 4]], "<i2"), as the format's description has them.
 */
START_TEST(written_byte_for_byte)
{
    int16_t data[] = {1, 2, 3, 4};
    khub_tensor t = khub_tensor_over(data, khub_dtype_of(KHUB_DTYPE_INT, 16), 2, (int64_t[]){2, 2});
    khub_error err = {0};
    khub__bytes got;
    char expected[137];
    start();
    ck_khub_ok(khub_npy_write(path, &t, &err), &err);
    ck_khub_ok(khub__file_read(&got, path, 1000, &err), &err);
    snprintf(expected, sizeof(expected), "......%c.%c.%-117s\n", 1, 118,
             "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }");
    memcpy(expected, "\x93NUMPY", 6);
    expected[7] = expected[9] = 0;
    memcpy(expected + 128, data, 8);
    ck_assert_uint_eq(got.length, 136);
    ck_assert_mem_eq(got.data, expected, 136);
    khub__bytes_free(&got);
    finish();
}
END_TEST

/* Views of one block of memory, read back and compared with the definition of a stride. */
START_TEST(any_strides)
{
    static const struct {
        int32_t ndim;
        int64_t shape[3], strides[3];
        uint64_t first; /* element */
    } table[] = {
        {1, {5}, {3}, 2},
        {1, {5}, {-1}, 9},
        {1, {4}, {0}, 7},
        {2, {3, 4}, {1, 3}, 0},
        {2, {3, 4}, {-20, 2}, 99},
        {2, {0, 4}, {7, 7}, 0},
        {3, {2, 3, 4}, {1, 2, 6}, 5},
        {3, {1, 1, 9}, {-99, 44, 11}, 1},
        {0, {0}, {0}, 42},
        {2, {300, 300}, {1, 300}, 0}, /* more than one piece */
    };
    static uint64_t memory[90000];
    khub_error err = {0};
    for (size_t i = 0; i < 90000; i++)
        memory[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    start();
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_tensor t =
            khub_tensor_over(memory, khub_dtype_of(KHUB_DTYPE_UINT, 64), table[i].ndim, table[i].shape);
        t.strides = (int64_t *)(uintptr_t)table[i].strides;
        t.byte_offset = 8 * table[i].first;
        khub_array a;
        ck_khub_ok(khub_npy_write(path, &t, &err), &err);
        ck_khub_ok(khub_npy_read(&a, path, &err), &err);
        int64_t shape[3] = {1, 1, 1}, strides[3] = {0};
        for (int d = 0; d < table[i].ndim; d++)
            shape[d] = table[i].shape[d], strides[d] = table[i].strides[d];
        const uint64_t *got = a.tensor.data;
        for (int64_t x = 0; x < shape[0]; x++)
            for (int64_t y = 0; y < shape[1]; y++)
                for (int64_t z = 0; z < shape[2]; z++)
                    ck_assert_uint_eq(
                        *got++,
                        memory[(int64_t)table[i].first + x * strides[0] + y * strides[1] + z * strides[2]]);
        ck_assert_int_eq(khub_tensor_count(&a.tensor), shape[0] * shape[1] * shape[2]);
        khub_array_free(&a);
    }
    finish();
}
END_TEST

START_TEST(tensors_that_cannot_be_written)
{
    float data[1] = {0};
    int64_t one[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, negative[1] = {-1};
    khub_tensor good = khub_tensor_f32(data, 1, one), bad;
    khub_error err = {0};
    start();
    bad = good, bad.device.type = KHUB_DEVICE_CUDA;
    ck_khub_fails(khub_npy_write(path, &bad, &err), &err, KHUB_E_INVAL, "device 2:0");
    bad = good, bad.ndim = 9;
    ck_khub_fails(khub_npy_write(path, &bad, &err), &err, KHUB_E_UNSUPPORTED, "9 dimensions");
    bad = good, bad.shape = negative;
    ck_khub_fails(khub_npy_write(path, &bad, &err), &err, KHUB_E_INVAL, "an impossible shape");
    bad = good, bad.data = NULL;
    ck_khub_fails(khub_npy_write(path, &bad, &err), &err, KHUB_E_INVAL, "no memory");
    bad = good, bad.dtype = khub_dtype_of(17, 4);
    ck_khub_fails(khub_npy_write(path, &bad, &err), &err, KHUB_E_UNSUPPORTED, "no word for float4_e2m1fn");
    bad = good, bad.dtype.lanes = 4;
    ck_khub_fails(khub_npy_write(path, &bad, &err), &err, KHUB_E_UNSUPPORTED, "no word for float32x4");
    ck_assert_int_eq(khub__file_kind(path), KHUB__FILE_NONE);
    finish();
}
END_TEST

static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    signal(SIGXFSZ, SIG_IGN); /* an errno in place of a death */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit on the size of files stands for a full disk: what stood there before stays, and nothing beside it.
 */
START_TEST(full_disk)
{
    static float data[100000];
    int64_t n = 100000, two = 2;
    khub_tensor small = khub_tensor_over(data, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), 1, &two);
    khub_tensor large = khub_tensor_over(data, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), 1, &n);
    khub_error err = {0};
    start();
    ck_khub_ok(khub_npy_write(path, &small, &err), &err);
    limit_files(200000);
    ck_khub_fails(khub_npy_write(path, &large, &err), &err, KHUB_E_NOSPACE, "a.npy: can't write it");
    large.strides = (int64_t[]){0}; /* the other way of writing */
    ck_khub_fails(khub_npy_write(path, &large, &err), &err, KHUB_E_NOSPACE, "a.npy: can't write it");
    expect("float32", 1, &two, (const unsigned char[8]){0}, 8);
    finish();
    snprintf(path, sizeof(path), "%s/missing/a.npy", dir);
    ck_khub_fails(khub_npy_write(path, &small, &err), &err, KHUB_E_NOTFOUND,
                  "missing/a.npy: can't create it");
}
END_TEST

static int read_it(void *user, khub_error *err)
{
    khub_array a;
    (void)user;
    int rc = khub_npy_read(&a, path, err);
    khub_array_free(&a);
    return rc;
}

static int write_it(void *user, khub_error *err)
{
    return khub_npy_write(path, user, err);
}

static int make_it(void *user, khub_error *err)
{
    khub_array a;
    (void)user;
    int rc = khub_array_new(&a, khub_dtype_of(KHUB_DTYPE_FLOAT, 32), 2, (int64_t[]){2, 3}, err);
    khub_array_free(&a);
    return rc;
}

/* finish() sees to it that no write that failed left a file behind. */
START_TEST(every_allocation_fails)
{
    float data[6] = {0};
    khub_tensor t = khub_tensor_f32(data, 2, (int64_t[]){2, 3});
    start();
    fm_fail_each(make_it, NULL);
    write_npy(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3)}", 12);
    fm_fail_each(read_it, NULL);
    write_npy(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 12);
    fm_fail_each(read_it, NULL);
    fm_fail_each(write_it, &t);
    t.strides = (int64_t[]){1, 2};
    fm_fail_each(write_it, &t);
    finish();
}
END_TEST

UNIT("npy", forms_of_the_header, ranks_and_nothing, order_and_byte_order, headers_that_lie, prefixes_that_lie,
     truncated_anywhere, what_is_no_file, written_byte_for_byte, any_strides, tensors_that_cannot_be_written,
     full_disk, every_allocation_fails)
