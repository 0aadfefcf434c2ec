#include "trust.h"

#include <time.h>

static const char *about_name(const char *about)
{
    return about ? about : "?";
}

void cli_trust_json(FILE *to, const khub_trust *trust)
{
    const khub_trust_reason *reason;
    if (!trust) {
        fputs("null", to);
        return;
    }
    fputc('[', to);
    for (size_t i = 0; (reason = khub_trust_at(trust, i)) != NULL; i++) {
        char words[2048];
        snprintf(words, sizeof(words), "%s", reason->words);
        cli_own_words(words);
        fprintf(to, "%s{\"about\": \"%s\", \"decision\": \"%s\", \"words\": ", i ? ", " : "",
                about_name(reason->about), khub_trust_decision_name(reason->decision));
        cli_json_text(to, words);
        fputc('}', to);
    }
    fputc(']', to);
}

void cli_trust_lines(FILE *to, const khub_trust *trust, const char *of, int indent)
{
    const khub_trust_reason *reason;
    size_t length = of ? strlen(of) : 0;
    for (size_t i = 0; (reason = khub_trust_at(trust, i)) != NULL; i++) {
        int named =
            length && !strncmp(reason->words, of, length) && !strncmp(reason->words + length, ": ", 2);
        cli_line(to, "%*s%-9s  %-8s  %s\n", indent, "", about_name(reason->about),
                 khub_trust_decision_name(reason->decision), reason->words + (named ? length + 2 : 0));
    }
}

static void print_number(FILE *to, const char *key, int64_t value)
{
    if (value < 0)
        fprintf(to, ", \"%s\": null", key);
    else
        fprintf(to, ", \"%s\": %lld", key, (long long)value);
}

void cli_signature_json(FILE *to, const khub_signature *s)
{
    if (!s) {
        fputs("null", to);
        return;
    }
    const struct {
        const char *key, *text;
    } fields[] = {{"words", s->words},       {"subject", s->subject},
                  {"issuer", s->issuer},     {"repository", s->repository},
                  {"commit", s->commit},     {"ref", s->ref},
                  {"workflow", s->workflow}, {"trigger", s->trigger},
                  {"run", s->run},           {"log", s->log}};
    int64_t at = s->integrated_s >= 0 ? s->integrated_s : s->timestamp_s;
    fprintf(to, "{\"reason\": \"%s\", \"holds\": %s", khub_signature_reason_name(s->reason),
            s->reason == KHUB_SIGNATURE_HOLDS ? "true" : "false");
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        fprintf(to, ", \"%s\": ", fields[i].key);
        cli_json_text(to, fields[i].text);
    }
    print_number(to, "log_index", s->log_index);
    print_number(to, "signed_at", at);
    fputc('}', to);
}

static int open_root(khub_trusted_root **out, const khub_policy *policy, khub_error *err)
{
    return khub_trusted_root_open(out, khub_policy_about(policy).trusted_root, err);
}

/* "2025-10-06", and how long ago that is. */
static long long days_since(char day[16], int64_t seconds)
{
    time_t at = (time_t)seconds;
    const struct tm *parts = gmtime(&at);
    if (!parts || !strftime(day, 16, "%Y-%m-%d", parts)) snprintf(day, 16, "?");
    return ((long long)time(NULL) - (long long)seconds) / 86400;
}

void cli_root_json(FILE *to, const khub_policy *policy)
{
    khub_trusted_root *root;
    khub_error err = {0};
    char day[16];
    fputs("{\"path\": ", to);
    if (open_root(&root, policy, &err) != KHUB_OK) {
        cli_json_text(to, khub_policy_about(policy).trusted_root);
        fputs(", \"error\": ", to);
        cli_json_text(to, err.message);
    } else {
        khub_trusted_root_info info = khub_trusted_root_about(root);
        long long days = days_since(day, info.newest_s);
        cli_json_text(to, info.path);
        fprintf(to, ", \"sha256\": \"%s\", \"newest\": \"%s\", \"age_days\": %lld", info.sha256, day, days);
    }
    fputc('}', to);
    khub_trusted_root_free(root);
}

void cli_root_line(FILE *to, const khub_policy *policy)
{
    khub_trusted_root *root;
    khub_error err = {0};
    char day[16];
    if (open_root(&root, policy, &err) != KHUB_OK) {
        cli_print(to, "can't be used: %s", err.message);
        return;
    }
    khub_trusted_root_info info = khub_trusted_root_about(root);
    long long days = days_since(day, info.newest_s);
    cli_print(to, "%s, newest key of %s (%lld days ago)", info.path, day, days);
    khub_trusted_root_free(root);
}
