/* Answers questions about builds, one JSON object a line, so that a test can ask thousands in one process:
 *   {"platform": {…}, "names": […]}          -> [{"name": …, "decision": …, "reason": …}, …] in order of
 * preference; with "archs": {NAME: […]} a build also has to hold code for the machine's GPU
 *   {"cuda": "9.0+PTX", "device": "12.0"}    -> "fits", "other" or "unreadable"
 *   {"metadata": "TEXT"}                     -> null, or the message of the refusal */
#include "base/error.h"
#include "kernel/metadata.h"
#include "variant/archs.h"
#include "variant/choice.h"

#include <khub/khub.h>

#include <stdio.h>
#include <stdlib.h>

static khub_platform *read_platform(const json_t *object)
{
    khub_error err = {0};
    khub_platform *platform = NULL;
    char *text = json_dumps(object, 0);
    if (!text || khub_platform_parse(&platform, text, strlen(text), "platform", &err) != KHUB_OK) {
        fprintf(stderr, "judge: %s\n", err.message);
        exit(1);
    }
    free(text);
    return platform;
}

typedef struct look_context {
    const json_t *archs; /* by name */
    const khub_platform *platform;
} look_context;

static int look(void *user, khub__verdict *verdict, const char *text, const khub__variant_name *name,
                khub_error *err)
{
    const look_context *context = user;
    const json_t *list = json_object_get(context->archs, text);
    const char *entries[16];
    size_t count = json_array_size(list);
    if (count == 0) return KHUB_OK;
    if (count > sizeof(entries) / sizeof(*entries)) return khub__fail(err, KHUB_E_INVAL, "too many");
    for (size_t i = 0; i < count; i++)
        entries[i] = json_string_value(json_array_get(list, i));
    khub__archs_decide(verdict, name, context->platform, entries, count);
    return KHUB_OK;
}

static json_t *choose(const json_t *question)
{
    const json_t *list = json_object_get(question, "names");
    size_t count = json_array_size(list);
    const char **names = calloc(count + 1, sizeof(*names));
    for (size_t i = 0; i < count; i++)
        names[i] = json_string_value(json_array_get(list, i));
    khub_platform *platform = read_platform(json_object_get(question, "platform"));
    khub_choice *choice = NULL;
    look_context context = {json_object_get(question, "archs"), platform};
    if (khub__choose(&choice, names, count, platform, look, &context, NULL) != KHUB_OK) exit(1);
    json_t *answer = json_array();
    const khub_decision *d;
    for (size_t i = 0; (d = khub_choice_at(choice, i)); i++)
        json_array_append_new(answer, json_pack("{s:s, s:s, s:s?}", "name", d->name, "decision",
                                                khub_decision_kind_name(d->kind), "reason", d->reason));
    khub_choice_free(choice);
    khub_platform_free(platform);
    free(names);
    return answer;
}

static json_t *judge_cuda(const json_t *question)
{
    static const char *const words[] = {"other", "fits", "unreadable"};
    return json_string(words[khub__cuda_arch_fits(json_string_value(json_object_get(question, "cuda")),
                                                  json_string_value(json_object_get(question, "device")))]);
}

static json_t *judge_metadata(const json_t *text)
{
    khub_error err = {0};
    khub__metadata metadata;
    int rc = khub__metadata_parse(&metadata, json_string_value(text), json_string_length(text),
                                  "metadata.json", &err);
    khub__metadata_free(&metadata);
    return rc == KHUB_OK ? json_null() : json_string(err.message);
}

static json_t *answer(const json_t *question)
{
    if (json_object_get(question, "cuda")) return judge_cuda(question);
    if (json_object_get(question, "metadata")) return judge_metadata(json_object_get(question, "metadata"));
    return choose(question);
}

int main(void)
{
    json_t *question;
    json_error_t why;
    while ((question = json_loadf(stdin, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &why))) {
        json_t *reply = answer(question);
        json_dumpf(reply, stdout, JSON_ENCODE_ANY | JSON_COMPACT);
        putchar('\n');
        json_decref(reply);
        json_decref(question);
    }
    return fflush(stdout) != 0;
}
