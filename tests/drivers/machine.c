/* Says what khub finds on the machine below ROOT, as a platform file on one line; one for each line "ROOT" on
 * standard input. "=NAME VALUE" sets a variable of the environment for those that follow, "-NAME" takes it
 * away, "!MS" is how long a driver is waited for. */
#include "platform/platform.h"

#include <khub/memory.h>

#include <stdio.h>
#include <stdlib.h>

static uint32_t timeout_ms = 30000;

static void answer(const char *root)
{
    khub_platform *p;
    khub_error err = {0};
    khub_platform_options options;
    KHUB_INIT(&options);
    options.probe_timeout_ms = timeout_ms;
    if (khub__platform_look_below(&p, root, KHUB__EVERYTHING, &options, &err) != KHUB_OK) {
        printf("{\"error\": \"%s\"}\n", err.message);
        return;
    }
    char *json = khub_platform_json(p);
    for (char *c = json; c && *c; c++)
        if (*c == '\n') *c = ' ';
    puts(json ? json : "{}");
    khub_free(json);
    khub_platform_free(p);
}

int main(void)
{
    static char line[4096];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, ' ');
        if (line[0] == '-') {
            unsetenv(line + 1);
        } else if (line[0] == '!') {
            timeout_ms = (uint32_t)atoi(line + 1);
        } else if (line[0] == '=' && value) {
            *value = 0;
            setenv(line + 1, value + 1, 1);
        } else {
            answer(line);
        }
        fflush(stdout);
    }
    return 0;
}
