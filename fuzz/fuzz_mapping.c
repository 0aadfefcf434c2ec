/* A mapping with any bytes: refused with words, or read into entries that hold together, written so that it
 * reads back to the same, alone and over another one; and asked for candidates. */
#include "layer/candidates.h"

#include <khub/memory.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_lines(const khub_mapping *mapping)
{
    const khub_mapping_line *line;
    for (size_t i = 0; (line = khub_mapping_at(mapping, i)) != NULL; i++) {
        check(line->key && line->from && !line->fault == (line->kernel != NULL));
        check(line->fault ? line->fault[0] != 0 : khub__mode_is_entry(line->mode));
    }
}

static void check_candidates(const khub_mapping *mapping, const char *layer, const char *path)
{
    static const char *const devices[] = {"cpu", "cuda", "cuda:80", "mps"};
    const khub_mapping_line *found[KHUB_MAPPING_CANDIDATES];
    for (size_t d = 0; d < sizeof(devices) / sizeof(*devices); d++)
        for (int mode = 1; mode < 8; mode++) {
            size_t count = 0;
            khub_error err = {0};
            int rc = khub_mapping_find(found, &count, mapping, layer, path, devices[d], mode, &err);
            check(rc == KHUB_OK ? count > 0 && count <= KHUB_MAPPING_CANDIDATES : err.message[0] != 0);
        }
}

static void comes_back(const khub_mapping *mapping)
{
    khub_mapping *again;
    khub_error err = {0};
    char *text = khub_mapping_json(mapping);
    check(text != NULL);
    check(khub_mapping_parse(&again, text, NULL, &err) == KHUB_OK);
    char *second = khub_mapping_json(again);
    check(second && !strcmp(text, second));
    khub_free(second);
    khub_mapping_free(again);
    khub_free(text);
}

static const char lower[] =
    "{\"GeLU\": {\"cpu\": \"a/b\", \"cuda:75-89\": {\"training\": \"\"}, \"*\": \"c/d\"},"
    " \"Linear(a.*)\": \"\", \"Linear + GeLU\": 1, \"ReLU\": {\"x\": 1}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static khub_mapping *fixed;
    khub_mapping *mapping, *under;
    khub_error err = {0};
    if (!fixed) check(khub_mapping_parse(&fixed, lower, NULL, &err) == KHUB_OK);
    char *text = malloc(size + 1);
    check(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    int rc = khub_mapping_parse(&mapping, text, "m.json", &err);
    free(text);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK || err.message[0]));
    if (rc != KHUB_OK) return 0;
    check_lines(mapping);
    check_candidates(mapping, "GeLU", "encoder.layer.0.act");
    check_candidates(mapping, "Linear", "a.b");
    comes_back(mapping);
    check(khub_mapping_new(&under, &err) == KHUB_OK && khub_mapping_merge(under, fixed, &err) == KHUB_OK);
    check(khub_mapping_merge(under, mapping, &err) == KHUB_OK);
    check_lines(under);
    comes_back(under);
    khub_mapping_free(under);
    khub_mapping_free(mapping);
    return 0;
}
