/* Makes every allocation of a call fail in turn: libkhub's through khub_set_allocator, jansson's through its
 * own hook. An operation is `int op(void *user, khub_error *err)`: it calls what is tested, gives up what it
 * got, and returns the status. */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

#include "unit.h"

#include <khub/error.h>
#include <khub/memory.h>

#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*fm_operation)(void *user, khub_error *err);

/* Blocks in use; allocations so far; which of them fails (0: none). */
static atomic_long fm_live, fm_count, fm_fail_at;

static inline int fm_fails(void)
{
    return atomic_fetch_add(&fm_count, 1) + 1 == atomic_load(&fm_fail_at);
}

static inline void *fm_malloc(size_t bytes)
{
    void *p = fm_fails() ? NULL : malloc(bytes);
    if (p) atomic_fetch_add(&fm_live, 1);
    return p;
}

static inline void fm_free(void *p)
{
    if (p) atomic_fetch_sub(&fm_live, 1);
    free(p);
}

static inline void *fm_realloc(void *p, size_t bytes)
{
    if (!p) return fm_malloc(bytes);
    return fm_fails() ? NULL : realloc(p, bytes);
}

static inline void fm_install_own(void)
{
    static const khub_allocator allocator = {fm_malloc, fm_realloc, fm_free};
    khub_set_allocator(&allocator);
}

static inline void fm_install(void)
{
    fm_install_own();
    json_set_alloc_funcs(fm_malloc, fm_free);
}

/* Runs op with allocation `fail_at` failing. 1: that one was reached. */
static inline int fm_run(fm_operation op, void *user, long fail_at, int *status, khub_error *err)
{
    memset(err, 0, sizeof(*err));
    atomic_store(&fm_count, 0);
    atomic_store(&fm_fail_at, fail_at);
    *status = op(user, err);
    atomic_store(&fm_fail_at, 0);
    return fail_at && atomic_load(&fm_count) >= fail_at;
}

static inline void fm_check_nomem(long fail_at, int status, const khub_error *err)
{
    ck_assert_msg(status == KHUB_E_NOMEM && err->code == KHUB_E_NOMEM,
                  "allocation %ld failed, the call returned %s: %s", fail_at, khub_status_name(status),
                  err->message);
}

static inline void fm_fail_each_installed(fm_operation op, void *user)
{
    khub_error err;
    int status;
    fm_run(op, user, 0, &status, &err);
    ck_assert_msg(status == KHUB_OK, "%s: %s", khub_status_name(status), err.message);
    long before = atomic_load(&fm_live), n = 1;
    for (; fm_run(op, user, n, &status, &err); n++) {
        fm_check_nomem(n, status, &err);
        ck_assert_msg(atomic_load(&fm_live) == before, "allocation %ld failed, %ld blocks were lost", n,
                      atomic_load(&fm_live) - before);
    }
    ck_assert_msg(n > 1, "the operation allocates nothing");
    ck_assert_int_eq(status, KHUB_OK);
    ck_assert_int_eq(atomic_load(&fm_live), before);
}

/* Fails each allocation of op in this process. The first, whole run may fill caches that live for good. */
static inline void fm_fail_each(fm_operation op, void *user)
{
    fm_install();
    fm_fail_each_installed(op, user);
}

/* The same for libkhub's own allocations only: jansson (2.14) loses characters of a long string when it finds
 * no memory, and says nothing. */
static inline void fm_fail_each_own(fm_operation op, void *user)
{
    fm_install_own();
    fm_fail_each_installed(op, user);
}

/* One try in a child: op with the failure, then again without. Exit status 0: done, 1: never reached, 2:
 * wrong. */
static inline int fm_try_fresh(fm_operation op, void *user, long fail_at, long *live)
{
    khub_error err;
    int status, reached = fm_run(op, user, fail_at, &status, &err);
    if (reached && (status != KHUB_E_NOMEM || err.code != KHUB_E_NOMEM)) {
        fprintf(stderr, "allocation %ld failed, the call returned %s: %s\n", fail_at,
                khub_status_name(status), err.message);
        return 2;
    }
    if (reached || fail_at == 0) fm_run(op, user, 0, &status, &err);
    if (status != KHUB_OK) {
        fprintf(stderr, "after allocation %ld failed, the next call returned %s: %s\n", fail_at,
                khub_status_name(status), err.message);
        return 2;
    }
    if (fail_at == 0) *live = atomic_load(&fm_live); /* what caches hold when nothing failed */
    if (atomic_load(&fm_live) == *live) return !reached && fail_at != 0;
    fprintf(stderr, "allocation %ld failed, %ld blocks were lost\n", fail_at, atomic_load(&fm_live) - *live);
    return 2;
}

/* Fails each of libkhub's own allocations in a child process of its own, for what a process does once only
 * (opening a library, looking at the machine). After the failure op must work, with no block lost. */
static inline void fm_fail_each_fresh(fm_operation op, void *user)
{
    fm_install_own();
    long *live = mmap(NULL, sizeof(*live), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(live, MAP_FAILED);
    long n = 0;
    for (int status = 0; status == 0; n++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) _exit(fm_try_fresh(op, user, n, live));
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2, "allocation %ld failed, status %#x", n,
                      (unsigned)status);
    }
    ck_assert_msg(n > 2, "the operation allocates nothing");
    munmap(live, sizeof(*live));
}

#endif
