/* Mappings: what their texts mean, which entry a slot gets, how they are laid over each other. Cases B1, L4
 * and L5 of the user reports, as far as mappings go. */
#include "unit.h"

#include "failing_memory.h"
#include "base/error.h"
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

static khub_mapping *parse(const char *text)
{
    khub_error err = {0};
    khub_mapping *mapping;
    ck_khub_ok(khub_mapping_parse(&mapping, text, NULL, &err), &err);
    return mapping;
}

/* What no mapping can say, and what is said about it. The name of the mapping and the key come first. */
START_TEST(faults)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        {"{\"Gelu\": \"a/b\"}", "m: Gelu: there is no layer \"Gelu\": did you mean GeLU?"},
        {"{\"Nope\": \"a/b\"}", "m: Nope: there is no layer \"Nope\"; docs/layers.md lists them"},
        {"{\"Linear + Nope\": \"a/b\"}", "m: Linear + Nope: there is no layer \"Nope\""},
        {"{\"\": \"a/b\"}", "m: : a key is LAYER"},
        {"{\"GeLU \": \"a/b\", \"Ge LU\": \"\"}", "m: Ge LU: a key is LAYER"},
        {"{\"GeLU(\": \"a/b\"}", "m: GeLU(: a pattern's \")\" is missing"},
        {"{\"GeLU(a(b))\": \"a/b\"}", "a pattern's \")\" is missing"},
        {"{\"GeLU()\": \"a/b\"}", "m: GeLU(): a pattern has a segment without a letter"},
        {"{\"GeLU(a..b)\": \"a/b\"}", "a segment without a letter"},
        {"{\"GeLU(a.)\": \"a/b\"}", "a segment without a letter"},
        {"{\"GeLU(lay*.x)\": \"a/b\"}", "\"*\" in a pattern stands for a whole segment"},
        {"{\"GeLU(***)\": \"a/b\"}", "stands for a whole segment"},
        {"{\"Linear +\": \"a/b\"}", "a key is LAYER"},
        {"{\"Linear(a.*.x) + GeLU(b.*.y)\": \"a/b\"}", "\"a.*.x\" and \"b.*.y\" take no two slots of one"},
        {"{\"Linear(a.x) + GeLU(a.b.y)\": \"a/b\"}", "take no two slots of one"},
        {"{\"Linear(a.**.b) + GeLU(c)\": \"a/b\"}", "take no two slots of one"},
        {"{\"Add+Add+Add+Add+Add+Add+Add+Add+Add\": \"a/b\"}", "a run has at most 8 layers"},
        {"{\"GeLU\": 3}", "m: GeLU: is an integer, a string or an object is expected"},
        {"{\"GeLU\": null}", "m: GeLU: is null"},
        {"{\"GeLU\": {}}", "m: GeLU: \"kernel\" is missing"},
        {"{\"GeLU\": {\"cudda\": \"a/b\"}}", "\"cudda\" is neither a device nor a mode"},
        {"{\"GeLU\": {\"cpu\": \"\", \"gpu\": \"a/b\"}}", "m: GeLU: \"gpu\" is no device: cpu, cuda, rocm"},
        {"{\"GeLU\": {\"cpu\": \"\", \"CPU\": \"a/b\"}}", "m: GeLU: \"CPU\" is no device"},
        {"{\"GeLU\": {\"cuda:75-70\": \"a/b\"}}",
         "m: GeLU: \"cuda:75-70\" is a range that ends before it starts"},
        {"{\"GeLU\": {\"cuda:-5\": \"a/b\"}}", "\"cuda:-5\": a range of capabilities is MIN-MAX"},
        {"{\"GeLU\": {\"cuda:7.5\": \"a/b\"}}", "\"cuda:7.5\": a range of capabilities is MIN-MAX"},
        {"{\"GeLU\": {\"cuda:sm_90\": \"a/b\"}}", "(7.5 is 75)"},
        {"{\"GeLU\": {\"cuda:\": \"a/b\"}}", "\"cuda:\": a range"},
        {"{\"GeLU\": {\"cuda:1-2-3\": \"a/b\"}}", "a range of capabilities"},
        {"{\"GeLU\": {\"cuda:75-100000\": \"a/b\"}}", "up to 99999"},
        {"{\"GeLU\": {\"cuda:99999999999999999999\": \"a/b\"}}", "up to 99999"},
        {"{\"GeLU\": {\"cpu:1-2\": \"a/b\"}}", "\"cpu:1-2\": only cuda and rocm have capabilities"},
        {"{\"GeLU\": {\"mps:0-\": \"a/b\"}}", "only cuda and rocm have capabilities"},
        {"{\"GeLU\": {\"cpu\": {}}}", "m: GeLU: cpu: is an empty table"},
        {"{\"GeLU\": {\"cpu\": [1]}}", "m: GeLU: cpu: is an array"},
        {"{\"GeLU\": {\"cpu\": \"\", \"inference\": \"a/b\"}}",
         "the mode \"inference\" stands among devices"},
        {"{\"GeLU\": {\"cpu\": {\"cuda\": \"a/b\"}}}",
         "m: GeLU: cpu: \"cuda\" is no mode: inference, training"},
        {"{\"GeLU\": {\"inferense\": \"\", \"training\": \"\"}}", "m: GeLU: \"inferense\" is no mode"},
        {"{\"GeLU\": {\"inference|training\": \"a/b\"}}", "\"inference|training\" is no mode"},
        {"{\"GeLU\": {\"compile\": \"a/b\"}}", "\"compile\" is no mode"},
        {"{\"GeLU\": {\"fallback|compile\": \"a/b\"}}", "\"fallback|compile\" is no mode"},
        {"{\"GeLU\": {\"inference|inference\": \"a/b\"}}", "\"inference|inference\" is no mode"},
        {"{\"GeLU\": {\"inference|\": \"a/b\"}}", "\"inference|\" is no mode"},
        {"{\"GeLU\": {\"cuda:75-89\": {\"training\": 1}}}", "m: GeLU: cuda:75-89: training: is an integer"},
        {"{\"GeLU\": \"nonsense\"}", "m: GeLU: \"nonsense\" names no kernel: ORG/NAME@REV:LAYER"},
        {"{\"GeLU\": \"https://hf.co/a/b\"}", "names no kernel"},
        {"{\"GeLU\": \"a/b@>=3,<1\"}", "m: GeLU: a/b: \">=3,<1\": no version is in this range"},
        {"{\"GeLU\": \"a/b@>=x:L\"}", "m: GeLU: a/b: \">=x\": a range of versions is like"},
        {"{\"GeLU\": \"khub/norm@\"}", "is no version, branch, tag or commit"},
        {"{\"GeLU\": \"a/b@\"}", "is no version, branch, tag or commit"},
        {"{\"GeLU\": {\"kernel\": \"a/b@v1@v2\"}}", "is no version, branch, tag or commit"},
        {"{\"GeLU\": {\"kernel\": 1}}", "m: GeLU: \"kernel\" is an integer"},
        {"{\"GeLU\": {\"function\": \"f\"}}", "m: GeLU: \"kernel\" is missing"},
        {"{\"GeLU\": {\"kernel\": \"./k\", \"args\": [\"x\"]}}", "m: GeLU: \"function\" is missing"},
        {"{\"GeLU\": {\"kernel\": \"./k\", \"function\": \"f\", \"args\": [\"out\"]}}",
         "m: GeLU: ./k: arguments of f for GeLU don't match the layer's, each once: found: out; the layer "
         "has: "
         "out, x"},
        {"{\"GeLU(a.*)\": {\"kernel\": \"./k\", \"function\": \"f\", \"args\": [\"out\", \"x\", \"y\"]}}",
         "found: out, x, y; the layer has: out, x"},
        {"{\"GeLU\": {\"cpu\": {\"kernel\": \"./k\", \"function\": \"f\", \"args\": [\"out\", \"input\"]}}}",
         "m: GeLU: cpu: ./k: arguments of f"},
        {"{\"GeLU\": {\"kernel\": \"./k\", \"function\": \"f\", \"args\": [\"x\", \"x\"]}}",
         "\"args\" has \"x\" twice"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_error err = {0};
        khub_mapping *mapping;
        const khub_mapping_line *line, *found = NULL;
        ck_khub_ok(khub_mapping_parse(&mapping, table[i].text, "m", &err), &err);
        for (size_t k = 0; (line = khub_mapping_at(mapping, k)) != NULL; k++)
            if (line->fault) {
                ck_assert_msg(!found, "two faults in %s", table[i].text);
                found = line;
            }
        ck_assert_msg(found && strstr(found->fault, table[i].words), "%s: %s", table[i].text,
                      found ? found->fault : "no fault");
        ck_assert_msg(!strstr(found->fault, "neither") || strstr(table[i].words, "neither"), "%s",
                      found->fault);
        ck_assert_ptr_null(found->kernel);
        khub_mapping_free(mapping);
    }
}
END_TEST

