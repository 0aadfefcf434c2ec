/* Mappings: what their texts mean, which entry a slot gets, how they are laid over each other. Cases B1, L4
 * and L5 of the user reports, as far as mappings go. */
#include "unit.h"

#include "failing_memory.h"
#include "layer/candidates.h"

#include <khub/khub.h>

#include <stdio.h>
#include <sys/stat.h>

START_TEST(mapping_entries)
{
    static const struct {
        const char *value, *kernel, *served, *fault;
    } table[] = {
        {"\"khub/norm\"", "khub/norm", NULL, NULL},
        {"\"khub/norm:LayerNorm\"", "khub/norm", "LayerNorm", NULL},
        {"\"./a:b/c\"", "./a:b/c", NULL, NULL},
        {"\"./a:b/c:Fast\"", "./a:b/c", "Fast", NULL},
        {"\"\"", "", NULL, NULL},
        {"3", NULL, NULL, "mapping: RMSNorm: is an integer, a string or an object is expected"},
        {"{}", NULL, NULL, "\"kernel\" is missing"},
        {"{\"kernel\": 1}", NULL, NULL, "\"kernel\" is an integer, a string is expected"},
    };
    khub_error err = {0};
    khub_mapping *mapping;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char text[200];
        snprintf(text, sizeof(text), "{\"RMSNorm\": %s}", table[i].value);
        ck_khub_ok(khub_mapping_parse(&mapping, text, NULL, &err), &err);
        const khub_mapping_line *entry = khub_mapping_at(mapping, 0);
        ck_assert_ptr_nonnull(entry);
        if (table[i].fault)
            ck_assert_msg(entry->fault && strstr(entry->fault, table[i].fault), "%s",
                          entry->fault ? entry->fault : "no fault");
        else
            ck_assert_str_eq(entry->kernel, table[i].kernel);
        if (!table[i].fault && table[i].served) ck_assert_str_eq(entry->layer, table[i].served);
        khub_mapping_free(mapping);
    }
    ck_khub_fails(khub_mapping_parse(&mapping, "[]", NULL, &err), &err, KHUB_E_FORMAT, "is an array");
}
END_TEST

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(paths_of_a_mapping_start_from_its_file)
{
    static const struct {
        const char *kernel, *below, *here, *above; /* the mapping's, and what it is in maps/, ./ and ../ */
    } table[] = {
        {"./k", "./maps/k", "./k", "../k"},
        {"../k", "./maps/../k", "./../k", "../../k"},
        {"/srv/k", "/srv/k", "/srv/k", "/srv/k"},
        {"khub/norm", "khub/norm", "khub/norm", "khub/norm"},
        {"", "", "", ""},
    };
    char folder[] = "/tmp/khub-mapping-XXXXXX";
    khub_error err = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(mkdir("maps", 0700), 0);
    ck_assert_int_eq(mkdir("sub", 0700), 0);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char text[100];
        snprintf(text, sizeof(text), "{\"GeLU\": \"%s\"}", table[i].kernel);
        write_text("maps/m.json", text);
        write_text("m.json", text);
        const struct {
            const char *file, *kernel, *from;
        } looks[] = {{"maps/m.json", table[i].below, "."},
                     {"m.json", table[i].here, "."},
                     {"../m.json", table[i].above, "sub"}};
        for (size_t k = 0; k < sizeof(looks) / sizeof(*looks); k++) {
            khub_mapping *mapping;
            ck_assert_int_eq(chdir(looks[k].from), 0);
            ck_khub_ok(khub_mapping_read(&mapping, looks[k].file, &err), &err);
            ck_assert_str_eq(khub_mapping_at(mapping, 0)->kernel, looks[k].kernel);
            khub_mapping_free(mapping);
            ck_assert_int_eq(chdir(folder), 0);
        }
    }
    char absolute[64], expected[64];
    khub_mapping *mapping;
    snprintf(absolute, sizeof(absolute), "%s/m.json", folder);
    snprintf(expected, sizeof(expected), "%s/k", folder);
    write_text("m.json", "{\"GeLU\": \"./k\"}");
    ck_khub_ok(khub_mapping_read(&mapping, absolute, &err), &err);
    ck_assert_str_eq(khub_mapping_at(mapping, 0)->kernel, expected);
    khub_mapping_free(mapping);
    remove("maps/m.json"), remove("m.json"), rmdir("maps"), rmdir("sub"), rmdir(folder);
}
END_TEST

UNIT("mapping", mapping_entries, paths_of_a_mapping_start_from_its_file)
