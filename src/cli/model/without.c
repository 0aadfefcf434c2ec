/* Of bin/khub. */
#include "model.h"

const struct cli_model_table cli_model = {0};
