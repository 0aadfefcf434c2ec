#include "base/path.h"

#include "base/memory.h"
#include "base/text.h"

char *khub__path_join(const char *dir, const char *name)
{
    if (name[0] == '/' || !dir[0]) return khub__strdup(name);
    size_t length = strlen(dir), more = strlen(name);
    if (dir[length - 1] == '/') length--;
    char *path = khub__malloc(length + 1 + more + 1);
    if (!path) return NULL;
    memcpy(path, dir, length);
    path[length] = '/';
    memcpy(path + length + 1, name, more + 1);
    return path;
}

char *khub__path_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return khub__strdup(".");
    return khub__strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

const char *khub__path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int khub__path_is_local(const char *text)
{
    return text[0] == '/' || !strncmp(text, "./", 2) || !strncmp(text, "../", 3) || !strcmp(text, ".") ||
           !strcmp(text, "..");
}
