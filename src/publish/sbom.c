/* khub_sbom: a build as CycloneDX describes things (https://cyclonedx.org/docs/1.6/json/). */
#include <khub/sbom.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "kernel/metadata.h"
#include "publish/strict.h"
#include "trust/digest.h"
#include "trust/files.h"
#include "trust/policy.h"

#include <stdio.h>

/* One description under way. */
typedef struct describing {
    const char *build;
    khub_sbom_options options;
    khub__bytes text; /* metadata.json, as it was read once */
    khub__metadata metadata;
    khub__files files;
    khub__hashed *sha256; /* of the first `count` files that count */
    khub__hashed *digest; /* of the same, by the digest's algorithm; NULL: it is sha256, or there is none */
    size_t count;
    khub__digest_claim claim; /* files NULL: there is no digest */
    khub_signature signature;
    int is_signed; /* 1: there is a bundle, and `signature` says what of it */
    char ref[700]; /* what the kernel is called in the document */
    int failed;    /* jansson found no memory */
    khub_error *err;
} describing;

static int no_memory(const describing *d)
{
    return khub__fail_memory(d->err, "describing a build");
}

/* Sets a member to a value that it takes over; NULL: there was no memory for it. */
static void set(describing *d, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) d->failed = 1;
}

/* Nothing for NULL. */
static void set_text(describing *d, json_t *object, const char *key, const char *text)
{
    if (text) set(d, object, key, json_string(text));
}

static void append(describing *d, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) d->failed = 1;
}

/* What CycloneDX has no field for. */
static void add_property(describing *d, json_t *properties, const char *name, const char *value)
{
    if (value) append(d, properties, json_pack("{s:s, s:s}", "name", name, "value", value));
}

static void add_number(describing *d, json_t *properties, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    add_property(d, properties, name, text);
}

/* The build's own name. */
static const char *variant_of(const describing *d)
{
    return khub__path_name(d->build);
}

static json_t *licenses(describing *d)
{
    static const char *const known[] = {
        /* of SPDX's list; an "id" must be one of it, a "name" may be anything */
        "Apache-2.0",    "MIT",           "BSD-2-Clause", "BSD-3-Clause", "ISC",
        "MPL-2.0",       "BSL-1.0",       "Zlib",         "Unlicense",    "CC0-1.0",
        "LGPL-2.1-only", "LGPL-3.0-only", "GPL-2.0-only", "GPL-3.0-only", "AGPL-3.0-only"};
    const char *license = d->metadata.license, *key = "name";
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(license, known[i])) key = "id";
    return json_pack("[{s:{s:s}}]", "license", key, license);
}

/* An address of git in the form that every address has: git@HOST:PATH is ssh://git@HOST/PATH. */
static json_t *address(const char *text)
{
    const char *colon = strchr(text, ':');
    if (strstr(text, "://") || !colon) return json_string(text);
    khub__text out = {0};
    khub__text_addf(&out, "ssh://%.*s/%s", (int)(colon - text), text, colon + 1);
    json_t *value = out.failed ? NULL : json_string(out.data);
    khub__text_free(&out);
    return value;
}

static void add_reference(describing *d, json_t *to, const char *type, json_t *url, const char *comment)
{
    json_t *reference = json_object();
    set_text(d, reference, "type", type);
    set(d, reference, "url", url);
    set_text(d, reference, "comment", comment);
    append(d, to, reference);
}

static void add_source(describing *d, json_t *to, const char *url, const char *comment)
{
    if (url && khub__is_git_address(url)) add_reference(d, to, "vcs", address(url), comment);
}

/* Where the kernel's source, and the kernel itself, come from. */
static json_t *references(describing *d)
{
    json_t *list = json_array();
    char url[900];
    add_source(d, list, d->metadata.source, "source");
    add_source(d, list, d->metadata.upstream, "upstream");
    if (d->options.repository) {
        snprintf(url, sizeof(url), "https://huggingface.co/kernels/%.500s%s%.70s", d->options.repository,
                 d->options.commit ? "/tree/" : "", d->options.commit ? d->options.commit : "");
        add_reference(d, list, "distribution", json_string(url), NULL);
    }
    if (d->signature.reason == KHUB_SIGNATURE_HOLDS && d->signature.run)
        add_reference(d, list, "build-system", json_string(d->signature.run), NULL);
    return list;
}