/* What is no mapping at all. */
START_TEST(texts_that_are_no_mapping)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        {"", "m:1: not valid JSON"},
        {"[]", "m: is an array, an object is expected"},
        {"{\n\"GeLU\": \"a/b\",\n\"GeLU\": \"\"}",
         "m:3: not valid JSON: duplicate object key near '\"GeLU\"'"},
        {"{\"GeLU\": {\"cpu\": \"\", \"cpu\": \"\"}}", "duplicate object key near '\"cpu\"'"},
        {"{\"Linear + GeLU\": \"\", \"Linear+GeLU\": \"\"}", "m: the key \"Linear + GeLU\" stands twice"},
        {"{\"GeLU\": \"\", \" GeLU\": \"\"}", "m: the key \"GeLU\" stands twice"},
        {"{\"GeLU\": {\"mps\": \"\", \"metal\": \"a/b\"}}",
         "m: GeLU: \"metal\" says again what another row says"},
        {"{\"GeLU\": {\"metal\": {}, \"mps\": \"a/b\"}}", "m: GeLU: \"mps\" says again"},
        {"{\"GeLU\": {\"cuda\": \"\", \"cuda:0-\": \"a/b\"}}", "m: GeLU: \"cuda:0-\" says again"},
        {"{\"GeLU\": {\"cuda:90\": 1, \"cuda:90-90\": \"a/b\"}}", "m: GeLU: \"cuda:90-90\" says again"},
        {"{\"GeLU\": {\"training|compile\": \"\", \"compile|training\": \"a/b\"}}",
         "m: GeLU: \"compile|training\" says again"},
        {"{\"GeLU\": \"\"} x", "not valid JSON"},
    };
    khub_error err = {0};
    khub_mapping *mapping;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_khub_fails(khub_mapping_parse(&mapping, table[i].text, "m", &err), &err, KHUB_E_FORMAT,
                      table[i].words);
        ck_assert_ptr_null(mapping);
    }
    char *large = malloc(KHUB__MAPPING_MAX_BYTES + 2), deep[400] = "{\"GeLU\": ";
    memset(large, ' ', KHUB__MAPPING_MAX_BYTES + 1);
    large[KHUB__MAPPING_MAX_BYTES + 1] = 0;
    memcpy(large, "{}", 2);
    ck_khub_fails(khub_mapping_parse(&mapping, large, "m", &err), &err, KHUB_E_FORMAT,
                  "m: has 1048577 bytes");
    large[KHUB__MAPPING_MAX_BYTES] = 0;
    ck_khub_ok(khub_mapping_parse(&mapping, large, "m", &err), &err);
    khub_mapping_free(mapping);
    char *at = large + sprintf(large, "{\"GeLU\": {\"cpu\": 1");
    for (int i = 1; i < 1000; i++)
        at += sprintf(at, ", \"cuda:%d\": \"a/b\"", i);
    strcpy(at, "}}");
    ck_khub_ok(khub_mapping_parse(&mapping, large, "m", &err), &err);
    khub_mapping_free(mapping);
    strcpy(at, ", \"xpu\": 1}}");
    ck_khub_fails(khub_mapping_parse(&mapping, large, "m", &err), &err, KHUB_E_FORMAT,
                  "m: GeLU: has more than 1000 entries");
    free(large);
    memset(deep + strlen(deep), '[', 70);
    ck_khub_fails(khub_mapping_parse(&mapping, deep, "m", &err), &err, KHUB_E_FORMAT,
                  "m: nested deeper than 64");
}
END_TEST

/* Tables have \' where JSON has \". */
static void with_quotes(char *to, const char *text)
{
    for (; *text; text++)
        *to++ = *text == '\'' ? '"' : *text;
    *to = 0;
}

static khub_mapping *parse_quoted(const char *quoted)
{
    char text[400];
    with_quotes(text, quoted);
    return parse(text);
}

/* The kernels of the candidates with commas between, or what the mapping lacks. */
static const char *candidates_of(const khub_mapping *mapping, const char *layer, const char *path,
                                 const char *device, int mode)
{
    static char text[1100];
    const khub_mapping_line *line[KHUB_MAPPING_CANDIDATES];
    size_t count;
    khub_error err = {0};
    text[0] = 0;
    int rc = khub_mapping_find(line, &count, mapping, layer, path, device, mode, &err);
    if (rc != KHUB_OK) return strcpy(text, err.message);
    for (size_t i = 0; i < count; i++) {
        strcat(text, i ? "," : "");
        strcat(text, line[i]->kernel ? line[i]->kernel + (line[i]->kernel[0] == '/') : "fault");
    }
    return text;
}

enum {
    INFERENCE = KHUB_MODE_INFERENCE,
    TRAINING = KHUB_MODE_TRAINING,
    COMPILE = KHUB_MODE_COMPILE,
    FALLBACK = KHUB_MODE_FALLBACK
};

