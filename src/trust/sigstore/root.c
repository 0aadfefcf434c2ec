#include "trust/sigstore/root.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/path.h"

#define INSTALLED "share/khub/trusted_root.json"

/* While a root is read: what it is read into, and where the next bytes of base64 go. */
typedef struct reading {
    khub_trusted_root *root;
    unsigned char *room;
    khub__json_source source;
} reading;

static int wrong(const reading *r, const char *list, size_t i, const char *fact)
{
    return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: %s[%zu]: %s", r->source.file, list, i, fact);
}

static int two_digits(const char *p)
{
    return p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9' ? -1 : (p[0] - '0') * 10 + (p[1] - '0');
}

/* ".5Z": microseconds, further digits dropped; -1: it isn't that. */
static int64_t fraction_us(const char *p)
{
    int64_t value = 0, unit = 100000;
    if (!strcmp(p, "Z")) return 0;
    if (*p != '.' || p[1] == 'Z') return -1;
    for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
        value += (*p - '0') * unit;
    return strcmp(p, "Z") != 0 ? -1 : value;
}

int khub__root_time(int64_t *out_us, const char *text)
{
    static const char form[] = "yyyy-mm-ddThh:mm:ss";
    int part[6], year = -1;
    if (strlen(text) < sizeof(form) || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':' || text[16] != ':')
        return -1;
    if (two_digits(text) >= 0 && two_digits(text + 2) >= 0)
        year = two_digits(text) * 100 + two_digits(text + 2);
    part[0] = year;
    for (int i = 1; i < 6; i++)
        part[i] = two_digits(text + 2 + 3 * i);
    for (int i = 0; i < 6; i++)
        if (part[i] < 0) return -1;
    int64_t us = khub__time_us(part), more = fraction_us(text + sizeof(form) - 1);
    if (us < 0 || more < 0) return -1;
    *out_us = us + more;
    return 0;
}

/* A field of base64; *out has length 0 where it is absent. */
static int read_bytes(khub__span *out, reading *r, const json_t *object, const char *key)
{
    const char *text = NULL;
    *out = (khub__span){NULL, 0};
    int rc = khub__json_string(&text, object, key, &r->source);
    if (rc != KHUB_OK || !text) return rc;
    if (khub__base64_read(out, &r->room, text, strlen(text)))
        return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: \"%s\" isn't base64", r->source.file, key);
    return KHUB_OK;
}

/* "validFor" of an object: its start must be there. */
static int read_period(khub__period *out, reading *r, const json_t *object, const char *list, size_t i)
{
    const json_t *valid = NULL;
    const char *start = NULL, *end = NULL;
    int rc = khub__json_object(&valid, object, "validFor", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&start, valid, "start", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&end, valid, "end", &r->source);
    if (rc != KHUB_OK) return rc;
    out->end_us = INT64_MAX;
    if (!start || khub__root_time(&out->start_us, start))
        return wrong(r, list, i, "\"validFor\" has no start");
    if (end && khub__root_time(&out->end_us, end))
        return wrong(r, list, i, "\"validFor\" has an end that isn't a time");
    if (out->start_us > r->root->newest_us) r->root->newest_us = out->start_us;
    return KHUB_OK;
}

/* The host of "https://HOST[:PORT]/…", port and all. */
static khub__span host_of(const char *address)
{
    const char *host = strstr(address, "://");
    host = host ? host + 3 : address;
    return (khub__span){(const unsigned char *)host, strcspn(host, "/")};
}

/* An RSA key may be in a form of its own (PKCS #1): puts the usual one around it. */
static int read_bare_rsa(khub__key *out, khub__span raw)
{
    static const unsigned char algorithm[] = "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
    unsigned char info[4096];
    size_t inner = sizeof(algorithm) - 1 + 5 + raw.length, n = 0;
    if (raw.length < 256 || inner + 4 > sizeof(info)) return -1;
    info[n++] = 0x30;
    info[n++] = 0x82;
    info[n++] = (unsigned char)(inner >> 8);
    info[n++] = (unsigned char)inner;
    memcpy(info + n, algorithm, sizeof(algorithm) - 1);
    n += sizeof(algorithm) - 1;
    info[n++] = KHUB__DER_BIT_STRING;
    info[n++] = 0x82;
    info[n++] = (unsigned char)((raw.length + 1) >> 8);
    info[n++] = (unsigned char)(raw.length + 1);
    info[n++] = 0;
    memcpy(info + n, raw.data, raw.length);
    return khub__key_read(out, (khub__span){info, n + raw.length});
}

