#include "model_dir.h"

#include <stdlib.h>

/* What a tokenizer is read from. In repositories of some age the encoder has a folder of its own,
 * "0_Transformer". */
#define TOKENIZER_FILES                                                                                      \
    "tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json",                       \
        "[0-9]_*/tokenizer.json", "[0-9]_*/tokenizer_config.json", "[0-9]_*/vocab.txt",                      \
        "[0-9]_*/special_tokens_map.json"

static const char *const tokenizer_files[] = {TOKENIZER_FILES, NULL};

/* All but shards: whether those are needed shows when these are there. */
static const char *const model_files[] = {TOKENIZER_FILES,
                                          "config.json",
                                          "modules.json",
                                          "sentence_bert_config.json",
                                          "config_sentence_transformers.json",
                                          "model.safetensors",
                                          "model.safetensors.index.json",
                                          "[0-9]_*/config.json", /* of the pooling, too */
                                          "[0-9]_*/sentence_bert_config.json",
                                          "[0-9]_*/model.safetensors",
                                          NULL};

static const char *const shard_files[] = {"model-*.safetensors", NULL};

static int copy(char **out, const char *text, khub_error *err)
{
    size_t size = strlen(text) + 1;
    *out = malloc(size);
    if (*out) {
        memcpy(*out, text, size);
        return KHUB_OK;
    }
    snprintf(err->message, sizeof(err->message), "out of memory");
    return err->code = KHUB_E_NOMEM;
}

static int is_there(const char *dir, const char *name)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path)) return 0;
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

static int fetch(khub_snapshot **out, const char *name, const char *const *patterns, cli_hub *hub,
                 khub_error *err)
{
    khub_download_options download;
    KHUB_INIT(&download);
    download.patterns = patterns;
    download.model = 1;
    return cli_download(out, name, &download, hub, err);
}

/* The shards, at the commit of the first files: where the branch stands isn't asked again. */
static int fetch_shards(const char *name, const khub_snapshot *first, cli_hub *hub, khub_error *err)
{
    char pinned[512];
    khub_snapshot *snapshot;
    snprintf(pinned, sizeof(pinned), "%.*s@%s", (int)strcspn(name, "@"), name, khub_snapshot_commit(first));
    int rc = fetch(&snapshot, pinned, shard_files, hub, err);
    khub_snapshot_free(snapshot);
    return rc;
}

/* Of a snapshot that has its other files. */
static int needs_shards(const char *path)
{
    return !is_there(path, "model.safetensors") && is_there(path, "model.safetensors.index.json");
}

static int fetch_model(char **dir, const char *name, cli_model_part part, cli_hub *hub, khub_error *err)
{
    khub_snapshot *snapshot;
    int whole = part == CLI_MODEL_WHOLE;
    int rc = fetch(&snapshot, name, whole ? model_files : tokenizer_files, hub, err);
    if (rc != KHUB_OK) return rc;
    const char *path = khub_snapshot_path(snapshot);
    if (whole && needs_shards(path)) rc = fetch_shards(name, snapshot, hub, err);
    if (rc == KHUB_OK) rc = copy(dir, path, err);
    khub_snapshot_free(snapshot);
    return rc;
}

static int fail_no_name(khub_error *err, const char *name, khub_name_kind kind)
{
    const char *form = "which is named ORG/NAME or ORG/NAME@REV";
    if (kind == KHUB_NAME_ADDRESS)
        snprintf(err->message, sizeof(err->message), "%s: is an address and no model of the Hub, %s", name,
                 form);
    else
        snprintf(err->message, sizeof(err->message),
                 "%s: is neither a directory (%s) nor a model of the Hub, %s", name,
                 cli_not_a_directory(name), form);
    return err->code = KHUB_E_NOTFOUND;
}

/* A mistyped path may look like a name of the Hub. */
static void add_other_reading(khub_error *err, const char *name)
{
    size_t length = strlen(err->message);
    if (err->code == KHUB_E_NOMEM || err->code == KHUB_E_CANCELED) return;
    snprintf(err->message + length, sizeof(err->message) - length, " (and as a directory, ./%s: %s)", name,
             cli_not_a_directory(name));
}

int cli_model_dir(char **dir, const char *name, cli_model_part part, cli_hub *hub, khub_error *err)
{
    *dir = NULL;
    khub_name_kind kind = khub_name_kind_of(name);
    if (kind == KHUB_NAME_PATH || !cli_not_a_directory(name)) return copy(dir, name, err);
    if (kind != KHUB_NAME_HUB) return fail_no_name(err, name, kind);
    int rc = fetch_model(dir, name, part, hub, err);
    if (rc != KHUB_OK) add_other_reading(err, name);
    return rc;
}
