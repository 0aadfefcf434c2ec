/* A native library as its file says it is: read for what the system's loader would do with it, and for who is
 * meant to have what it lacks. Nothing of it runs. Every offset is checked. */
#ifndef PUBLISH_OBJECT_H
#define PUBLISH_OBJECT_H

#include "base/file.h"
#include "publish/findings.h"

typedef enum khub__object_format { KHUB__ELF, KHUB__MACHO, KHUB__PE } khub__object_format;

/* Texts are the file's own, or static. */
typedef struct khub__object_symbol {
    const char *name;    /* as in C, without the "_" that Mach-O puts before it */
    const char *version; /* "GLIBC_2.14"; NULL: none */
    const char *library; /* that should have it; NULL: any */
    unsigned undefined : 1, weak : 1;
} khub__object_symbol;

typedef enum khub__relro { KHUB__RELRO_NONE, KHUB__RELRO_PARTIAL, KHUB__RELRO_FULL } khub__relro;

/* One piece of GPU code. */
typedef struct khub__gpu_code {
    char arch[32];  /* "9.0", "9.0a", "gfx90a:xnack+" */
    int ptx;        /* 1: to be compiled when it is loaded */
    char label[40]; /* "9.0", "PTX 9.0" */
} khub__gpu_code;

typedef struct khub__object {
    khub__object_format format;
    const char *arch; /* "x86_64", "aarch64", or another machine's name */
    char arch_buffer[16];
    const char *own_name; /* DT_SONAME, LC_ID_DYLIB, the export table's; NULL: none */
    khub__names needed;   /* libraries */
    khub__names paths;    /* where they are looked for: DT_RUNPATH or DT_RPATH taken apart, LC_RPATH */
    khub__object_symbol *symbols; /* what is defined for others, and what is not defined */
    size_t symbol_count, symbol_capacity;
    khub__gpu_code *codes; /* each once */
    size_t code_count, code_capacity;
    khub__names remarks; /* what is odd about the file; static texts */
    int failed;          /* no memory was found for a part, or it is `overread` */

    /* Names may lie over each other, so that a small file can have more of them than it has bytes. */
    uint64_t text_bytes, text_max; /* read so far, and at most */
    int overread;                  /* it would have been more */

    int executable_stack; /* 1: yes; -1: an ELF file doesn't say, so the system's old default counts: yes */
    int writable_code;    /* a segment is writable and executable */
    size_t constructors;  /* that run when it is loaded; the compiler's own too */

    /* ELF */
    int old_path;         /* DT_RPATH, which comes before LD_LIBRARY_PATH */
    int text_relocations; /* code must be written to when it is loaded */
    khub__relro relro;
    int has_no_symbols; /* none could be read, though there may be some */

    /* Mach-O */
    uint32_t macos; /* the oldest it loads on, 0xXXXXYYZZ for X.Y.Z; 0: it doesn't say */
    int is_signed;

    /* PE */
    int is_fixed; /* can't be loaded at another address than its own */
} khub__object;

/* A universal Mach-O file holds several. */
enum { KHUB__OBJECTS_MAX = 16 };
typedef struct khub__objects {
    khub__object items[KHUB__OBJECTS_MAX];
    size_t count;
} khub__objects;

/* Reads the file's content, of which the result keeps pointers. KHUB_E_FORMAT: it is none of the three, or
 * damaged ("FILE: …"); KHUB_E_UNSUPPORTED: it is ELF, and there is no libelf; KHUB_E_NOMEM. Then *out is
 * empty. */
int khub__objects_read(khub__objects *out, const khub__bytes *file, const char *path, khub_error *err);
void khub__objects_free(khub__objects *objects);

/* Of one format; the caller has looked at the first bytes. *out is zeroed before, or empty. */
int khub__elf_read(khub__object *out, const khub__bytes *file, const char *path, khub_error *err);

int khub__macho_is(const khub__bytes *file);
int khub__macho_read(khub__objects *out, const khub__bytes *file, const char *path, khub_error *err);
int khub__pe_read(khub__object *out, const khub__bytes *file, const char *path, khub_error *err);

/* For readers. What is read of a file of `bytes` bytes is bounded by them: khub__object_begin says how many
 * they are, khub__object_text counts a text and is NULL for NULL and for one too many. */
void khub__object_begin(khub__object *object, khub__object_format format, size_t bytes);
const char *khub__object_text(khub__object *object, const char *text);
void khub__object_add(khub__object *object, khub__object_symbol symbol);

#endif
