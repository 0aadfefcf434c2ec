/* Platforms as data: reading, writing, contradictions, narrowing. */
#include "unit.h"

#include "base/memory.h"
#include "platform/platform.h"

#include <khub/log.h>
#include <khub/memory.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static khub_platform *parse(const char *json)
{
    khub_error err = {0};
    khub_platform *p;
    ck_khub_ok(khub_platform_parse(&p, json, strlen(json), "p.json", &err), &err);
    return p;
}

START_TEST(short_file)
{
    khub_platform *p =
        parse("{\"os\":\"linux\",\"arch\":\"x86_64\",\"backend\":\"cu128\",\"torch\":\"2.10\","
              "\"torch_cxx11_abi\":true,\"tvm_ffi\":\"0.1\",\"macos\":null,\"archs\":[\"9.0\"]}");
    ck_assert_str_eq(khub_platform_os(p), "linux");
    ck_assert_str_eq(khub_platform_arch(p), "x86_64");
    ck_assert_str_eq(khub_platform_backend(p), "cu128");
    ck_assert_str_eq(p->backend->name, "cuda");
    ck_assert_int_eq(p->backend_version.major, 12);
    ck_assert_int_eq(p->backend_version.minor, 8);
    ck_assert_int_eq(p->torch.major, 2);
    ck_assert_int_eq(p->torch.minor, 10);
    ck_assert_int_eq(p->torch.patch, -1);
    ck_assert_int_eq(p->torch_cxx11_abi, 1);
    ck_assert_int_eq(p->tvm_ffi.minor, 1);
    ck_assert_int_eq(p->macos.major, -1);
    ck_assert_str_eq(khub_platform_device_arch(p, 0), "9.0");
    ck_assert_ptr_null(khub_platform_device_arch(p, 1));
    ck_assert_uint_eq(khub_platform_threads(p), 0);
    ck_assert_ptr_null(khub_platform_feature(p, 0));
    ck_assert_ptr_null(khub_platform_library(p, 0));
    khub_platform_free(p);
}
END_TEST

UNIT("platform", short_file)
