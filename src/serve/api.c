#include "serve/api.h"

#include "serve/pointer.h"

#include <stdio.h>
#include <string.h>

enum { PAGE = 1000 };

/* An answer that lacks an item is none: where one can't be added, *list becomes NULL. */
static void append(json_t **list, json_t *item)
{
    if (*list && json_array_append_new(*list, item) == 0) return;
    if (!*list) json_decref(item);
    json_decref(*list);
    *list = NULL;
}

static json_t *siblings(const serve_listing *listing)
{
    json_t *list = json_array();
    for (size_t i = 0; i < listing->count; i++)
        if (!listing->entries[i].directory)
            append(&list, json_pack("{s:s}", "rfilename", listing->entries[i].path));
    return list;
}

static json_t *owner_of(const char *id)
{
    const char *slash = strchr(id, '/');
    return slash ? json_stringn(id, (size_t)(slash - id)) : json_null();
}

serve_answer serve_api_info(const serve_address *address, const serve_found *found)
{
    json_t *body =
        json_pack("{s:s, s:o, s:s, s:b, s:b, s:b, s:i, s:i, s:[], s:o}", "id", address->id, "author",
                  owner_of(address->id), "sha", found->listing->commit, "private", 0, "gated", 0, "disabled",
                  0, "downloads", 0, "likes", 0, "tags", "siblings", siblings(found->listing));
    if (body && address->kind == SERVE_MODEL) json_object_set_new(body, "modelId", json_string(address->id));
    serve_answer answer = serve_answer_json(200, body);
    serve_answer_header(&answer, "X-Repo-Commit", found->listing->commit);
    return answer;
}

static json_t *ref_object(const serve_ref *ref)
{
    static const char *const folders[] = {"refs/heads/", "refs/tags/", ""};
    char full[SERVE_REVISION_MAX + 32];
    snprintf(full, sizeof(full), "%s%s", folders[ref->kind], ref->name);
    return json_pack("{s:s, s:s, s:s}", "name", ref->name, "ref", full, "targetCommit", ref->commit);
}

serve_answer serve_api_refs(const serve_address *address, const serve_found *found)
{
    json_t *lists[] = {json_array(), json_array(), json_array()};
    for (size_t i = 0; i < found->refs->count; i++)
        append(&lists[found->refs->refs[i].kind], ref_object(&found->refs->refs[i]));
    json_t *body =
        json_pack("{s:o, s:[], s:o}", "branches", lists[SERVE_BRANCH], "converts", "tags", lists[SERVE_TAG]);
    if (body && address->pull_requests) json_object_set(body, "pullRequests", lists[SERVE_OTHER_REF]);
    json_decref(lists[SERVE_OTHER_REF]);
    return serve_answer_json(200, body);
}

static json_t *entry_object(const serve_entry *entry)
{
    if (entry->directory)
        return json_pack("{s:s, s:s, s:i, s:s}", "type", "directory", "oid", entry->names.oid, "size", 0,
                         "path", entry->path);
    const char *sha256 = entry->names.sha256;
    json_int_t size = (json_int_t)entry->size;
    if (!*sha256)
        return json_pack("{s:s, s:s, s:I, s:s}", "type", "file", "oid", entry->names.oid, "size", size,
                         "path", entry->path);
    return json_pack("{s:s, s:s, s:I, s:s, s:{s:s, s:I, s:i}}", "type", "file", "oid", entry->names.oid,
                     "size", size, "path", entry->path, "lfs", "oid", sha256, "size", size, "pointerSize",
                     serve_pointer_size(entry->size));
}

/* The address of the page from `cursor` on, of the same commit: a branch may move between two pages. */
static void add_next(serve_answer *answer, const serve_address *address, const char *commit, const char *base,
                     size_t cursor)
{
    char path[3 * SERVE_PATH_MAX + 2] = "", link[3 * SERVE_PATH_MAX + 1024];
    if (address->path[0]) {
        path[0] = '/';
        serve_encode(path + 1, address->path, 1);
    }
    snprintf(link, sizeof(link), "<%s/api/%s/%s/tree/%s%s?recursive=%s&cursor=%zu>; rel=\"next\"", base,
             address->kind == SERVE_KERNEL ? "kernels" : "models", address->id, commit, path,
             address->recursive ? "true" : "false", cursor);
    serve_answer_header(answer, "Link", link);
}

serve_answer serve_api_tree(const serve_address *address, const serve_found *found, const char *base)
{
    const serve_entry *top = address->path[0] ? serve_listing_find(found->listing, address->path) : NULL;
    if (address->path[0] && (!top || !top->directory))
        return serve_answer_error(404, "EntryNotFound", "%s: %s of %s is no directory", address->path,
                                  found->listing->commit, address->id);
    json_t *body = json_array();
    size_t at = address->cursor;
    const serve_entry *entry = serve_listing_next(found->listing, &at, address->path, address->recursive);
    for (; entry && body && json_array_size(body) < PAGE;
         entry = serve_listing_next(found->listing, &at, address->path, address->recursive))
        append(&body, entry_object(entry));
    serve_answer answer = serve_answer_json(200, body);
    if (entry) add_next(&answer, address, found->listing->commit, base, at - 1);
    serve_answer_header(&answer, "X-Repo-Commit", found->listing->commit);
    return answer;
}

serve_answer serve_api_paths(const serve_address *address, const serve_found *found, const char *paths,
                             size_t count)
{
    if (count > SERVE_PATHS_MAX)
        return serve_answer_error(400, NULL, "%s: %zu paths are asked for; %d at once", address->id, count,
                                  SERVE_PATHS_MAX);
    json_t *body = json_array();
    for (size_t i = 0; i < count && body; i++, paths += strlen(paths) + 1) {
        const serve_entry *entry = serve_listing_find(found->listing, paths);
        if (entry) append(&body, entry_object(entry));
    }
    serve_answer answer = serve_answer_json(200, body);
    serve_answer_header(&answer, "X-Repo-Commit", found->listing->commit);
    return answer;
}

serve_answer serve_api_overview(const char *organization, int trusted)
{
    return serve_answer_json(200, json_pack("{s:s, s:s, s:s, s:b, s:b}", "name", organization, "fullname",
                                            organization, "avatarUrl", "", "isVerified", 0,
                                            "trustedKernelPublisher", trusted));
}
