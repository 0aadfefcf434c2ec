/* A policy as a value: what is in it, and changing it. policy_file.c reads and writes it. */
#include "trust/policy.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/text.h"
#include "hub/repo.h"

#include <stdlib.h>

int khub_policy_new(khub_policy **out, khub_error *err)
{
    int missing = khub__given("khub_policy_new", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = khub__calloc(1, sizeof(**out));
    if (!*out) return khub__fail_memory(err, "making a policy");
    (*out)->level = KHUB_TRUST_PUBLISHER;
    return KHUB_OK;
}

/* The four texts of an identity, as a table. */
enum { IDENTITY_FIELDS = 4 };
static const char **field_of(khub_identity *identity, size_t i)
{
    const char **fields[IDENTITY_FIELDS] = {&identity->issuer, &identity->repository, &identity->workflow,
                                            &identity->subject};
    return fields[i];
}

static const char *text_of(const khub_identity *identity, size_t i)
{
    khub_identity copy = *identity;
    return *field_of(&copy, i);
}

static void free_identity(khub_identity *identity)
{
    for (size_t i = 0; i < IDENTITY_FIELDS; i++)
        khub__free((void *)(uintptr_t)text_of(identity, i));
}

void khub_policy_reset_identities(khub_policy *policy)
{
    if (!policy) return;
    while (policy->identity_count)
        free_identity(&policy->identities[--policy->identity_count]);
    policy->own_identities = 0;
}

void khub_policy_free(khub_policy *policy)
{
    if (!policy) return;
    khub_policy_reset_identities(policy);
    khub__free(policy->identities);
    while (policy->publisher_count)
        khub__free(policy->publishers[--policy->publisher_count]);
    khub__free(policy->publishers);
    khub__free(policy->trusted_root);
    khub__free(policy->path);
    khub__free(policy);
}

khub_policy_info khub_policy_about(const khub_policy *policy)
{
    khub_policy_info info = {.level = KHUB_TRUST_PUBLISHER};
    if (policy)
        info = (khub_policy_info){policy->level, policy->offline_refuse, policy->trusted_root,
                                  policy->own_identities, policy->path};
    return info;
}

const char *khub_policy_publisher(const khub_policy *policy, size_t i)
{
    return policy && i < policy->publisher_count ? policy->publishers[i] : NULL;
}

const khub_identity *khub__policy_identities(size_t *count, const khub_policy *policy)
{
    if (!policy || !policy->own_identities) return khub_default_identities(count);
    static const khub_identity nobody; /* a list must be there, or it means the default */
    *count = policy->identity_count;
    return policy->identity_count ? policy->identities : &nobody;
}

const khub_identity *khub_policy_identity(const khub_policy *policy, size_t i)
{
    size_t count;
    const khub_identity *all = khub__policy_identities(&count, policy);
    return i < count ? &all[i] : NULL;
}

int khub_policy_set_level(khub_policy *policy, khub_trust_level level, khub_error *err)
{
    int missing = khub__given("khub_policy_set_level", policy != NULL, err);
    if (missing != KHUB_OK) return missing;
    if ((size_t)level > KHUB_TRUST_SIGNED)
        return khub__fail(err, KHUB_E_INVAL, "khub_policy_set_level: %d is no level of trust", (int)level);
    policy->level = level == KHUB_TRUST_DEFAULT ? KHUB_TRUST_PUBLISHER : level;
    return KHUB_OK;
}

int khub_policy_set_offline(khub_policy *policy, int refuse, khub_error *err)
{
    int missing = khub__given("khub_policy_set_offline", policy != NULL, err);
    if (missing == KHUB_OK) policy->offline_refuse = refuse != 0;
    return missing;
}

int khub_policy_set_trusted_root(khub_policy *policy, const char *path, khub_error *err)
{
    int missing = khub__given("khub_policy_set_trusted_root", policy != NULL, err);
    if (missing != KHUB_OK) return missing;
    if (path && (!*path || !khub__is_utf8(path)))
        return khub__fail(err, KHUB_E_INVAL, "khub_policy_set_trusted_root: the path is empty or not UTF-8");
    char *copy = khub__strdup(path);
    if (path && !copy) return khub__fail_memory(err, "changing a policy");
    khub__free(policy->trusted_root);
    policy->trusted_root = copy;
    return KHUB_OK;
}

static int check_publisher(const char *publisher, khub_error *err)
{
    khub__wanted wanted;
    if (!strchr(publisher, '@') && khub__wanted_parse(&wanted, KHUB__REPO_MODEL, publisher, NULL) == KHUB_OK)
        return KHUB_OK;
    return khub__fail(err, KHUB_E_INVAL, "\"%.200s\" is no publisher: ORG or ORG/NAME, without a version",
                      publisher);
}

/* Where it is among them, or where it belongs. */
static size_t find_publisher(int *found, const khub_policy *policy, const char *publisher)
{
    size_t low = 0, high = policy->publisher_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(policy->publishers[middle], publisher) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < policy->publisher_count && !strcmp(policy->publishers[low], publisher);
    return low;
}

int khub_policy_add_publisher(khub_policy *policy, const char *publisher, khub_error *err)
{
    int rc = khub__given("khub_policy_add_publisher", policy && publisher, err), found;
    if (rc == KHUB_OK) rc = check_publisher(publisher, err);
    if (rc != KHUB_OK) return rc;
    size_t at = find_publisher(&found, policy, publisher), n = policy->publisher_count;
    if (found) return KHUB_OK;
    if (n == KHUB__PUBLISHERS_MAX)
        return khub__fail(err, KHUB_E_INVAL, "a policy has at most %d publishers", KHUB__PUBLISHERS_MAX);
    char *copy = khub__strdup(publisher);
    if (!copy || khub__grow((void **)&policy->publishers, &policy->publisher_capacity, n + 1,
                            sizeof(*policy->publishers), KHUB__PUBLISHERS_MAX)) {
        khub__free(copy);
        return khub__fail_memory(err, "changing a policy");
    }
    memmove(policy->publishers + at + 1, policy->publishers + at, (n - at) * sizeof(*policy->publishers));
    policy->publishers[at] = copy;
    policy->publisher_count++;
    return KHUB_OK;
}

int khub_policy_remove_publisher(khub_policy *policy, const char *publisher, khub_error *err)
{
    int rc = khub__given("khub_policy_remove_publisher", policy && publisher, err), found;
    if (rc != KHUB_OK) return rc;
    size_t at = find_publisher(&found, policy, publisher);
    if (!found)
        return khub__fail(err, KHUB_E_NOTFOUND, "%.200s: isn't among the publishers that are vouched for",
                          publisher);
    khub__free(policy->publishers[at]);
    policy->publisher_count--;
    memmove(policy->publishers + at, policy->publishers + at + 1,
            (policy->publisher_count - at) * sizeof(*policy->publishers));
    return KHUB_OK;
}

/* As khub_identity asks for: an issuer and something else, texts that a certificate can hold. */
static int check_identity(const khub_identity *identity, khub_error *err)
{
    for (size_t i = 0; i < IDENTITY_FIELDS; i++) {
        const char *text = text_of(identity, i);
        size_t length = text ? strlen(text) : 1;
        if (!length || length > KHUB__IDENTITY_TEXT_MAX || (text && !khub__is_utf8(text)))
            return khub__fail(err, KHUB_E_INVAL,
                              "an identity's text is empty, longer than %d bytes, or not UTF-8",
                              KHUB__IDENTITY_TEXT_MAX);
    }
    if (identity->issuer && (identity->repository || identity->workflow || identity->subject)) return KHUB_OK;
    return khub__fail(err, KHUB_E_INVAL,
                      "an identity has an issuer, and a repository, a workflow or a subject");
}

static int same_identity(const khub_identity *a, const khub_identity *b)
{
    for (size_t i = 0; i < IDENTITY_FIELDS; i++) {
        const char *one = text_of(a, i), *other = text_of(b, i);
        if (!one != !other || (one && strcmp(one, other) != 0)) return 0;
    }
    return 1;
}

/* SIZE_MAX: it isn't accepted. */
static size_t find_identity(const khub_policy *policy, const khub_identity *identity)
{
    size_t count;
    const khub_identity *all = khub__policy_identities(&count, policy);
    for (size_t i = 0; i < count; i++)
        if (same_identity(&all[i], identity)) return i;
    return SIZE_MAX;
}

static int append_identity(khub_policy *policy, const khub_identity *identity, khub_error *err)
{
    khub_identity copy = {0};
    int lost = khub__grow((void **)&policy->identities, &policy->identity_capacity,
                          policy->identity_count + 1, sizeof(*policy->identities), KHUB__IDENTITIES_MAX);
    for (size_t i = 0; i < IDENTITY_FIELDS && !lost; i++) {
        const char *text = text_of(identity, i);
        *field_of(&copy, i) = khub__strdup(text);
        lost = text && !*field_of(&copy, i);
    }
    if (lost) {
        free_identity(&copy);
        return khub__fail_memory(err, "changing a policy");
    }
    policy->identities[policy->identity_count++] = copy;
    return KHUB_OK;
}

/* From now on the policy says itself who is accepted; those that khub comes with are the start. */
static int own_identities(khub_policy *policy, khub_error *err)
{
    size_t count;
    const khub_identity *all = khub_default_identities(&count);
    int rc = KHUB_OK;
    if (policy->own_identities) return rc;
    for (size_t i = 0; i < count && rc == KHUB_OK; i++)
        rc = append_identity(policy, &all[i], err);
    if (rc != KHUB_OK) khub_policy_reset_identities(policy);
    policy->own_identities = rc == KHUB_OK;
    return rc;
}

int khub_policy_add_identity(khub_policy *policy, const khub_identity *identity, khub_error *err)
{
    int rc = khub__given("khub_policy_add_identity", policy && identity, err);
    if (rc == KHUB_OK) rc = check_identity(identity, err);
    if (rc != KHUB_OK || find_identity(policy, identity) != SIZE_MAX) return rc;
    if (policy->identity_count == KHUB__IDENTITIES_MAX)
        return khub__fail(err, KHUB_E_INVAL, "a policy has at most %d identities", KHUB__IDENTITIES_MAX);
    int had_own = policy->own_identities;
    rc = own_identities(policy, err);
    if (rc == KHUB_OK) rc = append_identity(policy, identity, err);
    if (rc != KHUB_OK && !had_own) khub_policy_reset_identities(policy);
    return rc;
}

int khub_policy_remove_identity(khub_policy *policy, const khub_identity *identity, khub_error *err)
{
    int rc = khub__given("khub_policy_remove_identity", policy && identity, err);
    if (rc != KHUB_OK) return rc;
    size_t at = find_identity(policy, identity);
    if (at == SIZE_MAX)
        return khub__fail(err, KHUB_E_NOTFOUND, "it isn't among the identities that are accepted");
    rc = own_identities(policy, err);
    if (rc != KHUB_OK) return rc;
    free_identity(&policy->identities[at]);
    policy->identity_count--;
    memmove(policy->identities + at, policy->identities + at + 1,
            (policy->identity_count - at) * sizeof(*policy->identities));
    return KHUB_OK;
}

int khub__policy_vouches(const khub_policy *policy, const char *repository, const char *owner)
{
    int found = 0;
    if (*repository) find_publisher(&found, policy, repository);
    if (!found && *owner) find_publisher(&found, policy, owner);
    return found;
}

int khub__policy_root(khub_trusted_root **out, const khub_policy *policy, khub_error *err)
{
    const char *path = policy ? policy->trusted_root : NULL;
    *out = NULL;
    int rc = path ? khub__path_is_ours(NULL, path, err) : KHUB_OK;
    return rc == KHUB_OK ? khub_trusted_root_open(out, path, err) : rc;
}

int khub__rules_policy(const khub_policy **out, khub__rules *rules, khub_error *err)
{
    int rc = rules->given || rules->own ? KHUB_OK : khub_policy_read(&rules->own, NULL, err);
    *out = rules->given ? rules->given : rules->own;
    return rc;
}

void khub__rules_close(khub__rules *rules)
{
    khub_policy_free(rules->own);
    memset(rules, 0, sizeof(*rules));
}
