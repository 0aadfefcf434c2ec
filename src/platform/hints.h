/* What else a user should know when an accelerator isn't there: masks, permissions, files without a driver.
 */
#ifndef PLATFORM_HINTS_H
#define PLATFORM_HINTS_H

#include "platform/platform.h"

/* The reason when a variable hides every device, so that nobody has to be asked; else NULL. Static. */
const char *khub__hint_hidden(const char *backend);

/* Adds to the reason (or changes the presence) what the surroundings say. `no_device`: the driver works and
 * sees none. */
void khub__hint(khub_accelerator_info *accelerator, int no_device, const khub_library_info *cudart,
                const char *root, khub__pool *pool);

#endif
