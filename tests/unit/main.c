/* Runs the tests of one file. Each runs in a child process; CK_RUN_CASE picks one by its name. */
#include "unit.h"

#include <stdlib.h>

static void add(void *suite, const TTest *test)
{
    TCase *one = tcase_create(test->name);
    tcase_set_timeout(one, 120);
    tcase_add_test(one, test);
    suite_add_tcase(suite, one);
}

int main(void)
{
    Suite *suite = suite_create(unit_name);
    unit_each(add, suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed || run == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
