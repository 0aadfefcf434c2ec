#include "serve/file.h"

#include "base/path.h"
#include "serve/range.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *etag_of(const serve_entry *entry)
{
    return entry->names.sha256[0] ? entry->names.sha256 : entry->names.oid;
}

/* What a browser shall make of it; the Hub's clients don't look. */
static const char *type_of(const char *path)
{
    static const struct {
        const char *ending, *type;
    } types[] = {{".json", "application/json"},
                 {".txt", "text/plain; charset=utf-8"},
                 {".md", "text/plain; charset=utf-8"},
                 {".py", "text/plain; charset=utf-8"},
                 {".toml", "text/plain; charset=utf-8"}};
    const char *ending = strrchr(khub__path_name(path), '.');
    for (size_t i = 0; ending && i < sizeof(types) / sizeof(*types); i++)
        if (!strcmp(ending, types[i].ending)) return types[i].type;
    return "application/octet-stream";
}

static void add_headers(serve_answer *answer, const serve_entry *entry, const char *commit)
{
    char text[96];
    snprintf(text, sizeof(text), "\"%s\"", etag_of(entry));
    serve_answer_header(answer, "ETag", text);
    serve_answer_header(answer, "X-Repo-Commit", commit);
    serve_answer_header(answer, "Accept-Ranges", "bytes");
    serve_answer_header(answer, "Content-Type", type_of(entry->path));
    serve_answer_header(answer, "X-Content-Type-Options", "nosniff");
    if (!entry->names.sha256[0]) return;
    serve_answer_header(answer, "X-Linked-ETag", text);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)entry->size);
    serve_answer_header(answer, "X-Linked-Size", text);
}

static serve_answer empty(unsigned status)
{
    return (serve_answer){status, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT), 0};
}

/* `count` bytes from `first` on of the file as it was when it was listed. */
static serve_answer part(const serve_entry *entry, unsigned status, uint64_t first, uint64_t count)
{
    serve_identity now;
    int fd = serve_root_file(&now, entry->where);
    if (fd < 0 || !serve_identity_equal(&now, &entry->identity)) {
        if (fd >= 0) close(fd);
        return serve_answer_error(404, "RevisionNotFound", "%s: has changed since that commit", entry->path);
    }
    serve_answer answer = {status, MHD_create_response_from_fd_at_offset64(count, fd, first), count};
    if (!answer.response) close(fd);
    return answer;
}

static serve_answer ranged(const serve_entry *entry, const serve_conditions *conditions)
{
    uint64_t first, count;
    char text[96];
    int holds = !conditions->if_range || serve_etag_matches(conditions->if_range, etag_of(entry));
    switch (serve_range_read(&first, &count, holds ? conditions->range : NULL, entry->size)) {
    case SERVE_RANGE_ALL:
        return part(entry, 200, 0, entry->size);
    case SERVE_RANGE_NONE: {
        serve_answer answer =
            serve_answer_error(416, NULL, "%s: has %llu bytes", entry->path, (unsigned long long)entry->size);
        snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)entry->size);
        serve_answer_header(&answer, "Content-Range", text);
        return answer;
    }
    case SERVE_RANGE_PART:
        break;
    }
    serve_answer answer = part(entry, 206, first, count);
    snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)first,
             (unsigned long long)(first + count - 1), (unsigned long long)entry->size);
    if (answer.status == 206) serve_answer_header(&answer, "Content-Range", text);
    return answer;
}

serve_answer serve_file(const serve_address *address, const serve_found *found,
                        const serve_conditions *conditions)
{
    const char *commit = found->listing->commit;
    const serve_entry *entry = serve_listing_find(found->listing, address->path);
    if (!entry || entry->directory) {
        serve_answer answer = serve_answer_error(404, "EntryNotFound", "%s: %s at %s has no such file",
                                                 address->path, address->id, commit);
        serve_answer_header(&answer, "X-Repo-Commit", commit);
        return answer;
    }
    int same = conditions->if_none_match && serve_etag_matches(conditions->if_none_match, etag_of(entry));
    serve_answer answer = same ? empty(304) : ranged(entry, conditions);
    if (answer.status < 400) add_headers(&answer, entry, commit);
    return answer;
}