/* L5: each mode of a model with each set of modes that a mapping may have. */
START_TEST(all_modes)
{
    static const struct {
        int bits;
        const char *word, *kernel;
    } entries[] = {{INFERENCE, "inference", "I"},
                   {INFERENCE | COMPILE, "inference|compile", "IC"},
                   {TRAINING, "training", "T"},
                   {TRAINING | COMPILE, "training|compile", "TC"},
                   {FALLBACK, "fallback", "F"}};
    static const struct {
        int mode;
        const char *order[6]; /* facts: what is tried, in order */
    } rules[] = {{INFERENCE, {"I", "IC", "T", "TC", "F"}},
                 {INFERENCE | COMPILE, {"IC", "TC", "F"}},
                 {TRAINING, {"T", "TC", "F"}},
                 {TRAINING | COMPILE, {"TC", "F"}}};
    for (unsigned set = 1; set < 32; set++) {
        char text[500] = "{\"GeLU\": {\"cpu\": {", *at = text + strlen(text);
        for (unsigned i = 0; i < 5;
             i++) /* written from the last to the first: the order in the file doesn't count */
            if (set & 1u << (4 - i))
                at += sprintf(at, "%s\"%s\": \"/%s\"", at[-1] == '{' ? "" : ", ", entries[4 - i].word,
                              entries[4 - i].kernel);
        strcpy(at, "}}}");
        khub_mapping *mapping = parse(text);
        for (size_t r = 0; r < sizeof(rules) / sizeof(*rules); r++) {
            char expected[100] = "";
            for (size_t o = 0; rules[r].order[o]; o++)
                for (unsigned i = 0; i < 5; i++)
                    if (set & 1u << i && !strcmp(entries[i].kernel, rules[r].order[o]))
                        strcat(strcat(expected, *expected ? "," : ""), entries[i].kernel);
            const char *found = candidates_of(mapping, "GeLU", "a", "cpu", rules[r].mode);
            if (*expected)
                ck_assert_msg(!strcmp(found, expected), "%s in mode %d: %s, not %s", text, rules[r].mode,
                              found, expected);
            else
                ck_assert_msg(strstr(found, "no kernel for GeLU in mode ") != NULL, "%s: %s", text, found);
        }
        khub_mapping_free(mapping);
    }
    static const int wrong[] = {0, COMPILE, FALLBACK, INFERENCE | TRAINING, FALLBACK | INFERENCE, 16};
    khub_mapping *mapping = parse("{\"GeLU\": \"/k\"}");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ck_assert_ptr_nonnull(
            strstr(candidates_of(mapping, "GeLU", "a", "cpu", wrong[i]), "is no mode of a model"));
    khub_mapping_free(mapping);
}
END_TEST