static const struct details {
    const char *name;
    khub__key_kind kind;
    int bare;
} details[] = {
    {"PKIX_ECDSA_P256_SHA_256", KHUB__KEY_P256, 0},      {"PKIX_ECDSA_P384_SHA_384", KHUB__KEY_P384, 0},
    {"PKIX_ECDSA_P521_SHA_512", KHUB__KEY_P521, 0},      {"PKIX_ED25519", KHUB__KEY_ED25519, 0},
    {"PKIX_RSA_PKCS1V15_2048_SHA256", KHUB__KEY_RSA, 0}, {"PKIX_RSA_PKCS1V15_3072_SHA256", KHUB__KEY_RSA, 0},
    {"PKIX_RSA_PKCS1V15_4096_SHA256", KHUB__KEY_RSA, 0}, {"PKCS1_RSA_PKCS1V5", KHUB__KEY_RSA, 1},
};

/* A key of a kind that isn't known leaves the log without one: nothing it signs is believed. */
static int read_log_key(khub__log *log, reading *r, const json_t *key, const char *list, size_t i)
{
    khub__span raw;
    const char *name = NULL;
    int rc = read_bytes(&raw, r, key, "rawBytes");
    if (rc == KHUB_OK) rc = khub__json_string(&name, key, "keyDetails", &r->source);
    if (rc != KHUB_OK) return rc;
    if (!raw.length || !name) return wrong(r, list, i, "it has no key");
    for (size_t k = 0; k < sizeof(details) / sizeof(*details); k++) {
        if (strcmp(name, details[k].name) != 0) continue;
        int bad = details[k].bare ? read_bare_rsa(&log->key, raw) : khub__key_read(&log->key, raw);
        if (bad || log->key.kind != details[k].kind)
            return wrong(r, list, i, "its key isn't what \"keyDetails\" says");
    }
    return KHUB_OK;
}

static int read_log(khub__log *log, reading *r, const json_t *item, const char *list, size_t i)
{
    const json_t *key = NULL, *id = NULL;
    int rc = khub__json_object(&key, item, "publicKey", &r->source);
    if (rc == KHUB_OK) rc = khub__json_object(&id, item, "logId", &r->source);
    if (rc == KHUB_OK) rc = khub__json_string(&log->address, item, "baseUrl", &r->source);
    if (rc == KHUB_OK) rc = read_bytes(&log->id, r, id, "keyId");
    if (rc == KHUB_OK) rc = read_period(&log->period, r, key, list, i);
    if (rc != KHUB_OK) return rc;
    if (log->id.length != 32) return wrong(r, list, i, "its \"keyId\" isn't 32 bytes");
    if (!log->address) return wrong(r, list, i, "it has no \"baseUrl\"");
    log->host = host_of(log->address);
    return read_log_key(log, r, key, list, i);
}

static int read_list(const json_t **array, void **items, size_t *count, size_t size, reading *r,
                     const json_t *root, const char *list)
{
    int rc = khub__json_array(array, root, list, &r->source);
    size_t n = json_array_size(*array);
    if (rc != KHUB_OK || n == 0) return rc;
    if (n > KHUB__ROOT_ENTRIES_MAX)
        return khub__fail(r->source.err, KHUB_E_FORMAT, "%s: \"%s\" has %zu entries, more than %d",
                          r->source.file, list, n, KHUB__ROOT_ENTRIES_MAX);
    *items = khub__calloc(n, size);
    if (!*items) return khub__fail_memory(r->source.err, "reading a trusted root");
    *count = n;
    return KHUB_OK;
}

static int read_logs(khub__logs *logs, reading *r, const json_t *root, const char *list)
{
    const json_t *array = NULL;
    void *items = NULL;
    int rc = read_list(&array, &items, &logs->count, sizeof(khub__log), r, root, list);
    logs->items = items;
    for (size_t i = 0; rc == KHUB_OK && items && i < logs->count; i++)
        rc = read_log(&logs->items[i], r, json_array_get(array, i), list, i);
    return rc;
}

