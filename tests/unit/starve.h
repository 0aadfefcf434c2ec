/* Makes each allocation of a call fail in turn: the first alone, then the second alone, … libkhub's own ones:
 * jansson goes on with half a token when it finds no memory, so failing those would test jansson. */
#ifndef STARVE_H
#define STARVE_H

#include <khub/memory.h>

#include <check.h>
#include <stdlib.h>

static long starve_left = -1; /* allocations before the one that fails; below 0: all succeed */
static long starve_live;      /* blocks that are allocated and not freed */

static int starve_now(void)
{
    return starve_left >= 0 && starve_left-- == 0;
}

static void *starve_alloc(size_t bytes)
{
    void *p = starve_now() ? NULL : malloc(bytes);
    if (p) starve_live++;
    return p;
}

static void *starve_realloc(void *old, size_t bytes)
{
    void *p = starve_now() ? NULL : realloc(old, bytes);
    if (p && !old) starve_live++;
    return p;
}

static void starve_free(void *p)
{
    if (p) starve_live--;
    free(p);
}

/* From here on libkhub allocates through the functions above. */
static inline void starve_setup(void)
{
    static const khub_allocator allocator = {starve_alloc, starve_realloc, starve_free};
    khub_set_allocator(&allocator);
}

/* Calls `once`, which returns a status and frees all it got, until no allocation of it fails. Every failure
 * must be KHUB_E_NOMEM and leave no memory behind. */
static inline void starve(int (*once)(void *user), void *user)
{
    for (long n = 0;; n++) {
        long before = starve_live;
        starve_left = n;
        int rc = once(user);
        int untouched = starve_left >= 0;
        starve_left = -1;
        ck_assert_msg(starve_live == before, "allocation %ld fails: %ld blocks are left", n,
                      starve_live - before);
        if (untouched) {
            ck_assert_msg(rc == 0, "with all allocations: status %d", rc);
            ck_assert_msg(n > 0, "it allocates nothing");
            return;
        }
        ck_assert_msg(rc == -2, "allocation %ld fails: status %d, not KHUB_E_NOMEM", n, rc);
    }
}

#endif