/* Each rule of facts and docs on where an entry counts. */
START_TEST(where_entries_count)
{
    static const struct {
        const char *mapping, *layer, *path, *device, *expected;
    } table[] = {
        /* devices */
        {"{'GeLU': '/k'}", "GeLU", "a", "cpu", "k"},
        {"{'GeLU': '/k'}", "GeLU", "a", "tpu", "k"},
        {"{'GeLU': '/k'}", "SiLU", "a", "cpu", "the mapping has no kernel for SiLU"},
        {"{}", "SiLU", "a", "cpu", "the mapping has no kernel for SiLU"},
        {"{'GeLU': ''}", "GeLU", "a", "cpu", ""},
        {"{'GeLU': {'cuda': '/c', 'cpu': '/k'}}", "GeLU", "a", "cpu", "k"},
        {"{'GeLU': {'cuda': '/c'}}", "GeLU", "a", "cpu", "the mapping has no kernel for GeLU on cpu"},
        {"{'GeLU': {'metal': '/m'}}", "GeLU", "a", "mps", "m"},
        {"{'GeLU': {'mps': '/m'}}", "GeLU", "a", "metal", "m"},
        {"{'GeLU': {'rocm': '/r'}}", "GeLU", "a", "cuda", "the mapping has no kernel for GeLU on cuda"},
        {"{'GeLU': {'npu': '/n', 'xpu': '/x', 'neuron': '/e', 'tpu': '/t'}}", "GeLU", "a", "neuron", "e"},
        {"{'GeLU': {'*': '/o', 'cuda': '/c'}}", "GeLU", "a", "xpu", "o"},
        {"{'GeLU': {'*': '/o', 'cuda': '/c'}}", "GeLU", "a", "cuda:75", "c"},
        {"{'GeLU': {'*': '/o', 'cuda:80-': '/c'}}", "GeLU", "a", "cuda:75", "o"},
        {"{'GeLU': {'cpu': {'kernel': '/k', 'function': 'f'}}}", "GeLU", "a", "cpu", "k"},
        {"{'GeLU': {'inference': '/i', 'fallback': '/f'}}", "GeLU", "a", "rocm:90", "i,f"},
        /* capabilities: both ends belong to a range, the smallest that holds the device counts */
        {"{'GeLU': {'cuda:75-89': '/k'}}", "GeLU", "a", "cuda:75", "k"},
        {"{'GeLU': {'cuda:75-89': '/k'}}", "GeLU", "a", "cuda:89", "k"},
        {"{'GeLU': {'cuda:75-89': '/k'}}", "GeLU", "a", "cuda:90",
         "the mapping has kernels for GeLU on cuda, but for no range of capabilities that holds cuda:90"},
        {"{'GeLU': {'cuda:75-89': '/k'}}", "GeLU", "a", "cuda:74", "that holds cuda:74"},
        {"{'GeLU': {'cuda:75-89': '/k'}}", "GeLU", "a", "cuda", "that holds an unknown one"},
        {"{'GeLU': {'cuda:75-89': '/k', 'cuda': '/w'}}", "GeLU", "a", "cuda", "w"},
        {"{'GeLU': {'cuda:75-89': '/k', 'cuda': '/w'}}", "GeLU", "a", "cuda:120", "w"},
        {"{'GeLU': {'cuda': '/w', 'cuda:75-89': '/k'}}", "GeLU", "a", "cuda:80", "k"},
        {"{'GeLU': {'cuda:70-90': '/b', 'cuda:75-89': '/k', 'cuda:60-120': '/c'}}", "GeLU", "a", "cuda:80",
         "k"},
        {"{'GeLU': {'cuda:70-90': '/b', 'cuda:75-89': '/k', 'cuda:60-120': '/c'}}", "GeLU", "a", "cuda:90",
         "b"},
        {"{'GeLU': {'cuda:70-90': '/b', 'cuda:75-89': '/k', 'cuda:60-120': '/c'}}", "GeLU", "a", "cuda:120",
         "c"},
        {"{'GeLU': {'cuda:90': '/k', 'cuda:80-95': '/b'}}", "GeLU", "a", "cuda:90", "k"},
        {"{'GeLU': {'cuda:90-': '/k', 'cuda:80-': '/b'}}", "GeLU", "a", "cuda:100", "k"},
        {"{'GeLU': {'cuda:90-': '/k', 'cuda:80-': '/b'}}", "GeLU", "a", "cuda:89", "b"},
        {"{'GeLU': {'cuda:75-85': '/k', 'cuda:80-90': '/b'}}", "GeLU", "a", "cuda:82",
         "b"}, /* as large: the higher */
        {"{'GeLU': {'rocm:90-94': '/k', 'rocm': '/w'}}", "GeLU", "a", "rocm:94", "k"},
        {"{'GeLU': {'cuda:80-89': {'training': '/t'}, 'cuda': '/w'}}", "GeLU", "a", "cuda:85", "t"},
        {"{'GeLU': {'cuda:80-89': {'training': '/t', 'fallback': '/f'}, 'cuda': '/w'}}", "GeLU", "a",
         "cuda:85", "t,f"},
        /* the most special key that has something for the device */
        {"{'GeLU': '/g', 'GeLU(a.*)': '/s'}", "GeLU", "a.b", "cpu", "s"},
        {"{'GeLU(a.*)': '/s', 'GeLU': '/g'}", "GeLU", "a.b", "cpu", "s"},
        {"{'GeLU(a.*)': '/s', 'GeLU': '/g'}", "GeLU", "b.b", "cpu", "g"},
        {"{'GeLU(a.*)': '/s'}", "GeLU", "b.b", "cpu", "the mapping has no kernel for GeLU"},
        {"{'GeLU(a.*)': '', 'GeLU': '/g'}", "GeLU", "a.b", "cpu", ""},
        {"{'GeLU(**)': '/s', 'GeLU': '/g'}", "GeLU", "a.b", "cpu", "s"},
        {"{'GeLU(**)': '/s', 'GeLU(a.*)': '/t', 'GeLU(*.*)': '/u'}", "GeLU", "a.b", "cpu", "t"},
        {"{'GeLU(**)': '/s', 'GeLU(*.*)': '/u'}", "GeLU", "a.b", "cpu", "u"},
        {"{'GeLU(*.*)': '/u', 'GeLU(**)': '/s'}", "GeLU", "a.b", "cpu", "u"},
        {"{'GeLU(a.b)': '/t', 'GeLU(a.*)': '/u'}", "GeLU", "a.b", "cpu", "t"},
        {"{'GeLU(a.*)': '/t', 'GeLU(*.b)': '/u'}", "GeLU", "a.b", "cpu", "u"}, /* alike: the later one */
        {"{'GeLU(a.*)': {'cuda': '/s'}, 'GeLU': {'cpu': '/g', 'cuda': '/c'}}", "GeLU", "a.b", "cpu", "g"},
        {"{'GeLU(a.*)': {'cuda:80-': '/s'}, 'GeLU': {'cuda': '/c'}}", "GeLU", "a.b", "cuda:75", "c"},
        {"{'GeLU(a.*)': {'training': '/s'}, 'GeLU': '/g'}", "GeLU", "a.b", "cpu", "s"},
        {"{'GeLU': '/g', 'SiLU(a.*)': '/s'}", "GeLU", "a.b", "cpu", "g"},
        /* a fault is the entry's own */
        {"{'SiLU': 3, 'GeLU': '/g', 'ReLU': {'gpu': '/r'}}", "GeLU", "a", "cpu", "g"},
        {"{'GeLU': {'gpu': '/x', 'cpu': '/g'}}", "GeLU", "a", "cpu", "g"},
        {"{'GeLU': {'gpu': '/x', 'cuda': '/g'}}", "GeLU", "a", "cpu", "fault"},
        {"{'GeLU(a.*)': {'cpu': '', 'gpu': '/x'}, 'GeLU': {'*': '/g'}}", "GeLU", "a.b", "cuda", "g"},
        {"{'GeLU': {'inference': 'nonsense', 'fallback': '/f'}}", "GeLU", "a", "cpu", "fault,f"},
        {"{'GeLU': {'cpu': {'inferense': '/i', 'fallback': '/f'}}}", "GeLU", "a", "cpu", "f,fault"},
        {"{'GeLU': 3}", "GeLU", "a", "cpu", "fault"},
        {"{'GeLU(a.*)': 3, 'GeLU': '/g'}", "GeLU", "a.b", "cpu", "fault"},
        {"{'GeLU': {'cuda:75-70': '/x', 'cuda': '/g'}}", "GeLU", "a", "cuda:72", "g"},
        /* devices that are none */
        {"{'GeLU': '/k'}", "GeLU", "a", "gpu", "\"gpu\" is no device"},
        {"{'GeLU': '/k'}", "GeLU", "a", "*", "\"*\" is no device"},
        {"{'GeLU': '/k'}", "GeLU", "a", "cpu:1", "only cuda and rocm have capabilities"},
        {"{'GeLU': '/k'}", "GeLU", "a", "cuda:75-80", "a device and its capability is wanted"},
        {"{'GeLU': '/k'}", "GeLU", "a", "cuda:", "a device and its capability is wanted"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_mapping *mapping = parse_quoted(table[i].mapping);
        const char *found = candidates_of(mapping, table[i].layer, table[i].path, table[i].device, INFERENCE);
        int good = strlen(table[i].expected) > 12 ? strstr(found, table[i].expected) != NULL
                                                  : !strcmp(found, table[i].expected);
        ck_assert_msg(good, "%s on %s: \"%s\", not \"%s\"", table[i].mapping, table[i].device, found,
                      table[i].expected);
        khub_mapping_free(mapping);
    }
}
END_TEST

START_TEST(patterns)
{
    static const struct {
        const char *pattern;
        const char *takes[6], *leaves[6];
    } table[] = {
        {NULL, {"a", "a.b", ""}, {0}},
        {"a", {"a"}, {"b", "a.a", "", "ab"}},
        {"*", {"a", "bc"}, {"a.b"}},
        {"a.*", {"a.b", "a.0"}, {"a", "a.b.c", "b.a"}},
        {"a.*.c", {"a.b.c", "a.0.c"}, {"a.c", "a.b.b.c", "a.b.cc"}},
        {"**", {"a", "a.b", "a.b.c"}, {0}},
        {"a.**", {"a.b", "a.b.c", "a"}, {"b.a"}},
        {"**.c", {"c", "a.c", "a.b.c", "c.c"}, {"c.a", "a.cc"}},
        {"a.**.c", {"a.c", "a.b.c", "a.c.b.c", "a.c.c"}, {"a", "c", "a.b", "b.a.c"}},
        {"**.b.**.d", {"b.d", "a.b.c.d", "b.b.d.d", "a.b.d.x.d"}, {"b", "d.b", "b.d.x"}},
        {"**.*", {"a", "a.b"}, {0}},
        {"*.**.*", {"a.b", "a.x.b"}, {"a"}},
        {"**.**", {"a", "a.b"}, {0}},
        {"**.a.b.a.c", {"a.b.a.b.a.c", "a.b.a.c"}, {"a.b.a.b.a", "a.b.a.b.c"}},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        for (size_t k = 0; k < 6 && table[i].takes[k]; k++)
            ck_assert_msg(khub__pattern_takes(table[i].pattern, table[i].takes[k]), "%s, %s",
                          table[i].pattern, table[i].takes[k]);
        for (size_t k = 0; k < 6 && table[i].leaves[k]; k++)
            ck_assert_msg(!khub__pattern_takes(table[i].pattern, table[i].leaves[k]), "%s, %s",
                          table[i].pattern, table[i].leaves[k]);
    }
}
END_TEST

/* Every pattern of up to three of these segments against every other, by trying all paths of some segments:
 * whether a key may have both in a run. */
enum { PATTERNS = 4 + 16 + 64, PARENTS = 63, CHILDREN = 3 };

static void segments_of(char *out, int number, int base, const char *const *words)
{
    *out = 0;
    for (int count = 0, all = 1; number >= 0; count++, all *= base) {
        if (number >= all) {
            number -= all;
            continue;
        }
        for (int i = 0; i < count; i++, number /= base)
            sprintf(out + strlen(out), "%s%s", i ? "." : "", words[number % base]);
        return;
    }
}

START_TEST(a_run_has_patterns_of_siblings)
{
    static const char *const words[] = {"a", "b", "*", "**"}, *const children[CHILDREN] = {"a", "b", "c"};
    static char pattern[PATTERNS][16], takes[PATTERNS][PARENTS][CHILDREN];
    for (int i = 0; i < PATTERNS; i++) {
        segments_of(pattern[i], i + 1, 4, words);
        for (int p = 0; p < PARENTS; p++)
            for (int c = 0; c < CHILDREN; c++) {
                char path[40];
                segments_of(path, p, 2, words);
                sprintf(path + strlen(path), "%s%s", *path ? "." : "", children[c]);
                takes[i][p][c] = (char)khub__pattern_takes(pattern[i], path);
            }
    }
    int may = 0;
    for (int i = 0; i < PATTERNS; i++)
        for (int j = 0; j < PATTERNS; j++) {
            int expected = 0;
            for (int p = 0; p < PARENTS; p++)
                for (int c = 0; c < CHILDREN; c++)
                    for (int d = 0; d < CHILDREN; d++)
                        expected |= c != d && takes[i][p][c] && takes[j][p][d];
            khub__key *key = NULL;
            char text[4096];
            sprintf(text, "Linear(%s) + GeLU(%s)", pattern[i], pattern[j]);
            int rc = khub__key_parse(&key, text, "m", NULL);
            khub_free(key);
            ck_assert_msg((rc == KHUB_OK) == expected, "%s: %d", text, rc);
            may += expected;
        }
    ck_assert_int_gt(may, PATTERNS);
    ck_assert_int_lt(may, PATTERNS * (PATTERNS - 1));
}
END_TEST

/* A run is taken by a key that has its layers in order, within one parent; else by its own layer. */
START_TEST(runs)
{
    static const struct {
        const char *mapping, *first, *second, *expected; /* paths of a Linear and a GeLU */
    } table[] = {
        {"{\"Linear + GeLU\": \"/k\"}", "a.b.lin", "a.b.act", "k"},
        {"{\"Linear+GeLU\": \"/k\", \"LinearGeLU\": \"/l\"}", "a.b.lin", "a.b.act", "k"},
        {"{\"LinearGeLU\": \"/l\", \"GeLU\": \"/g\", \"Linear\": \"/m\"}", "a.b.lin", "a.b.act", "l"},
        {"{\"Linear + GeLU\": \"/k\"}", "a.b.lin", "a.c.act", ""},
        {"{\"Linear + GeLU\": \"/k\"}", "lin", "act", "k"},
        {"{\"GeLU + Linear\": \"/k\"}", "a.b.lin", "a.b.act", ""},
        {"{\"Linear + GeLU + Linear\": \"/k\"}", "a.b.lin", "a.b.act", ""},
        {"{\"Linear(a.*.lin) + GeLU(a.*.act)\": \"/k\"}", "a.b.lin", "a.b.act", "k"},
        {"{\"Linear(a.*.lin) + GeLU(a.*.act)\": \"/k\"}", "a.b.lin", "a.b.other", ""},
        {"{\"Linear(a.*.lin) + GeLU\": \"/k\", \"Linear + GeLU\": \"/o\"}", "a.b.lin", "a.b.act", "k"},
        {"{\"Linear + GeLU\": \"/o\", \"Linear(c.lin) + GeLU\": \"/k\"}", "a.b.lin", "a.b.act", "o"},
        {"{\"Linear + GeLU\": \"\", \"LinearGeLU\": \"/l\"}", "a.b.lin", "a.b.act", "standard"},
        {"{\"RMSNorm + Linear\": \"/k\"}", "a.b.lin", "a.b.act", ""},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_mapping *mapping = parse(table[i].mapping);
        const khub__wanted_slot parts[2] = {{"Linear", table[i].first, NULL, 0},
                                            {"GeLU", table[i].second, NULL, 0}};
        khub__wanted_slot run = {"LinearGeLU", "a.b.lin+act", parts, 2};
        khub__candidates all;
        khub__candidates_find(&all, mapping, &run, (khub__on){KHUB__DEVICE_CPU, KHUB__CAPABILITY_UNKNOWN},
                              INFERENCE);
        const char *kernel = !all.count ? "" : *all.entry[0]->kernel ? all.entry[0]->kernel + 1 : "standard";
        ck_assert_msg(!strcmp(kernel, table[i].expected), "%s: \"%s\"", table[i].mapping, kernel);
        khub_mapping_free(mapping);
    }
}
END_TEST

static void same_text(const khub_mapping *mapping, const char *expected)
{
    char *text = khub_mapping_json(mapping), *to = text;
    for (const char *from = text; *from; from++) /* in one line, as the tables have it */
        if (*from == '\n')
            from += strspn(from, "\n ") - 1;
        else
            *to++ = *from == '"' ? '\'' : *from;
    *to = 0;
    ck_assert_str_eq(text, expected);
    khub_free(text);
}

START_TEST(merging)
{
    static const struct {
        const char *under, *over, *both;
    } table[] = {
        {"{}", "{'GeLU': '/k'}", "{'GeLU': '/k'}"},
        {"{'GeLU': '/k'}", "{}", "{'GeLU': '/k'}"},
        {"{'GeLU': '/k'}", "{'SiLU': '/s'}", "{'GeLU': '/k','SiLU': '/s'}"},
        {"{'GeLU': '/k'}", "{'GeLU': '/o'}", "{'GeLU': '/o'}"},
        {"{'GeLU': '/k'}", "{'GeLU': ''}", "{'GeLU': ''}"},
        {"{'GeLU': {'cpu': '/k', 'cuda': '/c'}}", "{'GeLU': {'cuda': '/o'}}",
         "{'GeLU': {'cpu': '/k', 'cuda': '/o'}}"},
        {"{'GeLU': {'cpu': '/k', 'cuda:75-89': '/c'}}", "{'GeLU': '/o'}", "{'GeLU': '/o'}"},
        {"{'GeLU': {'cpu': '/k', 'cuda': '/c'}}", "{'GeLU': {'*': '/o', 'xpu': '/x'}}",
         "{'GeLU': {'*': '/o', 'xpu': '/x'}}"},
        /* a range that is registered again replaces the first, with all its modes; others stay */
        {"{'GeLU': {'cuda:75-89': {'training': '/t', 'fallback': '/f'}, 'cuda': '/c'}}",
         "{'GeLU': {'cuda:75-89': {'inference': '/i'}}}",
         "{'GeLU': {'cuda': '/c', 'cuda:75-89': {'inference': '/i'}}}"},
        {"{'GeLU': {'cuda:75-89': '/k'}}", "{'GeLU': {'cuda': '/o'}}",
         "{'GeLU': {'cuda:75-89': '/k', 'cuda': '/o'}}"},
        {"{'GeLU': {'cuda:75-89': '/k'}}", "{'GeLU': {'cuda:75-90': '/o'}}",
         "{'GeLU': {'cuda:75-89': '/k', 'cuda:75-90': '/o'}}"},
        {"{'GeLU': {'metal': '/k'}}", "{'GeLU': {'mps': '/o'}}", "{'GeLU': {'mps': '/o'}}"},
        {"{'GeLU': {'cpu': '/k'}}", "{'GeLU': {'cuda': '/o'}}", "{'GeLU': {'cpu': '/k', 'cuda': '/o'}}"},
        {"{'GeLU': '/k'}", "{'GeLU': {'cuda': '/o'}}", "{'GeLU': {'*': '/k', 'cuda': '/o'}}"},
        /* keys with patterns: a value for the whole layer replaces them, one for a device or a path doesn't
         */
        {"{'GeLU(a.*)': '/k', 'GeLU': '/g'}", "{'GeLU': '/o'}", "{'GeLU': '/o'}"},
        {"{'GeLU(a.*)': '/k'}", "{'GeLU': {'cpu': '/o'}}", "{'GeLU(a.*)': '/k','GeLU': {'cpu': '/o'}}"},
        {"{'GeLU': '/g'}", "{'GeLU(a.*)': '/o'}", "{'GeLU': '/g','GeLU(a.*)': '/o'}"},
        {"{'GeLU(a.*)': '/k'}", "{'GeLU(a.*)': ''}", "{'GeLU(a.*)': ''}"},
        {"{'Linear + GeLU': '/k', 'Linear': '/l'}", "{'Linear': '/o'}",
         "{'Linear + GeLU': '/k','Linear': '/o'}"},
        {"{'Linear + GeLU': '/k'}", "{'Linear+GeLU': '/o'}", "{'Linear + GeLU': '/o'}"},
        /* what is faulty is laid over as well: it was meant for the layer */
        {"{'GeLU': '/k'}", "{'GeLU': 3}", "{'GeLU': 3}"},
        {"{'GeLU': 3}", "{'GeLU': {'cpu': '/k'}}", "{'GeLU': {'*': 3, 'cpu': '/k'}}"},
        {"{'GeLU': {'nope': 3}}", "{'GeLU': {'cpu': '/k'}}", "{'GeLU': {'cpu': '/k'}}"},
        {"{'GeLU': {'cpu': {}}}", "{'GeLU': {'cpu': '/k'}}", "{'GeLU': {'cpu': '/k'}}"},
        {"{'GeLU': {'gpu': 1, 'cpu': '/k'}}", "{'GeLU': {'gpu': 2, 'tpu': '/t'}}",
         "{'GeLU': {'cpu': '/k', 'gpu': 2, 'tpu': '/t'}}"},
        {"{'GeLU': {'gpu': 1, 'cpu': '/k'}}", "{'GeLU': {'npx': 2, 'tpu': '/t'}}",
         "{'GeLU': {'gpu': 1, 'cpu': '/k', 'npx': 2, 'tpu': '/t'}}"},
        {"{'GeLU': {'cpu': '/k'}}", "{'GeLU': {'cpu': {'nope': '/n'}}}", "{'GeLU': {'cpu': {'nope': '/n'}}}"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub_mapping *under = parse_quoted(table[i].under), *over = parse_quoted(table[i].over);
        ck_khub_ok(khub_mapping_merge(under, over, &err), &err);
        khub_mapping_free(over); /* nothing of it is borrowed */
        same_text(under, table[i].both);
        ck_khub_ok(khub_mapping_merge(under, under, &err), &err);
        same_text(under, table[i].both);
        khub_mapping_free(under);
    }
}
END_TEST
/* Read, written and read again: equal in every line, and written the same. 0: the text is no mapping. */
static int comes_back(const char *text)
{
    khub_mapping *first;
    khub_error err = {0};
    if (khub_mapping_parse(&first, text, NULL, &err) != KHUB_OK) {
        ck_assert_msg(strstr(err.message, "says again") != NULL, "%s: %s", text, err.message);
        return 0;
    }
    char *written = khub_mapping_json(first);
    ck_assert_ptr_nonnull(written);
    khub_mapping *second = parse(written);
    char *again = khub_mapping_json(second);
    ck_assert_str_eq(written, again);
    const khub_mapping_line *a, *b;
    for (size_t i = 0; (a = khub_mapping_at(first, i)) != NULL; i++) {
        b = khub_mapping_at(second, i);
        ck_assert_msg(b != NULL, "%s: ends early", text);
        ck_assert_str_eq(a->key, b->key);
        ck_assert_pstr_eq(a->device, b->device);
        ck_assert_int_eq(a->mode, b->mode);
        ck_assert_pstr_eq(a->kernel, b->kernel);
        ck_assert_pstr_eq(a->layer, b->layer);
        ck_assert_pstr_eq(a->function, b->function);
        ck_assert_pstr_eq(a->fault, b->fault);
    }
    ck_assert_ptr_null(khub_mapping_at(second, khub_mapping_at(first, 0) ? 1000 : 0));
    khub_free(written);
    khub_free(again);
    khub_mapping_free(first);
    khub_mapping_free(second);
    return 1;
}

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u; /* of Numerical Recipes */
    return (*state >> 16) % below;
}

/* "{"a": VALUE, "b": VALUE}" with some of the words as keys, each at most once. */
static void draw_table(char *to, unsigned *state, const char *const *words, unsigned count,
                       void (*value)(char *to, unsigned *state))
{
    const char *before = "{";
    unsigned start = draw(state, count);
    for (unsigned i = 0; i < count; i++) {
        if (i && draw(state, 3)) continue;
        to += sprintf(to, "%s\"%s\": ", before, words[(start + i) % count]);
        value(to, state);
        to += strlen(to);
        before = ", ";
    }
    strcpy(to, "}");
}

static void draw_leaf(char *to, unsigned *state)
{
    static const char *const leaves[] = {
        "\"\"",
        "\"/k\"",
        "\"org/r:L\"",
        "\"org/r@>=1,<3\"",
        "\"./a:b/c:L\"",
        "\"khub/norm\"",
        "3",
        "[]",
        "{}",
        "null",
        "\"nonsense\"",
        "{\"kernel\": \"/k\", \"function\": \"f\", \"dtypes\": [\"float32\"]}",
        "{\"kernel\": \"org/r:L\"}",
        "{\"kernel\": \"/k\", \"args\": [\"x\"]}",
        "{\"a\": {\"b\": 1}}",
        "\"./\\u00e4\\\"\\\\\""};
    strcpy(to, leaves[draw(state, sizeof(leaves) / sizeof(*leaves))]);
}

static void draw_modes(char *to, unsigned *state)
{
    static const char *const modes[] = {
        "inference", "training", "inference|compile", "compile|inference", "training|compile",
        "fallback",  "nope",     "inference|training"};
    if (draw(state, 2))
        draw_leaf(to, state);
    else
        draw_table(to, state, modes, sizeof(modes) / sizeof(*modes), draw_leaf);
}

static void draw_value(char *to, unsigned *state)
{
    static const char *const devices[] = {"cpu",     "cuda",     "cuda:75-89", "cuda:90",  "cuda:90-90",
                                          "cuda:0-", "rocm:94-", "metal",      "mps",      "*",
                                          "gpu",     "cuda:9-1", "tpu",        "inference"};
    if (draw(state, 3))
        draw_table(to, state, devices, sizeof(devices) / sizeof(*devices), draw_modes);
    else
        draw_modes(to, state);
}

START_TEST(what_is_written_comes_back)
{
    static const char *const keys[] = {"GeLU",  "Linear + GeLU", "GeLU(a.*)", "Linear(**.a)+GeLU", "Nope",
                                       "GeLU(", "Softmax",       "A+B",       "SiLU ( a )"};
    unsigned state = 1;
    static char text[1 << 16];
    ck_assert(comes_back("{\"GeLU\": {\"fallback\": {\"a\": 1}}}"));
    ck_assert(comes_back("{\"GeLU\": {\"cpu\": {\"fallback\": {\"a\": 1}}}}"));
    ck_assert(comes_back("{\"GeLU\": {\"cpu\": {}, \"gpu\": {}, \"*\": {\"x\": {}}}}"));
    int mappings = 0;
    for (int i = 0; i < 1500; i++) {
        draw_table(text, &state, keys, sizeof(keys) / sizeof(*keys), draw_value);
        mappings += comes_back(text);
    }
    ck_assert_int_gt(mappings, 500);
}
END_TEST

/* The builder says what a file says; what is no entry leaves the mapping as it is. */
START_TEST(building)
{
    static const struct {
        const char *key, *device;
        int mode;
        const char *kernel, *spec, *words; /* words: of the refusal */
    } steps[] = {
        {"GeLU", "cpu", 0, "khub/activation", NULL, NULL},
        {"GeLU", "cuda:75-89", TRAINING | COMPILE, "org/r:L", NULL, NULL},
        {"GeLU", "cuda:75-89", 0, "org/r@v2", NULL, NULL},
        {"GeLU", "cuda:75-89", TRAINING | COMPILE, "org/other", NULL, NULL}, /* in the place of the first */
        {"GeLU", NULL, INFERENCE, "", NULL, NULL},
        {"Linear( a.* )", NULL, 0, "/k", NULL, "whole segment"},
        {"Linear(a.*)+GeLU", NULL, 0, "./k", "{'function': 'f', 'args': ['x', 'out']}", NULL},
        {"Softmax", NULL, 0, "/k", "{'function': 'f', 'args': ['x']}",
         "khub_mapping_set: Softmax: /k: arguments of f"},
        {"Softmax", NULL, 0, "/k", "{'args': ['x']}", "\"function\" is missing"},
        {"Softmax", NULL, 0, "/k", "[]", "is an array"},
        {"Softmax", NULL, 0, "/k", "{", "not valid JSON"},
        {"Softmax", "gpu", 0, "/k", NULL, "khub_mapping_set: Softmax: \"gpu\" is no device"},
        {"Softmax", "cuda:9-1", 0, "/k", NULL, "ends before it starts"},
        {"Softmax", NULL, COMPILE, "/k", NULL, "no mode"},
        {"Softmax", NULL, 64, "/k", NULL, "no mode"},
        {"Softmax", NULL, 0, "nonsense", NULL, "names no kernel"},
        {"Softmax", NULL, 0, "a/b@>2,<2", NULL, "no version is in this range"},
        {"Softmax", NULL, 0, "/\xff", "{'function': 'f'}", "isn't UTF-8"},
        {"Softmax", NULL, 0, "\xff", NULL, "names no kernel"},
        {"Softmax", "rocm", 0, "/\xff", NULL, NULL}, /* a path may be any bytes; JSON has no word for them */
        {"Softmaxx", NULL, 0, "/k", NULL, "there is no layer \"Softmaxx\""},
        {"Softmax(", NULL, 0, "/k", NULL, "missing"},
    };
    static const char built[] =
        "{'GeLU': {'cpu': 'khub/activation', 'cuda:75-89': {'training|compile': 'org/other@v1', 'fallback': "
        "'org/r@v2'}, '*': {'inference': ''}},'Linear(a.*) + GeLU': {'kernel': './k', "
        "'function':'f','args':['x','out']},'Softmax': {'rocm': '/\xEF\xBF\xBD'}}";
    khub_error err = {0};
    khub_mapping *mapping;
    khub_mapping_entry entry;
    ck_khub_ok(khub_mapping_new(&mapping, &err), &err);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        char spec[100] = "";
        if (steps[i].spec) with_quotes(spec, steps[i].spec);
        KHUB_INIT(&entry);
        entry.device = steps[i].device;
        entry.mode = steps[i].mode;
        entry.kernel = steps[i].kernel;
        entry.spec = steps[i].spec ? spec : NULL;
        if (steps[i].words)
            ck_khub_fails(khub_mapping_set(mapping, steps[i].key, &entry, &err), &err, KHUB_E_INVAL,
                          steps[i].words);
        else
            ck_khub_ok(khub_mapping_set(mapping, steps[i].key, &entry, &err), &err);
    }
    same_text(mapping, built);
    khub_mapping_free(mapping);
    mapping =
        parse("{\"GeLU\": {\"cpu\": {}, \"gpu\": 1}, \"SiLU\": {\"nope\": 1}}"); /* in the place of faults */
    KHUB_INIT(&entry);
    entry.kernel = "/k";
    ck_khub_ok(khub_mapping_set(mapping, "SiLU", &entry, &err), &err);
    entry.device = "cpu";
    ck_khub_ok(khub_mapping_set(mapping, "GeLU", &entry, &err), &err);
    same_text(mapping, "{'GeLU': {'cpu': '/k', 'gpu': 1},'SiLU': '/k'}");
    khub_mapping_free(mapping);
}
END_TEST

