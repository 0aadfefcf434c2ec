#include "serve/form.h"

#include "serve/address.h"

#include <string.h>

static int decode(char *text)
{
    for (char *plus = strchr(text, '+'); plus; plus = strchr(plus, '+'))
        *plus = ' ';
    return serve_decode(text);
}

/* A value and its NUL are never longer than the field that it stood in, so that writing stays behind
 * reading. */
int serve_form_values(size_t *count, char *form, const char *name)
{
    char *to = form;
    size_t name_length = strlen(name);
    *count = 0;
    for (char *field = form, *next; field; field = next) {
        next = strchr(field, '&');
        if (next) *next++ = 0;
        if (strncmp(field, name, name_length) != 0 || field[name_length] != '=') continue;
        char *value = field + name_length + 1;
        if (decode(value) != 0) return -1;
        size_t length = strlen(value) + 1;
        memmove(to, value, length);
        to += length;
        ++*count;
    }
    return 0;
}
