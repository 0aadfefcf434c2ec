#include "model.h"

#include "cli.h"

#include <dlfcn.h>
#include <stddef.h>

#define SYMBOL(name) {#name, offsetof(struct cli_model_table, name)},

struct cli_model_table cli_model;

static const struct symbol {
    const char *name;
    size_t offset;
} symbols[] = {CLI_MODEL_FUNCTIONS(SYMBOL)};

int cli_model_open_library(void)
{
    void *handle = dlopen(CLI_MODEL_LIBRARY, RTLD_NOW | RTLD_LOCAL), *function = handle;
    for (size_t i = 0; function && i < sizeof(symbols) / sizeof(*symbols); i++) {
        function = dlsym(handle, symbols[i].name);
        memcpy((char *)&cli_model + symbols[i].offset, &function, sizeof(function));
    }
    if (function) return EXIT_DONE;
    cli_print(stderr, "khub: %s\n", dlerror());
    return EXIT_FAILED;
}
