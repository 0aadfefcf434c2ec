/* khub embed: sentences in, vectors out. */
#include "filling.h"
#include "lines.h"
#include "model.h"
#include "model_dir.h"
#include "report.h"
#include "shadow.h"

#include <khub/model.h>

#include <stdlib.h>

static const char help[] =
    "khub embed --model ./all-MiniLM-L6-v2 --kernels \"a first text\" \"and another\"\n"
    "khub embed --model sentence-transformers/all-MiniLM-L6-v2 --file lines.txt -o vectors.npy\n"
    "\n"
    "Prints the embedding of each text as one line, a JSON array of numbers that read back to the same "
    "float32.\n"
    "\n"
    "    --model NAME      a directory with config.json, safetensors, a tokenizer, and modules.json where it "
    "has one;\n"
    "                      else ORG/NAME or ORG/NAME@REV of the Hub, fetched into the cache if it isn't "
    "there\n"
    "    --file LINES      each line of the file is a text (- for standard input); instead of TEXT...\n"
    "    -o FILE.npy       writes one array (texts, width) there instead of printing\n"
    "    --kernels[=WHAT]  the kernels of the default mapping, or of WHAT, serve the layers they fit; "
    "without it\n"
    "                      the standard functions serve. WHAT: a mapping's file (JSON, docs/layers.md; paths "
    "in it\n"
    "                      start from its folder), or LAYER=KERNEL for single layers over the default "
    "mapping, as in\n"
    "                      'GeLU=org/repo@v1:GeLU,LayerNorm=' (nothing: stays standard); khub mapping --help "
    "says all\n"
    "    --no-kernels      the standard functions serve: the default, said aloud\n" CLI_TORCH_HELP
        CLI_FILLING_HELP
    "    --shadow[=SLOTS]  the kernels (as --kernels says) run beside the standard functions, whose results "
    "count, in all\n"
    "                      slots or those of a pattern (encoder.layer.*.output.**): prints what they change "
    "in each slot, and\n"
    "                      in the embeddings, where --report goes\n"
    "    --report          which kernel serves each slot, or why the standard function stayed: a table, on "
    "stderr, or on\n"
    "                      stdout when no embeddings go there (-o, or no text at all)\n"
    "    --json            all that is asked for is on stdout, as JSON, a line each and in this order: the "
    "report\n"
    "                      (--report); the embeddings, unless -o has them; {\"retried\": ...} (--report and\n"
    "                      --on-error standard); {\"slots\": ..., \"embeddings\": ...} (--shadow)\n"
    "    --standard WHOSE  the standard functions are khub's own (khub: the default) or PyTorch's operators "
    "(torch)\n"
    "    --threads N       as many threads; left out: as many as the system allows\n" CLI_HUB_HELP;

enum { TEXTS_AT_ONCE = 1024 };

struct job {
    /* the command line */
    cli_hub hub;
    const char *model_name, *file, *out, *kernels;
    khub_mapping *mapping; /* NULL: none is asked for, or the default one */
    cli_filling filling;
    khub_kernelize_options how; /* as the options above say */
    cli_machine machine;
    khub_platform *platform; /* NULL: this machine, its own */
    int no_kernels, report, json;
    long threads;
    const char *standard; /* whose standard functions; NULL: khub's */
    cli_shadow shadow;
    char **texts;
    size_t text_count;
    /* the work */
    khub_model *model;
    size_t width;
    float *rows;                /* of the texts at hand; of all texts with -o */
    size_t rows_capacity, done; /* in texts */
    khub_embed_info info;       /* of all texts so far */
};

static int fill_slots(struct job *job, khub_report **report, khub_error *err)
{
    khub_kernelize_options options = job->how;
    int rc = KHUB_OK;
    if (!job->kernels) {
        /* for the report alone; that every slot stays standard is what was asked for */
        khub_set_log(NULL, NULL);
        rc = khub_mapping_new(&job->mapping, err);
    }
    if (rc != KHUB_OK) return rc;
    options.mapping = job->mapping;
    options.hub = &job->hub.options;
    if (cli_machine_given(&job->machine)) rc = cli_platform(&job->platform, &job->machine, err);
    options.platform = job->platform;
    if (rc == KHUB_OK) rc = cli_hub_begin(&job->hub, err);
    if (rc != KHUB_OK) return rc;
    rc = khub_kernelize(cli_model.khub_model_layers(job->model), &options, report, err);
    cli_hub_end();
    return rc;
}

static int has_texts(const struct job *job)
{
    return job->file || job->text_count > 0;
}

