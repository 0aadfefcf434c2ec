/* A model through its public header: what it opens, what it says, that nothing shows but the text, and every
 * allocation failed. */
#include "failing_memory.h"
#include "unit.h"

#include "mappings.h"

#include <khub/model.h>

#include "model/pooling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A BERT of one layer: hidden 8, two heads, intermediate 16, 16 positions. */
enum { HIDDEN = 8, WIDE = 16, POSITIONS = 16, VOCABULARY = 8 };
static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\nworld\ncat\n.\n";
static const char config[] =
    "{\"model_type\":\"bert\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"intermediate_size\":16,\"vocab_size\":8,\"max_position_embeddings\":16,\"type_vocab_size\":1}";
static const char modules[] =
    "[{\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
    "{\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"},"
    "{\"path\":\"2_Normalize\",\"type\":\"sentence_transformers.models.Normalize\"}]";
static const char pooling[] = "{\"word_embedding_dimension\":8,\"pooling_mode_mean_tokens\":true}";

static const struct tensor {
    const char *name;
    int rows, columns; /* 0 columns: a vector */
} tensors[] = {
    {"embeddings.word_embeddings.weight", VOCABULARY, HIDDEN},
    {"embeddings.position_embeddings.weight", POSITIONS, HIDDEN},
    {"embeddings.token_type_embeddings.weight", 1, HIDDEN},
    {"embeddings.LayerNorm.weight", HIDDEN, 0},
    {"embeddings.LayerNorm.bias", HIDDEN, 0},
    {"encoder.layer.0.attention.self.query.weight", HIDDEN, HIDDEN},
    {"encoder.layer.0.attention.self.query.bias", HIDDEN, 0},
    {"encoder.layer.0.attention.self.key.weight", HIDDEN, HIDDEN},
    {"encoder.layer.0.attention.self.key.bias", HIDDEN, 0},
    {"encoder.layer.0.attention.self.value.weight", HIDDEN, HIDDEN},
    {"encoder.layer.0.attention.self.value.bias", HIDDEN, 0},
    {"encoder.layer.0.attention.output.dense.weight", HIDDEN, HIDDEN},
    {"encoder.layer.0.attention.output.dense.bias", HIDDEN, 0},
    {"encoder.layer.0.attention.output.LayerNorm.weight", HIDDEN, 0},
    {"encoder.layer.0.attention.output.LayerNorm.bias", HIDDEN, 0},
    {"encoder.layer.0.intermediate.dense.weight", WIDE, HIDDEN},
    {"encoder.layer.0.intermediate.dense.bias", WIDE, 0},
    {"encoder.layer.0.output.dense.weight", HIDDEN, WIDE},
    {"encoder.layer.0.output.dense.bias", HIDDEN, 0},
    {"encoder.layer.0.output.LayerNorm.weight", HIDDEN, 0},
    {"encoder.layer.0.output.LayerNorm.bias", HIDDEN, 0},
};
enum { TENSORS = sizeof(tensors) / sizeof(*tensors) };

static char directory[] = "/tmp/khub-model-XXXXXX";

static FILE *create(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    return f;
}

