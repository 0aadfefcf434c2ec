#include "serve/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT, NUMBER, PORT, TRUST, QUIET };

static int wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("khub: serve: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; khub serve --help says more\n", stderr);
    va_end(arguments);
    return 2;
}

/* One option of the command line. */
typedef struct known_option {
    const char *name;
    int kind;
    void *to;
    unsigned least, most; /* of a number */
} known_option;

static int read_number(unsigned *out, const known_option *option, const char *value)
{
    char *end;
    unsigned long n = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || n < option->least || n > option->most)
        return wrong("--%s %s: is no number from %u to %u", option->name, value, option->least, option->most);
    *out = (unsigned)n;
    return 0;
}

static int add_trust(serve_options *out, const char *organization)
{
    const char **more = realloc(out->trust, (out->trust_count + 1) * sizeof(*more));
    if (!more) return wrong("no memory");
    out->trust = more;
    out->trust[out->trust_count++] = organization;
    return 0;
}

static int check(serve_options *out, int argc, char **argv)
{
    if (optind != argc - 1) return wrong(optind < argc ? "one folder at a time" : "which folder?");
    out->dir = argv[optind];
    if (!out->cert != !out->key) return wrong("--cert and --key go together");
    if (out->token && out->token_file) return wrong("either --token or --token-file");
    return 0;
}

int serve_options_read(serve_options *out, int argc, char **argv)
{
    *out = (serve_options){
        .host = "127.0.0.1", .port = "8080", .grace_s = 30, .timeout_s = 60, .connections = 4096};
    enum { MOST = 1000000 };
    const known_option table[] = {{"host", TEXT, &out->host, 0, 0},
                                  {"port", PORT, &out->port, 0, 65535},
                                  {"token", TEXT, &out->token, 0, 0},
                                  {"token-file", TEXT, &out->token_file, 0, 0},
                                  {"cert", TEXT, &out->cert, 0, 0},
                                  {"key", TEXT, &out->key, 0, 0},
                                  {"url", TEXT, &out->url, 0, 0},
                                  {"trust", TRUST, NULL, 0, 0},
                                  {"grace", NUMBER, &out->grace_s, 0, MOST},
                                  {"timeout", NUMBER, &out->timeout_s, 1, MOST},
                                  {"connections", NUMBER, &out->connections, 1, MOST},
                                  {"per-address", NUMBER, &out->per_address, 1, MOST},
                                  {"quiet", QUIET, NULL, 0, 0}};
    enum { COUNT = sizeof(table) / sizeof(*table) };
    struct option known[COUNT + 1] = {{0}};
    for (size_t i = 0; i < COUNT; i++)
        known[i] =
            (struct option){table[i].name, table[i].kind == QUIET ? no_argument : required_argument, NULL, 0};
    opterr = 0;
    for (int index = -1, c; (c = getopt_long(argc, argv, ":qv", known, &index)) != -1; index = -1) {
        int rc = 0;
        unsigned port;
        if (c == ':') return wrong("%s needs a value", argv[optind - 1]);
        if (c == '?') return wrong("there is no option %s", argv[optind - 1]);
        if (c == 'q' || (c == 0 && table[index].kind == QUIET)) out->quiet = 1;
        if (c != 0) continue;
        if (table[index].kind == PORT) rc = read_number(&port, &table[index], optarg);
        if (table[index].kind == TEXT || table[index].kind == PORT) *(const char **)table[index].to = optarg;
        if (table[index].kind == NUMBER) rc = read_number(table[index].to, &table[index], optarg);
        if (table[index].kind == TRUST) rc = add_trust(out, optarg);
        if (rc) return rc;
    }
    return check(out, argc, argv);
}

void serve_options_free(serve_options *options)
{
    free(options->trust);
    options->trust = NULL;
}
