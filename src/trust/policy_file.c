/* The file of a policy: where it is, reading it strictly, writing it in one form. */
#include "trust/policy.h"

#include "base/error.h"
#include "base/file.h"
#include "base/home.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/ours.h"
#include "base/path.h"

#include <stdio.h>

int khub_policy_path(char **out, khub_error *err)
{
    int missing = khub__given("khub_policy_path", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    const char *named = khub__env("KHUB_TRUST_FILE"), *config = khub__env("XDG_CONFIG_HOME");
    if (config && *config != '/') config = NULL; /* as its specification wants it */
    char *joined = named || !config ? NULL : khub__path_join(config, "khub/trust.json");
    *out = NULL;
    if (named || joined || !config)
        *out = khub__path_expand(named ? named : joined ? joined : "~/.config/khub/trust.json");
    khub__free(joined);
    if (!*out) return khub__fail_memory(err, "looking for trust.json");
    if (**out != '~') return KHUB_OK;
    khub__free(*out);
    *out = NULL;
    return khub__fail(err, KHUB_E_NOTFOUND,
                      "there is no home directory to keep trust.json in: set HOME, or KHUB_TRUST_FILE");
}

/* That all keys are known, and none is null: elsewhere that is as good as absent, here it would be the
 * default, which asks for less. */
static int check_keys(const json_t *object, const char *const *known, const char *where,
                      const khub__json_source *source)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        const char *const *k = known;
        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k)
            return khub__fail(source->err, KHUB_E_FORMAT, "%s: there is no \"%.60s\"%s", source->file, key,
                              where);
        if (json_is_null(value))
            return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\" is null; leave it out for the default",
                              source->file, key);
    }
    return KHUB_OK;
}

static int read_level(khub_policy *p, const json_t *json, const khub__json_source *source)
{
    const char *level = NULL;
    khub_error why = {0};
    int rc = khub__json_string(&level, json, "level", source);
    if (rc != KHUB_OK || !level) return rc;
    return khub_trust_level_parse(&p->level, level, &why) == KHUB_OK
               ? KHUB_OK
               : khub__fail(source->err, KHUB_E_FORMAT, "%s: \"level\": %s", source->file, why.message);
}

static int read_offline(khub_policy *p, const json_t *json, const khub__json_source *source)
{
    const char *offline = NULL;
    int rc = khub__json_string(&offline, json, "offline", source);
    if (rc != KHUB_OK || !offline) return rc;
    p->offline_refuse = !strcmp(offline, "refuse");
    return p->offline_refuse || !strcmp(offline, "notice")
               ? KHUB_OK
               : khub__fail(source->err, KHUB_E_FORMAT,
                            "%s: \"offline\" is \"%.40s\", it is \"notice\" or \"refuse\"", source->file,
                            offline);
}

static int read_root(khub_policy *p, const json_t *json, const khub__json_source *source)
{
    const char *path = NULL;
    int rc = khub__json_string(&path, json, "trusted_root", source);
    if (rc != KHUB_OK || !path) return rc;
    if (!*path) return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"trusted_root\" is empty", source->file);
    char *dir = khub__path_parent(source->file);
    p->trusted_root = dir ? khub__path_join(dir, path) : NULL;
    khub__free(dir);
    return p->trusted_root ? KHUB_OK : khub__fail_memory(source->err, "reading a policy");
}

/* A change that can't be made because of what stands in the file. */
static int fail_item(int rc, const char *list, size_t i, const khub_error *why,
                     const khub__json_source *source)
{
    return rc == KHUB_E_NOMEM ? khub__fail_memory(source->err, "reading a policy")
                              : khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\"[%zu]: %s", source->file,
                                           list, i, why->message);
}

static int wrong_item(const char *list, size_t i, const json_t *item, const char *expected,
                      const khub__json_source *source)
{
    return khub__fail(source->err, KHUB_E_FORMAT, "%s: \"%s\"[%zu] is %s, %s is expected", source->file, list,
                      i, khub__json_type_name(item), expected);
}

