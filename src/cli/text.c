/* Text that may be a stranger's: out of files, names of files, a kernel's own words. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

/* Length of the UTF-8 sequence at `text` (1 to 4 bytes), 0 when it is none: JSON must be UTF-8, file names
 * needn't. */
static size_t sequence(const unsigned char *text, size_t left)
{
    static const struct {
        unsigned char first, last, low, high; /* bytes that it starts with; limits of the second byte */
        size_t length;
    } forms[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                 {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                 {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        if (*text < forms[i].first || *text > forms[i].last) continue;
        if (forms[i].length > left) return 0;
        if (forms[i].length > 1 && (text[1] < forms[i].low || text[1] > forms[i].high)) return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((text[k] & 0xC0) != 0x80) return 0;
        return forms[i].length;
    }
    return 0;
}

/* What steers a terminal: U+0000 to U+001F, U+007F to U+009F; `text` starts with a whole sequence. */
static int is_control(const unsigned char *text)
{
    return *text < 0x20 || *text == 0x7F || (*text == 0xC2 && text[1] < 0xA0);
}

/* Writes `text` with "?" for what would steer a terminal and what isn't UTF-8, but for the bytes in `kept`.
 */
static void put(FILE *to, const char *text, size_t length, const char *kept)
{
    for (size_t i = 0, n; i < length; i += n) {
        const unsigned char *at = (const unsigned char *)text + i;
        n = sequence(at, length - i);
        if (n && (!is_control(at) || (*at && strchr(kept, *at))))
            fwrite(at, 1, n, to);
        else
            fputc('?', to);
        if (!n) n = 1;
    }
}

void cli_text(FILE *to, const char *text, size_t length)
{
    put(to, text, length, "\n\t");
}

void cli_name(FILE *to, const char *name)
{
    put(to, name, strlen(name), "");
}

void cli_own_words(char *text)
{
    static const struct {
        const char *theirs, *ours; /* never longer */
    } names[] = {{"khub_hub_options.trust", "--trust"},
                 {"khub_hub_options.cache_dir", "--cache-dir"},
                 {"khub_hub_options.offline", "--offline"},
                 {"khub_hub_options.no_retry", "--no-retry"},
                 {"khub_get_options.torch", "--torch"},
                 {"khub_get_options.no_torch", "--no-torch"},
                 {"khub_pack_options.", "--"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t theirs = strlen(names[i].theirs), ours = strlen(names[i].ours);
        for (char *at = text; (at = strstr(at, names[i].theirs)); at += ours) {
            memcpy(at, names[i].ours, ours);
            memmove(at + ours, at + theirs, strlen(at + theirs) + 1);
        }
    }
}

/* Formats, and puts what comes of it; `kept` as put has it. */
static KHUB_PRINTF(3, 0) void print(FILE *to, const char *kept, const char *format, va_list args)
{
    char usual[2048], *text = usual;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(usual, sizeof(usual), format, args);
    if (n >= (int)sizeof(usual) && (text = malloc((size_t)n + 1)) != NULL)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    if (!text) text = usual; /* no memory: its start */
    cli_own_words(text);
    size_t length = strlen(text), whole = !*kept && length && text[length - 1] == '\n';
    put(to, text, length - whole, kept);
    if (whole) fputc('\n', to);
    if (text != usual) free(text);
}

void cli_vprint(FILE *to, const char *format, va_list args)
{
    print(to, "\n\t", format, args);
}

void cli_print(FILE *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cli_vprint(to, format, args);
    va_end(args);
}

void cli_line(FILE *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(to, "", format, args);
    va_end(args);
}

void cli_json_string(FILE *to, const char *text, size_t length)
{
    static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    fputc('"', to);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        size_t n = sequence((const unsigned char *)text + i, length - i);
        const char *form = c ? strchr(short_forms, c) : NULL;
        while (form && (form - short_forms) % 2)
            form = strchr(form + 1, c); /* only the first of each pair */
        if (form)
            fputc('\\', to), fputc(form[1], to);
        else if (n && is_control((const unsigned char *)text + i))
            fprintf(to, "\\u%04x", c < 0x80 ? c : (unsigned char)text[i + 1]), i += n - 1;
        else if (n)
            fwrite(text + i, 1, n, to), i += n - 1;
        else
            fputs("\\ufffd", to);
    }
    fputc('"', to);
}

void cli_json_text(FILE *to, const char *text)
{
    if (text)
        cli_json_string(to, text, strlen(text));
    else
        fputs("null", to);
}

void cli_json_number(FILE *to, double value, int digits)
{
    if (isfinite(value))
        fprintf(to, "%.*g", digits, value);
    else
        fputs("null", to);
}