static void put(const char *name, const char *text)
{
    FILE *f = create(name);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static size_t count_of(const struct tensor *t)
{
    return (size_t)t->rows * (size_t)(t->columns ? t->columns : 1);
}

/* Weights of no meaning; the data is aligned, as files made by the usual tools are. */
static void put_weights(void)
{
    char header[8192] = "{";
    size_t at = 0, n = 1;
    for (int i = 0; i < TENSORS; i++) {
        size_t bytes = count_of(&tensors[i]) * sizeof(float);
        n += (size_t)snprintf(header + n, sizeof(header) - n, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d",
                              i ? "," : "", tensors[i].name, tensors[i].rows);
        if (tensors[i].columns)
            n += (size_t)snprintf(header + n, sizeof(header) - n, ",%d", tensors[i].columns);
        n +=
            (size_t)snprintf(header + n, sizeof(header) - n, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    n += (size_t)snprintf(header + n, sizeof(header) - n, "}");
    while (n % 8 != 0)
        header[n++] = ' ';
    FILE *f = create("model.safetensors");
    uint64_t length = n;
    ck_assert_uint_eq(fwrite(&length, 1, 8, f), 8); /* this test runs on little-endian machines only */
    ck_assert_uint_eq(fwrite(header, 1, n, f), n);
    unsigned seed = 3;
    for (size_t i = 0; i < at / sizeof(float); i++) {
        seed = seed * 1664525u + 1013904223u;
        float value = (float)(seed >> 8) / (1 << 24) - 0.4f;
        ck_assert_uint_eq(fwrite(&value, sizeof(value), 1, f), 1);
    }
    ck_assert_int_eq(fclose(f), 0);
}

static void put_model(void)
{
    char path[256];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/1_Pooling", directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    put("config.json", config);
    put("modules.json", modules);
    put("1_Pooling/config.json", pooling);
    put("vocab.txt", vocabulary);
    put_weights();
}

static void remove_model(void)
{
    static const char *const names[] = {"config.json", "modules.json", "1_Pooling/config.json",
                                        "1_Pooling",   "vocab.txt",    "model.safetensors"};
    char path[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        remove(path);
    }
    ck_assert_int_eq(rmdir(directory), 0);
}

static khub_model *open_with(unsigned threads)
{
    khub_model *model;
    khub_model_options options;
    khub_error err = {0};
    KHUB_INIT(&options);
    options.threads = threads;
    ck_khub_ok(khub_model_open(&model, directory, &options, &err), &err);
    return model;
}

START_TEST(what_a_model_says)
{
    put_model();
    khub_model *model = open_with(3);
    ck_assert_uint_eq(khub_model_width(model), HIDDEN);
    ck_assert_uint_eq(khub_model_max_tokens(model), POSITIONS);
    ck_assert_uint_eq(khub_model_threads(model), 3);
    ck_assert_int_eq(khub_tokenizer_size(khub_model_tokenizer(model)), VOCABULARY);
    khub_model_close(model);
    khub_model_close(NULL);
    khub_error err = {0};
    khub_model_options options;
    KHUB_INIT(&options);
    options.threads = 100000;
    ck_khub_fails(khub_model_open(&model, directory, &options, &err), &err, KHUB_E_INVAL, "100000 threads");
    ck_assert_ptr_null(model);
    remove_model();
    ck_khub_fails(khub_model_open(&model, directory, NULL, &err), &err, KHUB_E_NOTFOUND, directory);
}
END_TEST

/* Slots have the paths that Transformers gives the modules, in the order they run in. */
START_TEST(slots_are_named_as_in_transformers)
{
    static const char *const paths[][2] = {
        {"embeddings.sum", "Embedding"},
        {"embeddings.LayerNorm", "LayerNorm"},
        {"embeddings", "EmbeddingLayerNorm"},
        {"encoder.layer.0.attention.self.query", "Linear"},
        {"encoder.layer.0.attention.self.key", "Linear"},
        {"encoder.layer.0.attention.self.value", "Linear"},
        {"encoder.layer.0.attention.self", "Attention"},
        {"encoder.layer.0.attention.output.dense", "Linear"},
        {"encoder.layer.0.attention.output.LayerNorm", "LayerNorm"},
        {"encoder.layer.0.attention.output.add", "Add"},
        {"encoder.layer.0.attention.output", "AddLayerNorm"},
        {"encoder.layer.0.intermediate.dense", "Linear"},
        {"encoder.layer.0.intermediate.intermediate_act_fn", "GeLU"},
        {"encoder.layer.0.intermediate", "LinearGeLU"},
        {"encoder.layer.0.output.dense", "Linear"},
        {"encoder.layer.0.output.LayerNorm", "LayerNorm"},
        {"encoder.layer.0.output.add", "Add"},
        {"encoder.layer.0.output", "AddLayerNorm"},
    };
    put_model();
    khub_model *model = open_with(1);
    khub_kernelize_options options;
    khub_report *report;
    khub_error err = {0};
    KHUB_INIT(&options);
    options.mapping = mapping_of("{}");
    ck_khub_ok(khub_kernelize(khub_model_layers(model), &options, &report, &err), &err);
    ck_assert_uint_eq(khub_report_count(report), sizeof(paths) / sizeof(*paths));
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        ck_assert_str_eq(khub_report_at(report, i)->path, paths[i][0]);
        ck_assert_str_eq(khub_report_at(report, i)->layer, paths[i][1]);
    }
    khub_report_free(report);
    khub_model_close(model);
    remove_model();
}
END_TEST

static const char *const texts[] = {"hello",     "",      "cat cat hello world .", "world",
                                    "hello cat", "a b c", "cat cat hello world ."};
enum { TEXTS = sizeof(texts) / sizeof(*texts) };

static void use_kernels(khub_model *model)
{
    khub_report *report;
    khub_error err = {0};
    char runtime[4096];
    ck_assert_msg(getenv("KHUB_PREFIX") != NULL,
                  "KHUB_PREFIX isn't set: run by ctest, or set it to the stage");
    snprintf(runtime, sizeof(runtime), "%s/lib/libtvm_ffi.so", getenv("KHUB_PREFIX"));
    setenv("KHUB_TVM_FFI", runtime, 1);
    ck_khub_ok(khub_kernelize(khub_model_layers(model), NULL, &report, &err), &err);
    for (size_t i = 0; i < khub_report_count(report); i++)
        ck_assert_msg(khub_report_at(report, i)->kernel != NULL, "%s: %s", khub_report_at(report, i)->path,
                      khub_report_at(report, i)->reason);
    khub_report_free(report);
}

START_TEST(nothing_shows_but_the_text)
{
    float together[TEXTS][HIDDEN], other[TEXTS][HIDDEN];
    khub_error err = {0};
    put_model();
    for (unsigned threads = 1; threads <= 3; threads++) {
        khub_model *model = open_with(threads);
        use_kernels(model);
        ck_khub_ok(
            khub_model_embed(model, texts, NULL, TEXTS, threads == 1 ? together[0] : other[0], NULL, &err),
            &err);
        if (threads > 1) ck_assert_int_eq(memcmp(together, other, sizeof(other)), 0);
        for (int i = 0; i < TEXTS; i++) { /* alone, and in another order */
            ck_khub_ok(khub_model_embed(model, &texts[i], NULL, 1, other[i], NULL, &err), &err);
            ck_assert_int_eq(memcmp(together[i], other[i], sizeof(other[i])), 0);
        }
        khub_model_close(model);
    }
    ck_assert_int_eq(memcmp(together[2], together[6], sizeof(together[2])), 0);
    ck_assert_int_ne(memcmp(together[0], together[3], sizeof(together[0])), 0);
    remove_model();
}
END_TEST

START_TEST(what_happened_to_the_texts)
{
    static const char *const mixed[] = {"hello", "cat\0cat", "x \xff",
                                        "cat cat cat cat cat cat cat cat cat cat cat cat cat cat cat",
                                        "\xc0 \xff"};
    const size_t lengths[] = {5, 3, 3, 59, 3}; /* of the second: "cat" */
    float out[5][HIDDEN], again[HIDDEN];
    khub_embed_info info;
    khub_error err = {0};
    put_model();
    khub_model *model = open_with(2);
    ck_khub_ok(khub_model_embed(model, mixed, lengths, 5, out[0], &info, &err), &err);
    ck_assert_uint_eq(info.truncated, 1);
    ck_assert_uint_eq(info.first_truncated, 3);
    ck_assert_uint_eq(info.invalid_utf8, 2);
    ck_assert_uint_eq(info.first_invalid, 2);
    ck_assert_uint_eq(info.tokens, 3 + 3 + 3 + POSITIONS + 2); /* BERT leaves U+FFFD out */
    ck_khub_ok(khub_model_embed(model, (const char *const[]){"cat"}, NULL, 1, again, NULL, &err), &err);
    for (int k = 0; k < HIDDEN;
         k++) /* the length decides; standard functions may round otherwise in company */
        ck_assert(fabsf(out[1][k] - again[k]) <= 1e-6f);
    for (int i = 0; i < 5; i++) {
        double squares = 0;
        for (int k = 0; k < HIDDEN; k++)
            squares += (double)out[i][k] * (double)out[i][k];
        ck_assert_msg(fabs(squares - 1) <= 1e-6, "text %d: the vector's length is %.9g", i, sqrt(squares));
    }
    ck_khub_ok(khub_model_embed(model, NULL, NULL, 0, NULL, &info, &err), &err);
    ck_assert_uint_eq(info.tokens, 0);
    khub_model_close(model);
    remove_model();
}
END_TEST

START_TEST(pooling_by_hand)
{
    const float hidden[3][2] = {{3, 4}, {0, 2}, {6, 0}};
    double sums[2];
    float out[2];
    khub__sentence how = {.pooling = KHUB__POOL_MEAN};
    khub__pool_tokens(out, sums, hidden[0], 3, 2, &how);
    ck_assert(out[0] == 3 && out[1] == 2);
    how.normalize = 1;
    khub__pool_tokens(out, sums, hidden[0], 1, 2, &how);
    ck_assert(out[0] == 0.6f && out[1] == 0.8f);
    how.pooling = KHUB__POOL_CLS;
    khub__pool_tokens(out, sums, hidden[0], 3, 2, &how);
    ck_assert(out[0] == 0.6f && out[1] == 0.8f);
    khub__pool_tokens(out, sums, hidden[0], 0, 2, &how);
    ck_assert(out[0] == 0 && out[1] == 0);
}
END_TEST

static int open_and_embed(void *user, khub_error *err)
{
    khub_model *model;
    khub_model_options options;
    float out[3][HIDDEN];
    (void)user;
    KHUB_INIT(&options);
    options.threads = 1; /* so that the n-th allocation is the same in every try */
    int rc = khub_model_open(&model, directory, &options, err);
    if (rc == KHUB_OK) rc = khub_model_embed(model, texts, NULL, 3, out[0], NULL, err);
    khub_model_close(model);
    /* a standard function says it in tvm-ffi's words */
    if (rc == KHUB_E_KERNEL && strstr(err->message, "MemoryError")) rc = err->code = KHUB_E_NOMEM;
    return rc;
}

START_TEST(every_allocation_fails)
{
    put_model();
    fm_fail_each_own(open_and_embed, NULL);
    remove_model();
}
END_TEST

UNIT("model", what_a_model_says, slots_are_named_as_in_transformers, nothing_shows_but_the_text,
     what_happened_to_the_texts, pooling_by_hand, every_allocation_fails)
