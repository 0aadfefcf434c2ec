/* Answers questions about digests, one JSON object a line: {"build": DIR, "algorithm": NAME} with the digest
 * of the directory, {"build": DIR, "digest": DIGEST} with the list of violations, [KIND, PATH, EXPECTED, GOT]
 * each; a failure with its words. */
#include "trust/digest.h"

#include <stdio.h>

static json_t *make(const char *build, const char *algorithm)
{
    khub_error err = {0};
    json_t *digest;
    khub__hash_kind kind = !strcmp(algorithm, "sha512") ? KHUB__HASH_SHA512 : KHUB__HASH_SHA256;
    return khub__digest_make(&digest, kind, build, NULL, &err) == KHUB_OK ? digest : json_string(err.message);
}

static json_t *check(const char *build, const json_t *digest)
{
    static const char *const kinds[] = {"missing", "changed", "unknown", "file"};
    khub_error err = {0};
    khub__digest_claim claim;
    khub__violations found;
    if (khub__digest_read(&claim, digest, "metadata.json", &err) != KHUB_OK ||
        khub__digest_check(&found, &claim, build, NULL, &err) != KHUB_OK)
        return json_string(err.message);
    json_t *list = json_array();
    for (size_t i = 0; i < found.count; i++) {
        const khub__violation *v = &found.items[i];
        json_array_append_new(list,
                              json_pack("[s, s, s?, s?]", kinds[v->kind], v->path, v->expected, v->got));
    }
    khub__violations_free(&found);
    return list;
}

int main(void)
{
    json_t *question;
    json_error_t why;
    while ((question = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &why))) {
        const char *build = json_string_value(json_object_get(question, "build"));
        const json_t *digest = json_object_get(question, "digest");
        json_t *reply = digest ? check(build, digest)
                               : make(build, json_string_value(json_object_get(question, "algorithm")));
        json_dumpf(reply, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
        putchar('\n');
        json_decref(reply);
        json_decref(question);
    }
    return 0;
}
