/* OpenSSL's libcrypto, opened when it is first needed. Who calls it keeps a table of the functions he needs.
 */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include "base/symbols.h"

/* Fills in the pointers of *table, as khub__symbols_open. KHUB_E_UNSUPPORTED: "WHAT without OpenSSL's
 * libcrypto …". */
int khub__crypto_open(void *table, const khub__symbol *symbols, const char *what, khub_error *err);

#endif
