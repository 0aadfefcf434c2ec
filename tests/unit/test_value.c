/* Values and errors without a runtime in the process; with one: test_kernel_call.c. */
#include "unit.h"

#include "tensor/object.h"

#include <pthread.h>
#include <stdlib.h>
#include <tvm/ffi/c_api.h>

START_TEST(arguments)
{
    TVMFFIAny any;
    khub_value v = khub_arg_int(-7);
    memcpy(&any, &v, sizeof(any));
    ck_assert(any.type_index == kTVMFFIInt && any.zero_padding == 0 && any.v_int64 == -7);
    v = khub_arg_float(2.5);
    memcpy(&any, &v, sizeof(any));
    ck_assert(any.type_index == kTVMFFIFloat && any.zero_padding == 0 && any.v_float64 == 2.5);
    v = khub_arg_bool(17);
    memcpy(&any, &v, sizeof(any));
    ck_assert(any.type_index == kTVMFFIBool && any.v_int64 == 1);
    v = khub_arg_string("abc");
    ck_assert_int_eq(v.type, KHUB_TYPE_CSTRING);
    ck_assert_str_eq(v.as.str, "abc");
    ck_assert_int_eq(khub_arg_string(NULL).type, KHUB_TYPE_NONE);
    ck_assert_int_eq(khub_arg_tensor(NULL).type, KHUB_TYPE_NONE);
}
END_TEST

/* Objects laid out by tvm-ffi's own header. */
struct string_object {
    TVMFFIObject header;
    TVMFFIByteArray cell;
};
struct tensor_object {
    TVMFFIObject header;
    DLTensor cell;
};

START_TEST(text_of_values)
{
    size_t n = 99;
    khub_value v = khub_arg_string("hello");
    ck_assert_str_eq(khub_value_text(&v, &n), "hello");
    ck_assert_uint_eq(n, 5);
    v = khub_value_of(KHUB_TYPE_SMALL_STR, 0);
    memcpy(v.as.bytes, "abc", 4);
    v.small_len = 3;
    ck_assert_str_eq(khub_value_text(&v, NULL), "abc");
    v.small_len = 8; /* more than a value holds */
    ck_assert_ptr_null(khub_value_text(&v, &n));
    ck_assert_uint_eq(n, 0);
    struct string_object object = {.header = {.type_index = kTVMFFIStr}, .cell = {"a long text", 11}};
    v = khub_value_of(KHUB_TYPE_STR, 0);
    v.as.ptr = &object;
    ck_assert_str_eq(khub_value_text(&v, &n), "a long text");
    ck_assert_uint_eq(n, 11);
    v.as.ptr = NULL;
    ck_assert_ptr_null(khub_value_text(&v, &n));
    v = khub_arg_int(1);
    ck_assert_ptr_null(khub_value_text(&v, &n));
    ck_assert_ptr_null(khub_value_text(NULL, &n));
}
END_TEST

START_TEST(tensor_of_values)
{
    khub_tensor view = {0};
    khub_value v = khub_arg_tensor(&view);
    ck_assert_ptr_eq(khub_value_tensor(&v), &view);
    struct tensor_object object = {.header = {.type_index = kTVMFFITensor}, .cell = {.ndim = 3}};
    v = khub_value_of(KHUB_TYPE_TENSOR, 0);
    v.as.ptr = &object;
    ck_assert_ptr_eq(khub_value_tensor(&v), &object.cell);
    ck_assert_int_eq(khub_value_tensor(&v)->ndim, 3);
    v = khub_arg_int(1);
    ck_assert_ptr_null(khub_value_tensor(&v));
    ck_assert_ptr_null(khub_value_tensor(NULL));
}
END_TEST

static int own(void *self, const khub_value *args, int32_t n, khub_value *result)
{
    int *times = self;
    ++*times;
    if (n == 0) return -1;
    if (args[0].type != KHUB_TYPE_INT)
        return khub_raise("TypeError", "argument %d is of type %d", 0, args[0].type);
    *result = khub_arg_int(args[0].as.i64 + 1);
    return 0;
}

START_TEST(function_of_one_s_own)
{
    int times = 0;
    khub_function f = {own, &times};
    khub_error err = {0};
    khub_value result = khub_arg_int(5), one = khub_arg_int(1);
    ck_khub_ok(khub_function_call(&f, &one, 1, &result, &err), &err);
    ck_assert_int_eq(result.as.i64, 2);
    ck_khub_ok(khub_call(&f, &err, khub_arg_int(1)), &err);
    ck_khub_fails(khub_call(&f, &err, khub_arg_float(1)), &err, KHUB_E_KERNEL,
                  "TypeError: argument 0 is of type 3");
    ck_khub_fails(khub_function_call(&f, NULL, 0, &result, &err), &err, KHUB_E_KERNEL,
                  "failed without a message");
    ck_assert_int_eq(result.type, KHUB_TYPE_NONE);
    ck_assert_int_eq(khub_call(&f, NULL, khub_arg_float(1)), KHUB_E_KERNEL);
    ck_assert_int_eq(times, 5);
}
END_TEST

