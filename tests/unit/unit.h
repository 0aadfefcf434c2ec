/* What a unit test file defines: START_TEST functions and, at its end, UNIT("name", test, test, …). */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>

#include <string.h>

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
