/* A program that exports the names of twin.c's (-rdynamic): prints what the kernels answer all the same. */
#include <khub/khub.h>

#include <stdio.h>

int helper(void);
extern int state;
int state = 3;

int helper(void)
{
    return 3;
}

static long ask(const khub_kernel *kernel, const char *name)
{
    khub_function f;
    khub_value result;
    if (khub_kernel_function(&f, kernel, name, NULL) != KHUB_OK) return -1;
    if (khub_function_call(&f, NULL, 0, &result, NULL) != KHUB_OK) return -1;
    return (long)result.as.i64;
}

/* host VARIANT REPOSITORY... */
int main(int argc, char **argv)
{
    khub_get_options options;
    KHUB_INIT(&options);
    options.variant = argc > 1 ? argv[1] : NULL;
    for (int i = 2; i < argc; i++) {
        khub_error err = {0};
        khub_kernel *kernel;
        if (khub_get(&kernel, argv[i], &options, &err) != KHUB_OK) {
            printf("%s\n", err.message);
            continue;
        }
        printf("%ld %ld\n", ask(kernel, "ask_helper"), ask(kernel, "ask_state"));
        khub_kernel_close(kernel);
    }
    return helper() == 3 && state == 3 ? 0 : 1;
}
