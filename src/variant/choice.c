#include "variant/choice.h"

#include "base/error.h"
#include "base/memory.h"
#include "platform/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct candidate {
    khub_decision decision;
    khub__variant_name name; /* says nothing when the decision is KHUB_NOT_UNDERSTOOD */
} candidate;

struct khub_choice {
    candidate *candidates;
    size_t count;
    const char *repository, *commit; /* NULL: of no repository of the Hub */
    khub__pool pool;                 /* everything above */
};

const char *khub_decision_kind_name(khub_decision_kind kind)
{
    static const char *const names[] = {"accepted", "needs python", "rejected", "not understood"};
    return (unsigned)kind < sizeof(names) / sizeof(*names) ? names[kind] : "unknown";
}

static int by_preference(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->decision.kind != b->decision.kind) return a->decision.kind < b->decision.kind ? -1 : 1;
    int order = a->decision.kind == KHUB_NOT_UNDERSTOOD ? 0 : khub__variant_name_compare(&a->name, &b->name);
    return order ? order : strcmp(a->decision.name, b->decision.name);
}

/* Decides on one build. The texts go into the pool, whose failure the caller checks once for all. */
static int consider(khub_choice *choice, candidate *out, const char *text, const khub_platform *platform,
                    khub__look_fn *look, void *user, khub_error *err)
{
    if (!text) return khub__fail(err, KHUB_E_INVAL, "choosing a build: a name is NULL");
    out->decision.name = khub__pool_text(&choice->pool, text);
    if (!out->decision.name) return khub__fail_memory(err, "choosing a build");
    khub__verdict verdict = {.kind = KHUB_NOT_UNDERSTOOD,
                             .reason = "the name is of a kind that this khub doesn't know"};
    if (khub__variant_name_parse(&out->name, out->decision.name))
        khub__decide(&verdict, &out->name, platform);
    int rc = KHUB_OK;
    if (verdict.kind == KHUB_ACCEPTED && look) rc = look(user, &verdict, out->decision.name, &out->name, err);
    out->decision.kind = verdict.kind;
    out->decision.met = verdict.met;
    if (verdict.reason[0]) out->decision.reason = khub__pool_text(&choice->pool, verdict.reason);
    return rc;
}

int khub__choose(khub_choice **out, const char *const *names, size_t count, const khub_platform *platform,
                 khub__look_fn *look, void *user, khub_error *err)
{
    *out = NULL;
    if (!platform || (count && !names))
        return khub__fail(err, KHUB_E_INVAL, "choosing a build: no platform, or no names");
    khub_choice *choice = khub__calloc(1, sizeof(*choice));
    if (!choice) return khub__fail_memory(err, "choosing a build");
    choice->candidates = khub__pool_take(&choice->pool, count, sizeof(candidate));
    int rc = KHUB_OK;
    for (; !choice->pool.failed && choice->count < count && rc == KHUB_OK; choice->count++)
        rc = consider(choice, &choice->candidates[choice->count], names[choice->count], platform, look, user,
                      err);
    if (rc == KHUB_OK && choice->pool.failed) rc = khub__fail_memory(err, "choosing a build");
    if (rc != KHUB_OK) {
        khub_choice_free(choice);
        return rc;
    }
    if (count) qsort(choice->candidates, count, sizeof(candidate), by_preference);
    *out = choice;
    return KHUB_OK;
}

int khub_choose(khub_choice **out, const char *const *names, size_t count, const khub_platform *platform,
                khub_error *err)
{
    return khub__choose(out, names, count, platform, NULL, NULL, err);
}

int khub__choice_from(khub_choice *choice, const char *repository, const char *commit, khub_error *err)
{
    choice->repository = khub__pool_text(&choice->pool, repository);
    choice->commit = khub__pool_text(&choice->pool, commit);
    return choice->repository && choice->commit ? KHUB_OK : khub__fail_memory(err, "choosing a build");
}

const char *khub_choice_repository(const khub_choice *choice)
{
    return choice->repository;
}

const char *khub_choice_commit(const khub_choice *choice)
{
    return choice->commit;
}

void khub_choice_free(khub_choice *choice)
{
    if (!choice) return;
    khub__pool_free(&choice->pool);
    khub__free(choice);
}

size_t khub_choice_count(const khub_choice *choice)
{
    return choice->count;
}

const khub_decision *khub_choice_at(const khub_choice *choice, size_t i)
{
    return i < choice->count ? &choice->candidates[i].decision : NULL;
}

const khub_decision *khub_choice_chosen(const khub_choice *choice)
{
    const khub_decision *first = khub_choice_at(choice, 0);
    return first && first->kind == KHUB_ACCEPTED ? first : NULL;
}

static size_t count_of(const khub_choice *choice, khub_decision_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < choice->count; i++)
        n += choice->candidates[i].decision.kind == kind;
    return n;
}

/* One message as long as an error holds; what doesn't fit is counted. */
typedef struct message {
    char text[sizeof(((khub_error *)0)->message)];
    size_t length;
} message;

/* Adds the piece if `reserve` bytes stay free behind it. */
static int add(message *to, size_t reserve, const char *format, ...) KHUB_PRINTF(3, 4);
static int add(message *to, size_t reserve, const char *format, ...)
{
    size_t room = sizeof(to->text) - to->length;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(to->text + to->length, room, format, args);
    va_end(args);
    int fits = n >= 0 && (size_t)n + reserve < room;
    if (fits) to->length += (size_t)n;
    to->text[to->length] = 0;
    return fits;
}

/* ": NAME: reason; NAME: reason; and 3 more" */
static void add_builds(message *to, const khub_choice *choice)
{
    enum { TAIL = sizeof("; and 18446744073709551615 more") };
    for (size_t i = 0; i < choice->count; i++) {
        const khub_decision *d = &choice->candidates[i].decision;
        if (add(to, TAIL, "%s%s: %s", i ? "; " : ": ", d->name, d->reason)) continue;
        add(to, 0, "; and %zu more", choice->count - i);
        return;
    }
}

/* A path so long that it would push the reasons out loses its beginning: its end tells more. */
static void add_repository(message *to, const char *repository)
{
    size_t length = strlen(repository), most = 300;
    const char *shown = repository + (length > most ? length - most : 0);
    while (((unsigned char)*shown & 0xC0) == 0x80)
        shown++; /* not from inside a UTF-8 sequence */
    add(to, 0, "%s%s: ", length > most ? "..." : "", shown);
}

int khub_choice_require(const khub_choice *choice, const char *repository, khub_error *err)
{
    if (khub_choice_chosen(choice)) return KHUB_OK;
    int python = count_of(choice, KHUB_NEEDS_PYTHON) > 0;
    message text = {.length = 0};
    add_repository(&text, repository);
    add(&text, 0, "%s",
        python ? "the builds that fit this machine need Python, there is no library in them"
               : "no build fits this machine");
    if (!choice->count) add(&text, 0, ": there are none");
    if (count_of(choice, KHUB_NOT_UNDERSTOOD))
        add(&text, 0, "; it has builds that this khub (%s) can't read: a newer khub may, upgrade it",
            khub_version());
    add_builds(&text, choice);
    for (char *c = text.text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?'; /* names of directories are anyone's */
    return khub__fail(err, python ? KHUB_E_NEEDS_PYTHON : KHUB_E_NOBUILD, "%s", text.text);
}
