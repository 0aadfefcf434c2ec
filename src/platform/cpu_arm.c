#include "platform/cpu.h"

/* Bits of AT_HWCAP and AT_HWCAP2 as Linux numbers them on aarch64 (asm/hwcap.h). The kernel only sets them
 * for what it has switched on. */
static const struct feature {
    const char *name;
    int word, bit;
} features[] = {
    {"neon", 0, 1}, {"fp16", 0, 10}, {"dotprod", 0, 20}, {"sve", 0, 22},
    {"sve2", 1, 1}, {"i8mm", 1, 13}, {"bf16", 1, 14},    {"sme", 1, 23},
};

size_t khub__arm_features(const char *names[KHUB__MAX_FEATURES], uint64_t hwcap, uint64_t hwcap2)
{
    const uint64_t words[2] = {hwcap, hwcap2};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
        if (words[features[i].word] >> features[i].bit & 1) names[count++] = features[i].name;
    return count;
}

/* MIDR_EL1: implementer in bits 24 to 31, part in bits 4 to 15. */
const char *khub__arm_model(uint64_t midr)
{
    static const struct {
        unsigned implementer, part;
        const char *name;
    } models[] = {
        {0x41, 0xd03, "ARM Cortex-A53"},  {0x41, 0xd08, "ARM Cortex-A72"},  {0x41, 0xd0b, "ARM Cortex-A76"},
        {0x41, 0xd0c, "ARM Neoverse-N1"}, {0x41, 0xd40, "ARM Neoverse-V1"}, {0x41, 0xd49, "ARM Neoverse-N2"},
        {0x41, 0xd4f, "ARM Neoverse-V2"}, {0xc0, 0xac3, "Ampere-1"},        {0x46, 0x001, "Fujitsu A64FX"},
    };
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        if (models[i].implementer == (midr >> 24 & 0xff) && models[i].part == (midr >> 4 & 0xfff))
            return models[i].name;
    return NULL;
}
