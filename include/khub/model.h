/* Models made of layers (libkhub-model): sentence embeddings. */
#ifndef KHUB_MODEL_H
#define KHUB_MODEL_H

#include <khub/layer.h>
#include <khub/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct khub_model khub_model;

typedef struct khub_model_options {
    size_t struct_size;   /* set by KHUB_INIT */
    unsigned threads;     /* 0: as many as the system allows this process */
    const char *standard; /* whose standard functions the slots have: "khub" (NULL too), or "torch", PyTorch's
                           * operators (khub_standard_torch), with its own threads, as many */
    const char *torch;    /* for that, the folder of a libtorch, as for khub_platform_use_torch; NULL: this
                           * machine's */
} khub_model_options;

/* Opens the model in `directory`: config.json, model.safetensors or the files that
 * model.safetensors.index.json names (mapped, not copied), its tokenizer, and sentence-transformers'
 * modules.json with the pooling where they stand. Every slot holds the standard
 * function. `options` may be NULL. *out is the caller's, used by one thread at a time.
 * KHUB_E_NOTFOUND, KHUB_E_FORMAT, KHUB_E_UNSUPPORTED (architecture, dtype), KHUB_E_IO, KHUB_E_NOMEM: each
 * names the file and the fact. */
KHUB_API int khub_model_open(khub_model **out, const char *directory, const khub_model_options *options,
                             khub_error *err);
KHUB_API void khub_model_close(khub_model *model); /* NULL is a no-op */

/* The model's slots, to be given to khub_kernelize; borrowed. */
KHUB_API khub_layers *khub_model_layers(khub_model *model);
KHUB_API const khub_tokenizer *khub_model_tokenizer(const khub_model *model); /* borrowed */
KHUB_API size_t khub_model_width(const khub_model *model);                    /* of an embedding */
KHUB_API size_t khub_model_max_tokens(const khub_model *model);               /* longer texts are cut */
KHUB_API unsigned khub_model_threads(const khub_model *model);

/* What happened to the texts of one khub_model_embed. */
typedef struct khub_embed_info {
    size_t tokens;                         /* that the model saw, special tokens included */
    size_t truncated;                      /* texts that were cut */
    size_t invalid_utf8;                   /* texts with broken UTF-8, read as U+FFFD */
    size_t first_truncated, first_invalid; /* index of the first such text */
} khub_embed_info;

/* Embeds `count` texts: out is (count, khub_model_width) float32, row i for text i, whatever the order or
 * company of the texts. lengths may be NULL (NUL-terminated texts). An empty text is embedded as its special
 * tokens. `info` may be NULL. KHUB_E_KERNEL (slot and kernel), KHUB_E_NOMEM. */
KHUB_API int khub_model_embed(khub_model *model, const char *const *texts, const size_t *lengths,
                              size_t count, float *out, khub_embed_info *info, khub_error *err);

#ifdef __cplusplus
}
#endif

#endif