static int read_certificates(khub__authority *a, reading *r, const json_t *item, const char *list, size_t i)
{
    const json_t *chain = NULL, *array = NULL;
    int rc = khub__json_object(&chain, item, "certChain", &r->source);
    if (rc == KHUB_OK) rc = khub__json_array(&array, chain, "certificates", &r->source);
    size_t n = json_array_size(array);
    if (rc == KHUB_OK && (n == 0 || n > KHUB__CHAIN_MAX))
        return wrong(r, list, i, "it has no certificates, or more than 8");
    for (; rc == KHUB_OK && a->count < n; a->count++) {
        khub__span der;
        rc = read_bytes(&der, r, json_array_get(array, a->count), "rawBytes");
        const char *fault = rc == KHUB_OK ? khub__certificate_read(&a->certificates[a->count], der) : NULL;
        if (fault) return wrong(r, list, i, fault);
    }
    return rc;
}

static int may_sign_certificates(const khub__certificate *c, size_t below)
{
    return c->is_ca && c->has_usage && (c->usage & KHUB__USAGE_SIGN_CERTIFICATES) &&
           (c->path_length < 0 || (size_t)c->path_length >= below);
}

/* The first `leaves` certificates are none of an authority; each other one signed the one before it. */
static int judge_chain(khub__authority *a, reading *r, const char *list, size_t i, size_t leaves)
{
    for (size_t n = 0; n < a->count; n++) {
        khub__key key;
        if (n >= leaves && !may_sign_certificates(&a->certificates[n], n - leaves))
            return wrong(r, list, i, "a certificate of its chain may not sign others");
        if (khub__key_read(&key, a->certificates[n].key))
            return wrong(r, list, i, "the key of a certificate isn't one, or of a kind that isn't known");
        int holds = n == 0 || (khub__certificate_names(&a->certificates[n - 1], &a->certificates[n]) &&
                               khub__certificate_is_signed(&a->certificates[n - 1], &key));
        if (n == 0)
            a->key = key;
        else
            khub__key_free(&key);
        if (!holds) return wrong(r, list, i, "its certificates don't sign each other in order");
    }
    return KHUB_OK;
}

static int read_authorities(khub__authorities *authorities, reading *r, const json_t *root, const char *list,
                            size_t leaves)
{
    const json_t *array = NULL;
    void *items = NULL;
    int rc = read_list(&array, &items, &authorities->count, sizeof(khub__authority), r, root, list);
    authorities->items = items;
    for (size_t i = 0; rc == KHUB_OK && items && i < authorities->count; i++) {
        khub__authority *a = &authorities->items[i];
        const json_t *item = json_array_get(array, i);
        rc = read_period(&a->period, r, item, list, i);
        if (rc == KHUB_OK) rc = read_certificates(a, r, item, list, i);
        if (rc == KHUB_OK) rc = judge_chain(a, r, list, i, leaves);
    }
    return rc;
}

static int read_media_type(reading *r, const json_t *root)
{
    const char *type = NULL;
    int rc = khub__json_string(&type, root, "mediaType", &r->source);
    if (rc != KHUB_OK) return rc;
    if (type && (!strcmp(type, "application/vnd.dev.sigstore.trustedroot+json;version=0.1") ||
                 !strcmp(type, "application/vnd.dev.sigstore.trustedroot.v0.2+json")))
        return KHUB_OK;
    return khub__fail(r->source.err, KHUB_E_FORMAT,
                      "%s: \"mediaType\" is %s, that of a trusted root is expected", r->source.file,
                      type ? type : "absent");
}

static int read_root(reading *r, const json_t *root)
{
    khub_trusted_root *out = r->root;
    int rc = read_media_type(r, root);
    if (rc == KHUB_OK) rc = read_logs(&out->logs, r, root, "tlogs");
    if (rc == KHUB_OK) rc = read_logs(&out->certificate_logs, r, root, "ctlogs");
    if (rc == KHUB_OK) rc = read_authorities(&out->authorities, r, root, "certificateAuthorities", 0);
    if (rc == KHUB_OK) rc = read_authorities(&out->timestamp_authorities, r, root, "timestampAuthorities", 1);
    if (rc != KHUB_OK) return rc;
    if (!out->logs.count || !out->certificate_logs.count || !out->authorities.count)
        return khub__fail(r->source.err, KHUB_E_FORMAT,
                          "%s: \"tlogs\", \"ctlogs\" and \"certificateAuthorities\" can't be empty",
                          r->source.file);
    return KHUB_OK;
}

/* The addresses of logs are kept when the JSON is gone. */
static int keep_addresses(khub_trusted_root *root, size_t length, khub_error *err)
{
    const khub__logs *lists[] = {&root->logs, &root->certificate_logs};
    char *p = root->text = khub__malloc(length + 1);
    if (!p) return khub__fail_memory(err, "reading a trusted root");
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            khub__log *log = &lists[l]->items[i];
            size_t bytes = strlen(log->address) + 1;
            memcpy(p, log->address, bytes);
            log->address = p;
            log->host = host_of(p);
            p += bytes;
        }
    }
    return KHUB_OK;
}

