/* What takes longest is asked once: most inputs that a fuzzer makes have the signatures of the one before,
 * each of which takes a key up to 1 ms, and the same question has the same answer. The linker puts these in
 * the place of the real ones (--wrap, CMakeLists.txt), which answer the first time. */
#ifndef FUZZ_REMEMBERED_H
#define FUZZ_REMEMBERED_H

#include "platform/threads.h"
#include "trust/sigstore/crypto.h"

#include <jansson.h>

int __real_khub__key_read(khub__key *out, khub__span info);
int __wrap_khub__key_read(khub__key *out, khub__span info);
int __real_khub__key_signed(const khub__key *key, khub__digest_kind digest, khub__span data,
                            khub__span signature);
int __wrap_khub__key_signed(const khub__key *key, khub__digest_kind digest, khub__span data,
                            khub__span signature);
json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
unsigned __wrap_khub__affinity_count(void);

enum { KEYS = 256, ANSWERS = 1 << 16 };

/* The keys that were read last, by their handles; a handle may become another key's, which is then read
 * later. */
static struct {
    const void *handle;
    uint64_t hash;
} keys[KEYS];
static unsigned newest;

static struct {
    uint64_t question;
    int answer;
} answers[ANSWERS];

/* FNV-1a, 64 bits, with the length. */
static uint64_t hash_of(uint64_t hash, khub__span bytes)
{
    for (size_t i = 0; i < bytes.length; i++)
        hash = (hash ^ bytes.data[i]) * 0x100000001b3u;
    return (hash ^ bytes.length) * 0x100000001b3u;
}

int __wrap_khub__key_read(khub__key *out, khub__span info)
{
    int rc = __real_khub__key_read(out, info);
    newest = (newest + 1) % KEYS;
    keys[newest].handle = out->handle;
    keys[newest].hash = hash_of(0xcbf29ce484222325u, info);
    return rc;
}

/* Those of the trusted root, which is read once, may have been pushed out: their handles are theirs for good,
 * and so are told from all others by them. */
static uint64_t hash_of_key(const khub__key *key)
{
    for (unsigned i = 0; i < KEYS; i++)
        if (keys[(newest + KEYS - i) % KEYS].handle == key->handle)
            return keys[(newest + KEYS - i) % KEYS].hash;
    return (uintptr_t)key->handle;
}

int __wrap_khub__key_signed(const khub__key *key, khub__digest_kind digest, khub__span data,
                            khub__span signature)
{
    uint64_t question = hash_of(hash_of(hash_of_key(key) + (uint64_t)digest, data), signature);
    size_t at = question % ANSWERS;
    if (answers[at].question != question) {
        answers[at].answer = __real_khub__key_signed(key, digest, data, signature);
        answers[at].question = question;
    }
    return answers[at].answer;
}

/* Text that isn't JSON is read a second time at once, to know whether it was for lack of memory
 * (base/json.c). */
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error)
{
    static const char *failed;
    static size_t failed_length;
    int again = text == failed && length == failed_length;
    json_t *root = again ? NULL : __real_json_loadb(text, length, flags, error);
    failed = again || root ? NULL : text;
    failed_length = length;
    return root;
}

/* One processor: no second thread is started for what is remembered, and these tables are one thread's. */
unsigned __wrap_khub__affinity_count(void)
{
    return 1;
}

#endif
