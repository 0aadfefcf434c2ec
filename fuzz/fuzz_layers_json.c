/* layers.json with any bytes: refused with words, or read into specs that hold together. */
#include "kernel/layers_json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_spec(const khub_layer_spec *spec)
{
    check(spec->layer && spec->function && spec->function[0]);
    for (size_t i = 0; i < spec->arg_count; i++)
        check(spec->args[i][0] != 0);
    check(!spec->args || !spec->args[spec->arg_count]);
    check(spec->slice_count <= KHUB__LAYER_MAX_AXES);
    for (size_t i = 0; i < spec->slice_count; i++) {
        check(spec->slices[i].axis && spec->slices[i].part_count > 0);
        check(spec->slices[i].part_count <= KHUB__LAYER_MAX_PARTS);
        for (size_t j = 0; j < spec->slices[i].part_count; j++) {
            const struct khub_slice_part *part = &spec->slices[i].parts[j];
            check(part->arg[0] && part->dim >= 0 && part->dim < KHUB_MAX_NDIM && part->unit >= 1);
        }
    }
    check(!spec->prepare_arg == !spec->prepare_function);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__layers layers;
    khub_error err = {0};
    int rc = khub__layers_parse(&layers, (const char *)data, size, "layers.json", &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK || err.message[0]));
    for (size_t i = 0; i < layers.count; i++)
        check_spec(layers.specs[i]);
    khub__layers_free(&layers);
    return 0;
}
