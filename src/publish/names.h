/* Lists of names, and names sorted into groups. */
#ifndef PUBLISH_NAMES_H
#define PUBLISH_NAMES_H

#include "base/index.h"

/* Names that are somebody else's. {0} is empty. */
typedef struct khub__names {
    const char **items;
    size_t count, capacity;
    int failed; /* no memory was found for one */
} khub__names;

void khub__names_add(khub__names *names, const char *name);
int khub__names_have(const khub__names *names, const char *name); /* from the first to the last */
void khub__names_free(khub__names *names);

/* Sorts them by bytes and leaves each in once. */
void khub__names_sort(khub__names *names);

/* "a, b, c and 4 more", the caller's (khub_free); NULL: no memory. */
char *khub__names_words(const khub__names *names);

/* Names by a key. {0} is empty. */
typedef struct khub__group {
    const char *key; /* somebody else's */
    khub__names names;
} khub__group;

typedef struct khub__groups {
    khub__group *items;
    size_t count, capacity;
    khub__index keys;
    int failed; /* no memory was found for one */
} khub__groups;

void khub__groups_add(khub__groups *groups, const char *key, const char *name);
/* Sorts the names of each group, as khub__names_sort. 0: no memory was found for one. */
int khub__groups_sort(khub__groups *groups);
void khub__groups_free(khub__groups *groups);

#endif
