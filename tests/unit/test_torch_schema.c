/* Schemas as data, without libtorch; those of libtorch itself: test_torch.c. */
#include "unit.h"

#include "failing_memory.h"
#include "torch/schema.h"

#include <stdio.h>

static khub__schema schema;

static void parse(const char *text)
{
    khub_error err = {0};
    khub__schema_free(&schema);
    ck_khub_ok(khub__schema_parse(&schema, text, &err), &err);
}

static const khub__schema_argument *argument(size_t i)
{
    ck_assert_uint_lt(i, schema.argument_count);
    return &schema.arguments[i];
}

#define ck_piece(piece, word)                                                                                \
    ck_assert_msg((piece).length == strlen(word) && memcmp((piece).at, word, (piece).length) == 0,           \
                  "\"%.*s\" isn't \"%s\"", (int)(piece).length, (piece).at, word)

START_TEST(parts)
{
    parse(
        "aten::add_.out(Tensor(a!) self, SymInt[2]? n=None, *, str mode=\"a\\\"b\\n\\001\", Tensor?[] xs) -> "
        "(Tensor(a!) out, int)");
    ck_piece(schema.name, "aten::add_");
    ck_piece(schema.overload, "out");
    ck_assert_uint_eq(schema.argument_count, 4);
    ck_assert_uint_eq(schema.keyword_at, 2);
    const khub__schema_argument *a = argument(0);
    ck_piece(a->name, "self");
    ck_piece(a->type.alias, "a!");
    ck_assert(a->type.kind == KHUB__SCHEMA_TENSOR && a->type.writes && a->type.wrap_count == 0);
    ck_assert_int_eq(a->value.kind, KHUB__SCHEMA_NO_VALUE);
    a = argument(1);
    ck_assert(a->type.kind == KHUB__SCHEMA_INT && a->type.wrap_count == 2);
    ck_assert(a->type.wraps[0].is_list && a->type.wraps[0].size == 2 && !a->type.wraps[1].is_list);
    ck_assert_int_eq(a->value.kind, KHUB__SCHEMA_NONE);
    a = argument(2);
    ck_assert_int_eq(a->value.kind, KHUB__SCHEMA_VALUE_TEXT);
    ck_piece(a->value.text, "a\"b\n\001");
    a = argument(3);
    ck_assert(a->type.kind == KHUB__SCHEMA_TENSOR && a->type.wrap_count == 2);
    ck_assert(!a->type.wraps[0].is_list && a->type.wraps[1].is_list && a->type.wraps[1].size == -1);
    ck_assert_uint_eq(schema.result_count, 2);
    ck_piece(schema.results[0].name, "out");
    ck_assert(schema.results[1].type.kind == KHUB__SCHEMA_INT && schema.results[1].name.length == 0);
    khub__schema_free(&schema);
}
END_TEST

START_TEST(defaults)
{
    parse("a::b(int a=-100, float b=1e-08, float c=2., bool d=True, int[3] e=[1, 0, -1], bool[2] f=[True, "
          "False], "
          "str[] g=[\"x\", \"\"], float[] h=[], ScalarType i=float, int j=9223372036854775807) -> ()");
    ck_assert(argument(0)->value.kind == KHUB__SCHEMA_VALUE_INT && argument(0)->value.i == -100);
    ck_assert(argument(1)->value.kind == KHUB__SCHEMA_VALUE_FLOAT && argument(1)->value.f == 1e-8);
    ck_assert(argument(2)->value.kind == KHUB__SCHEMA_VALUE_FLOAT && argument(2)->value.f == 2);
    ck_assert(argument(3)->value.kind == KHUB__SCHEMA_VALUE_BOOL && argument(3)->value.i == 1);
    const khub__schema_value *list = &argument(4)->value;
    ck_assert(list->kind == KHUB__SCHEMA_VALUE_LIST && list->count == 3);
    ck_assert_int_eq(schema.items[list->i + 2].i, -1);
    list = &argument(5)->value;
    ck_assert(list->count == 2 && schema.items[list->i].i == 1 && schema.items[list->i + 1].i == 0);
    list = &argument(6)->value;
    ck_piece(schema.items[list->i].text, "x");
    ck_piece(schema.items[list->i + 1].text, "");
    ck_assert_uint_eq(argument(7)->value.count, 0);
    ck_assert_int_eq(argument(8)->value.kind, KHUB__SCHEMA_VALUE_OTHER);
    ck_assert_int_eq(argument(9)->value.i, INT64_MAX);
    ck_assert_uint_eq(schema.result_count, 0);
    khub__schema_free(&schema);
}
END_TEST

