#include "measure/fill.h"

#include <string.h>

enum { BLOCK = 4096 }; /* elements that are made; the rest repeats them */

/* Numerical Recipes' quick generator: its upper bits are random enough to look at none twice. */
static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 9;
}

/* Of a format that is the upper part of a wider one: `bits` of its bits are kept. Cut, not rounded. */
static void put(char *to, size_t size, uint64_t bits, int kept)
{
    bits >>= kept - 8 * (int)size;
    memcpy(to, &bits, size); /* little-endian */
}

static uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static uint64_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* float16 of |x| in [2^-14, 1): sign, exponent less 112, ten bits; anything smaller is 0. */
static uint64_t half_of(float x)
{
    uint64_t bits = bits_of_float(x);
    uint64_t exponent = bits >> 23 & 255;
    return exponent < 113 ? 0 : (bits >> 16 & 0x8000) | (exponent - 112) << 10 | (bits >> 13 & 0x3ff);
}

static void put_element(char *to, khub_dtype dtype, uint32_t random)
{
    float x = (float)(2 * (int64_t)random + 1 - (1 << 23)) / (float)(1 << 23); /* odd: never 0 */
    size_t size = dtype.bits / 8u;
    if (dtype.code == KHUB_DTYPE_BFLOAT && size == 2)
        put(to, 2, bits_of_float(x), 32);
    else if (dtype.code == KHUB_DTYPE_FLOAT && size == 2)
        put(to, 2, half_of(x), 16);
    else if (dtype.code == KHUB_DTYPE_FLOAT && size == 4)
        put(to, 4, bits_of_float(x), 32);
    else if (dtype.code == KHUB_DTYPE_FLOAT && size == 8)
        put(to, 8, bits_of_double((double)x), 64);
    else if (dtype.code == KHUB_DTYPE_INT || dtype.code == KHUB_DTYPE_UINT || dtype.code == KHUB_DTYPE_BOOL)
        memset(to, 0, size), *to = (char)(random & 1);
    else
        memset(to, 0, size);
}

void khub__fill(const khub_tensor *tensor)
{
    int64_t count = khub_tensor_count(tensor), bytes = khub_tensor_bytes(tensor);
    if (count <= 0 || bytes <= 0 || !tensor->data) return;
    char *data = (char *)tensor->data + tensor->byte_offset;
    if (tensor->dtype.bits % 8 || tensor->dtype.lanes != 1) {
        memset(data, 0, (size_t)bytes);
        return;
    }
    size_t size = tensor->dtype.bits / 8u, made = (size_t)(count < BLOCK ? count : BLOCK) * size;
    uint32_t state = 1;
    for (size_t i = 0; i < made; i += size)
        put_element(data + i, tensor->dtype, next(&state));
    for (size_t done = made; done < (size_t)bytes; done *= 2)
        memcpy(data + done, data, (size_t)bytes - done < done ? (size_t)bytes - done : done);
}