/* A slot whose layer the mapping names, and that no kernel serves. */
static int has_misses(const khub_report *report)
{
    const khub_slot_report *line;
    for (size_t i = 0; (line = khub_report_at(report, i)) != NULL; i++)
        if (line->mapped && !line->kernel) return 1;
    return 0;
}

/* Results go to stdout. A table is none when embeddings go there; as JSON it is the first line of them. */
static void print_report(const struct job *job, const khub_report *report)
{
    const char *reason = job->kernels ? NULL : "kernels weren't asked for (--kernels)";
    if (job->json)
        cli_report_json(stdout, report, reason);
    else
        cli_report_table(job->out || !has_texts(job) ? stdout : stderr, report, reason);
}

static void print_shadow(const struct job *job)
{
    if (job->json)
        cli_shadow_json(stdout, &job->shadow);
    else
        cli_shadow_table(job->out ? stdout : stderr, &job->shadow);
}

/* What only the calls could show; where print_report writes. */
static void print_retried(const struct job *job)
{
    const khub_layers *layers = cli_model.khub_model_layers(job->model);
    if (!job->report || job->how.on_error != KHUB_ON_ERROR_STANDARD) return;
    if (job->json)
        cli_report_retried_json(stdout, layers);
    else
        cli_report_retried(job->out ? stdout : stderr, layers);
}

static int use_kernels(struct job *job, khub_error *err)
{
    if (!job->kernels && !job->report) return KHUB_OK;
    khub_report *report = NULL;
    int rc = fill_slots(job, &report, err);
    if (rc == KHUB_OK && job->report)
        print_report(job, report);
    else if (rc == KHUB_OK && has_misses(report))
        cli_note("kernels serve %zu of %zu slots; --report says why the others keep their standard function",
                 khub_report_filled(report), khub_report_slots(report));
    khub_report_free(report);
    return rc;
}

static void print_rows(const float *rows, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < width; k++) {
            putchar(k ? ',' : '[');
            float value = rows[i * width + k];
            cli_json_number(stdout, (double)value, 9); /* nine digits tell all float32 apart */
        }
        puts("]");
    }
}

/* Room for `count` more rows behind those that are kept. */
static int make_room(struct job *job, size_t count, khub_error *err)
{
    size_t need = (job->out ? job->done : 0) + count;
    if (need <= job->rows_capacity) return KHUB_OK;
    size_t wanted = job->rows_capacity * 2 > need ? job->rows_capacity * 2 : need;
    if (wanted > SIZE_MAX / sizeof(float) / job->width) return cli_no_memory(err);
    float *grown = realloc(job->rows, wanted * job->width * sizeof(float));
    if (!grown) return cli_no_memory(err);
    job->rows = grown;
    job->rows_capacity = wanted;
    return KHUB_OK;
}

static void add_info(khub_embed_info *sum, const khub_embed_info *part, size_t before)
{
    if (!sum->truncated) sum->first_truncated = before + part->first_truncated;
    if (!sum->invalid_utf8) sum->first_invalid = before + part->first_invalid;
    sum->tokens += part->tokens;
    sum->truncated += part->truncated;
    sum->invalid_utf8 += part->invalid_utf8;
}

static int embed(struct job *job, const char *const *texts, const size_t *lengths, size_t count,
                 khub_error *err)
{
    khub_embed_info info;
    int rc = make_room(job, count, err);
    if (rc != KHUB_OK) return rc;
    float *rows = job->rows + (job->out ? job->done * job->width : 0);
    cli_kernels_begin();
    rc = cli_model.khub_model_embed(job->model, texts, lengths, count, rows, &info, err);
    if (rc == KHUB_OK && job->shadow.pattern)
        rc = cli_shadow_embed(&job->shadow, texts, lengths, count, rows, err);
    cli_kernels_end();
    if (rc != KHUB_OK) return rc;
    add_info(&job->info, &info, job->done);
    job->done += count;
    if (!job->out) print_rows(rows, count, job->width);
    return KHUB_OK;
}

/* Lines of a file, some at a time. */
struct batch {
    char *text[TEXTS_AT_ONCE];
    size_t length[TEXTS_AT_ONCE], count;
    size_t bytes; /* of all */
};

static int keep_line(struct batch *batch, const char *text, size_t length, khub_error *err)
{
    char *room = realloc(batch->text[batch->count], length + 1);
    if (!room) return cli_no_memory(err);
    memcpy(room, text, length);
    batch->text[batch->count] = room;
    batch->length[batch->count++] = length;
    batch->bytes += length;
    return KHUB_OK;
}

