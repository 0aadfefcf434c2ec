#include "publish/object.h"

#include "base/error.h"
#include "base/memory.h"

enum { SYMBOLS_MAX = 1 << 24, TEXT_TIMES = 32 /* each symbol counts its library's name too */ };

void khub__object_begin(khub__object *object, khub__object_format format, size_t bytes)
{
    memset(object, 0, sizeof(*object));
    object->format = format;
    object->text_max = (uint64_t)bytes * TEXT_TIMES;
}

const char *khub__object_text(khub__object *object, const char *text)
{
    if (!text || object->overread) return NULL;
    object->text_bytes += strlen(text) + 1;
    if (object->text_bytes <= object->text_max) return text;
    object->overread = object->failed = 1;
    return NULL;
}

void khub__object_add(khub__object *object, khub__object_symbol symbol)
{
    khub__object_text(object, symbol.version);
    khub__object_text(object, symbol.library);
    if (object->failed) return;
    object->failed = khub__grow((void **)&object->symbols, &object->symbol_capacity, object->symbol_count + 1,
                                sizeof(symbol), SYMBOLS_MAX) != 0;
    if (!object->failed) object->symbols[object->symbol_count++] = symbol;
}

static void free_object(khub__object *object)
{
    khub__names_free(&object->needed);
    khub__names_free(&object->paths);
    khub__names_free(&object->remarks);
    khub__free(object->symbols);
    khub__free(object->codes);
    memset(object, 0, sizeof(*object));
}

void khub__objects_free(khub__objects *objects)
{
    for (size_t i = 0; i < objects->count; i++)
        free_object(&objects->items[i]);
    objects->count = 0;
}

static int starts(const khub__bytes *file, const char *with, size_t length)
{
    return file->length >= length && !memcmp(file->data, with, length);
}

static int fail_other(const khub__bytes *file, const char *path, khub_error *err)
{
    static const char lfs[] = "version https://git-lfs.github.com/spec/";
    if (file->length == 0) return khub__fail(err, KHUB_E_FORMAT, "%s: is empty: 0 bytes", path);
    if (starts(file, lfs, sizeof(lfs) - 1))
        return khub__fail(err, KHUB_E_FORMAT,
                          "%s: is a git-lfs pointer file, not the content: fetch it with `git lfs pull`",
                          path);
    return khub__fail(err, KHUB_E_FORMAT, "%s: is no library: neither ELF nor Mach-O nor PE", path);
}

static int read_format(khub__objects *out, const khub__bytes *file, const char *path, khub_error *err)
{
    int is_elf = starts(file, "\177ELF", 4);
    if (khub__macho_is(file)) return khub__macho_read(out, file, path, err);
    if (!is_elf && !starts(file, "MZ", 2)) return fail_other(file, path, err);
    memset(&out->items[0], 0, sizeof(out->items[0]));
    out->count = 1;
    return (is_elf ? khub__elf_read : khub__pe_read)(&out->items[0], file, path, err);
}

int khub__objects_read(khub__objects *out, const khub__bytes *file, const char *path, khub_error *err)
{
    out->count = 0;
    int rc = read_format(out, file, path, err);
    for (size_t i = 0; rc == KHUB_OK && i < out->count; i++) {
        const khub__object *o = &out->items[i];
        if (o->overread)
            rc = khub__fail(err, KHUB_E_FORMAT, "%s: is damaged: it has more names than fit in its %zu bytes",
                            path, file->length);
        else if (o->failed || o->needed.failed || o->paths.failed || o->remarks.failed)
            rc = khub__fail_memory(err, "reading a library");
    }
    if (rc != KHUB_OK) khub__objects_free(out);
    return rc;
}
