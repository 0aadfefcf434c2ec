/* OpenSSL's libcrypto, opened when it is first needed. Who calls it keeps a table of the functions he needs.
 * One source per operating system. */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include "base/symbols.h"

/* One such table; static, and not changed but here. */
typedef struct khub__crypto {
    void *table;
    const khub__symbol *symbols; /* as khub__symbols_open's */
    const char *what;            /* can't be done without it: "content can't be hashed" */
    int is_open;                 /* 0 at first */
} khub__crypto;

/* Fills in the pointers of the table, once. Any thread. KHUB_E_UNSUPPORTED: "WHAT without OpenSSL's libcrypto
 * …", and the next one tries again. */
int khub__crypto_open(khub__crypto *crypto, khub_error *err);

#endif
