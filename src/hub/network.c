/* What the Hub is reached through. */
#include "base/error.h"
#include "base/file.h"
#include "base/home.h"
#include "hub/curl.h"

/* A variable may name a file or a directory. */
static void take(khub_network_info *info, const char *variable, const char *path)
{
    if (khub__file_kind(path) == KHUB__FILE_DIRECTORY) {
        info->certificate_dir = path;
        info->certificate_dir_from = variable;
    } else {
        info->certificate_file = path;
        info->certificate_file_from = variable;
    }
}

void khub__curl_certificates(khub_network_info *info)
{
    static const char *const variables[] = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"};
    info->certificate_dir = khub__env("SSL_CERT_DIR");
    if (info->certificate_dir) info->certificate_dir_from = "SSL_CERT_DIR";
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        const char *path = khub__env(variables[i]);
        if (!path) continue;
        take(info, variables[i], path);
        return; /* the first counts */
    }
}

int khub_network(khub_network_info *out, khub_error *err)
{
    const khub__curl_table *curl;
    int rc = khub__given("khub_network", out != NULL, err);
    if (rc != KHUB_OK) return rc;
    memset(out, 0, sizeof(*out));
    rc = khub__curl_open(&curl, err);
    if (rc != KHUB_OK) return rc;
    const curl_version_info_data *info = curl->curl_version_info(CURLVERSION_NOW);
    out->version = info->version;
    out->path = curl->path;
    out->tls = curl->has_tls ? info->ssl_version : NULL;
    out->http2 = curl->has_http2;
    khub__curl_certificates(out);
    if (!out->certificate_file) out->certificate_file = info->cainfo;
    if (!out->certificate_dir) out->certificate_dir = info->capath;
    return KHUB_OK;
}