START_TEST(raised_text_is_bounded)
{
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = 0;
    khub_error err = {0};
    khub_value result = khub_arg_none();
    ck_assert_int_eq(khub_raise(text, "%s", text), -1);
    ck_khub_fails(khub__function_settle(-1, &result, 1, &err), &err, KHUB_E_KERNEL, "xxx: xxx");
    ck_assert_int_eq(khub_raise(NULL, "no kind"), -1);
    ck_assert_int_eq(khub__function_settle(-1, &result, 1, &err), KHUB_E_KERNEL);
    ck_assert_str_eq(err.message, "no kind");
    free(text);
}
END_TEST

static void *raise_elsewhere(void *user)
{
    khub_raise("ValueError", "of the other thread");
    return user;
}

START_TEST(errors_belong_to_a_thread)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, raise_elsewhere, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    khub_error err = {0};
    khub_value result = khub_arg_none();
    ck_khub_fails(khub__function_settle(-1, &result, 1, &err), &err, KHUB_E_KERNEL, "without a message");
}
END_TEST

static int destroyed;
static void count_destroyed(void *object)
{
    (void)object;
    destroyed++;
}

/* Counted as tvm-ffi counts: strong in the lower half, and one weak for all of them. */
START_TEST(objects_of_our_own)
{
    khub__object *o = khub__object_make(KHUB_TYPE_OBJECT, sizeof(*o), count_destroyed);
    TVMFFIObject theirs;
    memcpy(&theirs, o, sizeof(theirs));
    ck_assert(theirs.combined_ref_count == ((uint64_t)1 << 32 | 1) && theirs.type_index == KHUB_TYPE_OBJECT);
    ck_assert(khub__object_is(o, count_destroyed) && !khub__object_is(o, NULL));
    khub__object_retain(o);
    khub__object_release(o);
    ck_assert_int_eq(destroyed, 0);
    o->counts += (uint64_t)1 << 32; /* somebody has a weak reference: the content goes, the memory stays */
    khub__object_release(o);
    ck_assert_int_eq(destroyed, 1);
    ck_assert_uint_eq(o->counts, (uint64_t)1 << 32);
    o->deleter(o, kTVMFFIObjectDeleterFlagBitMaskWeak);
    ck_assert_int_eq(destroyed, 1);
}
END_TEST

START_TEST(arrays)
{
    khub_error err = {0};
    size_t count = 9;
    khub_value text, inner, outer, none = khub_arg_none();
    ck_assert_int_eq(khub__value_of_text(&text, "longer than 7", 13), 0);
    khub_value items[3] = {khub_arg_int(5), text, khub_arg_string("borrowed")};
    ck_khub_ok(khub_value_array(&inner, items, 3, &err), &err);
    khub_value_release(&text); /* the array has it */
    ck_khub_ok(khub_value_array(&outer, &inner, 1, &err), &err);
    khub_value_release(&inner);
    const khub_value *got = khub_value_items(khub_value_items(&outer, NULL), &count);
    ck_assert(count == 3 && got[0].as.i64 == 5);
    ck_assert_str_eq(khub_value_text(&got[1], NULL), "longer than 7");
    ck_assert_ptr_eq(got[2].as.str, items[2].as.str);
    khub_value_release(&outer);
    ck_khub_ok(khub_value_array(&outer, NULL, 0, &err), &err);
    ck_assert(khub_value_items(&outer, &count) != NULL && count == 0);
    khub_value_release(&outer);
    ck_assert(khub_value_items(&none, &count) == NULL && count == 0);
    ck_assert_ptr_null(khub_value_items(NULL, NULL));
    ck_khub_fails(khub_value_array(&outer, NULL, 1, &err), &err, KHUB_E_INVAL, "khub_value_array");
    ck_khub_fails(khub_value_array(&outer, items, SIZE_MAX, &err), &err, KHUB_E_NOMEM, "array");
    ck_assert_int_eq(outer.type, KHUB_TYPE_NONE);
}
END_TEST

UNIT("value", arguments, text_of_values, tensor_of_values, function_of_one_s_own, raised_text_is_bounded,
     errors_belong_to_a_thread, objects_of_our_own, arrays)
