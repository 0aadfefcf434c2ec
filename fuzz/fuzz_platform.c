/* Platform files: whatever the text, a platform that is written and read back unchanged, or an error with
 * words. */
#include <khub/memory.h>
#include <khub/platform.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    khub_error err = {0};
    khub_platform *p, *q;
    if (khub_platform_parse(&p, (const char *)data, size, "f", &err) != KHUB_OK) {
        if (p || !err.message[0] || err.code == KHUB_OK) abort();
        return 0;
    }
    char *once = khub_platform_json(p);
    if (khub_platform_parse(&q, once, strlen(once), "f", &err) != KHUB_OK) abort();
    char *twice = khub_platform_json(q);
    if (strcmp(once, twice) != 0) abort();
    if (khub_platform_select(p, "cpu", &err) != KHUB_OK || strcmp(khub_platform_backend(p), "cpu") != 0)
        abort();
    khub_free(once);
    khub_free(twice);
    khub_platform_free(p);
    khub_platform_free(q);
    return 0;
}
