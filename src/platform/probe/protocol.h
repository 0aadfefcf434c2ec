/* What khub-probe and the library agree on.
 *
 *     khub-probe BACKEND LIBRARY SECONDS
 *
 * Lines on descriptor 3: "doing STEP" before each call into the driver, then one "answer JSON":
 * {"presence": "found", "version": "12.8", "reason": null, "no_device": false,
 *  "devices": [{"name": "...", "arch": "9.0", "uuid": "GPU-...", "integrated": false, "memory_bytes": 1}]} */
#ifndef PLATFORM_PROBE_PROTOCOL_H
#define PLATFORM_PROBE_PROTOCOL_H

#define PROBE_DOING  "doing "
#define PROBE_ANSWER "answer "

enum { PROBE_FD = 3, PROBE_MAX_BYTES = 64 << 10, PROBE_MAX_DEVICES = 64 };

#endif
