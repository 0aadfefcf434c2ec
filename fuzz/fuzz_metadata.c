/* metadata.json of any bytes: no crash, and what is accepted keeps its promises. Its architectures then meet
 * devices. */
#include "kernel/metadata.h"
#include "variant/archs.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__metadata metadata;
    khub_error err = {0};
    int rc = khub__metadata_parse(&metadata, (const char *)data, size, "metadata.json", &err);
    check((rc == KHUB_OK) == (err.code == KHUB_OK) && (rc == KHUB_OK) == !err.message[0]);
    if (rc == KHUB_OK)
        check_accepted(&metadata);
    else
        check(!metadata.name && !metadata.archs && !metadata.needs && !metadata.digest);
    khub__metadata_free(&metadata);
    return 0;
}
