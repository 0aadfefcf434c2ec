#include "trust/trust.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

enum { MAX_REASONS = 10000, MAX_WORDS = 1000 };

struct khub_trust {
    atomic_size_t owners;
    khub_trust_level level;
    khub_trust_reason *reasons;
    size_t count, capacity;
    size_t more; /* decisions that the last one stands for */
    int refused, no_memory;
    khub_signature signature; /* zeroed unless has_signature */
    int has_signature;
};

static const char *const levels[] = {"publisher", "publisher", "verified", "signed"}; /* by number */
enum { LEVELS = sizeof(levels) / sizeof(*levels) };

const char *khub_trust_level_name(khub_trust_level level)
{
    return (size_t)level < LEVELS ? levels[level] : "?";
}

int khub_trust_level_parse(khub_trust_level *out, const char *name, khub_error *err)
{
    int missing = khub__given("khub_trust_level_parse", out && name, err);
    if (missing != KHUB_OK) return missing;
    for (size_t i = KHUB_TRUST_PUBLISHER; i < LEVELS; i++) {
        if (strcmp(levels[i], name) != 0) continue;
        *out = (khub_trust_level)i;
        return KHUB_OK;
    }
    return khub__fail(err, KHUB_E_INVAL,
                      "\"%.40s\" is no level of trust; there are publisher, verified and signed", name);
}

const char *khub_trust_decision_name(khub_trust_decision decision)
{
    static const char *const names[] = {"accepted", "noted", "refused"};
    return (size_t)decision < sizeof(names) / sizeof(*names) ? names[decision] : "?";
}

int khub__trust_new(khub_trust **out, khub_trust_level level, khub_error *err)
{
    *out = khub__calloc(1, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "judging a build");
    atomic_init(&(*out)->owners, 1);
    (*out)->level = level == KHUB_TRUST_DEFAULT ? KHUB_TRUST_PUBLISHER : level;
    return KHUB_OK;
}

/* There are as many as are told: the last one says how many more there are, and refuses when one of them
 * does. */
static void add_more(khub_trust *trust, khub_trust_decision decision)
{
    char words[100];
    khub_trust_reason *last = &trust->reasons[trust->count - 1];
    snprintf(words, sizeof(words), "%zu more decisions aren't told", ++trust->more);
    char *copy = khub__strdup(words);
    if (!copy) trust->no_memory = 1;
    if (copy) {
        khub__free((void *)(uintptr_t)last->words);
        last->words = copy;
    }
    if (decision == KHUB_TRUST_REFUSED || trust->more == 1) last->decision = decision;
}

/* Takes over `words`. */
static void add(khub_trust *trust, const char *about, khub_trust_decision decision, char *words)
{
    int full = trust->count > MAX_REASONS;
    if (!full && (!words || khub__grow((void **)&trust->reasons, &trust->capacity, trust->count + 1,
                                       sizeof(*trust->reasons), MAX_REASONS + 1))) {
        khub__free(words);
        trust->no_memory = 1;
        return;
    }
    if (full)
        khub__free(words);
    else
        trust->reasons[trust->count++] = (khub_trust_reason){about, decision, words};
    if (trust->count > MAX_REASONS) add_more(trust, decision);
}

/* `words` are the caller's. */
static void decide(khub_trust *trust, const char *about, khub_trust_decision decision, const char *words)
{
    if (!trust) return;
    if (decision == KHUB_TRUST_REFUSED) trust->refused = 1;
    add(trust, about, decision, khub__strdup(words));
}

void khub__trust_add_parts(khub_trust *trust, const char *about, khub_trust_decision decision,
                           const char *const *parts)
{
    char words[MAX_WORDS];
    size_t length = 0;
    for (; *parts; parts++) {
        khub__copy(words + length, sizeof(words) - length, *parts);
        length += strlen(words + length);
    }
    words[length] = 0;
    decide(trust, about, decision, words);
}

void khub__trust_add(khub_trust *trust, const char *about, khub_trust_decision decision, const char *format,
                     ...)
{
    char words[MAX_WORDS];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    decide(trust, about, decision, words);
}

void khub__trust_take_signature(khub_trust *trust, khub_signature *signature)
{
    if (trust) {
        khub_signature_free(&trust->signature);
        trust->signature = *signature;
        trust->has_signature = 1;
        memset(signature, 0, sizeof(*signature));
    } else {
        khub_signature_free(signature);
    }
}

int khub__trust_end(const khub_trust *trust, khub_error *err)
{
    if (!trust) return KHUB_OK;
    if (trust->no_memory) return khub__fail_memory(err, "judging a build");
    for (size_t i = 0; i < trust->count; i++)
        if (trust->reasons[i].decision == KHUB_TRUST_REFUSED)
            return khub__fail(err, KHUB_E_UNTRUSTED, "%s", trust->reasons[i].words);
    return KHUB_OK;
}

const khub_trust_reason *khub_trust_at(const khub_trust *trust, size_t i)
{
    return trust && i < trust->count ? &trust->reasons[i] : NULL;
}

khub_trust_level khub_trust_level_of(const khub_trust *trust)
{
    return trust ? trust->level : KHUB_TRUST_DEFAULT;
}

int khub_trust_holds(const khub_trust *trust)
{
    return trust && !trust->refused && !trust->no_memory;
}

const khub_signature *khub_trust_signature(const khub_trust *trust)
{
    return trust && trust->has_signature ? &trust->signature : NULL;
}

khub_trust *khub__trust_share(const khub_trust *trust)
{
    khub_trust *same = (khub_trust *)(uintptr_t)trust; /* all that changes is the number of its owners */
    if (same) atomic_fetch_add(&same->owners, 1);
    return same;
}

void khub_trust_free(khub_trust *trust)
{
    if (!trust || atomic_fetch_sub(&trust->owners, 1) > 1) return;
    for (size_t i = 0; i < trust->count; i++)
        khub__free((void *)(uintptr_t)trust->reasons[i].words);
    khub__free(trust->reasons);
    khub_signature_free(&trust->signature);
    khub__free(trust);
}
