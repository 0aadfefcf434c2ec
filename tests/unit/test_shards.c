/* Weights in several files: the index, the files that it names, and every way they can disagree. */
#include "failing_memory.h"
#include "unit.h"

#include "model/weights.h"

#include <stdio.h>
#include <sys/stat.h>

static char directory[] = "/tmp/khub-shards-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static void put(const char *name, const void *data, size_t length)
{
    FILE *f = fopen(path_of(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, length, f), length);
    ck_assert_int_eq(fclose(f), 0);
}

/* A file with one tensor of two floats; `type` has that name in the format, and `bytes` are all of the data.
 */
static void put_shard(const char *name, const char *tensor, const char *type, const void *bytes,
                      size_t length)
{
    char file[1024] = {0};
    int n =
        snprintf(file + 8, sizeof(file) - 8,
                 "{\"%s\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%zu]}}", tensor, type, length);
    for (; n % 8 != 0; n++)
        file[8 + n] = ' ';
    file[0] = (char)n; /* below 128 */
    memcpy(file + 8 + n, bytes, length);
    put(name, file, 8 + (size_t)n + length);
}

static void put_index(const char *text)
{
    put("model.safetensors.index.json", text, strlen(text));
}

#define ONE "model-00001-of-00002.safetensors"
#define TWO "model-00002-of-00002.safetensors"

static const char good[] = "{\"metadata\":{\"total_size\":12},\"weight_map\":{"
                           "\"a\":\"" ONE "\",\"b\":\"" TWO "\"}}";

/* a = (1, 2) as float32 in the first file, b = (0.5, -3) as float16 in the second. */
static void put_good(void)
{
    const float a[2] = {1, 2};
    const uint16_t b[2] = {0x3800, 0xc200};
    ck_assert_ptr_nonnull(mkdtemp(directory));
    put_shard(ONE, "a", "F32", a, sizeof(a));
    put_shard(TWO, "b", "F16", b, sizeof(b));
    put_index(good);
}

