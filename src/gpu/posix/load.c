#include "gpu/driver.h"

#include "base/error.h"
#include "base/signals.h"

#include <dlfcn.h>
#include <pthread.h>

static int bind(const khub__gpu_driver *driver, void *library, khub_error *err)
{
    for (const khub__gpu_symbol *s = driver->symbols; s->name; s++) {
        void *symbol = dlsym(library, s->name);
        if (!symbol)
            return khub__fail(err, KHUB_E_LOAD, "%s: the driver has no %s: it is too old, update it",
                              driver->name, s->name);
        memcpy(s->to, &symbol, sizeof(symbol)); /* POSIX: a data pointer can hold a function's */
    }
    return KHUB_OK;
}

int khub__gpu_driver_load(const khub__gpu_driver *driver, const char *path, khub_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the pointers that are bound */
    pthread_mutex_lock(&lock);
    /* for good, as a driver's threads may outlive what was done with it */
    void *library = khub__dlopen(path ? path : driver->library, RTLD_NOW | RTLD_LOCAL);
    int rc = library
                 ? bind(driver, library, err)
                 : khub__fail(err, KHUB_E_LOAD, "%s: the driver isn't opened: %s", driver->name, dlerror());
    pthread_mutex_unlock(&lock);
    return rc;
}
