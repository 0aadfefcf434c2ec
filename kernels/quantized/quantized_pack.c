/* Quantizes weights into records (quantized.h), compiled once per instruction set.
 *
 * Int8: a row of the weight, which is a column of the panel, has one scale, its largest size / 127; an
 * element is element · (127 / largest) rounded to nearest even. Int4: each group of 32 elements has a scale,
 * its element of the largest size / -8 rounded to bfloat16, so that all of -8 … 7 is used; an element is
 * element / scale rounded, at most 7. Where nothing is larger than RANGE_TINY the scale is 0; where there
 * is a NaN or an infinity it is NaN. */
#include "quantized.h"

#include "lanes.h"
#include "range.h"

enum { PANEL = LINEAR_PANEL, GROUP = QUANTIZED_GROUP };

VEC_LONG void pack_column_int8(char *record, const char *row, int64_t j, int64_t k, int type)
{
    range r = range_of_row(row, k, type);
    char *scales = record + quantized_scales(8, k), bytes[PANEL];
    int64_t sum = 0;
    for (int64_t k0 = 0; k0 < k; k0 += PANEL) {
        v16 q = range_round(&r, v_read(row, k0, k, type));
        w_store_bytes(bytes, q);
        for (int64_t i = 0; i < PANEL && k0 + i < k; i += 4)
            memcpy(record + (k0 + i) / 4 * 64 + j * 4, bytes + i, 4);
        sum += (int64_t)v_sum(v_sub(q, v_set(V_ROUNDER)));
    }
    uint32_t correction = (uint32_t)(-128 * sum);
    memcpy(scales + j * 4, &r.scale, 4);
    memcpy(scales + 64 + j * 4, &correction, 4);
}

/* The scale of a group, and what brings its elements to -8 … 8. */
VEC_LONG range range_of_group(v16 low, v16 high)
{
    v16 zero = v_set(0), odd = v_fma(high, zero, v_mul(low, zero));
    float most = v_largest(v_max(high, low)), least = v_largest(v_max(v_sub(zero, high), v_sub(zero, low)));
    float largest = most > least ? most : -least, nan = v_sum(odd);
    range r = {.scale = nan};
    if (nan != nan || !(largest > RANGE_TINY || largest < -RANGE_TINY)) return r;
    r.scale = widen(narrow(largest / -8.0f));
    r.inverse = 1.0f / r.scale;
    return r;
}

/* The bits of element i, 0 … 31, of a group, added to what a byte has. */
VEC void put_nibble(char *group, int64_t j, int64_t i, uint8_t nibble)
{
    char *at = group + i / 8 * 64 + j * 4 + i % 4;
    *at = (char)((uint8_t)*at | nibble << (i % 8 / 4 * 4));
}

VEC_LONG void pack_group_int4(char *group, char *scale, int64_t j, v16 low, v16 high)
{
    range r = range_of_group(low, high);
    const v16 inverse = v_set(r.inverse), most = v_set(7), rounder = v_set(V_ROUNDER + 8);
    uint8_t nibbles[GROUP];
    uint16_t half = narrow(r.scale);
    if (r.scale != r.scale) low = high = v_set(0);
    w_store_bytes(nibbles, v_add(v_min(v_mul(low, inverse), most), rounder));
    w_store_bytes(nibbles + PANEL, v_add(v_min(v_mul(high, inverse), most), rounder));
    for (int64_t i = 0; i < GROUP; i++)
        put_nibble(group, j, i, nibbles[i]);
    memcpy(scale + j * 2, &half, 2);
}

VEC v16 read_or_zeros(const char *row, int64_t i, int64_t n, int type)
{
    return i < n ? v_read(row, i, n, type) : v_set(0);
}

VEC_LONG void pack_column_int4(char *record, const char *row, int64_t j, int64_t k, int type)
{
    char *scales = record + quantized_scales(4, k);
    for (int64_t g = 0; g * GROUP < k; g++)
        pack_group_int4(record + g * 256, scales + g * 32, j, v_read(row, g * GROUP, k, type),
                        read_or_zeros(row, g * GROUP + PANEL, k, type));
}

/* Column by column; what no column fills is 0. */
VEC_LONG void pack(const quantized_pack *p, int bits, int type)
{
    for (int64_t n = 0; n < (p->n + PANEL - 1) / PANEL * PANEL; n++) {
        char *record = p->to + n / PANEL * p->to_step;
        const char *row = p->from + n * p->from_step;
        if (n % PANEL == 0) memset(record, 0, (size_t)quantized_record(bits, p->k));
        if (n >= p->n) continue;
        if (bits == 8)
            pack_column_int8(record, row, n % PANEL, p->k, type);
        else
            pack_column_int4(record, row, n % PANEL, p->k, type);
    }
}

#define DEFINE(name, bits, type)                                                                             \
    static void name(const quantized_pack *p)                                                                \
    {                                                                                                        \
        pack(p, bits, type);                                                                                 \
    }
DEFINE(int8_f32, 8, F32)
DEFINE(int8_bf16, 8, BF16)
DEFINE(int4_f32, 4, F32)
DEFINE(int4_bf16, 4, BF16)

extern const quantized_packers PATH(quantized_packers);
const quantized_packers PATH(quantized_packers) = {.int8 = {int8_f32, int8_bf16},
                                                   .int4 = {int4_f32, int4_bf16}};
