#include "base/crypto.h"

#include "base/error.h"

#include <pthread.h>

/* What khub calls is the same in all of them. */
static const char *const libraries[] = {"libcrypto.so.3",    "libcrypto.so.4", "libcrypto.so.1.1",
                                        "libcrypto.3.dylib", "libcrypto.so",   NULL};

int khub__crypto_open(khub__crypto *crypto, khub_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all tables until they are open */
    khub_error why = {0};
    int rc = KHUB_OK;
    pthread_mutex_lock(&lock);
    if (!crypto->is_open)
        rc = khub__symbols_open(crypto->table, crypto->symbols, libraries, KHUB_E_UNSUPPORTED, &why);
    crypto->is_open = rc == KHUB_OK;
    pthread_mutex_unlock(&lock);
    if (rc != KHUB_OK)
        khub__fail(err, rc, "%s without OpenSSL's libcrypto (package libssl3): %s", crypto->what,
                   why.message);
    return rc;
}
