/* --model NAME: a directory of this machine, or a model of the Hub in the cache. */
#ifndef CLI_MODEL_DIR_H
#define CLI_MODEL_DIR_H

#include "hub.h"

/* What of a model is needed. */
typedef enum cli_model_part { CLI_MODEL_TOKENIZER, CLI_MODEL_WHOLE } cli_model_part;

/* The directory of the model NAME: the directory NAME itself when there is one (or when NAME can't be
 * anything else: it starts with "/", "./" or "../"); else ORG/NAME[@REV] of the Hub, whose files of that part
 * are fetched into the cache if they aren't there. *dir is the caller's (free), NULL after a failure. Errors
 * as khub_download's, and KHUB_E_NOTFOUND for a name that is neither. */
int cli_model_dir(char **dir, const char *name, cli_model_part part, cli_hub *hub, khub_error *err);

#endif