static int name_digest(khub_trusted_root *root, const char *text, size_t length, khub_error *err)
{
    unsigned char digest[KHUB__DIGEST_MAX];
    khub__span all = {(const unsigned char *)text, length};
    if (khub__digest(digest, KHUB__SHA256, &all, 1))
        return khub__fail(err, KHUB_E_UNSUPPORTED, "libcrypto refuses to compute SHA-256");
    khub__hex(root->sha256, digest, 32);
    return KHUB_OK;
}

int khub__root_read(khub_trusted_root **out, const char *text, size_t length, const char *path,
                    khub_error *err)
{
    json_t *json = NULL;
    *out = NULL;
    int rc = khub__signing_open(err);
    if (rc != KHUB_OK) return rc;
    khub_trusted_root *root = khub__calloc(1, sizeof(*root));
    if (!root) return khub__fail_memory(err, "reading a trusted root");
    root->path = khub__strdup(path);
    root->bytes = khub__malloc(length + 1);
    if (!root->path || !root->bytes) rc = khub__fail_memory(err, "reading a trusted root");
    reading r = {root, root->bytes, {path, err}};
    if (rc == KHUB_OK) rc = khub__json_parse(&json, text, length, path, err);
    if (rc == KHUB_OK) rc = read_root(&r, json);
    if (rc == KHUB_OK) rc = keep_addresses(root, length, err);
    if (rc == KHUB_OK) rc = name_digest(root, text, length, err);
    json_decref(json);
    if (rc == KHUB_OK)
        *out = root;
    else
        khub_trusted_root_free(root);
    return rc;
}

static int installed(char **out, khub_error *err)
{
    const char *prefix = khub__install_prefix();
    *out = prefix ? khub__path_join(prefix, INSTALLED) : NULL;
    return *out ? KHUB_OK : khub__fail_memory(err, "finding the trusted root");
}

int khub_trusted_root_open(khub_trusted_root **out, const char *path, khub_error *err)
{
    char *found = NULL;
    khub__bytes bytes = {0};
    int rc = khub__given("khub_trusted_root_open", out != NULL, err);
    if (rc != KHUB_OK) return rc;
    *out = NULL;
    if (!path) rc = installed(&found, err);
    if (rc == KHUB_OK) rc = khub__file_read(&bytes, path ? path : found, KHUB__ROOT_MAX_BYTES, err);
    if (rc == KHUB_OK) rc = khub__root_read(out, bytes.data, bytes.length, path ? path : found, err);
    khub__bytes_free(&bytes);
    khub__free(found);
    return rc;
}

static void free_logs(khub__logs *logs)
{
    for (size_t i = 0; i < logs->count; i++)
        khub__key_free(&logs->items[i].key);
    khub__free(logs->items);
}

static void free_authorities(khub__authorities *authorities)
{
    for (size_t i = 0; i < authorities->count; i++)
        khub__key_free(&authorities->items[i].key);
    khub__free(authorities->items);
}

void khub_trusted_root_free(khub_trusted_root *root)
{
    if (!root) return;
    free_logs(&root->logs);
    free_logs(&root->certificate_logs);
    free_authorities(&root->authorities);
    free_authorities(&root->timestamp_authorities);
    khub__free(root->path);
    khub__free(root->text);
    khub__free(root->bytes);
    khub__free(root);
}

khub_trusted_root_info khub_trusted_root_about(const khub_trusted_root *root)
{
    if (!root) return (khub_trusted_root_info){"", "", -1};
    return (khub_trusted_root_info){root->path, root->sha256, root->newest_us / 1000000};
}

const khub__log *khub__log_find(const khub__logs *logs, khub__span id)
{
    for (size_t i = 0; i < logs->count; i++)
        if (khub__span_is(logs->items[i].id, id)) return &logs->items[i];
    return NULL;
}

int khub__period_has(const khub__period *period, int64_t time_us)
{
    return period->start_us <= time_us && time_us <= period->end_us;
}

int khub__authority_valid(const khub__authority *authority, int64_t time_us)
{
    if (!khub__period_has(&authority->period, time_us)) return 0;
    for (size_t i = 0; i < authority->count; i++) {
        const khub__certificate *c = &authority->certificates[i];
        if (time_us < c->not_before_us || time_us > c->not_after_us) return 0;
    }
    return 1;
}
