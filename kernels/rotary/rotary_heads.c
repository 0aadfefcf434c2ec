/* Rotary position embedding; once for each path. */
#include "rotary.h"

#include "vec.h"

VEC void turn_head(char *out, const char *x, const char *cos, const char *sin, int64_t half, int type)
{
    char *out2 = out + half * ELEMENT_BYTES(type);
    const char *x2 = x + half * ELEMENT_BYTES(type);
    for (int64_t i = 0; i < half; i += 16) {
        v16 a = v_read(x, i, half, type), b = v_read(x2, i, half, type);
        v16 c = v_read(cos, i, half, type), s = v_read(sin, i, half, type);
        v_write(out, i, half, type, v_fma(v_sub(v_set(0), b), s, v_mul(a, c)));
        v_write(out2, i, half, type, v_fma(a, s, v_mul(b, c)));
    }
}

VEC void turn(const rotary_job *j, int type)
{
    for (int64_t t = 0; t < j->tokens; t++)
        for (int64_t h = 0; h < j->heads; h++)
            turn_head(j->out + t * j->out_token + h * j->out_head, j->x + t * j->x_token + h * j->x_head,
                      j->cos + t * j->cos_token, j->sin + t * j->sin_token, j->half, type);
}

static void rotary_f32(const rotary_job *job)
{
    turn(job, F32);
}
static void rotary_bf16(const rotary_job *job)
{
    turn(job, BF16);
}

extern const rotary_path PATH(rotary);
const rotary_path PATH(rotary) = {.rotary = {rotary_f32, rotary_bf16}};
