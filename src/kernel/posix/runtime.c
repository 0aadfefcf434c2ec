#include "kernel/runtime.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/signals.h"
#include "kernel/machine.h"
#include "kernel/posix/elf.h"
#include "kernel/posix/loader_words.h"
#include "platform/libraries.h"
#include "platform/platform.h"
#include "tensor/value.h"

#include <dlfcn.h>
#include <pthread.h>

/* Kernels may lack a DT_NEEDED for libtvm_ffi, or have one that no search path of theirs fulfils
 * (facts/tvm-ffi.md): its symbols must be there for all before the first of them is loaded, hence GLOBAL.
 * Hence LAZY: what it needs is C++'s library, which takes longer to bind than everything else that a start
 * does; kernels are bound whole. */
enum { FLAGS = RTLD_LAZY | RTLD_GLOBAL };

/* The one that is in the process: as a library of that name, or inside the program or one of its libraries.
 * NOLOAD with GLOBAL also lifts one that somebody opened for himself. */
static void *find_loaded(void)
{
    khub__pool pool = {0};
    const char *path = khub__loaded_path("libtvm_ffi.so", &pool);
    void *handle = path ? dlopen(path, FLAGS | RTLD_NOLOAD) : NULL;
    khub__pool_free(&pool);
    if (handle || !dlsym(RTLD_DEFAULT, "TVMFFIErrorMoveFromRaised")) return handle;
    return dlopen(NULL, RTLD_NOW);
}

/* What was found when this machine was looked at isn't looked for again. */
static int find(char **path, khub_error *err)
{
    const khub_platform *known = khub__known_machine();
    const khub_library_info *found = known ? khub__platform_library_of(known, "libtvm_ffi") : NULL;
    if (!found || found->presence != KHUB_FOUND) return khub__tvm_ffi_path(path, err);
    *path = khub__strdup(found->path);
    return *path ? KHUB_OK : khub__fail_memory(err, "looking for libtvm_ffi");
}

static int load(void **handle, khub_error *err)
{
    char *path;
    khub__elf elf;
    int rc = find(&path, err);
    if (rc != KHUB_OK) return rc;
    rc = khub__elf_open(&elf, path, err);
    if (rc == KHUB_OK) {
        khub__elf_close(&elf);
        khub__log(KHUB_LOG_DEBUG, "load", path, "loading it");
        *handle = khub__dlopen(path, FLAGS);
        if (!*handle) rc = khub__loader_fail(err, path, dlerror());
        khub__log(KHUB_LOG_DEBUG, "loaded", path, "%s", *handle ? "loaded" : "not loaded");
    }
    khub__free(path);
    return rc;
}

static int bind(void *handle, khub_error *err)
{
    static khub__value_runtime runtime;
    void *take = dlsym(handle, "TVMFFIErrorMoveFromRaised"), *release = dlsym(handle, "TVMFFIObjectDecRef");
    if (!take || !release)
        return khub__fail(err, KHUB_E_LOAD, "libtvm_ffi: has no %s",
                          take ? "TVMFFIObjectDecRef" : "TVMFFIErrorMoveFromRaised");
    memcpy(&runtime.take_error, &take, sizeof(take));
    memcpy(&runtime.release, &release, sizeof(release));
    void *set_stream = dlsym(handle, "TVMFFIEnvSetStream");
    memcpy(&runtime.set_stream, &set_stream, sizeof(set_stream));
    void *set_allocator = dlsym(handle, "TVMFFIEnvSetDLPackManagedTensorAllocator");
    memcpy(&runtime.set_allocator, &set_allocator, sizeof(set_allocator));
    khub__value_set_runtime(&runtime);
    return KHUB_OK;
}

int khub__runtime_open(khub_error *err)
{
    static pthread_mutex_t lock =
        PTHREAD_MUTEX_INITIALIZER; /* guards `is_open`; libtvm_ffi's constructors don't call us */
    static int is_open;
    pthread_mutex_lock(&lock);
    int rc = KHUB_OK;
    if (!is_open) {
        void *handle = find_loaded();
        if (!handle) rc = load(&handle, err);
        if (rc == KHUB_OK) rc = bind(handle, err);
        is_open = rc == KHUB_OK;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}
