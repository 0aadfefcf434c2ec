/* A policy with any bytes: refused with words, or read into one that holds together, and written so that it
 * reads back to the same. */
#include "trust/policy.h"

#include <khub/memory.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) abort();
}

static void check_policy(const khub_policy *policy)
{
    khub_policy_info info = khub_policy_about(policy);
    const char *publisher, *before = "";
    const khub_identity *who;
    check(info.level >= KHUB_TRUST_PUBLISHER && info.level <= KHUB_TRUST_SIGNED);
    check(!info.trusted_root || info.trusted_root[0] == '/');
    for (size_t i = 0; (publisher = khub_policy_publisher(policy, i)) != NULL; i++) {
        check(strcmp(before, publisher) < 0);
        before = publisher;
    }
    for (size_t i = 0; (who = khub_policy_identity(policy, i)) != NULL; i++)
        check(who->issuer && (who->repository || who->workflow || who->subject));
    check(khub_policy_identity(policy, 0) || info.own_identities);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub_policy *policy, *again;
    khub_error err = {0};
    int rc = khub__policy_parse(&policy, (const char *)data, size, "/etc/t.json", &err);
    check((rc == KHUB_OK) == (policy != NULL) && rc == err.code && (rc == KHUB_OK || err.message[0]));
    if (!policy) return 0;
    check_policy(policy);
    char *text = khub__policy_text(policy);
    check(text != NULL);
    check(khub__policy_parse(&again, text, strlen(text), "/tmp/other.json", &err) == KHUB_OK);
    char *second = khub__policy_text(again);
    check(second && !strcmp(text, second));
    khub_free(second);
    khub_free(text);
    khub_policy_free(again);
    khub_policy_free(policy);
    return 0;
}
