/* Looking at files and reading them. Mapping, streams and drafts, which what tells machines and builds apart
 * doesn't need, aren't there yet. */
#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/windows/wide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

/* errno for the last failure of Windows. */
static int error_number(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH:
        return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
        return EACCES;
    case ERROR_NOT_ENOUGH_MEMORY:
        return ENOMEM;
    default:
        return EIO;
    }
}

/* Links followed; directories too. INVALID_HANDLE_VALUE and errno. */
static HANDLE open_at(const char *path, DWORD access)
{
    wchar_t *wide = khub__wide(path);
    if (!wide) return INVALID_HANDLE_VALUE;
    HANDLE file = CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) errno = error_number();
    free(wide);
    return file;
}

static enum khub__file_kind kind_of(HANDLE file)
{
    BY_HANDLE_FILE_INFORMATION about;
    if (GetFileType(file) != FILE_TYPE_DISK || !GetFileInformationByHandle(file, &about))
        return KHUB__FILE_OTHER;
    return about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? KHUB__FILE_DIRECTORY : KHUB__FILE_REGULAR;
}

enum khub__file_kind khub__file_kind(const char *path)
{
    HANDLE file = open_at(path, FILE_READ_ATTRIBUTES);
    if (file != INVALID_HANDLE_VALUE) {
        enum khub__file_kind kind = kind_of(file);
        CloseHandle(file);
        return kind;
    }
    wchar_t *wide = errno == ENOENT ? khub__wide(path) : NULL;
    int is_link = wide && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES; /* one that leads nowhere */
    int is_none = wide && !is_link;
    free(wide);
    return is_none ? KHUB__FILE_NONE : KHUB__FILE_BROKEN;
}

static int read_all(HANDLE file, khub__bytes *out, size_t size, const char *path, khub_error *err)
{
    out->data = khub__malloc(size + 1);
    if (!out->data) return khub__fail_memory(err, "reading a file");
    while (out->length < size) {
        DWORD n = 0, most = size - out->length < 1u << 30 ? (DWORD)(size - out->length) : 1u << 30;
        if (!ReadFile(file, out->data + out->length, most, &n, NULL)) {
            errno = error_number();
            return khub__fail_errno(err, path, "read it");
        }
        if (n == 0) break; /* it shrank while we read */
        out->length += n;
    }
    out->data[out->length] = 0;
    return KHUB_OK;
}

int khub__file_read(khub__bytes *out, const char *path, size_t max, khub_error *err)
{
    LARGE_INTEGER size;
    int rc;
    memset(out, 0, sizeof(*out));
    HANDLE file = open_at(path, GENERIC_READ);
    if (file == INVALID_HANDLE_VALUE) return khub__fail_errno(err, path, "open it");
    enum khub__file_kind kind = kind_of(file);
    if (kind != KHUB__FILE_REGULAR || !GetFileSizeEx(file, &size))
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: is a %s, not a file", path,
                        kind == KHUB__FILE_DIRECTORY ? "directory" : "device or pipe");
    else if ((uint64_t)size.QuadPart > max)
        rc = khub__fail(err, KHUB_E_FORMAT, "%s: is %llu bytes long, at most %llu are read", path,
                        (unsigned long long)size.QuadPart, (unsigned long long)max);
    else
        rc = read_all(file, out, (size_t)size.QuadPart, path, err);
    CloseHandle(file);
    if (rc != KHUB_OK) khub__bytes_free(out);
    return rc;
}

void khub__bytes_free(khub__bytes *bytes)
{
    khub__free(bytes->data);
    memset(bytes, 0, sizeof(*bytes));
}

char *khub__file_real(const char *path)
{
    static const wchar_t prefix[] = L"\\\\?\\";
    enum { PREFIX = 4, MOST = 32768 }; /* the longest path that there is */
    HANDLE file = open_at(path, FILE_READ_ATTRIBUTES);
    if (file == INVALID_HANDLE_VALUE) return NULL;
    wchar_t *real = malloc(MOST * sizeof(*real));
    DWORD n = real ? GetFinalPathNameByHandleW(file, real, MOST, FILE_NAME_NORMALIZED) : 0;
    int has_prefix =
        n > PREFIX && wcsncmp(real, prefix, PREFIX) == 0 && wcsncmp(real + PREFIX, L"UNC", 3) != 0;
    char *narrow = n > 0 && n < MOST ? khub__narrow(real + (has_prefix ? PREFIX : 0)) : NULL;
    for (char *c = narrow; c && *c; c++)
        if (*c == '\\') *c = '/';
    free(real);
    CloseHandle(file);
    return narrow;
}

int khub__file_may_use(const char *path)
{
    HANDLE file = open_at(path, GENERIC_READ | GENERIC_WRITE);
    if (file == INVALID_HANDLE_VALUE) return 0;
    CloseHandle(file);
    return 1;
}

/* NUL-separated. 0, or -1: errno. */
static int add_names(khub__text *names, size_t *count, const char *path)
{
    WIN32_FIND_DATAW entry;
    khub__text pattern = {0};
    khub__text_addf(&pattern, "%s/*", path);
    wchar_t *wide = pattern.failed ? NULL : khub__wide(pattern.data);
    HANDLE dir = wide ? FindFirstFileW(wide, &entry) : INVALID_HANDLE_VALUE;
    if (wide && dir == INVALID_HANDLE_VALUE) errno = error_number();
    free(wide);
    khub__text_free(&pattern);
    if (dir == INVALID_HANDLE_VALUE) return -1;
    do {
        char *name = khub__narrow(entry.cFileName);
        if (!name) names->failed = 1;
        if (name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            khub__text_add_bytes(names, name, strlen(name) + 1);
            ++*count;
        }
        free(name);
    } while (FindNextFileW(dir, &entry));
    FindClose(dir);
    return 0;
}

int khub__dir_list(char ***names, size_t *count, const char *path, khub_error *err)
{
    khub__text text = {0};
    *names = NULL;
    *count = 0;
    int rc = add_names(&text, count, path) == 0 ? KHUB_OK : khub__fail_errno(err, path, "list it");
    if (rc == KHUB_OK && !text.failed) *names = khub__text_names(&text, *count);
    if (rc == KHUB_OK && !*names) rc = khub__fail_memory(err, "listing a directory");
    if (rc != KHUB_OK) *count = 0;
    khub__text_free(&text);
    return rc;
}
