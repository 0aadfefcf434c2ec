/* What every public header needs: visibility, and how options structs start. */
#ifndef KHUB_EXPORT_H
#define KHUB_EXPORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define KHUB_API
#else
#define KHUB_API __attribute__((visibility("default")))
#endif

#if defined(__GNUC__)
#define KHUB_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define KHUB_PRINTF(text, first)
#endif

/* khub_get_options options;
 * KHUB_INIT(&options);
 * options.backend = "cpu";
 * Zeroes *p, padding too, and records its size. As C and as C++, for every options struct: the library
 * copies min(struct_size, its own size) over its defaults and refuses set bytes that it does not know. */
#define KHUB_INIT(p) (memset((p), 0, sizeof(*(p))), (void)((p)->struct_size = sizeof(*(p))))

#define KHUB_VERSION_MAJOR 0
#define KHUB_VERSION_MINOR 1
#define KHUB_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library in the process, as "0.1.0". Static, any thread. */
KHUB_API const char *khub_version(void);

#ifdef __cplusplus
}
#endif

#endif
