/* Raises an error object of its own making, as a library built against an older header does: shorter than
 * the header of today says (user reports, F7). Its memory holds no byte more than it needs. */
#include "fake.h"

struct small_error {
    TVMFFIObject header;
    TVMFFIByteArray kind, message;
};

static int64_t alive;

static void delete_error(void *self, int flags)
{
    if (!(flags & kTVMFFIObjectDeleterFlagBitMaskWeak)) return;
    alive--;
    free(self);
}

/* fail_small(): raises it */
FAKE(fail_small)
{
    UNUSED;
    struct small_error *e = calloc(1, sizeof(*e));
    if (!e) return -1;
    e->header.combined_ref_count =
        (1ULL << 32) | 1; /* one strong reference, and the weak one of all strong */
    e->header.type_index = kTVMFFIError;
    e->header.deleter = delete_error;
    e->kind = (TVMFFIByteArray){"KeyError", 8};
    e->message = (TVMFFIByteArray){"of an older release", 19};
    alive++;
    TVMFFIErrorSetRaised(e);
    TVMFFIObjectDecRef(e); /* libtvm_ffi's reference is the last one now */
    return -1;
}

/* alive() -> how many such errors nobody has released */
FAKE(alive)
{
    UNUSED;
    return give_int(result, alive);
}