static int embed_lines(struct job *job, struct batch *batch, cli_lines *lines, khub_error *err)
{
    const char *text;
    size_t length;
    for (;;) {
        int more = 1;
        batch->count = batch->bytes = 0;
        while (batch->count < TEXTS_AT_ONCE && batch->bytes < CLI_LINES_LONGEST &&
               (more = cli_lines_next(lines, &text, &length, err)) == 1)
            if (keep_line(batch, text, length, err) != KHUB_OK) return err->code;
        if (more < 0) return err->code;
        if (batch->count == 0) return KHUB_OK;
        int rc = embed(job, (const char *const *)batch->text, batch->length, batch->count, err);
        if (rc != KHUB_OK || ferror(stdout)) return rc; /* main says what is wrong with stdout */
    }
}

static int embed_file(struct job *job, khub_error *err)
{
    cli_lines lines;
    int rc = cli_lines_open(&lines, job->file, err);
    if (rc != KHUB_OK) return rc;
    struct batch *batch = calloc(1, sizeof(*batch));
    rc = batch ? embed_lines(job, batch, &lines, err) : cli_no_memory(err);
    for (size_t i = 0; batch && i < TEXTS_AT_ONCE; i++)
        free(batch->text[i]);
    free(batch);
    cli_lines_close(&lines);
    return rc;
}

static int write_rows(struct job *job, khub_error *err)
{
    const int64_t shape[2] = {(int64_t)job->done, (int64_t)job->width};
    khub_tensor all = khub_tensor_f32(job->rows, 2, shape);
    return khub_npy_write(job->out, &all, err);
}

static void say(const struct job *job)
{
    const char *unit = job->file ? "line" : "text";
    const khub_embed_info *info = &job->info;
    if (info->truncated)
        cli_note("%zu of %zu texts are longer than the %zu tokens that the model takes and were cut (the "
                 "first: %s %zu)",
                 info->truncated, job->done, cli_model.khub_model_max_tokens(job->model), unit,
                 info->first_truncated + 1);
    if (info->invalid_utf8)
        cli_note("%zu of %zu texts aren't UTF-8; what is broken was read as U+FFFD (the first: %s %zu)",
                 info->invalid_utf8, job->done, unit, info->first_invalid + 1);
    cli_filling_say(cli_model.khub_model_layers(job->model));
}

static int work(struct job *job, khub_error *err)
{
    khub_model_options options;
    KHUB_INIT(&options);
    options.threads = (unsigned)job->threads;
    options.standard = job->standard;
    options.torch = job->machine.torch;
    char *dir;
    int rc = cli_model_dir(&dir, job->model_name, CLI_MODEL_WHOLE, &job->hub, err);
    if (rc == KHUB_OK) rc = cli_model.khub_model_open(&job->model, dir, &options, err);
    free(dir);
    if (rc == KHUB_OK) rc = use_kernels(job, err);
    if (rc == KHUB_OK && job->shadow.pattern) rc = cli_shadow_begin(&job->shadow, job->model, err);
    if (rc != KHUB_OK || !has_texts(job)) return rc;
    job->width = cli_model.khub_model_width(job->model);
    rc = job->file ? embed_file(job, err)
                   : embed(job, (const char *const *)job->texts, NULL, job->text_count, err);
    if (rc == KHUB_OK && job->out) rc = write_rows(job, err);
    if (rc == KHUB_OK) say(job);
    if (rc == KHUB_OK) print_retried(job);
    if (rc == KHUB_OK && job->shadow.pattern) print_shadow(job);
    return rc;
}

static int check_usage(struct job *job)
{
    const char *filling = cli_filling_given(&job->filling);
    if (!job->model_name) return cli_usage("embed", "--model NAME is missing");
    if (job->file && job->text_count)
        return cli_usage("embed", "texts come from --file or from the command line, not both");
    if (!has_texts(job) && !job->report) return cli_usage("embed", "there is no text, and no --file");
    if (!has_texts(job) && job->out) return cli_usage("embed", "-o without a text");
    if (job->kernels && job->no_kernels) return cli_usage("embed", "--kernels and --no-kernels at once");
    if (job->shadow.pattern && job->no_kernels)
        return cli_usage("embed", "--shadow and --no-kernels at once");
    if (job->shadow.pattern && !has_texts(job)) return cli_usage("embed", "--shadow without a text");
    if (filling && !job->kernels) return cli_usage("embed", "%s without --kernels", filling);
    return cli_filling_read(&job->how, &job->filling, "embed");
}

