/* The platform that a request is judged for: what decides, and no more of it (platform.h). */
#ifndef KERNEL_MACHINE_H
#define KERNEL_MACHINE_H

#include <khub/kernel.h>

/* The platform of the options, or this machine when that is NULL, narrowed to what they say: backend, torch,
 * no_torch. `torch`: whether it matters which libtorch there is. *out is borrowed: from the caller, or from
 * the process for good; or it is `*owned`, the caller's to free (NULL otherwise). This machine is looked at
 * once. Any thread. KHUB_E_INVAL lists the backends; KHUB_E_NOMEM. */
int khub__machine(const khub_platform **out, khub_platform **owned, const khub_get_options *options,
                  int torch, khub_error *err);

/* 1: they narrow it. */
int khub__machine_is_narrowed(const khub_get_options *options);

/* A copy that may be changed. KHUB_E_NOMEM. */
int khub__machine_copy(khub_platform **out, const khub_platform *platform, khub_error *err);

/* This machine as it was when it was first looked at, with the libtorch in reach if `torch`; *out is borrowed
 * from the process for good. Any thread. KHUB_E_NOMEM; then a later call looks again. */
int khub__this_machine(const khub_platform **out, int torch, khub_error *err);

/* The same when somebody looked already; NULL: not yet. Costs nothing. Any thread. */
const khub_platform *khub__known_machine(void);

/* Opens the libtorch of the platform that a build was chosen for; where that has none (it describes another
 * machine), this machine's. khub__machine's and khub__torch_open's errors. */
int khub__machine_open_torch(const khub_get_options *options, int for_cuda, khub_error *err);

#endif