/* 1 when the signature proves what it says. */
static int is_proven(const describing *d)
{
    return d->is_signed && d->signature.reason == KHUB_SIGNATURE_HOLDS;
}

/* The commit of the source: as the signature proves it, else as metadata.json claims. */
static const char *source_commit(const describing *d)
{
    return is_proven(d) && d->signature.commit ? d->signature.commit : d->metadata.kernel.commit;
}

static void add_signature(describing *d, json_t *properties)
{
    const khub_signature *s = &d->signature;
    if (!d->is_signed) {
        add_property(d, properties, "khub:signature", "none");
        return;
    }
    add_property(d, properties, "khub:signature", khub_signature_reason_name(s->reason));
    if (!is_proven(d)) {
        add_property(d, properties, "khub:signature:words", s->words);
        return;
    }
    add_property(d, properties, "khub:signer", s->subject);
    add_property(d, properties, "khub:signer:issuer", s->issuer);
    add_property(d, properties, "khub:signer:repository", s->repository);
    add_property(d, properties, "khub:signer:workflow", s->workflow);
    add_property(d, properties, "khub:signer:ref", s->ref);
    add_property(d, properties, "khub:log", s->log);
    if (s->log_index >= 0) add_number(d, properties, "khub:log:index", s->log_index);
}

/* "holds", or what is wrong, file by file. KHUB_E_NOMEM. */
static int add_digest(describing *d, json_t *properties)
{
    khub__violations found;
    khub__text words = {0};
    if (!d->claim.files) {
        add_property(d, properties, "khub:digest", "none");
        return KHUB_OK;
    }
    int rc = khub__digest_compare(&found, &d->claim, d->digest ? d->digest : d->sha256, d->count, d->err);
    if (rc != KHUB_OK) return rc;
    for (size_t i = 0; i < found.count; i++) {
        if (i) khub__text_add(&words, "; ");
        khub__violation_words(&words, &found.items[i]);
    }
    if (!found.count) khub__text_add(&words, "holds");
    if (words.failed)
        d->failed = 1;
    else
        add_property(d, properties, "khub:digest", words.data);
    khub__violations_free(&found);
    khub__text_free(&words);
    return KHUB_OK;
}

static int set_properties(describing *d, json_t *kernel)
{
    json_t *list = json_array();
    const khub__metadata *m = &d->metadata;
    add_property(d, list, "khub:variant", variant_of(d));
    add_property(d, list, "khub:id", m->id);
    add_property(d, list, "khub:backend", m->backend);
    for (size_t i = 0; i < m->arch_count; i++)
        add_property(d, list, "khub:arch", m->archs[i]);
    add_property(d, list, "khub:repository", d->options.repository);
    add_property(d, list, "khub:commit", d->options.commit);
    add_property(d, list, "khub:source:commit", source_commit(d));
    if (source_commit(d))
        add_property(d, list, "khub:source:commit:from",
                     is_proven(d) && d->signature.commit ? "signature" : "metadata.json");
    if (m->kernel.dirty) add_property(d, list, "khub:source:dirty", "true");
    add_property(d, list, "khub:builder:version", m->builder_version);
    add_property(d, list, "khub:builder:commit", m->builder.commit);
    int rc = add_digest(d, list);
    add_signature(d, list);
    set(d, kernel, "properties", list);
    return rc;
}

/* "ORG" and "NAME" of a repository of the Hub, else the name in metadata.json alone. */
static void set_name(describing *d, json_t *kernel)
{
    const char *repository = d->options.repository, *slash = repository ? strchr(repository, '/') : NULL;
    if (slash) set(d, kernel, "group", json_stringn(repository, (size_t)(slash - repository)));
    set_text(d, kernel, "name", slash ? slash + 1 : d->metadata.name);
}

static int add_kernel(describing *d, json_t *about)
{
    char version[32];
    json_t *kernel = json_object();
    set_text(d, kernel, "type", "library");
    set_text(d, kernel, "bom-ref", d->ref);
    set_name(d, kernel);
    snprintf(version, sizeof(version), "%lld", (long long)d->metadata.version);
    set_text(d, kernel, "version", version);
    set(d, kernel, "licenses", licenses(d));
    if (!strncmp(d->ref, "pkg:", 4)) set_text(d, kernel, "purl", d->ref);
    if (source_commit(d))
        set(d, kernel, "pedigree", json_pack("{s:[{s:s}]}", "commits", "uid", source_commit(d)));
    set(d, kernel, "externalReferences", references(d));
    int rc = set_properties(d, kernel);
    set(d, about, "component", kernel);
    return rc;
}

