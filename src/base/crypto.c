#include "base/crypto.h"

#include "base/error.h"

/* What khub calls is the same in all of them. */
static const char *const libraries[] = {"libcrypto.so.3",    "libcrypto.so.4", "libcrypto.so.1.1",
                                        "libcrypto.3.dylib", "libcrypto.so",   NULL};

int khub__crypto_open(void *table, const khub__symbol *symbols, const char *what, khub_error *err)
{
    khub_error why = {0};
    int rc = khub__symbols_open(table, symbols, libraries, KHUB_E_UNSUPPORTED, &why);
    if (rc != KHUB_OK)
        khub__fail(err, rc, "%s without OpenSSL's libcrypto (package libssl3): %s", what, why.message);
    return rc;
}
