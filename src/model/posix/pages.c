#include "model/pages.h"

#include <stdint.h>
#include <sys/mman.h>

void khub__pages_drop(const void *data, size_t length)
{
    madvise((void *)(uintptr_t)data, length, MADV_DONTNEED); /* advice: a refusal changes nothing */
}
