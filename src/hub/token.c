#include "hub/token.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"

enum { TOKEN_MAX = 4096, FILE_MAX = 64 << 10 };

static const char blanks[] = " \t\r\n";

/* The compiler may not leave this out. */
static void wipe(char *text)
{
    for (volatile char *at = text; *at; at++)
        *at = 0;
}

void khub__token_free(char *token)
{
    if (token) wipe(token);
    khub__free(token);
}

void khub__token_hide(char *text, const char *token)
{
    size_t length = token ? strlen(token) : 0;
    if (length == 0) return;
    for (char *at = strstr(text, token); at; at = strstr(at, token))
        memset(at, '*', length);
}

/* Takes `text` without blanks around it. *found: it isn't blank. */
static int take(khub__hub_settings *out, const char *text, const char *source, int *found, khub_error *err)
{
    text += strspn(text, blanks);
    size_t length = strlen(text);
    while (length > 0 && strchr(blanks, text[length - 1]))
        length--;
    *found = length > 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 127)
            return khub__fail(err, KHUB_E_INVAL,
                              "the token of %s has a blank or a control character in it at place %zu", source,
                              i + 1);
    if (length > TOKEN_MAX)
        return khub__fail(err, KHUB_E_INVAL, "the token of %s is %zu bytes long: that is no token", source,
                          length);
    if (!*found) return KHUB_OK;
    out->token_source = source;
    out->token = khub__strndup(text, length);
    return out->token ? KHUB_OK : khub__fail_memory(err, "reading the token");
}

/* HF_TOKEN_PATH, else token in the folder of the Hugging Face tools; NULL without an error: there is none. */
static int token_path(char **out, khub_error *err)
{
    *out = NULL;
    const char *set = khub__env("HF_TOKEN_PATH");
    if (set) {
        *out = khub__path_expand(set);
        return *out ? KHUB_OK : khub__fail_memory(err, "reading the token");
    }
    char *home;
    khub_error why = {0};
    int rc = khub__hf_home(&home, &why);
    if (rc == KHUB_E_NOTFOUND) return KHUB_OK;
    if (rc == KHUB_OK) *out = khub__path_join(home, "token");
    khub__free(home);
    return *out ? KHUB_OK : khub__fail_memory(err, "reading the token");
}

/* "the file PATH", and the path as a static name can't be had: both live in token_file. */
static int name_file(khub__hub_settings *out, const char *path)
{
    static const char words[] = "the file ";
    size_t length = strlen(path);
    out->token_file = khub__malloc(sizeof(words) + length);
    if (!out->token_file) return 0;
    memcpy(out->token_file, words, sizeof(words) - 1);
    memcpy(out->token_file + sizeof(words) - 1, path, length + 1);
    return 1;
}

static int from_file(khub__hub_settings *out, khub_error *err)
{
    char *path;
    khub__bytes bytes = {0};
    int found, rc = token_path(&path, err);
    if (rc != KHUB_OK || !path) return rc;
    khub_error why = {0};
    int status = khub__file_read(&bytes, path, FILE_MAX, &why);
    if (status == KHUB_E_NOMEM || (status == KHUB_OK && !name_file(out, path)))
        rc = khub__fail_memory(err, "reading the token");
    else if (status == KHUB_OK && memchr(bytes.data, 0, bytes.length))
        rc = khub__fail(err, KHUB_E_INVAL, "the token of %s has a NUL in it", out->token_file);
    else if (status == KHUB_OK)
        rc = take(out, bytes.data, out->token_file, &found, err);
    if (bytes.data) wipe(bytes.data);
    khub__bytes_free(&bytes);
    khub__free(path);
    return rc;
}

int khub__token_find(khub__hub_settings *out, const char *given, khub_error *err)
{
    static const char *const variables[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    int found = 0;
    if (given) return take(out, given, "the caller", &found, err);
    if (khub__env_is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return KHUB_OK;
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        const char *value = khub__env(variables[i]);
        int rc = value ? take(out, value, variables[i], &found, err) : KHUB_OK;
        if (rc != KHUB_OK || found) return rc;
    }
    return from_file(out, err);
}
