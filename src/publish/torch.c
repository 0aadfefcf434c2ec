/* What a library uses of PyTorch: its stable C interface, which later versions keep, or its C++, which is
 * another one in each version. */
#include "kernel/provider.h"
#include "platform/version.h"
#include "publish/rules.h"

#include <string.h>

/* The functions of the stable interface that came after it began, by version: of what the headers of
 * PyTorch 2.15 (torch/csrc/stable/c, torch/csrc/inductor/aoti_torch) have under TORCH_FEATURE_VERSION. What
 * begins with "aoti_torch_" and isn't here is older than 2.10; "torch_" began with 2.10, so that another one
 * is newer than this list. */
static const struct {
    const char *version, *names;
} added[] = {
    {"2.10", " aoti_torch_aten_full aoti_torch_aten_subtract_Tensor aoti_torch_cuda__scaled_grouped_mm"
             " aoti_torch_mps_create_shader_library aoti_torch_mps_delete_shader_library"
             " aoti_torch_mps_dispatch_array aoti_torch_mps_dispatch_array_with_group_size"
             " aoti_torch_mps_dispatch_single aoti_torch_mps_dispatch_single_with_group_size"
             " aoti_torch_mps_get_kernel_function aoti_torch_mps_run_command_block"
             " aoti_torch_mps_shared_callback aoti_torch_mps_start_encoding torch_c10_cuda_check_msg"
             " torch_c10_cuda_free_error_msg torch_call_dispatcher torch_cuda_stream_synchronize"
             " torch_delete_list torch_delete_string torch_get_const_data_ptr torch_get_cuda_stream_from_pool"
             " torch_get_current_cuda_blas_handle torch_get_mutable_data_ptr torch_get_num_threads"
             " torch_get_thread_idx torch_library_impl torch_list_get_item torch_list_push_back"
             " torch_list_set_item torch_list_size torch_new_list_reserve_size torch_new_string_handle"
             " torch_parallel_for torch_parse_device_string torch_set_current_cuda_stream"
             " torch_set_requires_grad torch_string_c_str torch_string_length"
             " "},
    {"2.11", " aoti_torch_cpu_nonzero_static aoti_torch_cuda__flash_attention_forward_quantized"
             " aoti_torch_cuda__scaled_dot_product_flash_attention_quantized aoti_torch_cuda_mm_dtype_out"
             " aoti_torch_cuda_nonzero_static aoti_torch_mps_nonzero_static aoti_torch_xpu_mm_dtype_out"
             " aoti_torch_xpu_nonzero_static torch_dtype_float4_e2m1fn_x2 torch_dtype_float8_e8m0fnu"
             " torch_from_blob"
             " "},
    {"2.12",
     " aoti_torch_cpu__grouped_mm aoti_torch_cpu_rand_like aoti_torch_cpu_rand_like_generator"
     " aoti_torch_cpu_randint_like aoti_torch_cpu_randint_like_low_dtype aoti_torch_cpu_randn_like"
     " aoti_torch_cpu_randn_like_generator aoti_torch_cuda__flash_attention_forward_no_dropout_inplace"
     " aoti_torch_cuda__flash_attention_forward_no_dropout_inplace_v2"
     " aoti_torch_cuda__flash_attention_forward_v2 aoti_torch_cuda__grouped_mm"
     " aoti_torch_cuda_rand_like aoti_torch_cuda_rand_like_generator aoti_torch_cuda_randint_like"
     " aoti_torch_cuda_randint_like_low_dtype aoti_torch_cuda_randn_like"
     " aoti_torch_cuda_randn_like_generator aoti_torch_dtype_float4_e2m1fn_x2"
     " aoti_torch_dtype_float8_e8m0fnu aoti_torch_mps__grouped_mm aoti_torch_mps_rand_like"
     " aoti_torch_mps_rand_like_generator aoti_torch_mps_randint_like"
     " aoti_torch_mps_randint_like_low_dtype aoti_torch_mps_randn_like"
     " aoti_torch_mps_randn_like_generator aoti_torch_xpu__grouped_mm aoti_torch_xpu_rand_like"
     " aoti_torch_xpu_rand_like_generator aoti_torch_xpu_randint_like"
     " aoti_torch_xpu_randint_like_low_dtype aoti_torch_xpu_randn_like"
     " aoti_torch_xpu_randn_like_generator torch_library_def_with_tags torch_tag_core"
     " torch_tag_cudagraph_unsafe torch_tag_data_dependent_output torch_tag_dynamic_output_shape"
     " torch_tag_flexible_layout torch_tag_generated torch_tag_inplace_view"
     " torch_tag_maybe_aliasing_or_mutating torch_tag_needs_contiguous_strides"
     " torch_tag_needs_exact_strides torch_tag_needs_fixed_stride_order"
     " torch_tag_nondeterministic_bitwise torch_tag_nondeterministic_seeded torch_tag_out_variant"
     " torch_tag_pointwise torch_tag_pt2_compliant_tag torch_tag_reduction torch_tag_view_copy"
     " "},
    {"2.13", " aoti_torch_cpu_grid_sampler_3d aoti_torch_cpu_grid_sampler_3d_backward"
             " aoti_torch_cuda_grid_sampler_3d aoti_torch_cuda_grid_sampler_3d_backward"
             " aoti_torch_mps__scaled_dot_product_attention_math_for_mps_v2 aoti_torch_mps_grid_sampler_3d"
             " aoti_torch_mps_grid_sampler_3d_backward aoti_torch_xpu_grid_sampler_3d"
             " aoti_torch_xpu_grid_sampler_3d_backward torch_delete_generator torch_delete_stable_ivalue"
             " torch_exception_get_what torch_exception_get_what_without_backtrace torch_generator_get_device"
             " torch_library_set_python_module torch_new_generator_handle torch_new_stable_ivalue"
             " torch_stream_native_handle"
             " "},
    {"2.14", " torch_has_storage torch_mps_set_arg_bytes torch_tensor_from_pyobject torch_tensor_to_pyobject"
             " "},
    {"2.15", " torch_device_from_pyobject torch_device_to_pyobject torch_dtype_from_pyobject"
             " torch_dtype_to_pyobject torch_is_tensor_pyobject"
             " "},
};

