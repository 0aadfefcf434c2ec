#include "platform/pci.h"

#include "base/file.h"
#include "base/memory.h"
#include "platform/linux/small.h"
#include "platform/nodes.h"

#include <stdlib.h>

enum { MAX_DEVICES = 64 };

/* A device by the numbers in /sys/bus/pci/devices/ADDRESS/vendor and device. */
typedef struct model {
    unsigned vendor, device;
    const char *name, *arch;
} model;

/* The driver's table (aws-neuron-driver, neuron_device.h). */
static const model neuron[] = {
    {0x1d0f, 0x7064, "AWS Inferentia", "inf1"}, {0x1d0f, 0x7065, "AWS Inferentia", "inf1"},
    {0x1d0f, 0x7066, "AWS Inferentia", "inf1"}, {0x1d0f, 0x7067, "AWS Inferentia", "inf1"},
    {0x1d0f, 0x7164, "AWS Trainium", "trn1"},   {0x1d0f, 0x7264, "AWS Inferentia2", "inf2"},
    {0x1d0f, 0x7364, "AWS Trainium2", "trn2"},  {0x1d0f, 0x7564, "AWS Trainium3", "trn3"},
    {0x1d0f, 0x7565, "AWS Trainium3", "trn3"},  {0, 0, NULL, NULL},
};

/* JAX's table (hardware_utils.py). */
static const model tpu[] = {
    {0x1ae0, 0x0027, "Google TPU v2 or v3", "v3"},
    {0x1ae0, 0x005e, "Google TPU v4", "v4"},
    {0x1ae0, 0x0062, "Google TPU v5p", "v5p"},
    {0x1ae0, 0x0063, "Google TPU v5e", "v5e"},
    {0x1ae0, 0x006f, "Google TPU v6e", "v6e"},
    {0x1ae0, 0x0076, "Google TPU v7x", "v7x"},
    {0, 0, NULL, NULL},
};

/* `nodes`: how its files in `dir` begin; any of several places. */
static const struct family {
    const char *backend;
    const model *models;
    struct {
        const char *dir, *begin;
    } nodes[2];
    const char *what, *driver, *runtime;
} families[] = {
    {"neuron",
     neuron,
     {{"/dev", "neuron"}, {NULL, NULL}},
     "device of AWS Neuron",
     "the kernel driver (aws-neuronx-dkms) isn't loaded",
     "the runtime (libnrt.so.1 of aws-neuronx-runtime-lib) isn't in reach"},
    {"tpu",
     tpu,
     {{"/dev", "accel"}, {"/dev/vfio", ""}},
     "TPU",
     "no driver has it",
     "the runtime (libtpu.so of the Python package libtpu) isn't in reach"},
};
enum { FAMILIES = sizeof(families) / sizeof(*families) };

static const struct family *family_of(const char *backend)
{
    for (size_t i = 0; i < FAMILIES; i++)
        if (!strcmp(families[i].backend, backend)) return &families[i];
    return NULL;
}

int khub__pci_is_known(const char *backend)
{
    return family_of(backend) != NULL;
}

/* The number in a file of one line, "0x1ae0"; 0: it can't be read. */
static unsigned read_number(const char *dir, const char *address, const char *name, khub__pool *pool)
{
    char text[64];
    const char *path = khub__pool_textf(pool, "%s/%s/%s", dir, address, name);
    if (!path || khub__small_read(text, sizeof(text), "", path) <= 0) return 0;
    unsigned long number = strtoul(text, NULL, 16);
    return number <= 0xffff ? (unsigned)number : 0;
}

static const model *model_of(const model *models, unsigned vendor, unsigned device)
{
    for (; models->name; models++)
        if (models->vendor == vendor && models->device == device) return models;
    return NULL;
}

static size_t find_devices(khub_device_info *devices, const struct family *family, const char *root,
                           khub__pool *pool)
{
    char **names;
    const char *dir = khub__pool_textf(pool, "%s/sys/bus/pci/devices", root);
    size_t count = khub__names_in(&names, dir, pool), found = 0;
    for (size_t i = 0; i < count && found < MAX_DEVICES; i++) {
        unsigned vendor = read_number(dir, names[i], "vendor", pool);
        if (vendor != family->models->vendor) continue;
        const model *m = model_of(family->models, vendor, read_number(dir, names[i], "device", pool));
        if (m) devices[found++] = (khub_device_info){.name = m->name, .arch = m->arch};
    }
    khub__free(names);
    return found;
}

static const char *find_node(const struct family *family, const char *root, khub__pool *pool)
{
    const char *node = NULL;
    for (size_t n = 0; n < 2 && family->nodes[n].dir && !node; n++)
        node = khub__first_node(root, family->nodes[n].dir, family->nodes[n].begin, pool);
    return node;
}

void khub__pci_find(khub_accelerator_info *out, const char *root, khub__pool *pool)
{
    const struct family *family = family_of(out->backend);
    khub_device_info *devices = khub__pool_take(pool, MAX_DEVICES, sizeof(*devices));
    if (!devices) return;
    out->presence = KHUB_ABSENT;
    size_t count = find_devices(devices, family, root, pool);
    const char *node = find_node(family, root, pool);
    if (!count) {
        out->reason = khub__pool_textf(pool, "no %s on the PCI bus", family->what);
        return;
    }
    out->devices = devices;
    out->device_count = count;
    out->presence = KHUB_BROKEN;
    if (!node)
        out->reason = family->driver;
    else if (!khub__file_may_use(node))
        out->reason = khub__pool_textf(pool, "%s isn't permitted to this user", node);
    else if (!out->path)
        out->reason = family->runtime;
    else
        out->presence = KHUB_FOUND;
}
