#include "trust/sigstore/identity.h"

#define ACTIONS   "https://token.actions.githubusercontent.com"
#define COMMUNITY "https://github.com/huggingface/kernels-community"
#define WORKFLOW(file)                                                                                       \
    {                                                                                                        \
        ACTIONS, COMMUNITY, COMMUNITY "/.github/workflows/" file "@refs/heads/main", NULL                    \
    }

/* As the Python package `kernels` has them. */
static const khub_identity community[] = {WORKFLOW("build.yaml"), WORKFLOW("build-mac.yaml"),
                                          WORKFLOW("build-windows.yaml"), WORKFLOW("sign-old-builds.yaml")};

const khub_identity *khub_default_identities(size_t *count)
{
    if (count) *count = sizeof(community) / sizeof(*community);
    return community;
}

/* Numbers below 1.3.6.1.4.1.57264.1 (docs/oid-info.md of Fulcio), and where they go. */
static const struct field {
    int number;
    size_t offset;
} fields[] = {
    {1, offsetof(khub__signer, old_issuer)}, {8, offsetof(khub__signer, issuer)},
    {9, offsetof(khub__signer, workflow)},   {12, offsetof(khub__signer, repository)},
    {13, offsetof(khub__signer, commit)},    {14, offsetof(khub__signer, ref)},
    {20, offsetof(khub__signer, trigger)},   {21, offsetof(khub__signer, run)},
};

int khub__signer_read(khub__signer *out, const khub__certificate *certificate, khub__verdict *verdict)
{
    memset(out, 0, sizeof(*out));
    if (khub__certificate_subject(&out->subject, certificate))
        return khub__refuse(
            verdict, KHUB_SIGNATURE_BAD_CERTIFICATE,
            "certificate: it hasn't exactly one subject that is a workflow or an e-mail address");
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        khub__span *text = (khub__span *)(void *)((char *)out + fields[i].offset);
        if (khub__certificate_text(text, certificate, fields[i].number))
            return khub__refuse(verdict, KHUB_SIGNATURE_BAD_CERTIFICATE,
                                "certificate: its extension 1.3.6.1.4.1.57264.1.%d isn't a text",
                                fields[i].number);
    }
    return 0;
}

static int is_text(khub__span found, const char *expected)
{
    return khub__span_is(found, (khub__span){(const unsigned char *)expected, strlen(expected)});
}

static int is(khub__span found, const char *expected)
{
    return !expected || is_text(found, expected);
}

static int fits(const khub__signer *s, const khub_identity *identity)
{
    return is_text(s->old_issuer, identity->issuer) && is_text(s->issuer, identity->issuer) &&
           is(s->repository, identity->repository) && is(s->workflow, identity->workflow) &&
           is(s->subject, identity->subject);
}

/* At most `max` bytes, and no half of a character. */
static int cut(khub__span text, size_t max)
{
    size_t n = text.length < max ? text.length : max;
    while (n < text.length && n && (text.data[n] & 0xC0) == 0x80)
        n--;
    return (int)n;
}

int khub__signer_accepted(const khub__signer *signer, const khub_identity *identities, size_t count,
                          khub__verdict *verdict)
{
    khub__span who = signer->workflow.length ? signer->workflow : signer->subject;
    for (size_t i = 0; i < count; i++)
        if (fits(signer, &identities[i])) return 0;
    return khub__refuse(
        verdict, KHUB_SIGNATURE_IDENTITY,
        "certificate: it is of %.*s (vouched for by %.*s), which is none of the %zu accepted identities",
        cut(who, 300), (const char *)who.data, cut(signer->issuer, 100),
        signer->issuer.data ? (const char *)signer->issuer.data : "", count);
}
