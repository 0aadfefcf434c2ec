/* khub trust: whose kernels may be loaded, and what they must have. */
#include "trust.h"

#include <stdlib.h>

static const char help[] =
    "khub trust [WHAT ...]: whose kernels may be loaded, and what they must have\n\n"
    "    khub trust                          what holds\n"
    "    khub trust add ORG ORG/NAME         loads their kernels though the Hub doesn't call them trusted\n"
    "    khub trust rm ORG\n"
    "    khub trust level signed             publisher, verified or signed (docs/trust.md)\n"
    "    khub trust offline refuse           what becomes of a publisher of whom nothing is known while "
    "there is "
    "no\n"
    "                                        network: refuse, or notice\n"
    "    khub trust accept ORG/NAME build.yaml@refs/heads/main\n"
    "                                        takes signatures of kernels that this workflow of that GitHub\n"
    "                                        repository built\n"
    "    khub trust accept --subject ADDRESS --issuer URL\n"
    "                                        takes those of somebody else\n"
    "    khub trust reject ...               takes them no more; the same words. khub's own can be rejected, "
    "too\n"
    "    khub trust signers default          takes those of khub's own again, and of nobody else\n"
    "    khub trust root FILE                judges signatures by that trusted_root.json; default: khub's "
    "own\n\n"
    "What is said here is kept in a file: KHUB_TRUST_FILE, else trust.json in $XDG_CONFIG_HOME/khub or "
    "~/.config/khub.\n"
    "--trust, --trust-level and --trusted-root of other commands add to it for one run.\n\n"
    "    --file FILE       that file instead\n"
    "    --issuer URL      who vouches for the signer; GitHub Actions where nothing is said\n"
    "    --subject TEXT    what the certificate is for: a workflow's address, or an e-mail address\n"
    "    --json            {\"file\", \"level\", \"offline\", \"publishers\", \"signers\": [{\"issuer\", "
    "\"repository\",\n"
    "                      \"workflow\", \"subject\"}], \"own_signers\", \"trusted_root\": {\"path\", "
    "\"sha256\", \"newest\",\n"
    "                      \"age_days\"}}\n";

static const char actions[] = "https://token.actions.githubusercontent.com";

typedef struct question {
    const char *file, *issuer, *subject;
    int json;
    const char *path; /* of the file that is read and written */
    char *own_path;   /* when it is the user's; freed with khub_free */
    khub_policy *policy;
} question;

static void print_pair(const char *before, const char *key, const char *text)
{
    printf("%s\"%s\": ", before, key);
    cli_json_text(stdout, text);
}

static void print_json(const question *q)
{
    khub_policy_info info = khub_policy_about(q->policy);
    const char *publisher;
    const khub_identity *who;
    print_pair("{", "file", info.path);
    printf(", \"level\": \"%s\", \"offline\": \"%s\", \"publishers\": [", khub_trust_level_name(info.level),
           info.offline_refuse ? "refuse" : "notice");
    for (size_t i = 0; (publisher = khub_policy_publisher(q->policy, i)) != NULL; i++) {
        fputs(i ? ", " : "", stdout);
        cli_json_text(stdout, publisher);
    }
    fputs("], \"signers\": [", stdout);
    for (size_t i = 0; (who = khub_policy_identity(q->policy, i)) != NULL; i++) {
        print_pair(i ? ", {" : "{", "issuer", who->issuer);
        print_pair(", ", "repository", who->repository);
        print_pair(", ", "workflow", who->workflow);
        print_pair(", ", "subject", who->subject);
        putchar('}');
    }
    printf("], \"own_signers\": %s, \"trusted_root\": ", info.own_identities ? "true" : "false");
    cli_root_json(stdout, q->policy);
    puts("}");
}

static const char *const meanings[] = {
    "", "a trusted publisher, every file as the commit says, digest and signature hold where they are",
    "as publisher, and a digest or a lock says so", "as publisher, and somebody below has signed the digest"};

static int starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* What there is of it; a workflow's address begins with its repository's. */
static void print_signer(const khub_identity *who)
{
    const char *workflow = who->workflow, *repository = who->repository;
    if (workflow && repository && starts_with(workflow, repository)) repository = NULL;
    const struct {
        const char *before, *text;
    } parts[] = {{"", workflow}, {workflow ? "of " : "any workflow of ", repository}, {"", who->subject}};
    const char *comma = "";
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (!parts[i].text) continue;
        cli_line(stdout, "%s%s%s", comma, parts[i].before, parts[i].text);
        comma = ", ";
    }
    if (strcmp(who->issuer, actions) != 0) cli_line(stdout, " (vouched for by %s)", who->issuer);
    putchar('\n');
}

