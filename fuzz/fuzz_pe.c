/* A PE file of any bytes. */
#include "object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_object(data, size);
    return 0;
}