/* Written as they are read. */
START_TEST(same_text)
{
    static const char *const texts[] = {
        "aten::silu(Tensor self) -> Tensor",
        "aten::silu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "x::f() -> ()",
        "x::f(*, int a) -> int b",
        "x::f(...) -> ...",
        "x::f(int a, ...) -> (int, ...)",
        "x::split(Tensor(a -> *) self, Tensor[](b!) l, Tensor(c!)[] m, Tensor(b|c) n) -> Tensor(a)[]",
        "x::f(__torch__.torch.classes.quantized.Conv2d p, Dict(str, Tensor[]) d) -> Future(Tensor)",
        "x::f((int, float)? t, int[1]? dim=[1], float a=0.33333333333333331) -> ()",
        "x::f(float b=1.0000000000000001e-05, float c=inf, float d=-2., float e=1e+30) -> Tensor[][]",
        "x::f(str a=\"\\\"\\\'\\\\\", str b=\"\\t\\377\") -> ((int, int))",
        "x::f(Tensor self, Scalar? s=None, Generator? g=None, Layout? l=None) -> Tensor",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        khub__text text = {0};
        parse(texts[i]);
        khub__schema_write(&text, &schema);
        ck_assert_str_eq(text.data, texts[i]);
        khub__text_free(&text);
    }
    khub__schema_free(&schema);
}
END_TEST

START_TEST(not_schemas)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "an operator's name"},
        {"a::b", "\"(\""},
        {"a::b(", "a type"},
        {"a::b(int) -> ()", "an argument's name"},
        {"a::b(int a", "\",\" or \")\""},
        {"a::b(int a)", "\"->\""},
        {"a::b(int a) -> ", "a type"},
        {"a::b(int a) -> int, int", "the end"},
        {"a::b(int a=) -> int", "a value"},
        {"a::b(int[x] a) -> int", "the length of a list"},
        {"a::b(int[-1] a) -> int", "the length of a list"},
        {"a::b(int[99999999999999999999] a) -> int", "the length of a list"},
        {"a::b(int[2 a) -> int", "\"]\""},
        {"a::b(int[] a=[1 2) -> int", "\"]\""},
        {"a::b(int[] a=[1, 2) -> int", "\"]\""},
        {"a::b(str a=\"b) -> int", "the end of a text"},
        {"a::b(str a=\"b\\", "the end of a text"},
        {"a::b(Tensor(a", "a parenthesis that is closed"},
        {"a::b(Dict(a", "a parenthesis that is closed"},
        {"a::b(Tensor(a)(b) a) -> int", "one \"(…)\" alone"},
        {"a::b(int[][][][][] a) -> int", "fewer"},
    };
    khub_error err = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        ck_khub_fails(khub__schema_parse(&schema, cases[i].text, &err), &err, KHUB_E_FORMAT, cases[i].words);
    static char huge[70000];
    memset(huge, 'a', sizeof(huge) - 1);
    ck_khub_fails(khub__schema_parse(&schema, huge, &err), &err, KHUB_E_FORMAT, "69999 bytes");
}
END_TEST

static int parse_and_free(void *user, khub_error *err)
{
    khub__schema s;
    int rc = khub__schema_parse(&s, user, err);
    if (rc == KHUB_OK) khub__schema_free(&s);
    return rc;
}

START_TEST(no_memory)
{
    static char text[] = "a::b(int a, int[] b=[1, 2], str c=\"d\") -> (Tensor, Tensor)";
    fm_fail_each(parse_and_free, text);
}
END_TEST

UNIT("torch_schema", parts, defaults, same_text, not_schemas, no_memory)