/* Who described it, and who supplies it. */
static void set_about(describing *d, json_t *about)
{
    const char *repository = d->options.repository, *slash = repository ? strchr(repository, '/') : NULL;
    set(d, about, "tools",
        json_pack("{s:[{s:s, s:s, s:s}]}", "components", "type", "application", "name", "khub", "version",
                  khub_version()));
    if (slash) set(d, about, "supplier", json_pack("{s:s#}", "name", repository, (int)(slash - repository)));
}

static void add_file(describing *d, json_t *components, size_t i)
{
    char hex[KHUB__HASH_HEX_MAX + 1], ref[1200];
    json_t *file = json_object(), *hashes = json_array();
    khub__hex(hex, d->sha256[i].hash, 32);
    append(d, hashes, json_pack("{s:s, s:s}", "alg", "SHA-256", "content", hex));
    if (d->digest) {
        khub__hex(hex, d->digest[i].hash, 64);
        append(d, hashes, json_pack("{s:s, s:s}", "alg", "SHA-512", "content", hex));
    }
    snprintf(ref, sizeof(ref), "file-%zu",
             i); /* a path may be too long for a reference, or not unique in one */
    set_text(d, file, "type", "file");
    set_text(d, file, "bom-ref", ref);
    set_text(d, file, "name", d->sha256[i].path);
    set(d, file, "hashes", hashes);
    append(d, components, file);
}

/* A kernel that is loaded before this one, and what a Python face may import. */
static void add_needs(describing *d, json_t *components, json_t *depends)
{
    const khub__metadata *m = &d->metadata;
    char ref[700], version[300];
    for (size_t i = 0; i < m->need_count; i++) {
        const khub__metadata_need *need = &m->needs[i];
        if (need->revision)
            khub__copy(version, sizeof(version), need->revision);
        else
            snprintf(version, sizeof(version), "v%lld", (long long)need->version);
        snprintf(ref, sizeof(ref), "kernel-%zu", i);
        append(d, components,
               json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", "library", "bom-ref", ref, "name",
                         need->repo_id, "version", version, "scope", "required"));
        append(d, depends, json_string(ref));
    }
    for (size_t i = 0; i < m->python_depend_count; i++) {
        snprintf(ref, sizeof(ref), "python-%zu", i);
        append(d, components,
               json_pack("{s:s, s:s, s:s, s:s}", "type", "library", "bom-ref", ref, "name",
                         m->python_depends[i], "scope", "optional"));
        append(d, depends, json_string(ref));
    }
}

