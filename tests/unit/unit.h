/* What a unit test file defines: START_TEST functions and, at its end, UNIT("name", test, test, …). */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>

#include <stdatomic.h>
#include <string.h>

/* Check writes each assertion that holds into a file, to know after a signal which was the last: in loops
 * that takes longer than what is tested. Here each line is written down when it holds for the first time. */
static inline void unit_holds(const char *file, int line)
{
    static atomic_uchar seen[4096];
    if (!atomic_exchange(&seen[line % 4096], 1)) _mark_point(file, line);
}
#undef ck_assert_msg /* all others end in it */
#define ck_assert_msg(expr, ...)                                                                             \
    ((expr) ? unit_holds(__FILE__, __LINE__)                                                                 \
            : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", __VA_ARGS__))

extern const char *const unit_name;
void unit_each(void (*take)(void *user, const TTest *test), void *user);

#define UNIT(name, ...)                                                                                      \
    const char *const unit_name = name;                                                                      \
    void unit_each(void (*take)(void *user, const TTest *test), void *user)                                  \
    {                                                                                                        \
        const TTest *const list[] = {__VA_ARGS__};                                                           \
        for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)                                            \
            take(user, list[i]);                                                                             \
    }

/* Whether a sanitizer watches: sweeps that show the same numbers in the plain build may be shorter then. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A khub call that must succeed; says the message when it doesn't. */
#define ck_khub_ok(call, err)                                                                                \
    do {                                                                                                     \
        int ck_rc = (call);                                                                                  \
        ck_assert_msg(ck_rc == KHUB_OK, "%s: %s", khub_status_name(ck_rc), (err)->message);                  \
    } while (0)

/* A khub call that must fail with `status` and a message that holds `words`; clears *err. */
#define ck_khub_fails(call, err, status, words)                                                              \
    do {                                                                                                     \
        int ck_rc = (call);                                                                                  \
        ck_assert_str_eq(khub_status_name(ck_rc), khub_status_name(status));                                 \
        ck_assert_msg(strstr((err)->message, (words)) != NULL, "\"%s\" isn't in: %s", (words),               \
                      (err)->message);                                                                       \
        khub_error_clear(err);                                                                               \
    } while (0)

#endif
