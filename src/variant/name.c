#include "variant/name.h"

enum { MAX_NAME = 255, MAX_DIGITS = 6 }; /* a file name's limit; far above any real version */

int khub__word_is(khub__word word, const char *text)
{
    return text && strlen(text) == (size_t)word.length && memcmp(word.text, text, (size_t)word.length) == 0;
}

/* Takes what stands before the next "-" or the end off *rest. 1, or 0 when that isn't one word of letters,
 * digits,
 * "_" and ".". */
static int take_word(khub__word *word, const char **rest)
{
    size_t n = strspn(*rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    *word = (khub__word){*rest, (int)n};
    if (n == 0 || ((*rest)[n] && (*rest)[n] != '-')) return 0;
    *rest += n;
    return 1;
}

static int take_dash(const char **rest)
{
    return *(*rest) == '-' ? ++*rest, 1 : 0;
}

/* "210" as 2.10: the first digit is the major. */
static int take_version(khub__version *out, const char **rest)
{
    khub__word word;
    if (!take_word(&word, rest) || word.length < 2 || word.length > MAX_DIGITS) return 0;
    int minor = 0;
    for (int i = 0; i < word.length; i++) {
        if (word.text[i] < '0' || word.text[i] > '9') return 0;
        if (i > 0) minor = minor * 10 + (word.text[i] - '0');
    }
    *out = (khub__version){word.text[0] - '0', minor, -1};
    return 1;
}

/* "-cxx11" or "-cxx98", if that comes next. */
static void take_abi(int *abi, const char **rest)
{
    const char *after = *rest;
    khub__word word;
    if (!take_dash(&after) || !take_word(&word, &after)) return;
    if (!khub__word_is(word, "cxx11") && !khub__word_is(word, "cxx98")) return;
    *abi = khub__word_is(word, "cxx11");
    *rest = after;
}

static int take_backend(khub__variant_name *out, const char **rest)
{
    khub__word word;
    char text[16];
    if (!take_word(&word, rest) || (size_t)word.length >= sizeof(text)) return 0;
    memcpy(text, word.text, (size_t)word.length);
    text[word.length] = 0;
    out->backend = khub__backend_parse(&out->backend_version, text);
    return out->backend != NULL;
}

/* What follows the framework's prefix when there is a library: XY[-cxxNN]-BACKEND-ARCH-OS. */
static int parse_arch(khub__variant_name *out, const char *rest)
{
    if (!take_version(&out->version, &rest)) return 0;
    if (out->framework == KHUB__TORCH) take_abi(&out->cxx11_abi, &rest);
    return take_dash(&rest) && take_backend(out, &rest) && take_dash(&rest) && take_word(&out->arch, &rest) &&
           take_dash(&rest) && take_word(&out->os, &rest) && !*rest;
}

int khub__variant_name_parse(khub__variant_name *out, const char *text)
{
    static const struct {
        const char *prefix;
        khub__framework framework;
    } forms[] = {{"torch-stable-abi", KHUB__TORCH_STABLE}, /* before the form that it would fit too */
                 {"torch-", KHUB__NOARCH},
                 {"torch", KHUB__TORCH},
                 {"tvm-ffi", KHUB__TVM_FFI}};
    static const khub__version unknown = KHUB__VERSION_UNKNOWN;
    *out = (khub__variant_name){.version = unknown, .backend_version = unknown, .cxx11_abi = -1};
    if (strlen(text) > MAX_NAME) return 0;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        size_t n = strlen(forms[i].prefix);
        if (strncmp(text, forms[i].prefix, n) != 0) continue;
        const char *rest = text + n;
        out->framework = forms[i].framework;
        if (out->framework == KHUB__NOARCH) return take_word(&out->noarch, &rest) && !*rest;
        return parse_arch(out, rest);
    }
    return 0;
}

/* Lower is better. Only what the rules of preference name takes part: a backend's minor, not its major. */
static void preference(long key[5], const khub__variant_name *name)
{
    int stable = name->framework == KHUB__TORCH_STABLE;
    key[0] = name->framework;
    key[1] = stable ? -(long)name->version.major : 0;
    key[2] = stable ? -(long)name->version.minor : 0;
    key[3] = name->cxx11_abi >= 0 || khub__word_is(name->noarch, "universal");
    key[4] = name->backend_version.minor >= 0 ? -(long)name->backend_version.minor : 0;
}

int khub__variant_name_compare(const khub__variant_name *a, const khub__variant_name *b)
{
    long left[5], right[5];
    preference(left, a);
    preference(right, b);
    for (int i = 0; i < 5; i++)
        if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
    return 0;
}
