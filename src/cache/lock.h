/* .locks/FOLDER/ETAG.lock: held by whoever brings a blob, so that nobody else brings it at the same time. The
 * same advisory lock that the other tools take. Nothing relies on it: there are file systems that let
 * everyone in. One source per operating system. */
#ifndef CACHE_LOCK_H
#define CACHE_LOCK_H

#include "cache/store.h"

typedef struct khub__lock {
    int fd;            /* -1: not open */
    int held;          /* 1: ours, or there is no way to lock here and we go without */
    int created;       /* 1: the lock's file wasn't there before */
    int noted;         /* 1: there is a note in it */
    char *path;        /* NULL: not asked for yet */
    const char *cache; /* the store's, which must last as long as the lock */
} khub__lock;

/* 0 when it is held now, 1 when another holds it (ask again with the same *lock, zeroed before the first time
 * with fd -1), KHUB_E_NOMEM, or KHUB_E_IO: a link or a file stands where .locks or .locks/FOLDER should be.
 */
int khub__lock_try(khub__lock *lock, const khub__store *store, const char *etag, khub_error *err);

/* Keeps no file open while another holds it. */
void khub__lock_rest(khub__lock *lock);

/* Lets go. The lock's file stays, as the other tools leave it; `remove`: goes, when it wasn't there before.
 */
void khub__lock_release(khub__lock *lock, int remove);

/* 1: somebody holds a lock of this repository, so that something of it is being fetched. 0: nobody.
 * KHUB_E_NOMEM. */
int khub__lock_any_held(const khub__store *store, khub_error *err);

/* Who holds it, in words: "process 123 (python3)". Its number, 0 when that can't be known. */
long khub__lock_holder(char words[80], const khub__lock *lock);

/* What the holder before us left in the lock's file for the next (empty when it ended well), and the other
 * way. The file is ours while we hold it; the other tools don't read it. */
enum { KHUB__NOTE_MAX = 200 };
void khub__lock_read_note(char note[KHUB__NOTE_MAX], khub__lock *lock);
void khub__lock_write_note(khub__lock *lock, const char *note);

#endif
