/* Stands in for libtorch.so, by its name for the loader: a kernel for the CPU needs a library of that name
 * and nothing of it, and the real one pulls in all of CUDA's. And for Python's functions that start a
 * kernel's module, which a kernel refers to and nothing calls outside of Python: without them the loader
 * refuses one that is bound whole (-z now). */
#include <stddef.h>

void *PyModule_Create2(void *definition, int version);
void *PyModuleDef_Init(void *definition);

void *PyModule_Create2(void *definition, int version)
{
    (void)definition, (void)version;
    return NULL; /* as when it fails */
}

void *PyModuleDef_Init(void *definition)
{
    (void)definition;
    return NULL;
}
