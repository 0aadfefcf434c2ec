/* NULL where something must be given: an error that names the function, and nothing in the out-pointer. */
#include "unit.h"

#include <khub/khub.h>
#include <khub/model.h>
#include <khub/tokenizer.h>

#define fails(function, call)                                                                                \
    ck_khub_fails(call, &err, KHUB_E_INVAL, function ": an argument that must be given is NULL")

static int function(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    (void)self, (void)args, (void)n, (void)result;
    return 0;
}

START_TEST(kernels)
{
    khub_error err = {0};
    khub_function f = {function, NULL};
    khub_choice *choice = (khub_choice *)&err;
    const khub_layer_spec *spec = (const khub_layer_spec *)&err;
    fails("khub_get", khub_get(NULL, "khub/norm", NULL, &err));
    fails("khub_kernel_function", khub_kernel_function(&f, NULL, "gelu", &err));
    ck_assert(f.call == NULL);
    fails("khub_kernel_function", khub_kernel_function(NULL, NULL, "gelu", &err));
    fails("khub_kernel_layer", khub_kernel_layer(&spec, NULL, "GeLU", &err));
    ck_assert_ptr_null(spec);
    fails("khub_choose_in", khub_choose_in(&choice, NULL, NULL, NULL, &err));
    ck_assert_ptr_null(choice);
    fails("khub_choose_in", khub_choose_in(NULL, "khub/norm", NULL, NULL, &err));
    ck_assert_int_eq(khub_choose_in(NULL, "khub/norm", NULL, NULL, NULL), KHUB_E_INVAL);
}
END_TEST

START_TEST(locks)
{
    khub_error err = {0};
    khub_locked_kernel *list;
    const char *const names[] = {NULL};
    size_t count;
    char *text, **found;
    fails("khub_lock", khub_lock(&list, &count, NULL, NULL, &err));
    fails("khub_lock", khub_lock(&list, NULL, names, NULL, &err));
    ck_khub_ok(khub_lock(&list, &count, names, NULL, &err), &err);
    ck_assert(!list && !count);
    fails("khub_lock_read", khub_lock_read(&list, &count, NULL, &err));
    fails("khub_lock_text", khub_lock_text(&text, NULL, 1, &err));
    fails("khub_lock_text", khub_lock_text(NULL, NULL, 0, &err));
    fails("khub_lock_write", khub_lock_write(NULL, NULL, 0, &err));
    fails("khub_lock_project", khub_lock_project(&found, NULL, &err));
    fails("khub_lock_project", khub_lock_project(NULL, "x", &err));
    ck_khub_fails(khub_verify(NULL, NULL, NULL, NULL, NULL, &err), &err, KHUB_E_INVAL,
                  "khub_verify: neither a name nor a lock is given");
}
END_TEST

START_TEST(platforms_and_layers)
{
    khub_error err = {0};
    khub_platform *platform = (khub_platform *)&err;
    khub_layers *layers;
    khub_slot *slot;
    khub_function f = {function, NULL};
    fails("khub_platform_detect", khub_platform_detect(NULL, NULL, &err));
    fails("khub_platform_read", khub_platform_read(&platform, NULL, &err));
    ck_assert_ptr_null(platform);
    fails("khub_platform_parse", khub_platform_parse(&platform, NULL, 0, NULL, &err));
    fails("khub_platform_select", khub_platform_select(NULL, "cpu", &err));
    fails("khub_network", khub_network(NULL, &err));
    fails("khub_layers_new", khub_layers_new(NULL, &err));
    ck_khub_ok(khub_layers_new(&layers, &err), &err);
    fails("khub_layers_add", khub_layers_add(NULL, "a", "GeLU", f, NULL, NULL, &err));
    fails("khub_layers_add", khub_layers_add(layers, NULL, "GeLU", f, NULL, &slot, &err));
    ck_assert_ptr_null(slot);
    fails("khub_layers_add", khub_layers_add(layers, "a", NULL, f, NULL, &slot, &err));
    ck_khub_ok(khub_layers_add(layers, "a", "GeLU", f, NULL, &slot, &err), &err);
    fails("khub_slot_bind", khub_slot_bind(slot, NULL, NULL, &err));
    fails("khub_slot_bind", khub_slot_bind(NULL, "x", NULL, &err));
    fails("khub_kernelize", khub_kernelize(NULL, NULL, NULL, &err));
    khub_layers_free(layers);
}
END_TEST

