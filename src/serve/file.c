#include "serve/file.h"

#include "base/path.h"
#include "serve/digest.h"
#include "serve/range.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files up to SMALL_MAX bytes are kept in memory once they were asked for, KEPT_MAX bytes of them; larger
 * ones go from the disk's cache to the socket without a copy. */
enum { SMALL_MAX = 1 << 16, KEPT_OVERHEAD = 1024, KEPT_MAX = 1 << 28 };

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
    serve_answer answer = {.status = status};
    answer.response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    return answer;
}

static serve_answer gone(const serve_entry *entry)
{
    return serve_answer_error(404, "RevisionNotFound", "%s: has changed since that commit", entry->path);
}

static serve_answer missing(const serve_entry *entry)
{
    return serve_answer_error(404, "EntryNotFound", "%s: its content isn't here", entry->path);
}

static serve_answer busy(void)
{
    serve_answer answer = serve_answer_error(503, NULL, "Too many files are open");
    serve_answer_header(&answer, "Retry-After", "1");
    return answer;
}

/* ---- a file on disk ---- */

/* The file as it was when it was listed. -1: it isn't any more, and *answer says so. */
static int open_file(serve_answer *answer, const serve_entry *entry)
{
    serve_identity now;
    int fd = serve_root_file(&now, entry->where);
    if (fd < 0) {
        *answer = errno == EMFILE || errno == ENFILE ? busy() : missing(entry);
        return -1;
    }
    if (entry->identity.inode ? serve_identity_equal(&now, &entry->identity) : now.size == entry->size)
        return fd;
    serve_close(fd);
    *answer = gone(entry);
    return -1;
}

static serve_answer part_of_file(const serve_entry *entry, unsigned status, uint64_t first, uint64_t count)
{
    serve_answer answer;
    int fd = open_file(&answer, entry);
    if (fd < 0) return answer;
    answer = (serve_answer){.status = status, .bytes = count};
    answer.response = MHD_create_response_from_fd_at_offset64(count, fd, first);
    if (!answer.response) serve_close(fd);
    return answer;
}

/* ---- content in memory ---- */

static char *read_file(serve_answer *answer, const serve_entry *entry)
{
    int fd = open_file(answer, entry);
    if (fd < 0) return NULL;
    char *data = malloc((size_t)entry->size + 1);
    uint64_t have = 0;
    *answer = (serve_answer){.status = 500};
    for (int64_t n = 1; data && have < entry->size && n > 0; have += n > 0 ? (uint64_t)n : 0)
        n = serve_read(fd, data + have, (size_t)(entry->size - have));
    serve_close(fd);
    if (!data || have == entry->size) return data;
    free(data);
    *answer = gone(entry);
    return NULL;
}

static char *read_source(serve_answer *answer, const serve_entry *entry, serve_source *source)
{
    khub_error err = {0};
    char *data = NULL;
    size_t bytes = 0;
    int rc = source->read(&data, &bytes, source, entry->names.oid, &err);
    if (rc == KHUB_OK && bytes == entry->size) return data;
    free(data);
    *answer = rc == KHUB_E_NOMEM ? (serve_answer){.status = 500} : missing(entry);
    return NULL;
}

/* The whole content, the caller's (free); NULL: there is an answer instead. */
static char *content_of(serve_answer *answer, const serve_entry *entry, const serve_listing *listing)
{
    return entry->where ? read_file(answer, entry) : read_source(answer, entry, listing->source);
}

static serve_answer answer_with(unsigned status, char *data, uint64_t bytes)
{
    serve_answer answer = {.status = status, .bytes = bytes};
    answer.response = MHD_create_response_from_buffer_with_free_callback((size_t)bytes, data, free);
    if (!answer.response) free(data);
    return answer;
}

static serve_answer part(const serve_entry *entry, const serve_listing *listing, unsigned status,
                         uint64_t first, uint64_t count)
{
    if (entry->where) return part_of_file(entry, status, first, count);
    serve_answer answer;
    char *data = read_source(&answer, entry, listing->source);
    if (!data) return answer;
    memmove(data, data + first, (size_t)count);
    return answer_with(status, data, count);
}

/* ---- small files are kept as they are sent ---- */

static atomic_uint_least64_t kept_bytes;

static void free_kept(const serve_entry *entry, void *response)
{
    atomic_fetch_sub(&kept_bytes, entry->size + KEPT_OVERHEAD);
    MHD_destroy_response(response);
}