static const char *version_of(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; length && i < sizeof(added) / sizeof(*added); i++)
        for (const char *at = added[i].names; (at = strstr(at, name)) != NULL; at++)
            if (at > added[i].names && at[-1] == ' ' && at[length] == ' ') return added[i].version;
    return strncmp(name, "aoti_torch_", 11) == 0 ? "2.9" : NULL;
}

typedef struct uses {
    khub__groups stable; /* functions of the stable interface by the version that added them */
    khub__names unknown; /* "torch_…" that isn't in the list */
    khub__names cxx;     /* of the C++ interface */
} uses;

static void collect(uses *u, const khub__object *object)
{
    for (size_t i = 0; i < object->symbol_count; i++) {
        const khub__object_symbol *s = &object->symbols[i];
        const khub__provider *provider = s->undefined ? khub__symbol_provider(s->name) : NULL;
        if (!provider || strncmp(provider->name, "torch", 5) != 0) continue;
        if (!strcmp(provider->name, "torch"))
            khub__names_add(&u->cxx, s->name);
        else if (strncmp(s->name, "_Z", 2) == 0)
            continue; /* torch::stable, whose versions nobody lists */
        else if (version_of(s->name))
            khub__groups_add(&u->stable, version_of(s->name), s->name);
        else
            khub__names_add(&u->unknown, s->name);
    }
}

/* The version whose stable interface may be used; NULL: another interface may be used too. */
static const char *wanted_version(const khub__case *it, char buffer[KHUB__VERSION_TEXT])
{
    if (it->options->torch) return it->options->torch;
    if (!it->variant || it->variant->framework != KHUB__TORCH_STABLE) return NULL;
    return khub__version_text(it->variant->version, buffer);
}

static int is_newer(const char *a, const char *b)
{
    khub__version x, y;
    khub__version_parse(&x, a);
    khub__version_parse(&y, b);
    return khub__version_compare(x, y) > 0;
}

static void report_stable(const khub__case *it, const uses *u, const char *wanted)
{
    const char *newest = NULL;
    for (size_t i = 0; i < u->stable.count; i++) {
        const khub__group *g = &u->stable.items[i];
        if (!newest || is_newer(g->key, newest)) newest = g->key;
        if (wanted && is_newer(g->key, wanted))
            khub__finding_of(it->report, "torch", KHUB_CHECK_LEVEL_ERROR, g->key, &g->names,
                             "uses what PyTorch %s added to its stable interface, and %s is wanted", g->key,
                             wanted);
    }
    if (newest)
        khub__finding(it->report, "torch", KHUB_CHECK_LEVEL_NOTE, newest, NULL,
                      "uses PyTorch's stable interface as of %s%s", newest,
                      !strcmp(newest, "2.9") ? " or older" : "");
}

void khub__check_torch(const khub__case *it)
{
    uses u = {0};
    char buffer[KHUB__VERSION_TEXT];
    const char *wanted = wanted_version(it, buffer);
    collect(&u, it->object);
    khub__names_sort(&u.cxx);
    khub__names_sort(&u.unknown);
    if (khub__groups_sort(&u.stable))
        report_stable(it, &u, wanted);
    else
        it->report->failed = 1;
    if (wanted)
        khub__finding_of(it->report, "torch", KHUB_CHECK_LEVEL_ERROR, "", &u.cxx,
                         "uses PyTorch's C++, which isn't stable");
    khub__finding_of(it->report, "torch", KHUB_CHECK_LEVEL_WARNING, "?", &u.unknown,
                     "uses what may be of a PyTorch newer than khub's list");
    khub__names_free(&u.cxx);
    khub__names_free(&u.unknown);
    khub__groups_free(&u.stable);
}
