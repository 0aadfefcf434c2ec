/* The platform that a request is judged for: what decides, and no more of it (platform.h). */
#ifndef KERNEL_MACHINE_H
#define KERNEL_MACHINE_H

#include <khub/platform.h>

/* `given`, or this machine when it is NULL, narrowed to `backend` (NULL: as it is). *out is borrowed: from
 * the caller, or from the process for good; or it is `*owned`, the caller's to free (NULL otherwise). This
 * machine is looked at once. Any thread. KHUB_E_INVAL lists the backends; KHUB_E_NOMEM. */
int khub__machine(const khub_platform **out, khub_platform **owned, const khub_platform *given,
                  const char *backend, khub_error *err);

/* This machine as it was when it was first looked at; *out is borrowed from the process for good. Any
 * thread. KHUB_E_NOMEM; then a later call looks again. */
int khub__this_machine(const khub_platform **out, khub_error *err);

/* The same when somebody looked already; NULL: not yet. Costs nothing. Any thread. */
const khub_platform *khub__known_machine(void);

#endif
