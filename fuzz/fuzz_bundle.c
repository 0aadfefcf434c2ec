/* A bundle of any bytes: no crash, and a verdict whose value and status agree. Only what the authority of the
 * tests signed may hold. */
#include "remembered.h"
#include "signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub_signature s;
    khub_signature_options options;
    khub_error err = {0};
    KHUB_INIT(&options);
    options.root = the_root();
    int rc =
        khub_signature_verify(&s, SIGNED, sizeof(SIGNED) - 1, (const char *)data, size, &options, NULL, &err);
    check(rc == KHUB_OK || rc == KHUB_E_UNTRUSTED);
    check((rc == KHUB_OK) == (s.reason == KHUB_SIGNATURE_HOLDS) && rc == err.code);
    check((rc == KHUB_OK) == !*s.words);
    check(strcmp(khub_signature_reason_name(s.reason), "?") != 0);
    if (rc == KHUB_OK) {
        check(!strcmp(s.commit, "0123456789abcdef0123456789abcdef01234567"));
        check(s.integrated_s > 0 || s.timestamp_s > 0);
        check(s.log && s.log_index >= 0);
    }
    khub_signature_free(&s);
    return 0;
}