static void clean(void)
{
    static const char *const names[] = {ONE, TWO, "model.safetensors.index.json", "model.safetensors"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        remove(path_of(names[i]));
    ck_assert_int_eq(rmdir(directory), 0);
}

static const int64_t pair[1] = {2};

START_TEST(tensors_of_two_files)
{
    khub__weights weights;
    khub_tensor a, b;
    const khub__stored *stored;
    khub_error err = {0};
    put_good();
    ck_khub_ok(khub__weights_open(&weights, directory, "a", &err), &err);
    ck_assert_uint_eq(weights.checkpoint.count, 2);
    ck_khub_ok(khub__weights_get(&a, &weights, "a", 1, pair, &err), &err);
    ck_khub_ok(khub__weights_get(&b, &weights, "b", 1, pair, &err), &err);
    const float *x = a.data, *y = b.data;
    ck_assert(x[0] == 1 && x[1] == 2 && y[0] == 0.5f && y[1] == -3);
    khub__checkpoint_relax(&weights.checkpoint); /* the data comes back when it is read */
    ck_assert(x[0] == 1 && x[1] == 2);
    ck_khub_ok(khub__weights_find(&stored, &weights, "b", 1, pair, &err), &err);
    ck_assert_str_eq(khub__weights_path(&weights, stored), path_of(TWO));
    /* messages name the file that holds the tensor, or the index where none does */
    ck_khub_fails(khub__weights_find(&stored, &weights, "b", 1, (const int64_t[]){3}, &err), &err,
                  KHUB_E_FORMAT, TWO ": the tensor \"b\" has shape [2], config.json asks for [3]");
    ck_khub_fails(khub__weights_find(&stored, &weights, "c", 1, pair, &err), &err, KHUB_E_FORMAT,
                  "index.json: the tensor \"c\" [2] is missing");
    khub__weights_close(&weights);
    khub__weights_close(&weights); /* zeroed */
    clean();
}
END_TEST

START_TEST(one_file_stands_first)
{
    const float a[2] = {7, 8};
    khub__weights weights;
    khub_tensor got;
    khub_error err = {0};
    put_good();
    put_shard("model.safetensors", "bert.a", "F32", a, sizeof(a));
    ck_khub_ok(khub__weights_open(&weights, directory, "a", &err), &err);
    ck_khub_ok(khub__weights_get(&got, &weights, "a", 1, pair, &err), &err);
    ck_assert(((const float *)got.data)[0] == 7);
    ck_khub_fails(khub__weights_get(&got, &weights, "b", 1, pair, &err), &err, KHUB_E_FORMAT,
                  "model.safetensors: the tensor \"bert.b\" [2] is missing");
    khub__weights_close(&weights);
    clean();
}
END_TEST

START_TEST(files_that_dont_agree)
{
    khub__checkpoint checkpoint;
    khub_error err = {0};
    put_good();
    put_index("{\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" ONE "\"}}");
    ck_khub_fails(khub__checkpoint_open(&checkpoint, directory, &err), &err, KHUB_E_FORMAT,
                  ONE ": the tensor \"b\" is missing; model.safetensors.index.json says that it is there");
    put_index("{\"weight_map\":{\"a\":\"" ONE "\",\"__metadata__\":\"" ONE "\"}}");
    ck_khub_fails(khub__checkpoint_open(&checkpoint, directory, &err), &err, KHUB_E_FORMAT,
                  "\"__metadata__\"");
    put_index("{\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"model-3.safetensors\"}}");
    ck_khub_fails(
        khub__checkpoint_open(&checkpoint, directory, &err), &err, KHUB_E_NOTFOUND,
        "model-3.safetensors: there is no such file; model.safetensors.index.json says that it holds "
        "the tensor \"b\"");
    put_index(good);
    put(TWO, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    ck_khub_fails(khub__checkpoint_open(&checkpoint, directory, &err), &err, KHUB_E_FORMAT, TWO);
    remove(path_of(TWO));
    ck_assert_int_eq(mkdir(path_of(TWO), 0700), 0);
    ck_khub_fails(khub__checkpoint_open(&checkpoint, directory, &err), &err, KHUB_E_FORMAT, TWO);
    remove(path_of("model.safetensors.index.json"));
    ck_khub_fails(khub__checkpoint_open(&checkpoint, directory, &err), &err, KHUB_E_NOTFOUND,
                  "model.safetensors: there is no such file, and no model.safetensors.index.json");
    ck_assert_int_eq(mkdir(path_of("model.safetensors.index.json"), 0700), 0);
    ck_khub_fails(khub__checkpoint_open(&checkpoint, directory, &err), &err, KHUB_E_FORMAT, "index.json");
    khub__checkpoint_close(&checkpoint); /* closed by each failure */
    clean();
}
END_TEST

START_TEST(indexes_that_lie)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        {"", "i.json:1: not valid JSON"},
        {"[]", "i.json: is an array, an object is expected"},
        {"{\"weight_map\":", "i.json:1: not valid JSON"},
        {"{}", "i.json: \"weight_map\" is missing"},
        {"{\"weight_map\":null}", "\"weight_map\" is missing"},
        {"{\"weight_map\":{}}", "\"weight_map\" is empty"},
        {"{\"weight_map\":[]}", "\"weight_map\" is an array, an object is expected"},
        {"{\"metadata\":7,\"weight_map\":{\"a\":\"a.safetensors\"}}", "\"metadata\" is an integer"},
        {"{\"weight_map\":{\"a\":7}}", "i.json: \"weight_map\": \"a\" is an integer, a string is expected"},
        {"{\"weight_map\":{\"a\":null}}", "\"a\" is null"},
        {"{\"weight_map\":{\"a\":\"a.safetensors\",\n\"a\":\"b.safetensors\"}}",
         "i.json:2: not valid JSON: duplicate"},
        {"{\"weight_map\":{},\"weight_map\":{}}", "duplicate"},
        {"{\"weight_map\":{\"a\":\"a\\u0000.safetensors\"}}", "not valid JSON"},
        {"{\"weight_map\":{\"a\":\"\"}}", "the tensor \"a\" is said to be in \"\""},
        {"{\"weight_map\":{\"a\":\"..\"}}", "said to be in \"..\""},
        {"{\"weight_map\":{\"a\":\".safetensors\"}}", "said to be in \".safetensors\""},
        {"{\"weight_map\":{\"a\":\"a.bin\"}}", "said to be in \"a.bin\""},
        {"{\"weight_map\":{\"a\":\"/a.safetensors\"}}", "said to be in \"/a.safetensors\""},
        {"{\"weight_map\":{\"a\":\"../a.safetensors\"}}", "said to be in \"../a.safetensors\""},
        {"{\"weight_map\":{\"a\":\"./a.safetensors\"}}", "said to be in \"./a.safetensors\""},
        {"{\"weight_map\":{\"a\":\"b\\\\a.safetensors\"}}", "said to be in \"b\\a.safetensors\""},
        {"{\"weight_map\":{\"a\":\"b\\na.safetensors\"}}", "said to be in \"b"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__shards shards;
        ck_khub_fails(khub__shards_parse(&shards, table[i].text, strlen(table[i].text), "i.json", &err), &err,
                      KHUB_E_FORMAT, table[i].words);
        ck_assert_ptr_null(shards.root);
    }
}
END_TEST

/* An index with `count` tensors, each in a file of its own. */
static char *make_index(int count)
{
    size_t room = 64 + (size_t)count * 48, n = 0;
    char *text = malloc(room);
    n += (size_t)snprintf(text, room, "{\"weight_map\":{");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, room - n, "%s\"t%d\":\"m-%d.safetensors\"", i ? "," : "", i, i);
    snprintf(text + n, room - n, "}}");
    return text;
}

