/* A tree, page by page. */
#include "hub/client.h"

#include "base/error.h"
#include "base/memory.h"
#include "hub/address.h"
#include "hub/ask.h"
#include "hub/listing.h"
#include "hub/url.h"

#include <stdio.h>

enum { PAGES_MAX = 4000 }; /* of 1,000 entries each at the Hub */

/* The addresses that were asked for, as hashes: one that comes twice is a circle. */
typedef struct seen {
    uint64_t hashes[PAGES_MAX];
    size_t count;
} seen;

/* FNV-1a, 64 bits */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

static int note(seen *pages, const char *url, khub_error *err)
{
    char shown[208];
    uint64_t hash = hash_of(url);
    for (size_t i = 0; i < pages->count; i++)
        if (pages->hashes[i] == hash)
            return khub__fail(err, KHUB_E_FORMAT, "%s: page %zu of the listing names page %zu as the next",
                              khub__url_shown(shown, url), pages->count, i + 1);
    if (pages->count == PAGES_MAX)
        return khub__fail(err, KHUB_E_FORMAT, "%s: the listing doesn't end after %d pages",
                          khub__url_shown(shown, url), PAGES_MAX);
    pages->hashes[pages->count++] = hash;
    return KHUB_OK;
}

/* Where the answer says that the repository is, when that is elsewhere. */
static void note_move(khub__repo *moved_to, const khub__reply *reply, const khub__client *client,
                      const khub__asked *asked)
{
    char word[KHUB__COMMIT_MAX + 8];
    khub__repo there;
    snprintf(word, sizeof(word), "tree/%s", asked->revision);
    if (khub__address_repo(&there, client->settings.endpoint, asked->repo->kind, word, reply->transfer.url) &&
        strcmp(there.id, asked->repo->id) != 0)
        *moved_to = there;
}

/* Reads the page at *url, which becomes the next one's address, NULL after the last. */
static int read_page(khub__tree *tree, khub__repo *moved_to, char **url, khub__client *client,
                     const khub__asked *asked, khub_error *err)
{
    khub__reply reply;
    char shown[208], *next = NULL;
    int rc = khub__client_ask(&reply, client, *url, asked, err);
    if (rc == KHUB_OK)
        rc = khub__listing_page(tree, reply.body.data ? reply.body.data : "", reply.body.length,
                                khub__url_shown(shown, reply.transfer.url), err);
    if (rc == KHUB_OK && reply.transfer.answer.next)
        rc = khub__address_page(&next, client->settings.endpoint, reply.transfer.url,
                                reply.transfer.answer.next, err);
    if (rc == KHUB_OK) note_move(moved_to, &reply, client, asked);
    khub__reply_free(&reply);
    khub__free(*url);
    *url = next;
    return rc;
}

int khub__client_tree(khub__tree *out, khub__repo *moved_to, khub__client *client, const khub__repo *repo,
                      const char *commit, khub_error *err)
{
    khub__repo there = {0};
    khub__asked asked = {.settings = &client->settings, .repo = repo, .revision = commit};
    memset(out, 0, sizeof(*out));
    seen *pages = khub__calloc(1, sizeof(*pages));
    char *url = pages ? khub__address_tree(client->settings.endpoint, repo, commit) : NULL;
    int rc = url ? KHUB_OK : khub__fail_memory(err, "listing a repository");
    while (rc == KHUB_OK && url) {
        rc = note(pages, url, err);
        if (rc == KHUB_OK) rc = read_page(out, &there, &url, client, &asked, err);
    }
    if (rc == KHUB_OK) rc = khub__tree_close(out, err);
    if (rc != KHUB_OK) khub__tree_free(out);
    if (moved_to) *moved_to = there;
    khub__free(url);
    khub__free(pages);
    return rc;
}