static void print_table(const question *q)
{
    khub_policy_info info = khub_policy_about(q->policy);
    const char *publisher;
    const khub_identity *who;
    cli_print(stdout, "file        %s%s\n", q->path, info.path ? "" : " (isn't there)");
    printf("level       %s: %s\n", khub_trust_level_name(info.level), meanings[info.level]);
    printf("offline     %s\n", info.offline_refuse ? "refuse publishers of whom nothing is known"
                                                   : "notice publishers of whom nothing is known");
    fputs("publishers  those that the Hub trusts", stdout);
    for (size_t i = 0; (publisher = khub_policy_publisher(q->policy, i)) != NULL; i++)
        cli_print(stdout, ", %s", publisher);
    printf("\nsigners     ");
    for (size_t i = 0; (who = khub_policy_identity(q->policy, i)) != NULL; i++) {
        if (i) fputs("            ", stdout);
        print_signer(who);
    }
    if (!khub_policy_identity(q->policy, 0)) puts("nobody");
    fputs("root        ", stdout);
    cli_root_line(stdout, q->policy);
    putchar('\n');
}

static int show(question *q, int n, char **words, khub_error *err)
{
    (void)words, (void)err;
    if (n) return cli_usage("trust", "ls takes nothing");
    if (q->json)
        print_json(q);
    else
        print_table(q);
    return EXIT_DONE;
}

static int save(question *q, int rc, khub_error *err)
{
    if (rc == KHUB_OK) rc = khub_policy_write(q->policy, q->path, err);
    return rc == KHUB_OK ? EXIT_DONE : cli_fail(err);
}

static int add(question *q, int n, char **words, khub_error *err)
{
    int rc = KHUB_OK;
    if (!n) return cli_usage("trust", "add: whom?");
    for (int i = 0; i < n && rc == KHUB_OK; i++)
        rc = khub_policy_add_publisher(q->policy, words[i], err);
    return save(q, rc, err);
}

static int take_out(question *q, int n, char **words, khub_error *err)
{
    int rc = KHUB_OK;
    if (!n) return cli_usage("trust", "rm: whom?");
    for (int i = 0; i < n && rc == KHUB_OK; i++)
        rc = khub_policy_remove_publisher(q->policy, words[i], err);
    return save(q, rc, err);
}

static int set_level(question *q, int n, char **words, khub_error *err)
{
    khub_trust_level level;
    if (n != 1) return cli_usage("trust", "level: publisher, verified or signed?");
    int rc = khub_trust_level_parse(&level, words[0], err);
    if (rc == KHUB_OK) rc = khub_policy_set_level(q->policy, level, err);
    return save(q, rc, err);
}

static int set_offline(question *q, int n, char **words, khub_error *err)
{
    int refuse = n == 1 && !strcmp(words[0], "refuse");
    if (n != 1 || (!refuse && strcmp(words[0], "notice") != 0))
        return cli_usage("trust", "offline: notice or refuse?");
    return save(q, khub_policy_set_offline(q->policy, refuse, err), err);
}

/* The file is named from its own folder, wherever khub is started. */
static int set_root(question *q, int n, char **words, khub_error *err)
{
    if (n != 1) return cli_usage("trust", "root: which file? (or \"default\")");
    if (!strcmp(words[0], "default")) return save(q, khub_policy_set_trusted_root(q->policy, NULL, err), err);
    khub_trusted_root *root;
    char *path = cli_absolute(words[0]);
    if (!path) return cli_fail_memory();
    int rc = khub_trusted_root_open(&root, path, err);
    khub_trusted_root_free(root);
    if (rc == KHUB_OK) rc = khub_policy_set_trusted_root(q->policy, path, err);
    free(path);
    return save(q, rc, err);
}

static int signers(question *q, int n, char **words, khub_error *err)
{
    if (n != 1 || strcmp(words[0], "default") != 0)
        return cli_usage("trust", "signers takes \"default\"; accept and reject name one");
    khub_policy_reset_identities(q->policy);
    return save(q, KHUB_OK, err);
}

/* What a user writes of a repository of GitHub's and a workflow of it. */
typedef struct signer {
    char repository[600], workflow[1200];
    khub_identity identity;
} signer;

