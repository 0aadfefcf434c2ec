/* A certificate of any bytes: what is taken lies inside them, and its extensions and texts are read. */
#include "signature.h"

#include "trust/sigstore/identity.h"
#include "trust/sigstore/sct.h"

static void check_inside(khub__span part, khub__span whole)
{
    check(part.length == 0 ||
          (part.data >= whole.data && part.data + part.length <= whole.data + whole.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__certificate c;
    khub__signer signer;
    khub__verdict verdict = {0};
    khub__key key;
    const khub_trusted_root *root = the_root();
    if (khub__certificate_read(&c, (khub__span){data, size})) return 0;
    const khub__span parts[] = {c.tbs,       c.serial,     c.issuer, c.subject,     c.key,
                                c.signature, c.extensions, c.names,  c.subject_key, c.authority_key};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        check_inside(parts[i], c.whole);
    check(c.not_before_us >= 0 && c.not_after_us >= 0 && c.serial.length > 0);
    if (khub__signer_read(&signer, &c, &verdict) == 0) {
        check_inside(signer.subject, c.whole);
        check(khub__der_is_text(signer.subject) && khub__der_is_text(signer.workflow));
    }
    khub__sct_judge(&c, &root->authorities.items[0].certificates[0], &root->certificate_logs, &verdict);
    if (khub__key_read(&key, c.key) == 0) khub__key_free(&key);
    return 0;
}
