/* Runs the tests of one file. Each runs in a child process; CK_RUN_CASE picks one by its name. Those that the
 * environment's KHUB_WITHOUT names, with commas between them, are left out. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static size_t left_out;

/* Whether KHUB_WITHOUT has the name. */
static int is_left_out(const char *name)
{
    size_t n = strlen(name);
    const char *at = getenv("KHUB_WITHOUT");
    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, name, n)) return 1;
    return 0;
}

static size_t names_in(const char *list)
{
    size_t count = list && *list;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

static void add(void *suite, const TTest *test)
{
    if (is_left_out(test->name)) {
        printf("left out: %s\n", test->name);
        left_out++;
        return;
    }
    TCase *one = tcase_create(test->name);
    tcase_set_timeout(one, 120);
    tcase_add_test(one, test);
    suite_add_tcase(suite, one);
}

int main(void)
{
    Suite *suite = suite_create(unit_name);
    unit_each(add, suite);
    if (left_out != names_in(getenv("KHUB_WITHOUT")))
        return fprintf(stderr, "KHUB_WITHOUT names a test that there isn't\n"), EXIT_FAILURE;
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed || run == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
