/* Names of builds: any bytes are a name, one a line. No crash; every name comes back once with a decision;
 * their order doesn't show; the order of preference is total. The first line is the machine's backend. */
#include "variant/choice.h"

#include <khub/khub.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_NAMES = 64 };

static void check(int holds)
{
    if (!holds) abort();
}

static khub_platform *machine(const char *backend)
{
    char json[200];
    khub_platform *p = NULL;
    if (strspn(backend, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(backend) || strlen(backend) > 20)
        backend = "cu128";
    const char *const os = !strcmp(backend, "metal") ? "darwin" : "linux";
    int n = snprintf(
        json, sizeof(json),
        "{\"os\":\"%s\",\"arch\":\"x86_64\",\"backend\":\"%s\",\"torch\":\"2.10\",\"torch_cxx11_abi\":true,"
        "\"tvm_ffi\":\"0.1\"}",
        os, backend);
    khub_platform_parse(&p, json, (size_t)n, "machine", NULL);
    return p;
}

/* A copy cut into lines, so that a byte read past a name's end is noticed. */
static size_t split(char *text, const char *names[MAX_NAMES])
{
    size_t count = 0;
    for (char *line = text; line && count < MAX_NAMES; count++) {
        names[count] = line;
        line = strchr(line, '\n');
        if (line) *line++ = 0;
    }
    return count;
}

static void check_pairs(const khub_choice *choice)
{
    const khub_decision *a, *b;
    for (size_t i = 0; (a = khub_choice_at(choice, i)) && (b = khub_choice_at(choice, i + 1)); i++) {
        khub__variant_name left, right;
        check(a->kind <= b->kind && (a->kind == KHUB_ACCEPTED || a->reason) && strlen(a->name) > 0);
        if (a->kind != b->kind) continue;
        if (a->kind == KHUB_NOT_UNDERSTOOD) {
            check(strcmp(a->name, b->name) <= 0);
            continue;
        }
        check(khub__variant_name_parse(&left, a->name) && khub__variant_name_parse(&right, b->name));
        int order = khub__variant_name_compare(&left, &right);
        check(order < 0 || (order == 0 && strcmp(a->name, b->name) <= 0));
        check(khub__variant_name_compare(&right, &left) == -order);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    const char *names[MAX_NAMES], *reversed[MAX_NAMES];
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    size_t lines = split(text, names), count = 0;
    khub_platform *platform = machine(names[0]);
    for (size_t i = 1; i < lines; i++)
        if (*names[i]) names[count++] = names[i];
    for (size_t i = 0; i < count; i++)
        reversed[i] = names[count - 1 - i];
    khub_choice *forth = NULL, *back = NULL;
    if (platform) {
        khub_error err = {0};
        check(khub_choose(&forth, names, count, platform, NULL) == KHUB_OK);
        check(khub_choose(&back, reversed, count, platform, NULL) == KHUB_OK);
        check(khub_choice_count(forth) == count);
        for (size_t i = 0; i < count; i++) {
            const khub_decision *a = khub_choice_at(forth, i), *b = khub_choice_at(back, i);
            check(!strcmp(a->name, b->name) && a->kind == b->kind);
        }
        check_pairs(forth);
        int rc = khub_choice_require(forth, "repository", &err);
        check((rc == KHUB_OK) == (khub_choice_chosen(forth) != NULL) && (rc == KHUB_OK) == !err.message[0]);
    }
    khub_choice_free(forth);
    khub_choice_free(back);
    khub_platform_free(platform);
    free(text);
    return 0;
}
