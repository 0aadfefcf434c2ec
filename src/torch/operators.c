/* libtorch's C shim can't list operators; its dispatcher can, by C++ functions that a C program can call too.
 * By the C++ ABI that libtorch is built with (libstdc++, CXX11_ABI 1): a string is a pointer to its bytes,
 * their number, and room for 15 of them; a vector is three pointers; what is larger than two registers or
 * isn't trivial comes back through a hidden pointer, as a C struct of more than 16 bytes does. */
#include "torch/operator.h"

#include "base/error.h"
#include "base/index.h"
#include "base/memory.h"
#include "torch/shim.h"

#include <stdlib.h>
#include <threads.h>

typedef struct cpp_string {
    char *data;
    size_t length;
    char room[16];
} cpp_string;

typedef struct cpp_name { /* c10::OperatorName */
    cpp_string name, overload;
} cpp_name;

typedef struct cpp_names { /* std::vector of them */
    cpp_name *begin, *end, *capacity;
} cpp_names;

typedef struct cpp_found { /* std::optional<c10::OperatorHandle> */
    void *definition;      /* begins with its OperatorEntry */
    void *place;
    unsigned char has;
    unsigned char padding[7];
} cpp_found;

/* The operators that somebody asked for. */
static once_flag once = ONCE_FLAG_INIT;
static mtx_t lock; /* guards the three below; never held while libtorch runs */
static khub__index index_of;
static khub__torch_operator **known;
static size_t known_count, known_capacity;

static void make_lock(void)
{
    mtx_init(&lock, mtx_plain);
}

static void string_free(cpp_string *s)
{
    if (s->data != s->room) khub__shim.operator_delete(s->data);
}

static cpp_names all_names(void)
{
    cpp_names (*get)(void *dispatcher);
    memcpy(&get, &khub__shim.dispatcher_names, sizeof(get));
    return get(khub__shim.dispatcher());
}

static void names_free(cpp_names *names)
{
    for (cpp_name *n = names->begin; n < names->end; n++) {
        string_free(&n->name);
        string_free(&n->overload);
    }
    if (names->begin) khub__shim.operator_delete(names->begin);
}

/* The dispatcher's entry for an operator, as text: longer than a string has room for, so that it may be
 * moved. 0: there is no such operator. */
static int describe(cpp_string *out, const char *name, const char *overload)
{
    cpp_found (*find)(void *dispatcher, const cpp_name *name);
    cpp_string (*write)(void *entry);
    memcpy(&find, &khub__shim.dispatcher_find, sizeof(find));
    memcpy(&write, &khub__shim.entry_state, sizeof(write));
    cpp_name asked = {{(char *)(uintptr_t)name, strlen(name), {0}},
                      {(char *)(uintptr_t)overload, strlen(overload), {0}}};
    cpp_found found = find(khub__shim.dispatcher(), &asked);
    if (!found.has) return 0;
    *out = write(found.definition);
    return 1;
}

static void operator_free(khub__torch_operator *op)
{
    if (!op) return;
    khub__schema_free(&op->schema);
    khub__free(op->key);
    khub__free(op->name);
    khub__free(op->overload);
    khub__free(op->text);
    khub__free(op->keys);
    khub__free(op->refusal);
    khub__free(op->arguments);
    khub__free(op);
}

/* The dispatch keys of an entry: each line "CPU: registered at …"; "[alias]" behind a key is left out. */
static char *keys_of(const char *state)
{
    khub__text keys = {0};
    khub__text_add(&keys, "");
    for (const char *line = state; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t word = strcspn(line, ":[\n"), end = strcspn(line, ":\n");
        if (strncmp(line + end, ": registered at ", 16) != 0 || strncmp(line, "debug", word) == 0) continue;
        khub__text_add_bytes(&keys, line, word);
        khub__text_add(&keys, " ");
    }
    return khub__text_take(&keys);
}

/* Fills in op->text and the schema from the entry's text. 0 of *has: it has none. */
static int read_schema(khub__torch_operator *op, const char *state, int *has, khub_error *err)
{
    static const char label[] = "schema: ";
    const char *text = strstr(state, label);
    if (text) text += sizeof(label) - 1;
    *has = text && *text != '(';
    if (!*has) return KHUB_OK;
    op->text = khub__strndup(text, strcspn(text, "\n"));
    if (!op->text) return khub__fail_memory(err, "reading a schema");
    return khub__schema_parse(&op->schema, op->text, err);
}

/* *out is NULL when the operator isn't there or has no schema. */
static int operator_make(khub__torch_operator **out, const char *key, const char *name, const char *overload,
                         khub_error *err)
{
    cpp_string state;
    int rc = KHUB_OK, has = 0;
    *out = NULL;
    if (!describe(&state, name, overload)) return KHUB_OK;
    khub__torch_operator *op = khub__calloc(1, sizeof(*op));
    if (op) {
        op->key = khub__strdup(key);
        op->name = khub__strdup(name);
        op->overload = khub__strdup(overload);
        op->keys = keys_of(state.data);
        rc = read_schema(op, state.data, &has, err);
    }
    string_free(&state);
    if (rc == KHUB_OK &&
        (!op || !op->key || !op->name || !op->overload || !op->keys || (has && khub__torch_prepare(op) != 0)))
        rc = khub__fail_memory(err, "reading an operator");
    if (rc == KHUB_OK && has)
        *out = op;
    else
        operator_free(op);
    return rc;
}

