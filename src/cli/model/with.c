/* Of libexec/khub/khub-model. */
#include "model.h"

#define ENTRY(name) .name = name,

const struct cli_model_table cli_model = {CLI_MODEL_FUNCTIONS(ENTRY)};
