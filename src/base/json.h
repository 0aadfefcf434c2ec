/* JSON from files that strangers wrote: bounded, without duplicate keys, and errors that name file and field.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/text.h"

#include <khub/error.h>

#include <jansson.h>

/* The file at hand, for messages. */
typedef struct khub__json_source {
    const char *file;
    khub_error *err;
} khub__json_source;

/* Parses `length` bytes of text that must be one JSON object. The reference is the caller's (json_decref).
 * Deeper than 64, more than 2^20 values, duplicate keys, NUL in strings, invalid UTF-8, trailing text:
 * KHUB_E_FORMAT with the line.
 */
int khub__json_parse(json_t **out, const char *text, size_t length, const char *file, khub_error *err);

/* The same for a text that must be one array. */
int khub__json_parse_array(json_t **out, const char *text, size_t length, const char *file, khub_error *err);

/* The same from a file of at most `max` bytes. */
int khub__json_read(json_t **out, const char *path, size_t max, khub_error *err);

/* The same for a file that must be one array. */
int khub__json_read_array(json_t **out, const char *path, size_t max, khub_error *err);

/* Fields of an object. A field that is absent or null leaves *out as it is and returns KHUB_OK; one of
 * another type is KHUB_E_FORMAT: "FILE: KEY is a string, an integer is expected". Borrowed from `object`. */
int khub__json_string(const char **out, const json_t *object, const char *key,
                      const khub__json_source *source);
int khub__json_integer(int64_t *out, const json_t *object, const char *key, const khub__json_source *source);
int khub__json_number(double *out, const json_t *object, const char *key, const khub__json_source *source);
int khub__json_bool(int *out, const json_t *object, const char *key, const khub__json_source *source);
int khub__json_object(const json_t **out, const json_t *object, const char *key,
                      const khub__json_source *source);
int khub__json_array(const json_t **out, const json_t *object, const char *key,
                     const khub__json_source *source);

/* Adds `text` with its quotes; null for NULL. A path or a driver's words may hold any bytes: what isn't UTF-8
 * becomes U+FFFD, and what would steer a terminal is escaped. */
void khub__json_add_string(khub__text *to, const char *text);

/* Adds the value as JSON text, with jansson's flags for json_dumps, which loses characters in silence when
 * there is no memory; here to->failed says so. */
void khub__json_add(khub__text *to, const json_t *value, size_t flags);

/* "a string", "an integer", … for messages. */
const char *khub__json_type_name(const json_t *value);

#endif