/* A UUID (RFC 9562, version 8) that is made of what is described: the same for the same build. */
static int set_serial(describing *d, json_t *document)
{
    khub__hash *hash;
    unsigned char b[KHUB__HASH_MAX];
    char text[64];
    int rc = khub__hash_new(&hash, KHUB__HASH_SHA256, 0, d->err);
    if (rc != KHUB_OK) return rc;
    const char *const names[] = {d->ref, variant_of(d)};
    for (size_t i = 0; i < 2; i++)
        khub__hash_add(hash, names[i], strlen(names[i]) + 1);
    for (size_t i = 0; i < d->count; i++) {
        khub__hash_add(hash, d->sha256[i].path, strlen(d->sha256[i].path) + 1);
        khub__hash_add(hash, d->sha256[i].hash, 32);
    }
    khub__hash_end_bytes(hash, b);
    khub__hash_free(hash);
    b[6] = (unsigned char)((b[6] & 15) | 0x80);
    b[8] = (unsigned char)((b[8] & 63) | 0x80);
    snprintf(text, sizeof(text),
             "urn:uuid:%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    set_text(d, document, "serialNumber", text);
    return KHUB_OK;
}

static int fill(describing *d, json_t *document)
{
    json_t *about = json_object(), *components = json_array(), *depends = json_array(),
           *whole = json_object();
    set_text(d, document, "$schema", "http://cyclonedx.org/schema/bom-1.6.schema.json");
    set_text(d, document, "bomFormat", "CycloneDX");
    set_text(d, document, "specVersion", "1.6");
    int rc = set_serial(d, document);
    set(d, document, "version", json_integer(1));
    set_about(d, about);
    if (rc == KHUB_OK) rc = add_kernel(d, about);
    set(d, document, "metadata", about); /* not before it is whole: what can't be set is gone */
    for (size_t i = 0; i < d->count; i++) {
        add_file(d, components, i);
        append(d, depends, json_copy(json_object_get(json_array_get(components, i), "bom-ref")));
    }
    add_needs(d, components, depends);
    set(d, document, "components", components);
    set_text(d, whole, "ref", d->ref);
    set(d, whole, "dependsOn", depends);
    set(d, document, "dependencies", json_array());
    append(d, json_object_get(document, "dependencies"), whole);
    return rc;
}

/* Hashes one file for the description, and for the digest when that has another algorithm. */
static int hash_file(describing *d, const char *name)
{
    const khub__hash_kind kinds[] = {KHUB__HASH_SHA256, d->claim.kind};
    unsigned char *const to[] = {d->sha256[d->count].hash, d->digest ? d->digest[d->count].hash : NULL};
    khub__hash *hashes[2] = {NULL, NULL};
    khub__stream file;
    size_t wanted = d->digest ? 2 : 1;
    char *path = khub__path_join(d->build, name);
    int rc = path ? khub__stream_open(&file, path, d->err) : no_memory(d);
    if (rc == KHUB_OK) {
        for (size_t i = 0; i < wanted && rc == KHUB_OK; i++)
            rc = khub__hash_new(&hashes[i], kinds[i], file.size, d->err);
        if (rc == KHUB_OK) rc = khub__hash_stream(hashes, wanted, &file, d->err);
        for (size_t i = 0; i < wanted; i++) {
            if (rc == KHUB_OK && khub__hash_end_bytes(hashes[i], to[i]) == 0)
                rc = khub__fail(d->err, KHUB_E_UNSUPPORTED, "%s: libcrypto can't hash it", path);
            khub__hash_free(hashes[i]);
        }
        khub__stream_close(&file);
    }
    khub__free(path);
    return rc;
}

/* Python's bytecode is made where it runs; nobody publishes it. */
static int counts(const char *path)
{
    return khub__digest_covers(path) || !strncmp(path, "metadata.json", strlen("metadata.json"));
}

static int take_file(describing *d, const khub__found *found)
{
    char room[600];
    const char *fault = khub__found_fault(found, room, sizeof(room));
    if (found->kind == KHUB__FOUND_OUT)
        fault = NULL; /* into the cache's blobs; what it leads to is described */
    if (fault) return khub__fail(d->err, KHUB_E_FORMAT, "%s/%s: %s", d->build, found->path, fault);
    if (!khub__is_utf8(found->path))
        return khub__fail(d->err, KHUB_E_FORMAT, "%s/%s: the name isn't UTF-8", d->build, found->path);
    d->sha256[d->count].path = found->path;
    if (d->digest) d->digest[d->count].path = found->path;
    int rc = hash_file(d, found->path);
    d->count += rc == KHUB_OK;
    return rc;
}

static int take_files(describing *d)
{
    int rc = khub__files_find(&d->files, d->build, NULL, d->err);
    if (rc == KHUB_OK && !(d->sha256 = khub__calloc(d->files.count + 1, sizeof(*d->sha256))))
        rc = no_memory(d);
    if (rc == KHUB_OK && d->claim.files && d->claim.kind != KHUB__HASH_SHA256 &&
        !(d->digest = khub__calloc(d->files.count + 1, sizeof(*d->digest))))
        rc = no_memory(d);
    for (size_t i = 0; rc == KHUB_OK && i < d->files.count; i++)
        if (counts(d->files.items[i].path)) rc = take_file(d, &d->files.items[i]);
    return rc;
}

/* The verdict on the bytes that were read, by the policy that counts. */
static int judge_signature(describing *d, const char *bundle)
{
    khub__rules rules = {.given = d->options.policy};
    const khub_policy *policy;
    khub_trusted_root *root = NULL;
    khub_signature_options options;
    khub_error why = {0};
    KHUB_INIT(&options);
    int rc = khub__rules_policy(&policy, &rules, d->err);
    if (rc == KHUB_OK) rc = khub__policy_root(&root, policy, d->err);
    if (rc == KHUB_OK) {
        options.root = root;
        options.identities = khub__policy_identities(&options.identity_count, policy);
        rc = khub_signature_verify_file(&d->signature, d->text.data, d->text.length, bundle, &options, NULL,
                                        &why);
        d->is_signed = rc == KHUB_OK || rc == KHUB_E_UNTRUSTED;
        rc = d->is_signed ? KHUB_OK : khub__fail(d->err, rc, "%s", why.message);
    }
    khub_trusted_root_free(root);
    khub__rules_close(&rules);
    return rc;
}

static int read_signature(describing *d)
{
    char *bundle = khub__path_join(d->build, "metadata.json.sigstore");
    int rc = bundle ? KHUB_OK : no_memory(d);
    if (rc == KHUB_OK && khub__file_kind(bundle) != KHUB__FILE_NONE) rc = judge_signature(d, bundle);
    khub__free(bundle);
    return rc;
}

static int read_metadata(describing *d)
{
    char *path = khub__path_join(d->build, "metadata.json");
    int rc = path ? khub__file_read(&d->text, path, KHUB__METADATA_MAX, d->err) : no_memory(d);
    if (rc == KHUB_OK) rc = read_signature(d); /* before anything of it is parsed */
    if (rc == KHUB_OK) rc = khub__metadata_parse(&d->metadata, d->text.data, d->text.length, path, d->err);
    if (rc == KHUB_OK && d->metadata.digest)
        rc = khub__digest_read(&d->claim, d->metadata.digest, path, d->err);
    khub__free(path);
    return rc;
}

/* "ORG/NAME", of what names on the Hub are made of. */
static int is_repository(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    size_t org = strspn(text, letters), name = text[org] == '/' ? strspn(text + org + 1, letters) : 0;
    return org && name && !text[org + 1 + name] && org + name < 400;
}

static int begin(describing *d, const khub_sbom_options *options)
{
    int rc = khub__options(&d->options, sizeof(d->options), options, "khub_sbom_options", d->err);
    const char *repository = d->options.repository, *commit = d->options.commit;
    khub__hash_kind kind;
    if (rc == KHUB_OK && repository && !is_repository(repository))
        rc = khub__fail(d->err, KHUB_E_INVAL, "khub_sbom_options.repository is \"%.100s\", not ORG/NAME",
                        repository);
    if (rc == KHUB_OK && commit && khub__hash_kind_of(&kind, commit) != 0)
        rc = khub__fail(d->err, KHUB_E_INVAL,
                        "khub_sbom_options.commit is \"%.100s\", not 40 or 64 hexadecimal digits", commit);
    if (repository)
        snprintf(d->ref, sizeof(d->ref), "pkg:huggingface/%.400s%s%.64s#build/%.200s", repository,
                 commit ? "@" : "", commit ? commit : "", variant_of(d));
    else
        snprintf(d->ref, sizeof(d->ref), "kernel");
    return rc;
}

static int write_document(char **json, describing *d)
{
    khub__text text = {0};
    json_t *document = json_object();
    int rc = fill(d, document);
    if (rc == KHUB_OK && !d->failed) {
        khub__json_add(&text, document, JSON_INDENT(2) | JSON_ENSURE_ASCII);
        khub__text_add(&text, "\n");
        *json = khub__text_take(&text);
    }
    json_decref(document);
    return rc == KHUB_OK && !*json ? no_memory(d) : rc;
}

int khub_sbom(char **json, const char *build, const khub_sbom_options *options, khub_error *err)
{
    int rc = khub__given("khub_sbom", json && build && *build, err);
    if (json) *json = NULL;
    if (rc != KHUB_OK) return rc;
    describing d = {.build = build, .err = err};
    rc = begin(&d, options);
    if (rc == KHUB_OK) rc = read_metadata(&d);
    if (rc == KHUB_OK) rc = take_files(&d);
    if (rc == KHUB_OK) rc = write_document(json, &d);
    khub_signature_free(&d.signature);
    khub__metadata_free(&d.metadata);
    khub__files_free(&d.files);
    khub__bytes_free(&d.text);
    khub__free(d.sha256);
    khub__free(d.digest);
    return rc;
}