static int ends_with_json(const char *text)
{
    size_t n = strlen(text);
    return n >= 5 && !strcmp(text + n - 5, ".json");
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

/* 1: begins as an entry of a mapping does: "LAYER=", "LAYER(PATTERN)=" or "LAYER + LAYER=". */
static int is_entry(const char *text)
{
    for (;;) {
        size_t n = *text >= '0' && *text <= '9' ? 0 : strspn(text, letters);
        if (!n) return 0;
        text += n;
        if (*text == '(') text += strcspn(text, ") ");
        if (*text == ')') text++;
        if (*text == '=') return 1;
        text += strspn(text, " ");
        if (*text++ != '+') return 0;
        text += strspn(text, " ");
    }
}

/* "--kernels FILE" would embed the file's name. What is on the disk doesn't count: it isn't always the same.
 */
static int check_mapping_word(const char *word)
{
    if (!ends_with_json(word)) return 0;
    return cli_usage("embed",
                     "--kernels %s: a mapping follows \"=\", as in --kernels=%s; if it is a text, write "
                     "--kernels -- %s",
                     word, word, word);
}

/* The word after --kernels is a text, unless it has the form of an entry of a mapping: "--kernels GeLU=..."
 * becomes
 * "--kernels=GeLU=...". *joined is the caller's (free). Returns the new argc; -1: said. */
static int join_mapping_word(int argc, char **argv, char **joined)
{
    *joined = NULL;
    for (int i = 1; i + 1 < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--kernels") != 0) continue;
        if (check_mapping_word(argv[i + 1])) return -1;
        if (!is_entry(argv[i + 1])) return argc;
        size_t bytes = strlen(argv[i + 1]) + sizeof("--kernels=");
        *joined = malloc(bytes);
        if (!*joined) return cli_fail_memory(), -1;
        snprintf(*joined, bytes, "--kernels=%s", argv[i + 1]);
        argv[i] = *joined;
        memmove(&argv[i + 1], &argv[i + 2], (size_t)(argc - i - 2) * sizeof(*argv));
        argv[argc - 1] = NULL;
        return argc - 1;
    }
    return argc;
}

/* A word that was joined might have been meant as a text. */
static int read_mapping(struct job *job, int joined, khub_error *err)
{
    if (!job->kernels || !job->kernels[0]) return KHUB_OK;
    int rc = khub_mapping_items(&job->mapping, job->kernels, err);
    if (rc == KHUB_E_INVAL && joined)
        cli_note("if %s is a text, write --kernels -- %s", job->kernels, job->kernels);
    return rc;
}

static int run(int argc, char **argv)
{
    struct job job = {0};
    cli_hub_init(&job.hub);
    KHUB_INIT(&job.how);
    const cli_option options[] = {
        {"--model", CLI_TEXT, &job.model_name},
        {"--file", CLI_TEXT, &job.file},
        {"--kernels", CLI_OPTIONAL, &job.kernels},
        {"--no-kernels", CLI_FLAG, &job.no_kernels},
        CLI_FILLING_OPTIONS(job.filling),
        {"--torch", CLI_TEXT, &job.machine.torch},
        {"--no-torch", CLI_FLAG, &job.machine.no_torch},
        {"--shadow", CLI_OPTIONAL, &job.shadow.pattern},
        {"--report", CLI_FLAG, &job.report},
        {"--json", CLI_FLAG, &job.json},
        {"--threads", CLI_NUMBER, &job.threads},
        {"--standard", CLI_TEXT, &job.standard},
        {"-o", CLI_TEXT, &job.out},
        CLI_HUB_OPTIONS(job.hub),
    };
    khub_error err = {0};
    char *joined;
    cli_share_processors();
    argc = join_mapping_word(argc, argv, &joined);
    int count = argc < 0 ? -1 : cli_options(argc, argv, options, sizeof(options) / sizeof(*options));
    job.texts = argv + 1;
    job.text_count = count < 0 ? 0 : (size_t)count;
    if (job.shadow.pattern && !job.kernels && !job.no_kernels) job.kernels = ""; /* whose else? */
    int status = count < 0 ? EXIT_USAGE : check_usage(&job);
    if (!status) {
        int rc = read_mapping(&job, joined != NULL, &err);
        if (rc == KHUB_OK) rc = work(&job, &err);
        status = rc == KHUB_OK ? EXIT_DONE : cli_fail(&err);
    }
    cli_shadow_end(&job.shadow);
    khub_mapping_free(job.mapping);
    khub_platform_free(job.platform);
    cli_model.khub_model_close(job.model);
    free(job.rows);
    free(joined);
    return status;
}

const cli_command cli_embed = {"embed",         "sentences in, vectors out", help, run, .contained = 1,
                               .needs_model = 1};
