/* The real libtorch, of KHUB_TORCH, is found as it is: what it says of itself, and what the loader would
 * open. */
#include "unit.h"

#include "platform/reach.h"
#include "platform/stated.h"
#include "platform/torch.h"

#include <stdio.h>
#include <stdlib.h>

static khub__pool pool;

static khub__torch find(khub__places *places)
{
    khub__torch torch;
    const char *dir = getenv("KHUB_TORCH");
    ck_assert_ptr_nonnull(dir);
    setenv("KHUB_TORCH_DIR", dir, 1);
    khub__places_open(places, "", &pool);
    khub__find_torch(&torch, places, &pool);
    ck_assert_msg(torch.info.presence == KHUB_FOUND, "%s", torch.info.reason);
    return torch;
}

/* Its headers have the version too, in a file that isn't looked at. */
START_TEST(version_of_its_headers)
{
    khub__places places;
    khub__torch torch = find(&places);
    char text[KHUB__VERSION_TEXT];
    const char *stated = khub__stated_defines(getenv("KHUB_TORCH"), "include/torch/headeronly/version.h",
                                              "TORCH_VERSION", &pool);
    ck_assert_str_eq(khub__version_text(torch.version, text), stated);
    ck_assert_int_eq(torch.cxx11_abi, 1); /* no other is made any more */
    khub__places_close(&places);
    khub__pool_free(&pool);
}
END_TEST

/* The loader itself lists where it finds what the library needs: "\tlibc10.so => /path/libc10.so (0x…)". */
START_TEST(what_the_loader_finds)
{
    khub__places places;
    khub__reach reach;
    char command[4096], line[4096];
    size_t listed = 0, expected = 0;
    khub__torch torch = find(&places);
    khub__reach_of(&reach, torch.info.path, &places.loader, &pool);
    snprintf(command, sizeof(command), "ldd '%s'", torch.info.path);
    FILE *list = popen(command, "r");
    ck_assert_ptr_nonnull(list);
    while (fgets(line, sizeof(line), list)) {
        char name[1024], path[2048];
        if (sscanf(line, " %1023s => %2047s", name, path) != 2) continue;
        for (size_t i = 1; i < reach.count; i++) {
            if (strcmp(reach.files[i].name, name) != 0) continue;
            char *theirs = realpath(path, NULL),
                 *ours = reach.files[i].own ? realpath(reach.files[i].path, NULL) : NULL;
            if (ours) ck_assert_str_eq(ours, theirs);
            expected += ours != NULL;
            listed++;
            free(theirs);
            free(ours);
        }
    }
    ck_assert_int_eq(pclose(list), 0);
    ck_assert_uint_ge(listed, 8);
    ck_assert_uint_eq(expected + 1, reach.own_count); /* each of its own, and itself */
    ck_assert_uint_eq(reach.lacking, 0);
    khub__places_close(&places);
    khub__pool_free(&pool);
}
END_TEST

UNIT("torch_found", version_of_its_headers, what_the_loader_finds)