START_TEST(items)
{
    static const struct {
        const char *items, *text; /* NULL: refused */
    } table[] = {
        {"m.json", "{'GeLU': './k','SiLU': ''}"},
        {"./m.json,GeLU=", "{'SiLU': '','GeLU': ''}"},
        {"m.json,./a=b.json", "{'GeLU': './k','SiLU': '','ReLU': '/r'}"},
        {"m.json,GeLU(a.*)=org/r@>=1,<3:L,SiLU=khub/x",
         "{'GeLU': './k','GeLU(a.*)': 'org/r@>=1,<3:L','SiLU': 'khub/x'}"},
        {"m.json,Linear + GeLU=org/r@>=1.0, <2.0, !=3:L", "{'GeLU': './k','SiLU': '','Linear + GeLU': "
                                                          "'org/r@>=1.0, <2.0, !=3:L'}"},
    };
    static const char *const refused[][2] = {
        {"GeLU=x", "GeLU=x: GeLU: \"x\" names no kernel"},
        {"m.json,x=5", "x=5: there is no layer \"x\""},
        {"gelu=./k", "gelu=./k: there is no layer \"gelu\": did you mean GeLU?"},
        {"GeLU=./k,", "item is empty"},
        {"", "item is empty"},
        {",m.json", "item is empty"},
        {"=./k", "a key is LAYER"},
        {"GeLU(a=b", "pattern's \")\" is missing"},
        {"org/r@>=1:L", "a key is LAYER"},
        {"GeLU=org/r@>=3,<1", "no version is in this range"},
    };
    khub_error err = {0};
    khub_mapping *mapping, *with_default;
    char folder[] = "/tmp/khub-mapping-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    write_text("m.json", "{\"GeLU\": \"./k\", \"SiLU\": \"\"}");
    write_text("a=b.json", "{\"ReLU\": \"/r\"}");
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        ck_khub_ok(khub_mapping_items(&mapping, table[i].items, &err), &err);
        same_text(mapping, table[i].text);
        khub_mapping_free(mapping);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        ck_khub_fails(khub_mapping_items(&mapping, refused[i][0], &err), &err, KHUB_E_INVAL, refused[i][1]);
        ck_assert_ptr_null(mapping);
    }
    ck_khub_fails(khub_mapping_items(&mapping, "nowhere.json", &err), &err, KHUB_E_NOTFOUND, "nowhere.json");
    /* what begins with an item goes over the default mapping, as if "default" stood before it */
    ck_khub_ok(khub_mapping_items(&mapping, "GeLU=./k,Softmax=", &err), &err);
    ck_khub_ok(khub_mapping_items(&with_default, "default,GeLU=./k,Softmax=", &err), &err);
    char *a = khub_mapping_json(mapping), *b = khub_mapping_json(with_default);
    ck_assert_str_eq(a, b);
    khub_free(a);
    khub_free(b);
    ck_assert_str_eq(candidates_of(mapping, "GeLU", "a", "cuda", TRAINING), "./k");
    ck_assert_str_eq(candidates_of(mapping, "Softmax", "a", "cpu", TRAINING), "");
    ck_assert_str_eq(candidates_of(mapping, "LayerNorm", "a", "cpu", TRAINING), "khub/norm");
    khub_mapping_free(mapping);
    khub_mapping_free(with_default);
    remove("m.json"), remove("a=b.json"), rmdir(folder);
}
END_TEST

