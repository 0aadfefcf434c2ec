#include "ops/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>

/* cblas_sgemm's signature and its constants are those of the reference CBLAS. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sgemm_fn sgemm;
static int (*get_threads)(void); /* NULL: it has one */

static void find(void)
{
    static const char *const names[] = {"libblas.so.3", "libopenblas.so.0", "libcblas.so.3"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !sgemm; i++) {
        void *here = dlopen(names[i], RTLD_NOW | RTLD_LOCAL |
                                          RTLD_NOLOAD); /* the host's own: its threads are its choice */
        void *library = here ? here : dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        *(void **)&sgemm = dlsym(library, "cblas_sgemm"); /* POSIX: a function fits into a void * */
        void (*set_threads)(int);
        *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
        if (!here && set_threads) set_threads(1); /* threads belong to the caller */
        *(void **)&get_threads = dlsym(library, "openblas_get_num_threads");
    }
}

int khub__blas_threads(void)
{
    pthread_once(&once, find);
    return sgemm && get_threads ? get_threads() : 1;
}

static void plain(int transposed, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)a[i * lda + l] * (transposed ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] = (float)sum;
        }
    }
}

void khub__sgemm(int transposed, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                 int64_t ldb, float *c, int64_t ldc)
{
    pthread_once(&once, find);
    int fits =
        m <= INT_MAX && n <= INT_MAX && k <= INT_MAX && lda <= INT_MAX && ldb <= INT_MAX && ldc <= INT_MAX;
    if (sgemm && fits && m > 0 && n > 0 && k > 0)
        sgemm(ROW_MAJOR, NO_TRANSPOSE, transposed ? TRANSPOSE : NO_TRANSPOSE, (int)m, (int)n, (int)k, 1.0f, a,
              (int)lda, b, (int)ldb, 0.0f, c, (int)ldc);
    else
        plain(transposed, m, n, k, a, lda, b, ldb, c, ldc);
}
