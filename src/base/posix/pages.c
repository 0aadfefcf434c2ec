#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>

void khub__pages_drop(const void *data, size_t length)
{
    madvise((void *)(uintptr_t)data, length, MADV_DONTNEED);
}

void khub__pages_be_huge(void *data, size_t length)
{
#ifdef MADV_HUGEPAGE
    madvise(data, length, MADV_HUGEPAGE);
#else
    (void)data, (void)length;
#endif
}