/* It ships with khub; DISABLE_KERNEL_MAPPING takes it away, and nothing else. */
START_TEST(the_default_mapping)
{
    khub_error err = {0};
    khub_mapping *mapping;
    const khub_mapping_line *line;
    size_t count = 0;
    ck_khub_ok(khub_mapping_builtin(&mapping, &err), &err);
    for (; (line = khub_mapping_at(mapping, count)) != NULL; count++) {
        ck_assert_pstr_eq(line->fault, NULL);
        ck_assert_ptr_nonnull(line->device);
        ck_assert_ptr_nonnull(khub_layer_arg(line->key, 0));
    }
    ck_assert_uint_gt(count, 0);
    khub_mapping_free(mapping);
    setenv("DISABLE_KERNEL_MAPPING", "1", 1);
    ck_khub_ok(khub_mapping_items(&mapping, "default", &err), &err);
    ck_assert_ptr_null(khub_mapping_at(mapping, 0));
    ck_assert_str_eq(candidates_of(mapping, "GeLU", "a", "cpu", INFERENCE),
                     "kernels are switched off by DISABLE_KERNEL_MAPPING");
    khub_mapping_free(mapping);
    ck_khub_ok(khub_mapping_items(&mapping, "GeLU=./k", &err), &err);
    ck_assert_str_eq(candidates_of(mapping, "GeLU", "a", "cpu", INFERENCE), "./k");
    ck_assert_ptr_null(khub_mapping_at(mapping, 1));
    khub_mapping_free(mapping);
    setenv("DISABLE_KERNEL_MAPPING", "0", 1);
    ck_khub_ok(khub_mapping_items(&mapping, "default", &err), &err);
    ck_assert_ptr_nonnull(khub_mapping_at(mapping, count - 1));
    khub_mapping_free(mapping);
}
END_TEST

