/* Accelerators whose runtimes take the devices for themselves when they are asked, so that nobody is: what is
 * on the PCI bus, what is in /dev, and which library is in reach say what there is. */
#ifndef PLATFORM_PCI_H
#define PLATFORM_PCI_H

#include "platform/libraries.h"

/* 1 for a backend that is looked for in this way: "neuron", "tpu". */
int khub__pci_is_known(const char *backend);

/* Fills in out->presence, reason and devices; out->backend, and the path of the runtime (NULL: it isn't in
 * reach), are given. */
void khub__pci_find(khub_accelerator_info *out, const char *root, khub__pool *pool);

#endif
