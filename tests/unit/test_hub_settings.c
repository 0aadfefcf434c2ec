/* Settings and the user's folders; more of them in tests/hub/test_environment.py. */
#include "failing_memory.h"
#include "unit.h"

#include "base/home.h"
#include "base/memory.h"
#include "hub/settings.h"
#include "hub/token.h"

#include <stdio.h>
#include <unistd.h>

static void clear_environment(void)
{
    static const char *const names[] = {"HF_TOKEN",
                                        "HUGGING_FACE_HUB_TOKEN",
                                        "HF_TOKEN_PATH",
                                        "HF_HOME",
                                        "XDG_CACHE_HOME",
                                        "HF_ENDPOINT",
                                        "HF_HUB_OFFLINE",
                                        "TRANSFORMERS_OFFLINE",
                                        "HF_HUB_ETAG_TIMEOUT",
                                        "HF_HUB_DOWNLOAD_TIMEOUT",
                                        "HF_HUB_DISABLE_IMPLICIT_TOKEN",
                                        "HF_HUB_DISABLE_TELEMETRY",
                                        "DISABLE_TELEMETRY",
                                        "DO_NOT_TRACK"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
    setenv("HOME", "/nonexistent", 1);
}

START_TEST(timeouts)
{
    static const struct {
        const char *value;
        uint32_t ms;
    } table[] = {{"3", 3000},  {"0.25", 250},  {"", 10000},        {"x", 10000}, {"-1", 10000},
                 {"0", 10000}, {"nan", 10000}, {"1e30", 86400000}, {"1e-9", 1}};
    clear_environment();
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        khub__hub_settings settings;
        khub_error err = {0};
        setenv("HF_HUB_DOWNLOAD_TIMEOUT", table[i].value, 1);
        ck_khub_ok(khub__hub_settings_read(&settings, NULL, &err), &err);
        ck_assert_uint_eq(settings.stall_timeout_ms, table[i].ms);
        ck_assert_uint_eq(settings.connect_timeout_ms, 10000);
        khub__hub_settings_free(&settings);
    }
}
END_TEST

START_TEST(caller_comes_first)
{
    clear_environment();
    setenv("HF_ENDPOINT", "http://environment", 1);
    setenv("HF_TOKEN", "environment", 1);
    khub_hub_options options = {
        .struct_size = sizeof(options), .endpoint = "http://caller/", .token = " given ", .offline = 1};
    khub__hub_settings settings;
    khub_error err = {0};
    ck_khub_ok(khub__hub_settings_read(&settings, &options, &err), &err);
    ck_assert_str_eq(settings.endpoint, "http://caller");
    ck_assert_str_eq(settings.token, "given");
    ck_assert_str_eq(settings.token_source, "the caller");
    ck_assert_int_eq(settings.offline, 1);
    khub__hub_settings_free(&settings);
    ck_assert_ptr_null(settings.token);
}
END_TEST

START_TEST(facts_for_the_agent)
{
    khub__hub_settings settings;
    khub_error err = {0};
    clear_environment();
    ck_khub_ok(khub__hub_settings_read(&settings, NULL, &err), &err);
    ck_assert_int_eq(khub__hub_settings_tell(&settings, "backend", "cu128"), KHUB_OK);
    ck_assert_int_eq(khub__hub_settings_tell(&settings, "torch", NULL), KHUB_OK);
    ck_assert_int_eq(khub__hub_settings_tell(&settings, "x", "a\r\nEvil: 1"), KHUB_OK);
    ck_assert_int_eq(khub__hub_settings_tell(&settings, "backend", "cpu"), KHUB_OK);
    ck_assert_ptr_nonnull(strstr(settings.user_agent, "; backend/cu128"));
    ck_assert_ptr_null(strstr(settings.user_agent, "backend/cpu")); /* the first counts */
    ck_assert_ptr_null(strpbrk(settings.user_agent, "\r\n"));
    ck_assert_ptr_null(strstr(settings.user_agent, "torch"));
    setenv("DO_NOT_TRACK", "1", 1);
    ck_assert_int_eq(khub__hub_settings_tell(&settings, "glibcxx", "3"), KHUB_OK);
    ck_assert_ptr_null(strstr(settings.user_agent, "glibcxx"));
    khub__hub_settings_free(&settings);
}
END_TEST

