#include "filling.h"

typedef struct word {
    const char *word;
    int value;
} word;

/* -1: it is none of them. */
static int value_of(const word *words, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i].word, text)) return words[i].value;
    return -1;
}

static int wrong_word(const word *words, size_t count, const char *command, const char *option,
                      const char *text)
{
    char list[200] = "";
    for (size_t i = 0, at = 0; i < count; i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "", words[i].word);
    return cli_usage(command, "%s %s: it is one of %s", option, text, list);
}

static int read_word(int *out, const word *words, size_t count, const char *command, const char *option,
                     const char *text)
{
    if (!text) return EXIT_DONE;
    *out = value_of(words, count, text);
    return *out >= 0 ? EXIT_DONE : wrong_word(words, count, command, option, text);
}

static const word fallbacks[] = {
    {"allow", KHUB_FALLBACK_ALLOW}, {"named", KHUB_FALLBACK_NAMED}, {"refuse", KHUB_FALLBACK_REFUSE}};
static const word errors[] = {{"fail", KHUB_ON_ERROR_FAIL}, {"standard", KHUB_ON_ERROR_STANDARD}};

const char *cli_filling_given(const cli_filling *filling)
{
    return filling->require         ? "--require"
           : filling->fallback      ? "--fallback"
           : filling->deterministic ? "--deterministic"
           : filling->exact         ? "--exact"
           : filling->mode          ? "--mode"
           : filling->on_error      ? "--on-error"
                                    : NULL;
}

int cli_filling_read(khub_kernelize_options *options, const cli_filling *filling, const char *command)
{
    khub_error err = {0};
    int fallback = filling->require ? KHUB_FALLBACK_NAMED : KHUB_FALLBACK_ALLOW,
        on_error = KHUB_ON_ERROR_FAIL;
    if (filling->require && filling->fallback) return cli_usage(command, "--require and --fallback at once");
    int status = read_word(&fallback, fallbacks, sizeof(fallbacks) / sizeof(*fallbacks), command,
                           "--fallback", filling->fallback);
    if (!status)
        status = read_word(&on_error, errors, sizeof(errors) / sizeof(*errors), command, "--on-error",
                           filling->on_error);
    if (!status && filling->mode &&
        (khub_mode_parse(&options->mode, filling->mode, &err) != KHUB_OK ||
         options->mode & KHUB_MODE_FALLBACK))
        status = cli_usage(command, "--mode %s: it is inference or training, or one of them with |compile",
                           filling->mode);
    options->fallback = (khub_fallback)fallback;
    options->on_error = (khub_on_error)on_error;
    options->deterministic = filling->deterministic;
    options->exact = filling->exact;
    return status;
}

void cli_filling_say(const khub_layers *layers)
{
    const khub_slot *slot, *first = NULL;
    uint64_t calls = 0;
    size_t slots = 0;
    for (size_t i = 0; (slot = khub_layers_at(layers, i)) != NULL; i++) {
        uint64_t own = khub_slot_retried(slot);
        calls += own;
        slots += own != 0;
        if (own && !first) first = slot;
    }
    if (first)
        cli_note("kernels failed in %llu calls of %zu slots (the first: %s), which the standard functions "
                 "did again",
                 (unsigned long long)calls, slots, khub_slot_path(first));
}
