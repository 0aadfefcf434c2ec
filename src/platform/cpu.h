/* CPU features: what the processor has and the system has switched on. The decisions work on recorded
 * register values, so that any processor can be tried in a test. */
#ifndef PLATFORM_CPU_H
#define PLATFORM_CPU_H

#include <khub/export.h>

#define KHUB__MAX_FEATURES 32

/* What CPUID and XGETBV say; 0 for a leaf that the processor hasn't got. */
typedef struct khub__x86_registers {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx, leaf7_ecx, leaf7_edx; /* subleaf 0 */
    uint32_t leaf7_1_eax;                     /* subleaf 1 */
    uint64_t xcr0;                            /* register states the system saves; 0 without OSXSAVE */
} khub__x86_registers;

/* Names of the usable features, static strings, in a fixed order; returns how many. */
size_t khub__x86_features(const char *names[KHUB__MAX_FEATURES], const khub__x86_registers *registers);

/* Both of this processor, when it is an x86 (cpuid.c). */
size_t khub__cpuid_features(const char *names[KHUB__MAX_FEATURES]);
const char *khub__cpuid_model(char *buffer, size_t size);

/* The same from the bits that Linux hands to a program on aarch64 (AT_HWCAP, AT_HWCAP2). */
size_t khub__arm_features(const char *names[KHUB__MAX_FEATURES], uint64_t hwcap, uint64_t hwcap2);

/* "  Intel(R)  Xeon(R) " to "Intel(R) Xeon(R)", in place. */
void khub__squeeze(char *text);

/* "ARM Neoverse-V2" from MIDR_EL1; NULL for a part that isn't in the table. */
const char *khub__arm_model(uint64_t midr);

/* Of the machine at hand (one source per operating system): features of this processor; its model (NULL:
 * unknown). */
size_t khub__cpu_features(const char *names[KHUB__MAX_FEATURES]);
const char *khub__cpu_model(char *buffer, size_t size, const char *root);

/* Data cache of a level as one core sees it, in bytes; 0: unknown. `root` stands before /sys: "". */
uint64_t khub__cpu_cache(int level, const char *root);

#endif
