#include "platform/version.h"

#include <stdio.h>

enum { MAX_NUMBER = 999999 }; /* far above any real version, far below overflow */

/* Digits at *text, moved past them. -1: none, or too many. */
static int number(const char **text)
{
    const char *at = *text;
    int n = 0;
    if (*at < '0' || *at > '9') return -1;
    for (; *at >= '0' && *at <= '9'; at++)
        if ((n = n * 10 + (*at - '0')) > MAX_NUMBER) return -1;
    *text = at;
    return n;
}

/* "+cu128", ".post2", "a0", "rc1": what may follow the numbers. */
static int is_suffix(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (!*text) return 1;
    if (!strchr("+.-", *text) && !strchr(plain, *text)) return 0;
    return text[1] ? !strpbrk(text, " \t\r\n\"") : strchr(plain, *text) != NULL;
}

int khub__version_parse(khub__version *out, const char *text)
{
    static const khub__version unknown = KHUB__VERSION_UNKNOWN;
    int parts[3] = {-1, -1, -1};
    for (int i = 0; i < 3; i++) {
        parts[i] = number(&text);
        if (parts[i] < 0) break;
        if (i == 2 || text[0] != '.' || text[1] < '0' || text[1] > '9') break;
        text++;
    }
    *out = unknown;
    if (parts[0] < 0 || !is_suffix(text)) return -1;
    *out = (khub__version){parts[0], parts[1], parts[2]};
    return 0;
}

const char *khub__version_text(khub__version v, char buffer[KHUB__VERSION_TEXT])
{
    if (v.major < 0)
        snprintf(buffer, KHUB__VERSION_TEXT, "unknown");
    else if (v.minor < 0)
        snprintf(buffer, KHUB__VERSION_TEXT, "%d", v.major);
    else if (v.patch < 0)
        snprintf(buffer, KHUB__VERSION_TEXT, "%d.%d", v.major, v.minor);
    else
        snprintf(buffer, KHUB__VERSION_TEXT, "%d.%d.%d", v.major, v.minor, v.patch);
    return buffer;
}

static int known(int part)
{
    return part < 0 ? 0 : part;
}

int khub__version_compare(khub__version a, khub__version b)
{
    int by_major = known(a.major) - known(b.major), by_minor = known(a.minor) - known(b.minor);
    if (by_major) return by_major;
    return by_minor ? by_minor : known(a.patch) - known(b.patch);
}

/* No macOS was ever numbered 16 to 25: after 15 came 26. */
khub__version khub__macos_version(khub__version reported)
{
    if (reported.major == 10 && reported.minor == 16) return (khub__version){11, -1, -1};
    if (reported.major >= 16 && reported.major < 26) reported.major += 10;
    return reported;
}
