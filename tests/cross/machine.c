/* Says what this machine is and which of the builds in its arguments it takes: linked for macOS and Windows
 * by ./dev test --cross, so that all that this needs of khub is there. */
#include <khub/memory.h>
#include <khub/platform.h>
#include <khub/variant.h>

#include <stdio.h>

static int fail(const khub_error *err)
{
    fprintf(stderr, "machine: %s\n", err->message);
    return 1;
}

int main(int argc, char **argv)
{
    khub_error err = {0};
    khub_platform *platform = NULL;
    khub_choice *choice = NULL;
    if (khub_platform_detect(&platform, NULL, &err) != KHUB_OK) return fail(&err);
    char *json = khub_platform_json(platform);
    printf("%s\n", json ? json : "");
    khub_free(json);
    int rc = khub_choose(&choice, (const char *const *)argv + 1, (size_t)argc - 1, platform, &err);
    const khub_decision *d;
    for (size_t i = 0; rc == KHUB_OK && (d = khub_choice_at(choice, i)); i++)
        printf("%s: %s%s%s\n", d->name, khub_decision_kind_name(d->kind), d->reason ? ": " : "",
               d->reason ? d->reason : "");
    khub_choice_free(choice);
    khub_platform_free(platform);
    return rc == KHUB_OK ? 0 : fail(&err);
}