static int read_publishers(khub_policy *p, const json_t *json, const khub__json_source *source)
{
    const json_t *list = NULL;
    int rc = khub__json_array(&list, json, "publishers", source);
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        khub_error why = {0};
        if (!json_is_string(item)) return wrong_item("publishers", i, item, "a string", source);
        rc = khub_policy_add_publisher(p, json_string_value(item), &why);
        if (rc != KHUB_OK) return fail_item(rc, "publishers", i, &why, source);
    }
    return rc;
}

static const char *const identity_keys[] = {"issuer", "repository", "workflow", "subject", NULL};

static int read_identity(khub_policy *p, const json_t *item, size_t i, const khub__json_source *source)
{
    khub_identity identity = {0};
    const char **texts[] = {&identity.issuer, &identity.repository, &identity.workflow, &identity.subject};
    khub_error why = {0};
    if (!json_is_object(item)) return wrong_item("identities", i, item, "an object", source);
    int rc = check_keys(item, identity_keys, " in an identity", source);
    for (size_t k = 0; identity_keys[k] && rc == KHUB_OK; k++)
        rc = khub__json_string(texts[k], item, identity_keys[k], source);
    if (rc != KHUB_OK) return rc;
    rc = khub_policy_add_identity(p, &identity, &why);
    return rc == KHUB_OK ? rc : fail_item(rc, "identities", i, &why, source);
}

/* A list that is there, an empty one too, says all. */
static int read_identities(khub_policy *p, const json_t *json, const khub__json_source *source)
{
    const json_t *list = NULL;
    int rc = khub__json_array(&list, json, "identities", source);
    if (rc == KHUB_OK && list) p->own_identities = 1;
    for (size_t i = 0; rc == KHUB_OK && i < json_array_size(list); i++)
        rc = read_identity(p, json_array_get(list, i), i, source);
    return rc;
}

static int read_all(khub_policy *p, const json_t *json, const khub__json_source *source)
{
    static const char *const keys[] = {"level", "offline", "publishers", "identities", "trusted_root", NULL};
    int rc = check_keys(json, keys,
                        " in a policy: it has level, offline, publishers, identities, "
                        "trusted_root",
                        source);
    if (rc == KHUB_OK) rc = read_level(p, json, source);
    if (rc == KHUB_OK) rc = read_offline(p, json, source);
    if (rc == KHUB_OK) rc = read_root(p, json, source);
    if (rc == KHUB_OK) rc = read_publishers(p, json, source);
    return rc == KHUB_OK ? read_identities(p, json, source) : rc;
}

int khub__policy_parse(khub_policy **out, const char *text, size_t length, const char *file, khub_error *err)
{
    json_t *json = NULL;
    khub__json_source source = {file, err};
    int rc = khub_policy_new(out, err);
    if (rc == KHUB_OK) rc = khub__json_parse(&json, text, length, file, err);
    if (rc == KHUB_OK) rc = read_all(*out, json, &source);
    json_decref(json);
    if (rc == KHUB_OK) return KHUB_OK;
    khub_policy_free(*out);
    *out = NULL;
    return rc;
}

/* `path` is there, or was said to be. */
static int read_file(khub_policy **out, const char *path, khub_error *err)
{
    khub__bytes text = {0};
    char *real;
    int rc = khub__path_is_ours(&real, path, err);
    if (rc == KHUB_OK) rc = khub__file_read(&text, real, KHUB__POLICY_MAX_BYTES, err);
    if (rc == KHUB_OK) rc = khub__policy_parse(out, text.data, text.length, path, err);
    khub__bytes_free(&text);
    khub__free(real);
    if (rc == KHUB_OK && !((*out)->path = khub__strdup(path))) {
        khub_policy_free(*out);
        *out = NULL;
        rc = khub__fail_memory(err, "reading a policy");
    }
    return rc;
}

/* The user's file need not be there, but the one that the environment names. */
static int read_own(khub_policy **out, khub_error *err)
{
    char *path;
    khub_error why = {0};
    int rc = khub_policy_path(&path, &why);
    if (rc == KHUB_E_NOTFOUND) return khub_policy_new(out, err);
    if (rc != KHUB_OK) return khub__fail(err, rc, "%s", why.message);
    if (khub__env("KHUB_TRUST_FILE") || khub__file_kind(path) != KHUB__FILE_NONE)
        rc = read_file(out, path, &why);
    else
        rc = khub_policy_new(out, &why);
    khub__free(path);
    if (rc == KHUB_OK) return rc;
    return khub__fail(err, rc, "%s%s", why.message,
                      rc == KHUB_E_NOTFOUND ? " (KHUB_TRUST_FILE names it)" : "");
}

