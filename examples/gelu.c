/* The README's example: one function of a kernel. */
#include <khub/khub.h>
#include <stdio.h>

int main(void)
{
    khub_error err = {0};
    khub_kernel *kernel;
    khub_function gelu;
    float x[3] = {-1, 0, 1}, y[3];
    khub_tensor in = khub_tensor_f32(x, 1, (int64_t[]){3}), out = khub_tensor_f32(y, 1, (int64_t[]){3});
    if (khub_get(&kernel, "khub/activation", NULL, &err) ||
        khub_kernel_function(&gelu, kernel, "gelu", &err) ||
        khub_call(&gelu, &err, khub_arg_tensor(&out), khub_arg_tensor(&in)))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("%.4f %.4f %.4f\n", y[0], y[1], y[2]);
    khub_kernel_close(kernel);
    return 0;
}