/* 1 when the content has the entry's name. */
static int is_named(const serve_entry *entry, const char *data)
{
    char hex[KHUB__HASH_HEX_MAX + 1];
    khub__hash_kind kind = entry->names.sha256[0] ? KHUB__HASH_SHA256 : KHUB__HASH_GIT_BLOB;
    return serve_digest(hex, kind, data, (size_t)entry->size, NULL) == KHUB_OK &&
           !strcmp(hex, etag_of(entry));
}

/* Keeps the answer with its entry, unless another thread just did or there are enough. */
static void keep(serve_answer *answer, serve_entry *entry, serve_listing *listing)
{
    void *expected = NULL;
    if (!answer->response) return;
    if (atomic_fetch_add(&kept_bytes, entry->size + KEPT_OVERHEAD) > KEPT_MAX) {
        atomic_fetch_sub(&kept_bytes, entry->size + KEPT_OVERHEAD);
        return;
    }
    answer->shared = 1;
    __atomic_store_n(&listing->forget, serve_file_forget, __ATOMIC_RELEASE);
    if (atomic_compare_exchange_strong(&entry->answer, &expected, (void *)answer->response)) return;
    free_kept(entry, answer->response);
    answer->response = expected;
}

static serve_answer small(serve_entry *entry, serve_listing *listing)
{
    serve_answer answer = {
        .status = 200, .response = atomic_load(&entry->answer), .bytes = entry->size, .shared = 1};
    if (answer.response) return answer;
    char *data = content_of(&answer, entry, listing);
    if (!data) return answer;
    if (!is_named(entry, data)) {
        free(data);
        return gone(entry);
    }
    answer = answer_with(200, data, entry->size);
    add_headers(&answer, entry, listing->commit);
    keep(&answer, entry, listing);
    return answer;
}

/* ---- what is asked of a file ---- */

static serve_answer whole(serve_entry *entry, serve_listing *listing)
{
    if (entry->size <= SMALL_MAX) return small(entry, listing);
    serve_answer answer = part(entry, listing, 200, 0, entry->size);
    if (answer.status == 200) add_headers(&answer, entry, listing->commit);
    return answer;
}

static serve_answer unsatisfied(const serve_entry *entry)
{
    char text[64];
    serve_answer answer =
        serve_answer_error(416, NULL, "%s: has %llu bytes", entry->path, (unsigned long long)entry->size);
    snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)entry->size);
    serve_answer_header(&answer, "Content-Range", text);
    return answer;
}

static serve_answer piece(const serve_entry *entry, const serve_listing *listing, uint64_t first,
                          uint64_t count)
{
    char text[96];
    serve_answer answer = part(entry, listing, 206, first, count);
    if (answer.status != 206) return answer;
    snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)first,
             (unsigned long long)(first + count - 1), (unsigned long long)entry->size);
    serve_answer_header(&answer, "Content-Range", text);
    add_headers(&answer, entry, listing->commit);
    return answer;
}

static serve_answer answer_entry(serve_entry *entry, serve_listing *listing,
                                 const serve_conditions *conditions)
{
    uint64_t first, count;
    if (conditions->if_none_match && serve_etag_matches(conditions->if_none_match, etag_of(entry))) {
        serve_answer answer = empty(304);
        add_headers(&answer, entry, listing->commit);
        return answer;
    }
    int holds = !conditions->if_range || serve_etag_matches(conditions->if_range, etag_of(entry));
    switch (serve_range_read(&first, &count, holds ? conditions->range : NULL, entry->size)) {
    case SERVE_RANGE_PART:
        return piece(entry, listing, first, count);
    case SERVE_RANGE_NONE:
        return unsatisfied(entry);
    default:
        return whole(entry, listing);
    }
}

serve_answer serve_file(const serve_address *address, const serve_found *found,
                        const serve_conditions *conditions, int may_wait)
{
    serve_listing *listing = found->listing;
    serve_entry *entry = serve_listing_find(listing, address->path);
    if (!entry || entry->directory) {
        serve_answer answer = serve_answer_error(404, "EntryNotFound", "%s: %s at %s has no such file",
                                                 address->path, address->id, listing->commit);
        serve_answer_header(&answer, "X-Repo-Commit", listing->commit);
        return answer;
    }
    if (!entry->where && !may_wait && !atomic_load(&entry->answer)) return (serve_answer){.status = 0};
    return answer_entry(entry, listing, conditions);
}

void serve_file_forget(const serve_entry *entry)
{
    void *answer = atomic_load(&entry->answer);
    if (answer) free_kept(entry, answer);
}
