/* Build variants: which of a repository's builds fits a machine, in what order, and why the others don't. */
#ifndef KHUB_VARIANT_H
#define KHUB_VARIANT_H

#include <khub/platform.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum khub_decision_kind {
    KHUB_ACCEPTED,
    KHUB_NEEDS_PYTHON, /* fits the machine, but holds Python only */
    KHUB_REJECTED,
    KHUB_NOT_UNDERSTOOD /* a name outside the grammar of this version */
} khub_decision_kind;

/* "accepted", "needs python", "rejected", "not understood". Static. */
KHUB_API const char *khub_decision_kind_name(khub_decision_kind kind);

typedef struct khub_decision {
    const char *name; /* of the variant: "tvm-ffi01-cpu-x86_64-linux" */
    khub_decision_kind kind;
    const char *reason; /* NULL when accepted without a remark */
    unsigned met;       /* rules of docs/variants.md that it meets before the one that rejects it */
} khub_decision;

/* All builds with their decisions, in order of preference: accepted, needs Python, rejected, not
 * understood; inside each group as the rules of preference say, names last. */
typedef struct khub_choice khub_choice;

/* Decides on names alone (docs/variants.md). The order of `names` doesn't show in the result. Any thread.
 * *out is the caller's and keeps nothing of the arguments. KHUB_E_INVAL (no platform), KHUB_E_NOMEM. */
KHUB_API int khub_choose(khub_choice **out, const char *const *names, size_t count,
                         const khub_platform *platform, khub_error *err);

KHUB_API void khub_choice_free(khub_choice *choice); /* NULL is a no-op */

KHUB_API size_t khub_choice_count(const khub_choice *choice);
KHUB_API const khub_decision *khub_choice_at(const khub_choice *choice, size_t i); /* NULL past the last */

/* The build to load; NULL when none is accepted. */
KHUB_API const khub_decision *khub_choice_chosen(const khub_choice *choice);

/* Of a choice that khub_choose_in made in a repository of the Hub: which one the name led to ("ORG/NAME",
 * after redirects by its publisher), and the commit, so that ORG/NAME@COMMIT means the very same builds
 * without asking again. Both NULL for a directory of this machine and for khub_choose. Valid until the choice
 * is freed. */
KHUB_API const char *khub_choice_repository(const khub_choice *choice);
KHUB_API const char *khub_choice_commit(const khub_choice *choice);

/* KHUB_OK when there is one; else KHUB_E_NOBUILD or KHUB_E_NEEDS_PYTHON, and *err names `repository` and
 * every build with its reason, as far as the message holds. */
KHUB_API int khub_choice_require(const khub_choice *choice, const char *repository, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