START_TEST(policies)
{
    khub_error err = {0};
    khub_trust *trust = (khub_trust *)&err;
    khub_policy *policy = (khub_policy *)&err;
    khub_trust_level level;
    const khub_identity who = {"i", "r", NULL, NULL};
    fails("khub_judge", khub_judge(NULL, "khub/norm", 1, NULL, &err));
    ck_khub_fails(khub_judge(&trust, NULL, 1, NULL, &err), &err, KHUB_E_INVAL,
                  "khub_judge: no name is given");
    ck_assert_ptr_null(trust);
    fails("khub_policy_new", khub_policy_new(NULL, &err));
    fails("khub_policy_read", khub_policy_read(NULL, "x", &err));
    fails("khub_policy_write", khub_policy_write(NULL, "/nowhere/x", &err));
    fails("khub_policy_path", khub_policy_path(NULL, &err));
    fails("khub_trust_level_parse", khub_trust_level_parse(&level, NULL, &err));
    fails("khub_trust_level_parse", khub_trust_level_parse(NULL, "signed", &err));
    ck_khub_ok(khub_policy_new(&policy, &err), &err);
    fails("khub_policy_set_level", khub_policy_set_level(NULL, KHUB_TRUST_SIGNED, &err));
    fails("khub_policy_set_offline", khub_policy_set_offline(NULL, 1, &err));
    fails("khub_policy_set_trusted_root", khub_policy_set_trusted_root(NULL, "x", &err));
    fails("khub_policy_add_publisher", khub_policy_add_publisher(NULL, "org", &err));
    fails("khub_policy_add_publisher", khub_policy_add_publisher(policy, NULL, &err));
    fails("khub_policy_remove_publisher", khub_policy_remove_publisher(policy, NULL, &err));
    fails("khub_policy_add_identity", khub_policy_add_identity(NULL, &who, &err));
    fails("khub_policy_add_identity", khub_policy_add_identity(policy, NULL, &err));
    fails("khub_policy_remove_identity", khub_policy_remove_identity(policy, NULL, &err));
    khub_policy_reset_identities(NULL);
    ck_assert_ptr_null(khub_policy_publisher(NULL, 0));
    khub_policy_free(policy);
}
END_TEST

START_TEST(arrays)
{
    khub_error err = {0};
    khub_array array = {.memory = &err};
    khub_dtype dtype;
    khub_tensor t = khub_tensor_f32(NULL, 0, NULL);
    fails("khub_npy_read", khub_npy_read(&array, NULL, &err));
    ck_assert_ptr_null(array.memory);
    fails("khub_npy_read", khub_npy_read(NULL, "x.npy", &err));
    fails("khub_npy_write", khub_npy_write(NULL, &t, &err));
    fails("khub_npy_write", khub_npy_write("/nowhere/x.npy", NULL, &err));
    fails("khub_npy_write_all", khub_npy_write_all(NULL, NULL, 1, &err));
    ck_khub_ok(khub_npy_write_all(NULL, NULL, 0, &err), &err);
    fails("khub_array_new", khub_array_new(&array, t.dtype, 1, NULL, &err));
    fails("khub_array_new", khub_array_new(NULL, t.dtype, 0, NULL, &err));
    fails("khub_dtype_parse", khub_dtype_parse(&dtype, NULL, &err));
    fails("khub_dtype_parse", khub_dtype_parse(NULL, "float32", &err));
}
END_TEST

START_TEST(models)
{
    khub_error err = {0};
    khub_model *model = (khub_model *)&err;
    khub_tokenizer *tokenizer = (khub_tokenizer *)&err;
    khub_tokens tokens = {.count = 1};
    const char *texts[1] = {"x"};
    fails("khub_model_open", khub_model_open(&model, NULL, NULL, &err));
    ck_assert_ptr_null(model);
    fails("khub_model_open", khub_model_open(NULL, "x", NULL, &err));
    fails("khub_model_embed", khub_model_embed(NULL, texts, NULL, 1, NULL, NULL, &err));
    fails("khub_tokenizer_open", khub_tokenizer_open(&tokenizer, NULL, &err));
    ck_assert_ptr_null(tokenizer);
    fails("khub_tokenizer_encode", khub_tokenizer_encode(&tokens, NULL, "x", 1, 0, &err));
    ck_assert_uint_eq(tokens.count, 0);
}
END_TEST

UNIT("null", kernels, policies, locks, platforms_and_layers, arrays, models)
