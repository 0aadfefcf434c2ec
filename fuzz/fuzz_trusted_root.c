/* A trusted root of any bytes: what is taken has what a verifier relies on. */
#include "remembered.h"
#include "signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub_trusted_root *root;
    khub_error err = {0};
    int rc = khub__root_read(&root, (const char *)data, size, "root", &err);
    check((rc == KHUB_OK) == (root != NULL) && rc == err.code);
    if (!root) return 0;
    check(root->logs.count && root->certificate_logs.count && root->authorities.count &&
          strlen(root->sha256) == 64);
    for (size_t i = 0; i < root->logs.count; i++)
        check(root->logs.items[i].address && root->logs.items[i].id.length == 32);
    for (size_t i = 0; i < root->authorities.count; i++)
        check(root->authorities.items[i].count && root->authorities.items[i].key.handle);
    khub_trusted_root_free(root);
    return 0;
}
