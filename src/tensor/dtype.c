#include "tensor/dtype.h"

#include "base/error.h"

#include <stdio.h>

/* Scalar dtypes that have a name of their own; each is 1, 2, 4, 8 or 16 bytes. */
static const struct {
    const char *name;
    uint8_t code, bits;
} named[] = {
    {"bool", KHUB_DTYPE_BOOL, 8},
    {"int8", KHUB_DTYPE_INT, 8},
    {"int16", KHUB_DTYPE_INT, 16},
    {"int32", KHUB_DTYPE_INT, 32},
    {"int64", KHUB_DTYPE_INT, 64},
    {"uint8", KHUB_DTYPE_UINT, 8},
    {"uint16", KHUB_DTYPE_UINT, 16},
    {"uint32", KHUB_DTYPE_UINT, 32},
    {"uint64", KHUB_DTYPE_UINT, 64},
    {"float16", KHUB_DTYPE_FLOAT, 16},
    {"float32", KHUB_DTYPE_FLOAT, 32},
    {"float64", KHUB_DTYPE_FLOAT, 64},
    {"bfloat16", KHUB_DTYPE_BFLOAT, 16},
    {"complex64", KHUB_DTYPE_COMPLEX, 64},
    {"complex128", KHUB_DTYPE_COMPLEX, 128},
    {"float8_e4m3fn", KHUB_DTYPE_FLOAT8_E4M3FN, 8},
    {"float8_e5m2", KHUB_DTYPE_FLOAT8_E5M2, 8},
};

/* DLDataTypeCode as words; those from float8_e3m4 on hold their size. */
static const char *const code_names[] = {
    "int",
    "uint",
    "float",
    "handle",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
};
enum { FIRST_SIZED_CODE = 7 };

int khub_dtype_parse(khub_dtype *out, const char *name, khub_error *err)
{
    int missing = khub__given("khub_dtype_parse", out && name, err);
    if (out) memset(out, 0, sizeof(*out));
    if (missing != KHUB_OK) return missing;
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
        if (strcmp(named[i].name, name) != 0) continue;
        *out = khub_dtype_of(named[i].code, named[i].bits);
        return KHUB_OK;
    }
    return khub__fail(err, KHUB_E_INVAL,
                      "\"%.100s\" is no dtype; there are float32, bfloat16, int64, bool and others",
                      name ? name : "");
}

const char *khub_dtype_name(khub_dtype dtype, char buffer[32])
{
    int n;
    if (dtype.code >= sizeof(code_names) / sizeof(*code_names))
        n = snprintf(buffer, 32, "code%u_%u", dtype.code, dtype.bits);
    else if (dtype.code >= FIRST_SIZED_CODE || (dtype.code == KHUB_DTYPE_BOOL && dtype.bits == 8))
        n = snprintf(buffer, 32, "%s", code_names[dtype.code]);
    else
        n = snprintf(buffer, 32, "%s%u", code_names[dtype.code], dtype.bits);
    if (dtype.lanes != 1) snprintf(buffer + n, 32 - (size_t)n, "x%u", dtype.lanes);
    return buffer;
}

size_t khub__dtype_item(khub_dtype dtype)
{
    for (size_t i = 0; dtype.lanes == 1 && i < sizeof(named) / sizeof(*named); i++)
        if (named[i].code == dtype.code && named[i].bits == dtype.bits) return dtype.bits / 8;
    return 0;
}
