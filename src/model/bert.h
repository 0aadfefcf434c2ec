/* The BERT encoder: token ids in, one vector per token out, every layer a slot. */
#ifndef MODEL_BERT_H
#define MODEL_BERT_H

#include "model/config.h"
#include "model/threads.h"

#include "ops/whose.h"

#include <khub/layer.h>

typedef struct khub__bert khub__bert;

/* Reads config.json and model.safetensors in `directory` and adds the slots, named as Transformers names the
 * modules, to `layers`, which must be freed first: its slots borrow the weights. `standard` says
 * whose functions they have (ops/whose.h); `threads` is borrowed. KHUB_E_NOTFOUND, KHUB_E_FORMAT,
 * KHUB_E_UNSUPPORTED, KHUB_E_IO, KHUB_E_NOMEM. */
int khub__bert_open(khub__bert **out, const char *directory, khub_layers *layers, khub__whose standard,
                    khub__threads *threads, khub_error *err);
void khub__bert_close(khub__bert *bert); /* NULL is a no-op */

const khub__config *khub__bert_config(const khub__bert *bert);
/* The most tokens of one khub__bert_run; at least the positions that the model has. */
int64_t khub__bert_capacity(const khub__bert *bert);

/* Runs `count` sentences whose ids lie one after the other, sentence i having lengths[i] of them. *hidden is
 * (all tokens, hidden size) in the same order, the model's until the next run. KHUB_E_KERNEL (slot and
 * kernel), KHUB_E_FORMAT (an id that the model doesn't have), KHUB_E_INVAL (too many tokens), KHUB_E_NOMEM.
 */
int khub__bert_run(const float **hidden, khub__bert *bert, const int32_t *ids, const int64_t *lengths,
                   size_t count, khub_error *err);

/* Drops the weights' pages that were read until now from memory: once kernels have prepared their weights,
 * nobody may need them again. */
void khub__bert_relax(const khub__bert *bert);

#endif