static int understand(signer *out, const question *q, int n, char **words, const char *verb)
{
    memset(out, 0, sizeof(*out));
    out->identity.issuer = q->issuer ? q->issuer : actions;
    out->identity.subject = q->subject;
    if (n > 2 || (!n && !q->subject))
        return cli_usage("trust", "%s: whom? ORG/NAME WORKFLOW, or --subject TEXT", verb);
    if (n == 1 && !q->subject)
        return cli_usage("trust", "%s: which workflow of %s? build.yaml@refs/heads/main for instance, or any",
                         verb, words[0]);
    if (n) {
        int whole = strstr(words[0], "://") != NULL;
        snprintf(out->repository, sizeof(out->repository), "%s%.500s", whole ? "" : "https://github.com/",
                 words[0]);
        out->identity.repository = out->repository;
    }
    if (n < 2 || !strcmp(words[1], "any")) return EXIT_DONE;
    if (!strchr(words[1], '@'))
        return cli_usage("trust", "%s: %s at which ref? %s@refs/heads/main for instance", verb, words[1],
                         words[1]);
    if (strstr(words[1], "://"))
        snprintf(out->workflow, sizeof(out->workflow), "%.1000s", words[1]);
    else
        snprintf(out->workflow, sizeof(out->workflow), "%s/.github/workflows/%.500s", out->repository,
                 words[1]);
    out->identity.workflow = out->workflow;
    return EXIT_DONE;
}

static int accept(question *q, int n, char **words, khub_error *err)
{
    signer who;
    int status = understand(&who, q, n, words, "accept");
    if (status != EXIT_DONE) return status;
    return save(q, khub_policy_add_identity(q->policy, &who.identity, err), err);
}

static int reject(question *q, int n, char **words, khub_error *err)
{
    signer who;
    int status = understand(&who, q, n, words, "reject");
    if (status != EXIT_DONE) return status;
    return save(q, khub_policy_remove_identity(q->policy, &who.identity, err), err);
}

static const struct verb {
    const char *name;
    int (*run)(question *q, int n, char **words, khub_error *err);
} verbs[] = {{"ls", show},
             {"add", add},
             {"rm", take_out},
             {"level", set_level},
             {"offline", set_offline},
             {"accept", accept},
             {"reject", reject},
             {"signers", signers},
             {"root", set_root}};
enum { VERBS = sizeof(verbs) / sizeof(*verbs) };

static const struct verb *find_verb(const char *name)
{
    cli_guess guess = {.word = name};
    for (size_t i = 0; i < VERBS; i++) {
        if (!strcmp(verbs[i].name, name)) return &verbs[i];
        cli_guess_try(&guess, verbs[i].name);
    }
    cli_usage("trust", guess.best ? "there is no \"%s\": did you mean %s?" : "there is no \"%s\"", name,
              guess.best);
    return NULL;
}

/* One that isn't there yet begins as the default policy. */
static int open_policy(question *q, int changes, khub_error *err)
{
    int rc = q->file ? KHUB_OK : khub_policy_path(&q->own_path, err);
    q->path = q->file ? q->file : q->own_path;
    if (rc == KHUB_OK && changes) cli_one_at_a_time(q->path);
    if (rc == KHUB_OK) rc = khub_policy_read(&q->policy, q->path, err);
    if (rc != KHUB_E_NOTFOUND || !q->path) return rc;
    khub_error_clear(err);
    return khub_policy_new(&q->policy, err);
}

static int run(int argc, char **argv)
{
    question q = {0};
    khub_error err = {0};
    const cli_option options[] = {{"--json", CLI_FLAG, &q.json},
                                  {"--file", CLI_TEXT, &q.file},
                                  {"--issuer", CLI_TEXT, &q.issuer},
                                  {"--subject", CLI_TEXT, &q.subject}};
    int n = cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    if (n < 0) return EXIT_USAGE;
    const struct verb *verb = find_verb(n ? argv[1] : "ls");
    if (!verb) return EXIT_USAGE;
    int rc = open_policy(&q, verb->run != show, &err);
    int status = rc == KHUB_OK ? verb->run(&q, n > 1 ? n - 1 : 0, argv + 2, &err) : cli_fail(&err);
    khub_policy_free(q.policy);
    khub_free(q.own_path);
    return status;
}

const cli_command cli_trust = {
    .name = "trust",
    .summary = "whose kernels may be loaded, and what they must have",
    .help = help,
    .run = run,
};
