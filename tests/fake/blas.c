/* A BLAS with as many threads as it was told, in name: libblas.so.3 for a program that has opened its own. */
static int threads = 4, told;

void openblas_set_num_threads(int count);
void openblas_set_num_threads(int count)
{
    threads = count;
    told++;
}

int openblas_get_num_threads(void);
int openblas_get_num_threads(void)
{
    return threads;
}

/* How often openblas_set_num_threads was called. */
int fake_blas_told(void);
int fake_blas_told(void)
{
    return told;
}

void cblas_sgemm(void);
void cblas_sgemm(void)
{
}
