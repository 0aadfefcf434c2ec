#include "serve/refs.h"

#include "base/error.h"
#include "base/memory.h"
#include "hub/repo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFS_MAX = 100000 };

int serve_refs_new(serve_refs **out, khub_error *err)
{
    *out = khub__calloc(1, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "listing refs");
    (*out)->users = 1;
    return KHUB_OK;
}

serve_refs *serve_refs_share(serve_refs *refs)
{
    __atomic_add_fetch(&refs->users, 1, __ATOMIC_RELAXED);
    return refs;
}

void serve_refs_free(serve_refs *refs)
{
    if (!refs || __atomic_sub_fetch(&refs->users, 1, __ATOMIC_ACQ_REL) > 0) return;
    khub__free(refs->refs);
    khub__free(refs);
}

int serve_refs_add(serve_refs *refs, const char *name, const char *commit, serve_ref_kind kind,
                   khub_error *err)
{
    if (khub__grow((void **)&refs->refs, &refs->capacity, refs->count + 1, sizeof(*refs->refs), REFS_MAX) !=
        0)
        return khub__fail_memory(err, "listing refs");
    serve_ref *ref = &refs->refs[refs->count];
    if (snprintf(ref->name, sizeof(ref->name), "%s", name) >= (int)sizeof(ref->name)) return KHUB_OK;
    snprintf(ref->commit, sizeof(ref->commit), "%s", commit);
    ref->kind = kind;
    refs->count++;
    return KHUB_OK;
}

static int by_name(const void *a, const void *b)
{
    const serve_ref *one = a, *two = b;
    int order = strcmp(one->name, two->name);
    return order ? order : (int)one->kind - (int)two->kind;
}

void serve_refs_sort(serve_refs *refs)
{
    if (refs->count) qsort(refs->refs, refs->count, sizeof(*refs->refs), by_name);
}

const serve_ref *serve_refs_find(const serve_refs *refs, serve_ref_kind kind, const char *name)
{
    for (size_t i = 0; i < refs->count; i++)
        if (refs->refs[i].kind == kind && !strcmp(refs->refs[i].name, name)) return &refs->refs[i];
    return NULL;
}

/* The branch that is meant when none is named: main, else the highest version, else the first. */
static const serve_ref *standard(const serve_refs *refs)
{
    const serve_ref *best = serve_refs_find(refs, SERVE_BRANCH, "main");
    int64_t highest = -1;
    for (size_t i = 0; i < refs->count && !best; i++) {
        int64_t version = khub__version_of(refs->refs[i].name);
        if (version > highest) highest = version;
    }
    char name[32];
    snprintf(name, sizeof(name), "v%lld", (long long)highest);
    if (!best) best = serve_refs_find(refs, SERVE_BRANCH, name);
    return best ? best : refs->count ? &refs->refs[0] : NULL;
}

static int is_commit(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40;
}

/* A branch goes before a tag of the same name. */
static const serve_ref *named(const serve_refs *refs, const char *revision)
{
    if (!strncmp(revision, "refs/heads/", 11)) return serve_refs_find(refs, SERVE_BRANCH, revision + 11);
    if (!strncmp(revision, "refs/tags/", 10)) return serve_refs_find(refs, SERVE_TAG, revision + 10);
    const serve_ref *ref = serve_refs_find(refs, SERVE_BRANCH, revision);
    if (!ref) ref = serve_refs_find(refs, SERVE_TAG, revision);
    return ref ? ref : serve_refs_find(refs, SERVE_OTHER_REF, revision);
}

const char *serve_refs_commit(const serve_refs *refs, const char *revision)
{
    const serve_ref *ref = *revision ? named(refs, revision) : standard(refs);
    if (ref) return ref->commit;
    return is_commit(revision) ? revision : NULL;
}