static khub__torch_operator *find_known(const char *key)
{
    int64_t number = khub__index_find(&index_of, key);
    return number < 0 ? NULL : known[number];
}

/* Keeps it, unless somebody was faster: then that one is the one. */
static int keep(khub__torch_operator **op, khub_error *err)
{
    int rc = KHUB_OK;
    mtx_lock(&lock);
    khub__torch_operator *other = find_known((*op)->key);
    if (!other &&
        (khub__grow((void **)&known, &known_capacity, known_count + 1, sizeof(*known), SIZE_MAX / 16) ||
         khub__index_add(&index_of, (*op)->key, (uint32_t)known_count)))
        rc = khub__fail_memory(err, "reading an operator");
    else if (!other)
        known[known_count++] = *op;
    mtx_unlock(&lock);
    if (other || rc != KHUB_OK) {
        operator_free(*op);
        *op = other;
    }
    return rc;
}

/* The operator, known or now read; *out NULL: there is none with a schema. */
static int get(const khub__torch_operator **out, const char *name, const char *overload, khub_error *err)
{
    khub__text key = {0};
    khub__text_addf(&key, *overload ? "%s.%s" : "%s%s", name, overload);
    if (key.failed) return khub__fail_memory(err, "reading an operator");
    call_once(&once, make_lock);
    mtx_lock(&lock);
    khub__torch_operator *op = find_known(key.data);
    mtx_unlock(&lock);
    int rc = KHUB_OK;
    if (!op) {
        rc = operator_make(&op, key.data, name, overload, err);
        if (rc == KHUB_OK && op) rc = keep(&op, err);
    }
    khub__text_free(&key);
    *out = op;
    return rc;
}

static int is_in(const cpp_name *name, const char *ns)
{
    size_t n = strlen(ns);
    return name->name.length > n + 2 && memcmp(name->name.data, ns, n) == 0 &&
           memcmp(name->name.data + n, "::", 2) == 0;
}

static int by_key(const void *a, const void *b)
{
    const khub__torch_operator *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

int khub__torch_operators(const khub__torch_operator ***out, size_t *count, const char *ns, khub_error *err)
{
    const khub__torch_operator **list = NULL;
    size_t n = 0, capacity = 0;
    int rc = KHUB_OK;
    *out = NULL;
    *count = 0;
    cpp_names names = all_names();
    for (const cpp_name *name = names.begin; rc == KHUB_OK && name < names.end; name++) {
        if (!is_in(name, ns)) continue;
        if (khub__grow((void **)&list, &capacity, n + 1, sizeof(*list), SIZE_MAX / 16)) {
            rc = khub__fail_memory(err, "listing operators");
        } else {
            rc = get(&list[n], name->name.data, name->overload.data, err);
            n += rc == KHUB_OK && list[n];
        }
    }
    names_free(&names);
    if (rc != KHUB_OK || n == 0) {
        khub__free(list);
        return rc;
    }
    qsort(list, n, sizeof(*list), by_key);
    *out = list;
    *count = n;
    return KHUB_OK;
}

/* "aten::add is there as .Tensor, .out" */
static int fail_not_found(const char *full, const char *overload, khub_error *err)
{
    khub__text others = {0};
    cpp_names names = all_names();
    for (const cpp_name *n = names.begin; n < names.end; n++) {
        if (n->name.length != strlen(full) || memcmp(n->name.data, full, n->name.length) != 0) continue;
        khub__text_addf(&others, "%s%s%s", others.data ? ", " : "", n->overload.length ? "." : "itself",
                        n->overload.data);
    }
    names_free(&names);
    int rc = khub__fail(err, KHUB_E_NOTFOUND, "%s%s%s: there is no such operator%s%s%s", full,
                        *overload ? "." : "", overload, others.data ? " (there is " : "",
                        others.data ? others.data : "", others.data ? ")" : "");
    khub__text_free(&others);
    return rc;
}

int khub__torch_operator_find(const khub__torch_operator **out, const char *ns, const char *name,
                              khub_error *err)
{
    *out = NULL;
    khub__text full = {0};
    size_t n = strcspn(name, ".");
    khub__text_addf(&full, "%s::%.*s", ns, (int)n, name);
    if (full.failed) return khub__fail_memory(err, "looking for an operator");
    const char *overload = name + n + (name[n] == '.');
    int rc = get(out, full.data, overload, err);
    if (rc == KHUB_OK && !*out) rc = fail_not_found(full.data, overload, err);
    khub__text_free(&full);
    return rc;
}

const char *khub__torch_operator_name(const khub__torch_operator *op)
{
    const char *colons = strstr(op->key, "::");
    return colons ? colons + 2 : op->key;
}

const char *khub__torch_operator_schema(const khub__torch_operator *op)
{
    return op->text;
}

const char *khub__torch_operator_refusal(const khub__torch_operator *op)
{
    return op->refusal;
}

int khub__torch_operator_has(const khub__torch_operator *op, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = op->keys; *at; at += strcspn(at, " ") + 1)
        if (strncmp(at, key, n) == 0 && at[n] == ' ') return 1;
    return 0;
}