START_TEST(expanding)
{
    static const struct {
        const char *path, *expanded;
    } table[] = {
        {"/a/b", "/a/b"},
        {"~/x", "/home/me/x"},
        {"~", "/home/me"},
        {"a~", "a~"},
        {"$A/x", "value/x"},
        {"${A}x", "valuex"},
        {"$Ax", "$Ax"},
        {"${NOPE}/x", "${NOPE}/x"},
        {"$", "$"},
        {"a$", "a$"},
        {"${A", "${A"},
        {"$A$A", "valuevalue"},
        {"~nobody-of-that-name/x", "~nobody-of-that-name/x"},
        {"", ""},
    };
    setenv("HOME", "/home/me/", 1);
    setenv("A", "value", 1);
    unsetenv("Ax");
    unsetenv("NOPE");
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        char *got = khub__path_expand(table[i].path);
        ck_assert_str_eq(got, table[i].expanded);
        khub__free(got);
    }
}
END_TEST

START_TEST(many_variables_at_once)
{
    static const char *const names[] = {"A", "AB", "NOPE", "EMPTY", "HOME", "A"};
    enum { COUNT = sizeof(names) / sizeof(*names) };
    const char *values[COUNT];
    setenv("A", "value=x", 1);
    setenv("ABC", "another", 1);
    setenv("EMPTY", "", 1);
    setenv("HOME", "/home/me", 1);
    unsetenv("AB");
    unsetenv("NOPE");
    for (int i = 0; i < 2; i++) {
        khub__env_all(values, names, COUNT);
        for (size_t k = 0; k < COUNT; k++)
            ck_assert_ptr_eq(values[k], getenv(names[k]));
        setenv("AB", "new", 1);
        setenv("A", "changed", 1);
        unsetenv("HOME");
    }
    clearenv();
    khub__env_all(values, names, COUNT);
    ck_assert_ptr_null(values[0]);
}
END_TEST

START_TEST(homes)
{
    khub_error err = {0};
    char *home;
    clear_environment();
    ck_khub_ok(khub__hf_home(&home, &err), &err);
    ck_assert_str_eq(home, "/nonexistent/.cache/huggingface");
    khub__free(home);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    ck_khub_ok(khub__hf_home(&home, &err), &err);
    ck_assert_str_eq(home, "/xdg/huggingface");
    khub__free(home);
    setenv("HF_HOME", "$XDG_CACHE_HOME/hf", 1);
    ck_khub_ok(khub__hf_home(&home, &err), &err);
    ck_assert_str_eq(home, "/xdg/hf");
    khub__free(home);
}
END_TEST

START_TEST(hidden_token)
{
    char text[] = "the tokens hf_x and hf_xhf_x";
    khub__token_hide(text, "hf_x");
    ck_assert_str_eq(text, "the tokens **** and ********");
    khub__token_hide(text, NULL);
    khub__token_hide(text, "");
}
END_TEST

static int read_settings(void *user, khub_error *err)
{
    (void)user;
    khub__hub_settings settings;
    int rc = khub__hub_settings_read(&settings, NULL, err);
    if (rc == KHUB_OK && khub__hub_settings_tell(&settings, "a", "b") != KHUB_OK)
        rc = err->code = KHUB_E_NOMEM;
    if (rc == KHUB_OK) ck_assert_str_eq(settings.token, "hf_of_file");
    khub__hub_settings_free(&settings);
    return rc;
}

START_TEST(failing_memory)
{
    char path[] = "/tmp/khub-token-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "hf_of_file\n", 11), 11);
    close(fd);
    clear_environment();
    setenv("HF_TOKEN_PATH", path, 1);
    fm_fail_each(read_settings, NULL);
    unsetenv("HF_TOKEN_PATH");
    unlink(path);
    clear_environment();
    char folder[] = "/tmp/khub-home-XXXXXX", file[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/token", folder);
    FILE *out = fopen(file, "w");
    fputs("hf_of_file", out);
    fclose(out);
    setenv("HF_HOME", folder, 1);
    fm_fail_each(read_settings, NULL);
    unlink(file);
    rmdir(folder);
}
END_TEST

UNIT("hub_settings", timeouts, caller_comes_first, facts_for_the_agent, expanding, many_variables_at_once,
     homes, hidden_token, failing_memory)
