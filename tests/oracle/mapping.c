/* Answers questions about mappings, one JSON object a line:
 *   {"register": [TEXT, …], "ask": [[LAYER, DEVICE, MODE], …]}
 * lays the texts over each other in order, and answers with the kernel that is tried first, or null, for each
 * question. Kernels are named "/NAME"; the answer is NAME. */
#include <khub/khub.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int rc, const khub_error *err)
{
    if (rc == KHUB_OK) return;
    fprintf(stderr, "mapping: %s\n", err->message);
    exit(1);
}

static khub_mapping *register_all(const json_t *texts)
{
    khub_error err = {0};
    khub_mapping *all, *over;
    size_t i;
    json_t *text;
    must(khub_mapping_new(&all, &err), &err);
    json_array_foreach (texts, i, text) {
        must(khub_mapping_parse(&over, json_string_value(text), NULL, &err), &err);
        must(khub_mapping_merge(all, over, &err), &err);
        khub_mapping_free(over);
    }
    return all;
}

static json_t *ask(const khub_mapping *mapping, const json_t *question)
{
    khub_error err = {0};
    const khub_mapping_line *found[KHUB_MAPPING_CANDIDATES];
    size_t count;
    int mode;
    must(khub_mode_parse(&mode, json_string_value(json_array_get(question, 2)), &err), &err);
    int rc = khub_mapping_find(found, &count, mapping, json_string_value(json_array_get(question, 0)), "a.b",
                               json_string_value(json_array_get(question, 1)), mode, &err);
    if (rc == KHUB_E_NOTFOUND) return json_null();
    must(rc, &err);
    return json_string(found[0]->kernel + 1);
}

int main(void)
{
    json_t *question, *one;
    json_error_t why;
    size_t i;
    while ((question = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &why))) {
        khub_mapping *mapping = register_all(json_object_get(question, "register"));
        json_t *reply = json_array();
        json_array_foreach (json_object_get(question, "ask"), i, one)
            json_array_append_new(reply, ask(mapping, one));
        json_dumpf(reply, stdout, JSON_COMPACT);
        putchar('\n');
        khub_mapping_free(mapping);
        json_decref(reply);
        json_decref(question);
    }
    return fflush(stdout) != 0;
}
