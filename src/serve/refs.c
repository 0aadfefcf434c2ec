#include "serve/refs.h"

#include "base/error.h"
#include "base/memory.h"

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

int serve_refs_add(serve_refs *refs, const char *name, const char *commit, int tag, khub_error *err)
{
    if (khub__grow((void **)&refs->refs, &refs->capacity, refs->count + 1, sizeof(*refs->refs), REFS_MAX) !=
        0)
        return khub__fail_memory(err, "listing refs");
    serve_ref *ref = &refs->refs[refs->count];
    if (snprintf(ref->name, sizeof(ref->name), "%s", name) >= (int)sizeof(ref->name)) return KHUB_OK;
    snprintf(ref->commit, sizeof(ref->commit), "%s", commit);
    ref->tag = tag;
    refs->count++;
    return KHUB_OK;
}

static int by_name(const void *a, const void *b)
{
    const serve_ref *one = a, *two = b;
    int order = strcmp(one->name, two->name);
    return order ? order : one->tag - two->tag;
}

void serve_refs_sort(serve_refs *refs)
{
    if (refs->count) qsort(refs->refs, refs->count, sizeof(*refs->refs), by_name);
}

/* `tag`: 0 a branch, 1 a tag, -1 either, the branch first. */
static const serve_ref *find(const serve_refs *refs, const char *name, int tag)
{
    for (size_t i = 0; i < refs->count; i++)
        if (!strcmp(refs->refs[i].name, name) && (tag < 0 || refs->refs[i].tag == tag)) return &refs->refs[i];
    return NULL;
}

/* The branch that is meant when none is named: main, else the highest version, else the first. */
static const serve_ref *standard(const serve_refs *refs)
{
    const serve_ref *best = find(refs, "main", 0);
    long highest = -1;
    for (size_t i = 0; i < refs->count && !best; i++) {
        char *end;
        long version = refs->refs[i].name[0] == 'v' ? strtol(refs->refs[i].name + 1, &end, 10) : -1;
        if (version > highest && !*end) highest = version;
    }
    char name[32];
    snprintf(name, sizeof(name), "v%ld", highest);
    if (!best) best = find(refs, name, 0);
    return best ? best : refs->count ? &refs->refs[0] : NULL;
}

static int is_commit(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40;
}

const char *serve_refs_commit(const serve_refs *refs, const char *revision)
{
    const serve_ref *ref;
    if (!*revision)
        ref = standard(refs);
    else if (!strncmp(revision, "refs/heads/", 11))
        ref = find(refs, revision + 11, 0);
    else if (!strncmp(revision, "refs/tags/", 10))
        ref = find(refs, revision + 10, 1);
    else
        ref = find(refs, revision, -1);
    if (ref) return ref->commit;
    return is_commit(revision) ? revision : NULL;
}
