#include "publish/libelf.h"

#include "base/error.h"
#include "base/symbols.h"

#include <pthread.h>
#include <stddef.h>

#define SYMBOL(name) {#name, offsetof(khub__libelf, name)},

static const khub__symbol symbols[] = {KHUB__LIBELF_FUNCTIONS(SYMBOL){NULL, 0}};
static const char *const libraries[] = {"libelf.so.1", "libelf.1.dylib", NULL};

static khub__libelf table;
static int opened = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two above until `opened` is KHUB_OK */

static int open_libelf(khub_error *err)
{
    khub_error why = {0};
    if (khub__symbols_open(&table, symbols, libraries, KHUB_E_UNSUPPORTED, &why) != KHUB_OK)
        return khub__fail(err, KHUB_E_UNSUPPORTED,
                          "ELF files can't be read without libelf (package libelf1): %s", why.message);
    if (table.elf_version(EV_CURRENT) == EV_NONE)
        return khub__fail(err, KHUB_E_UNSUPPORTED, "libelf knows another version of ELF than this khub");
    return KHUB_OK;
}

int khub__libelf_open(const khub__libelf **out, khub_error *err)
{
    *out = &table;
    pthread_mutex_lock(&lock);
    if (opened != KHUB_OK) opened = open_libelf(err);
    int rc = opened;
    pthread_mutex_unlock(&lock);
    return rc;
}
