/* A timestamp authority's answer of any bytes: what is taken lies inside them and has a time. */
#include "signature.h"

#include "trust/sigstore/timestamp.h"

static void check_inside(khub__span part, khub__span whole)
{
    check(part.length == 0 ||
          (part.data >= whole.data && part.data + part.length <= whole.data + whole.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub__timestamp t;
    khub__span whole = {data, size};
    if (khub__timestamp_read(&t, whole)) return 0;
    const khub__span parts[] = {t.imprint,   t.info,       t.embedded,         t.issuer,
                                t.serial,    t.attributes, t.digest_attribute, t.signer_attribute,
                                t.signature, t.digests};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        check_inside(parts[i], whole);
    check(t.time_us >= 0 && t.attributes.length > 2 && khub__der_strict(t.info));
    /* whatever it says, it isn't over these bytes */
    check(!khub__timestamp_holds(&t, &the_root()->timestamp_authorities,
                                 (khub__span){(const unsigned char *)"x", 1}));
    return 0;
}
