/* /etc/ld.so.cache as glibc's ldconfig writes it: a header of 48 bytes ("glibc-ld.so.cache1.1", the number of
 * entries, bytes of text), entries of 24 bytes (flags, offset of the name, offset of the path, and two words
 * that don't matter here), text. Offsets count from the header, which may stand behind a table of an older
 * format. Entries are sorted by name, backwards, numbers by their value. */
#include "platform/loader.h"

enum { HEADER_BYTES = 48, ENTRY_BYTES = 24, COUNT_AT = 20 };

/* Kind of library in an entry's flags: ELF for glibc, and the machine's 64-bit format. */
#if defined(__x86_64__)
enum { WANTED_FLAGS = 0x0303 };
#elif defined(__aarch64__)
enum { WANTED_FLAGS = 0x0a03 };
#else
enum { WANTED_FLAGS = 0x0003 };
#endif

typedef struct table {
    const char *text;
    size_t length;
    uint32_t count;
} table;

static uint32_t word_at(const char *text)
{
    uint32_t word;
    memcpy(&word, text, sizeof(word));
    return word;
}

static int open_table(table *t, const char *cache, size_t length)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    const char *at = length ? memmem(cache, length, magic, sizeof(magic) - 1) : NULL;
    if (!at) return 0;
    t->text = at;
    t->length = length - (size_t)(at - cache);
    if (t->length < HEADER_BYTES) return 0;
    t->count = word_at(at + COUNT_AT);
    return t->count <= (t->length - HEADER_BYTES) / ENTRY_BYTES;
}

/* A word of entry i as text inside the table; NULL when it points out of it. */
static const char *text_of(const table *t, uint32_t i, size_t word)
{
    uint32_t offset = word_at(t->text + HEADER_BYTES + (size_t)i * ENTRY_BYTES + word);
    if (offset >= t->length || !memchr(t->text + offset, 0, t->length - offset)) return NULL;
    return t->text + offset;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits at *text as a number (far longer ones only have to be ordered somehow), moved past them. */
static unsigned long take_number(const char **text)
{
    unsigned long n = 0;
    while (is_digit(**text))
        n = n * 10 + (unsigned long)(*(*text)++ - '0');
    return n;
}

/* The order of the table: by characters, numbers by value and after anything else. */
static int compare(const char *a, const char *b)
{
    while (*a) {
        if (is_digit(*a) != is_digit(*b)) return is_digit(*a) ? 1 : -1;
        if (is_digit(*a)) {
            unsigned long x = take_number(&a), y = take_number(&b);
            if (x != y) return x < y ? -1 : 1;
        } else if (*a != *b) {
            break;
        } else {
            a++, b++;
        }
    }
    return *a == *b ? 0 : (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

/* The first entry of that name, or `count`. */
static uint32_t first_named(const table *t, const char *name)
{
    uint32_t low = 0, high = t->count; /* entries before `low` sort after the name */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *key = text_of(t, middle, 4);
        if (!key) return t->count;
        if (compare(key, name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *khub__loader_cache_find(const char *cache, size_t length, const char *name)
{
    table t;
    if (!open_table(&t, cache, length)) return NULL;
    for (uint32_t i = first_named(&t, name); i < t.count; i++) {
        const char *key = text_of(&t, i, 4);
        if (!key || compare(key, name) != 0) return NULL;
        if (word_at(t.text + HEADER_BYTES + (size_t)i * ENTRY_BYTES) == WANTED_FLAGS && !strcmp(key, name))
            return text_of(&t, i, 8);
    }
    return NULL;
}