static int use(void *user, khub_error *err)
{
    (void)user;
    khub_mapping *mapping = NULL, *over = NULL;
    khub_mapping_entry entry;
    KHUB_INIT(&entry);
    entry.kernel = "org/r:L";
    entry.spec = "{\"function\": \"f\"}";
    static const char text[] =
        "{\"GeLU\": {\"cpu\": {\"training\": \"org/r:L\", \"nope\": 1}, \"gpu\": {}}, \"Nope\": 1, "
        "\"Linear(a.*) + GeLU\": {\"kernel\": \"./k\", \"function\": \"f\"}, \"SiLU\": 3}";
    int rc = khub_mapping_parse(&mapping, text, NULL, err);
    if (rc == KHUB_OK) rc = khub_mapping_items(&over, "SiLU=org/r,GeLU=", err);
    if (rc == KHUB_OK) rc = khub_mapping_merge(mapping, over, err);
    char *before = rc == KHUB_OK ? khub_mapping_json(mapping) : NULL;
    if (rc == KHUB_OK && !before) rc = khub__fail_memory(err, "writing");
    if (rc == KHUB_OK) rc = khub_mapping_set(mapping, "ReLU(a.**)", &entry, err);
    if (before && rc == KHUB_E_NOMEM) { /* as before the call */
        char *after = khub_mapping_json(mapping);
        if (after) ck_assert_str_eq(before, after);
        khub_free(after);
    }
    khub_free(before);
    khub_mapping_free(mapping);
    khub_mapping_free(over);
    return rc;
}

START_TEST(every_allocation_fails_in_turn)
{
    fm_fail_each_own(use, NULL);
}
END_TEST

UNIT("mapping", mapping_entries, paths_of_a_mapping_start_from_its_file, faults, texts_that_are_no_mapping,
     all_modes, where_entries_count, patterns, a_run_has_patterns_of_siblings, runs, merging,
     what_is_written_comes_back, building, items, the_default_mapping, every_allocation_fails_in_turn)
