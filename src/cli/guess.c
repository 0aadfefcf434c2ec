/* The word that was meant by one that is mistyped. */
#include "cli.h"

enum { LONGEST = 31, FARTHEST = 2 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters have to be added, taken out, replaced or swapped with their neighbour to make `b` of the
 * first `n` letters of `a`. */
static size_t distance(const char *a, size_t n, const char *b)
{
    size_t rows[LONGEST + 1][LONGEST + 1], m = strlen(b);
    if (n > LONGEST || m > LONGEST) return SIZE_MAX;
    for (size_t i = 0; i <= n; i++)
        for (size_t k = 0; k <= m; k++) {
            rows[i][k] = i + k;
            if (!i || !k) continue;
            int same = a[i - 1] == b[k - 1];
            rows[i][k] = least(rows[i - 1][k - 1] + !same, least(rows[i - 1][k], rows[i][k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                rows[i][k] = least(rows[i][k], rows[i - 2][k - 2] + 1);
        }
    return rows[n][m];
}

void cli_guess_try(cli_guess *guess, const char *candidate)
{
    size_t length = strcspn(guess->word, "=");
    size_t far = distance(guess->word, length, candidate);
    if (far > FARTHEST || far * 2 >= strlen(candidate) || (guess->best && far >= guess->distance)) return;
    guess->best = candidate;
    guess->distance = far;
}
