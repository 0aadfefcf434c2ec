/* Between the front of quantized (quantized.c) and its loops (quantized_blocks.c, quantized_pack.c, once for
 * each path). */
#ifndef KHUB_KERNELS_QUANTIZED_H
#define KHUB_KERNELS_QUANTIZED_H

#include "linear_call.h"

#include <stdint.h>

enum {
    QUANTIZED_GROUP = 32,     /* elements of a row that share a scale: of x with 16 bits, a weight with 4 */
    QUANTIZED_MOST = 1 << 17, /* elements of a row whose products of signed bytes 32 bits can sum up */
};

/* To how many bits the weight is quantized; x to 8, with …_WEIGHT to 16. */
typedef enum quantized_form {
    QUANTIZED_INT8,
    QUANTIZED_INT4,
    QUANTIZED_INT8_WEIGHT,
    QUANTIZED_INT4_WEIGHT,
    QUANTIZED_FORMS
} quantized_form;

/* A packed weight has a record of bytes for each panel: ⌈k/32⌉ groups, then the scales.
 * 8 bits: a group is eight times 16 columns of four elements; 16 scales (float32), 16 times -128 · the
 * column's sum (int32). 4 bits: a group is four times 16 columns of eight elements (the low four bits of four
 * bytes, then the high ones; 8 is added to each); 16 scales (bfloat16) for each group. Behind k elements are
 * zeros, all of a column behind n is zero bytes. */
static inline int64_t quantized_groups(int64_t k)
{
    return k / QUANTIZED_GROUP + (k % QUANTIZED_GROUP != 0);
}
static inline int64_t quantized_scales(int bits, int64_t k) /* where the scales begin */
{
    return quantized_groups(k) * (bits == 8 ? 512 : 256);
}
static inline int64_t quantized_record(int bits, int64_t k)
{
    return quantized_scales(bits, k) + (bits == 8 ? 128 : (quantized_groups(k) + 1) / 2 * 64);
}

/* weight (n, k) into records. */
typedef struct quantized_pack {
    char *to;
    const char *from;
    int64_t to_step, from_step, n, k;
} quantized_pack;

typedef void quantized_function(const linear_call *);
typedef void quantized_packer(const quantized_pack *);

/* By form and type: F32, BF16 (vec.h). */
typedef struct quantized_path {
    quantized_function *linear[QUANTIZED_FORMS][2];
    quantized_function *vnni[2][2]; /* of 8 bits of x, for processors with VNNI; NULL: no path of theirs */
    quantized_function *tiles[2];   /* of 8 bits of both, for processors with AMX; as vnni */
} quantized_path;

typedef struct quantized_packers {
    quantized_packer *int8[2], *int4[2];
} quantized_packers;

#endif
