/* A log's checkpoint of any bytes: what is taken has its parts inside the text, in their one form. */
#include "signature.h"

#include "trust/sigstore/log.h"

static int count(khub__span text, const char *what)
{
    int n = 0;
    for (size_t i = 0; i + strlen(what) <= text.length; i++)
        n += !memcmp(text.data + i, what, strlen(what));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__span text = {data, size};
    khub__checkpoint c;
    khub__verdict verdict = {0};
    const khub_trusted_root *root = the_root();
    if (!khub__checkpoint_read(&c, text)) {
        check(c.note.data == data && c.note.data[c.note.length - 1] == '\n' && c.tree_size >= 0);
        check(c.note.length + 1 + c.signatures.length == size && c.signatures.length > 0);
        check(count(text, "\n\n") == 1 && count(c.note, "\n") >= 3);
    }
    /* an empty proof of a tree of one: as far as the checkpoint's signatures */
    khub__entry entry = {.tree_size = 1, .checkpoint = text, .body = {data, size}};
    unsigned char hash[KHUB__DIGEST_MAX];
    const khub__span leaf[] = {{(const unsigned char *)"", 1}, entry.body};
    check(khub__digest(hash, KHUB__SHA256, leaf, 2) == 0);
    entry.root_hash = (khub__span){hash, 32};
    for (size_t i = 0; i < root->logs.count; i++)
        check(khub__log_proves(&root->logs.items[i], &entry, &verdict) == -1);
    return 0;
}