int khub_policy_read(khub_policy **out, const char *path, khub_error *err)
{
    int missing = khub__given("khub_policy_read", out != NULL, err);
    if (missing != KHUB_OK) return missing;
    *out = NULL;
    return path ? read_file(out, path, err) : read_own(out, err);
}

static void add_identity(khub__text *to, const khub_identity *identity)
{
    const char *const texts[] = {identity->issuer, identity->repository, identity->workflow,
                                 identity->subject};
    const char *before = "\n    {";
    for (size_t k = 0; identity_keys[k]; k++) {
        if (!texts[k]) continue;
        khub__text_addf(to, "%s\"%s\": ", before, identity_keys[k]);
        khub__json_add_string(to, texts[k]);
        before = ",\n     ";
    }
    khub__text_add(to, "}");
}

char *khub__policy_text(const khub_policy *policy)
{
    khub__text to = {0};
    khub__text_addf(&to, "{\n  \"level\": \"%s\",\n  \"offline\": \"%s\",\n  \"publishers\": [",
                    khub_trust_level_name(policy->level), policy->offline_refuse ? "refuse" : "notice");
    for (size_t i = 0; i < policy->publisher_count; i++) {
        khub__text_add(&to, i ? ",\n    " : "\n    ");
        khub__json_add_string(&to, policy->publishers[i]);
    }
    khub__text_add(&to, policy->publisher_count ? "\n  ]" : "]");
    if (policy->own_identities) khub__text_add(&to, ",\n  \"identities\": [");
    for (size_t i = 0; i < policy->identity_count; i++) {
        if (i) khub__text_add(&to, ",");
        add_identity(&to, &policy->identities[i]);
    }
    if (policy->own_identities) khub__text_add(&to, policy->identity_count ? "\n  ]" : "]");
    if (policy->trusted_root) {
        khub__text_add(&to, ",\n  \"trusted_root\": ");
        khub__json_add_string(&to, policy->trusted_root);
    }
    khub__text_add(&to, "\n}\n");
    return khub__text_take(&to);
}

static int put(const char *path, const char *text, khub_error *err)
{
    khub__draft *draft;
    int rc = khub__draft_open(&draft, path, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__draft_for_us(draft, err);
    if (rc == KHUB_OK) rc = khub__draft_write(draft, text, strlen(text), err);
    if (rc == KHUB_OK) return khub__draft_commit(draft, err);
    khub__draft_discard(draft);
    return rc;
}

/* The directories, then the way to the file, which must be one that reading believes. */
static int write_file(const char *path, const char *text, khub_error *err)
{
    khub_error why = {0};
    char *dir = khub__path_parent(path), *real = NULL;
    int rc = dir ? khub__make_our_directory(dir, err) : khub__fail_memory(err, "writing a policy");
    if (rc == KHUB_OK) {
        rc = khub__path_is_ours(&real, path, &why);
        if (rc == KHUB_E_NOTFOUND && real) rc = KHUB_OK;
        if (rc != KHUB_OK) khub__fail(err, rc, "%s", why.message);
    }
    if (rc == KHUB_OK) rc = put(real, text, err);
    khub__free(real);
    khub__free(dir);
    return rc;
}

int khub_policy_write(const khub_policy *policy, const char *path, khub_error *err)
{
    int rc = khub__given("khub_policy_write", policy != NULL, err);
    char *own = NULL, *text = NULL;
    if (rc == KHUB_OK && !path) rc = khub_policy_path(&own, err);
    if (rc == KHUB_OK && !(text = khub__policy_text(policy))) rc = khub__fail_memory(err, "writing a policy");
    if (rc == KHUB_OK) rc = write_file(path ? path : own, text, err);
    khub__free(text);
    khub__free(own);
    return rc;
}
