/* A Torch kernel in C, by the shim alone: `short_text() -> str` and, by definitions, what is odd about it.
 * README.md lists them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* As torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h declare them, which are C++. */
typedef struct library library;
typedef struct string string;
int32_t aoti_torch_library_init_def(const char *ns, const char *file, uint32_t line, library **out);
int32_t aoti_torch_library_init_fragment(const char *ns, const char *file, uint32_t line, library **out);
int32_t aoti_torch_library_def(library *, const char *schema);
int32_t torch_library_impl(library *, const char *name,
                           void (*)(uint64_t *stack, uint64_t inputs, uint64_t outputs), uint64_t version);
int32_t torch_new_string_handle(const char *data, size_t length, string **out);

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#ifndef SMALL_REGISTERS
#define SMALL_REGISTERS TEXT(TEST_NAMESPACE)
#endif
#ifndef SMALL_SCHEMA
#define SMALL_SCHEMA "short_text() -> str"
#endif
#ifndef SMALL_BEGIN
#define SMALL_BEGIN aoti_torch_library_init_def
#endif
#ifndef SMALL_PHASES
#define SMALL_PHASES 1
#endif

enum { VERSION = 0x020a0000 }; /* of the ABI, the upper half: 2.10 */

/* As an exception does that leaves a static initialiser: the process ends. */
static void must(int32_t rc)
{
    if (rc == 0) return;
    fputs("small.c: libtorch refused a registration\n", stderr);
    abort();
}

static void short_text(uint64_t *stack, uint64_t inputs, uint64_t outputs)
{
    string *text;
    (void)inputs;
    (void)outputs;
    must(torch_new_string_handle("torch", 5, &text));
    stack[0] = (uint64_t)(uintptr_t)text;
}

#ifdef SMALL_NEEDS
void SMALL_NEEDS(void);
void (*small_needs)(void) = SMALL_NEEDS;
#endif

#ifdef SMALL_CALLS /* resolved when it is called, unless the library is loaded with all bound at once */
void SMALL_CALLS(void);
void small_calls(void);
void small_calls(void)
{
    SMALL_CALLS();
}
#endif

__attribute__((constructor)) static void registered(void)
{
    static library *lib; /* for good, as C++'s static objects are */
    must(SMALL_BEGIN(SMALL_REGISTERS, __FILE__, __LINE__, &lib));
    must(aoti_torch_library_def(lib, SMALL_SCHEMA));
    must(torch_library_impl(lib, "short_text", short_text, (uint64_t)VERSION << 32));
}

/* The module of a kernel for Python in its two forms; nobody calls it here. */
void *PyModule_Create2(void *, int);
void *PyModuleDef_Init(void *);
void *PyInit_small(void);
void *PyInit_small(void)
{
    return SMALL_PHASES == 1 ? PyModule_Create2(NULL, 3) : PyModuleDef_Init(NULL);
}
