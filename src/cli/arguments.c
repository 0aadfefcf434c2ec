#include "arguments.h"

#include <errno.h>
#include <stdlib.h>

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

/* Length of the identifier at the start of `text`. */
static size_t identifier_length(const char *text)
{
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return text[0] >= '0' && text[0] <= '9' ? 0 : n;
}

static int parse_word(cli_argument *a)
{
    static const struct {
        const char *word;
        int32_t type;
        int64_t value;
    } table[] = {{"none", KHUB_TYPE_NONE, 0}, {"None", KHUB_TYPE_NONE, 0},  {"true", KHUB_TYPE_BOOL, 1},
                 {"True", KHUB_TYPE_BOOL, 1}, {"false", KHUB_TYPE_BOOL, 0}, {"False", KHUB_TYPE_BOOL, 0}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(a->text, table[i].word)) {
            a->value = khub_value_of(table[i].type, (uint64_t)table[i].value);
            return 1;
        }
    return 0;
}

/* 1: it is a number, 0: it is none, -1: it is one that doesn't fit, and that is said. */
static int parse_number(cli_argument *a)
{
    const char *digits = a->text + (a->text[0] == '-' || a->text[0] == '+');
    int word = !strcmp(digits, "nan") || !strcmp(digits, "inf");
    size_t span = strspn(digits, "0123456789");
    char *end;
    errno = 0;
    if (span > 0 && !digits[span]) {
        a->value = khub_arg_int(strtoll(a->text, &end, 10));
        if (errno == 0) return 1;
        cli_usage(a->command, "%s doesn't fit 64 bits; %s.0 would be a float", a->text, a->text);
        return -1;
    }
    /* strtod alone would take "infinity", "0x1p3" and "nan(1)" too, which may as well be text */
    if (!word &&
        (!digits[0] || !strchr("0123456789.", digits[0]) || digits[strspn(digits, "0123456789.eE+-")]))
        return 0;
    double number = strtod(a->text, &end);
    if (*end) return 0;
    a->value = khub_arg_float(number);
    if (errno == 0 || (number < 1 && number > -1)) return 1; /* too small is 0 or nearly so, as anywhere */
    cli_usage(a->command, "%s is too large for a float; there is inf", a->text);
    return -1;
}

/* "[64,384]", "[]"; *why says what is wrong when 0 is returned. */
static int parse_extents(cli_argument *a, const char *text, const char **why)
{
    *why = "the shape is missing, as in out=float32[64,384]";
    if (*text++ != '[') return 0;
    while (*text == ' ')
        text++;
    for (int more = *text != ']'; more;) {
        *why = "the shape isn't numbers between commas, as in out=float32[64,384]";
        char *end;
        if (!strchr("0123456789", *text) || !*text) return 0;
        errno = 0;
        int64_t extent = strtoll(text, &end, 10);
        *why = "an extent is more than 2^63 - 1";
        if (errno) return 0;
        *why = "more than 8 dimensions";
        if (a->ndim == KHUB_MAX_NDIM) return 0;
        a->shape[a->ndim++] = extent;
        *why = "the shape isn't numbers between commas, as in out=float32[64,384]";
        text = end + strspn(end, " ");
        more = *text == ',';
        if (more) text += 1 + strspn(text + 1, " ");
    }
    *why = "\"]\" is expected at the end of the shape";
    return text[0] == ']' && !text[1];
}

/* What follows "NAME=". */
static int parse_output(cli_argument *a, const char *what)
{
    khub_error err = {0};
    const char *why = err.message;
    if (ends_with(what, ".npy")) {
        a->file = what;
        return EXIT_DONE;
    }
    char dtype[32] = "";
    size_t n = strcspn(what, "[");
    if (n < sizeof(dtype)) memcpy(dtype, what, n);
    if (n == 0)
        why = "a dtype is missing, as in out=float32[64,384]";
    else if (khub_dtype_parse(&a->dtype, n < sizeof(dtype) ? dtype : what, &err) == KHUB_OK &&
             parse_extents(a, what + n, &why)) {
        khub_tensor t = khub_tensor_over(NULL, a->dtype, a->ndim, a->shape);
        if (khub_tensor_bytes(&t) >= 0) return EXIT_DONE;
        why = "that is more than 2^63 bytes";
    }
    return cli_usage(a->command, "%s: %s (text with \"=\" in it is written str:%s)", a->text, why, a->text);
}

static int parse_array(cli_argument *a)
{
    khub_error err = {0};
    int rc = cli_literal(&a->array, a->text, &err);
    a->value = khub_arg_tensor(&a->array.tensor);
    if (rc == KHUB_OK) return EXIT_DONE;
    return cli_usage(
        a->command, "%s: %s (text that starts with \"[\" is written str:%s)", a->text,
        rc == KHUB_E_FORMAT ? "isn't an array of numbers, as in \"[[1, 2], [3, 4]]\"" : err.message, a->text);
}

int cli_argument_parse(cli_argument *argument, const char *command, const char *text)
{
    argument->text = text;
    argument->command = command;
    size_t n = identifier_length(text);
    if (n > 0 && text[n] == '=') {
        argument->name = strndup(text, n);
        return argument->name ? parse_output(argument, text + n + 1) : cli_fail_memory();
    }
    if (!strncmp(text, "str:", 4)) {
        argument->value = khub_arg_string(text + 4);
        return EXIT_DONE;
    }
    if (ends_with(text, ".npy")) {
        argument->file = text;
        return EXIT_DONE;
    }
    if (text[0] == '[') return parse_array(argument);
    int number = parse_number(argument);
    if (number < 0) return EXIT_USAGE;
    if (!number && !parse_word(argument)) argument->value = khub_arg_string(text);
    return EXIT_DONE;
}

int cli_argument_fill(cli_argument *argument, khub_error *err)
{
    int rc = KHUB_OK;
    if (argument->file)
        rc = khub_npy_read(&argument->array, argument->file, err);
    else if (argument->name)
        rc = khub_array_new(&argument->array, argument->dtype, argument->ndim, argument->shape, err);
    if (rc != KHUB_OK || (!argument->file && !argument->name)) return rc;
    argument->given = argument->array.tensor;
    memcpy(argument->given_shape, argument->array.shape, sizeof(argument->given_shape));
    argument->given.shape = argument->given_shape;
    argument->value = khub_arg_tensor(&argument->given);
    return KHUB_OK;
}

void cli_argument_free(cli_argument *argument)
{
    khub_array_free(&argument->array);
    free(argument->name);
    free(argument->saved);
}