START_TEST(how_many_files)
{
    khub__shards shards;
    khub_error err = {0};
    char *most = make_index(4096), *more = make_index(4097);
    ck_khub_ok(khub__shards_parse(&shards, most, strlen(most), "i.json", &err), &err);
    ck_assert_uint_eq(shards.count, 4096);
    ck_assert_str_eq(shards.names[4095], "m-4095.safetensors");
    ck_assert_str_eq(shards.tensor[4095], "t4095");
    ck_assert_int_eq(khub__shards_find(&shards, "t77"), 77);
    ck_assert_int_eq(khub__shards_find(&shards, "t4096"), -1);
    khub__shards_free(&shards);
    ck_khub_fails(khub__shards_parse(&shards, more, strlen(more), "i.json", &err), &err, KHUB_E_FORMAT,
                  "i.json: names more than 4096 files");
    char *long_name = malloc(600);
    for (int length = 255; length <= 256; length++) {
        snprintf(long_name, 600, "{\"weight_map\":{\"a\":\"%0*d.safetensors\"}}", length - 12, 0);
        int rc = khub__shards_parse(&shards, long_name, strlen(long_name), "i.json", &err);
        ck_assert_int_eq(rc, length == 255 ? KHUB_OK : KHUB_E_FORMAT);
        khub__shards_free(&shards);
        khub_error_clear(&err);
    }
    free(long_name);
    free(most);
    free(more);
}
END_TEST

static int open_and_read(void *user, khub_error *err)
{
    khub__weights weights;
    khub_tensor b;
    (void)user;
    int rc = khub__weights_open(&weights, directory, "not there", err); /* so that the prefix is tried */
    if (rc == KHUB_OK) rc = khub__weights_get(&b, &weights, "b", 1, pair, err);
    khub__weights_close(&weights);
    return rc;
}

START_TEST(every_allocation_fails)
{
    put_good();
    fm_fail_each_own(open_and_read, NULL); /* jansson may lose characters of a name instead */
    clean();
}
END_TEST

UNIT("shards", tensors_of_two_files, one_file_stands_first, files_that_dont_agree, indexes_that_lie,
     how_many_files, every_allocation_fails)
