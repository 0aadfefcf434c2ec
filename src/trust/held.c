#include "trust/held.h"

#include "base/error.h"
#include "base/memory.h"

int khub__held_bytes(khub__bytes *out, const khub__held *held, const char *path, size_t most, khub_error *err)
{
    if (held->size > most)
        return khub__fail(err, KHUB_E_FORMAT, "%s: is %llu bytes long, at most %zu are read", path,
                          (unsigned long long)held->size, most);
    out->data = khub__malloc((size_t)held->size + 1);
    if (!out->data) return khub__fail_memory(err, "reading a file");
    out->length = (size_t)held->size;
    out->data[out->length] = 0;
    for (size_t done = 0; done < out->length;) {
        int64_t n = khub__held_read(held, out->data + done, out->length - done, done);
        if (n < 0) return khub__fail_errno(err, path, "read it");
        if (n == 0)
            return khub__fail(err, KHUB_E_FORMAT, "%s: ends %zu bytes too early", path, out->length - done);
        done += (size_t)n;
    }
    return KHUB_OK;
}
