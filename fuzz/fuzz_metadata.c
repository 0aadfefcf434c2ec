/* metadata.json of any bytes: no crash, and what is accepted keeps its promises. Its architectures then meet
 * devices, its digest a file, and the whole what is asked of one that is published. */
#include "base/json.h"
#include "kernel/metadata.h"
#include "publish/strict.h"
#include "trust/digest.h"
#include "variant/archs.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

/* Against a build of one file: at most one violation for each path. */
static void check_digest(const json_t *digest)
{
    static const khub__hashed file = {.path = "a.so"};
    khub__digest_claim claim;
    khub__violations found;
    khub__text words = {0};
    if (khub__digest_read(&claim, digest, "metadata.json", NULL) != KHUB_OK) return;
    check(khub__digest_compare(&found, &claim, &file, 1, NULL) == KHUB_OK);
    int listed = json_object_get(claim.files, "a.so") != NULL;
    check(found.count + 1 >= json_object_size(claim.files) &&
          found.count <= json_object_size(claim.files) + !listed);
    for (size_t i = 0; i < found.count; i++)
        khub__violation_words(&words, &found.items[i]);
    khub__text_free(&words);
    khub__violations_free(&found);
}

static void check_published(const char *text, size_t length)
{
    json_t *metadata;
    if (khub__json_parse(&metadata, text, length, "metadata.json", NULL) != KHUB_OK) return;
    khub__strict_check(metadata, "metadata.json", NULL);
    json_decref(metadata);
}

static void check_accepted(const khub__metadata *m)
{
    check(m->name && strlen(m->name) >= 2 && m->id && *m->id && *m->id != '.' && !strchr(m->id, '/'));
    check(m->version >= 0 && m->license && m->backend);
    for (size_t i = 0; i < m->arch_count; i++) {
        khub__cuda_arch_fits(m->archs[i], "9.0");
        khub__cuda_arch_fits("9.0", m->archs[i]);
        khub__rocm_arch_fits(m->archs[i], "gfx90a:sramecc+:xnack-");
        khub__rocm_arch_fits("gfx90a:xnack+", m->archs[i]);
    }
    for (size_t i = 0; i < m->python_depend_count; i++)
        check(m->python_depends[i] != NULL);
    for (size_t i = 0; i < m->need_count; i++)
        check(m->needs[i].repo_id && (m->needs[i].version >= 0) != (m->needs[i].revision != NULL));
    check(!m->digest || json_is_object(m->digest));
    if (m->digest) check_digest(m->digest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__metadata metadata;
    khub_error err = {0};
    int rc = khub__metadata_parse(&metadata, (const char *)data, size, "metadata.json", &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK) == !err.message[0]);
    if (rc == KHUB_OK) {
        check_accepted(&metadata);
        check_published((const char *)data, size);
    } else {
        check(!metadata.name && !metadata.archs && !metadata.needs && !metadata.digest);
    }
    khub__metadata_free(&metadata);
    return 0;
}
