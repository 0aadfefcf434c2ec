/* Indexes of weights in several files, of any bytes: no crash, and of what is accepted every tensor has a
 * file, every file a name that leads nowhere but into the model's directory. */
#include "model/shards.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__shards shards;
    khub_error err = {0};
    int rc = khub__shards_parse(&shards, (const char *)data, size, "input", &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK));
    if (rc == KHUB_OK) {
        const char *tensor;
        const json_t *name;
        check(shards.count > 0);
        for (size_t i = 0; i < shards.count; i++)
            check(strlen(shards.names[i]) > strlen(".safetensors") && !strpbrk(shards.names[i], "/\\\n\x1b"));
        json_object_foreach ((json_t *)(uintptr_t)shards.map, tensor, name) {
            int64_t file = khub__shards_find(&shards, tensor);
            check(file >= 0 && (size_t)file < shards.count);
            check(!strcmp(shards.names[file], json_string_value(name)));
        }
    } else {
        check(!shards.root && !shards.names && shards.count == 0);
    }
    khub__shards_free(&shards);
    return 0;
}
