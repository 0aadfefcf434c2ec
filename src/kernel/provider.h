/* Who has what a library lacks, guessed by names: for the loader's words and for checking a library. */
#ifndef KERNEL_PROVIDER_H
#define KERNEL_PROVIDER_H

typedef struct khub__provider {
    const char *name;  /* "torch", "cuda", … */
    const char *words; /* "libtorch's C++ interface: a build for another version of PyTorch, …" */
} khub__provider;

/* Of a symbol, of a library. Static; NULL: no idea. */
const khub__provider *khub__symbol_provider(const char *symbol);
const khub__provider *khub__library_provider(const char *library);

#endif
