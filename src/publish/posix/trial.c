#include "publish/trial.h"

#include "base/contained.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/signals.h"
#include "kernel/library.h"
#include "kernel/runtime.h"

#include <khub/kernel.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PATIENCE_S = 60, TEXT_MAX = 16 << 20 };

int khub__trial_can(const khub__object *object)
{
    struct utsname system;
    if (uname(&system) != 0) return 0;
    khub__object_format format = !strcmp(system.sysname, "Darwin") ? KHUB__MACHO : KHUB__ELF;
    const char *arch = !strcmp(system.machine, "arm64") ? "aarch64" : system.machine;
    return object->format == format && !strcmp(arch, object->arch);
}

/* What the child tells, in memory that both have. Code that it loads may write to it too: nothing in it is
 * believed but a text of at most that many bytes. */
typedef struct story {
    khub__trial_of what;
    uint64_t beat; /* odd for good: the patience is for all of it */
    int loaded, code;
    size_t length;
    char text[TEXT_MAX];
} story;

/* ---- the child ---- */

/* A name and a line end, or a reason. */
static void tell(story *s, const char *text, const char *end)
{
    size_t length = strlen(text), ends = strlen(end);
    if (length + ends > sizeof(s->text) - s->length) return;
    memcpy(s->text + s->length, text, length);
    memcpy(s->text + s->length + length, end, ends);
    s->length += length + ends;
}

static void tell_reason(story *s, const khub_error *why)
{
    s->code = (int)why->code;
    tell(s, why->message, "");
}

static void load_library(story *s)
{
    const khub__library *library;
    khub_error why = {0};
    khub__runtime_open(NULL); /* without it, the loader says what is missing */
    if (khub__library_open(&library, s->what.path, NULL, NULL, &why) != KHUB_OK) {
        tell_reason(s, &why);
        return;
    }
    s->loaded = 1;
    for (size_t i = 0; i < library->function_count; i++)
        tell(s, library->functions[i].name, "\n");
}

static void load_kernel(story *s)
{
    khub_kernel *kernel;
    khub_get_options get;
    khub_hub_options hub = {0};
    khub_error why = {0};
    KHUB_INIT(&get);
    get.variant = s->what.variant;
    get.hub = &hub;
    int rc = khub__options(&hub, sizeof(hub), s->what.hub, "khub_hub_options", &why);
    hub.struct_size = sizeof(hub);
    hub.offline = 1;
    hub.progress = NULL; /* the parent's */
    if (rc == KHUB_OK) rc = khub_get(&kernel, s->what.name, &get, &why);
    if (rc != KHUB_OK) {
        tell_reason(s, &why);
        return;
    }
    s->loaded = 1;
    const khub_function_info *info;
    for (size_t i = 0; (info = khub_kernel_function_info(kernel, i)) != NULL; i++)
        tell(s, info->name, "\n");
}

/* What the library prints to stdout isn't ours, and it has nobody to ask. */
static void be_quiet(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
}

static void load(void *user)
{
    story *s = user;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    be_quiet();
    if (s->what.name)
        load_kernel(s);
    else
        load_library(s);
}

/* ---- the parent ---- */

static int take_text(khub__trial *out, const char *text, size_t length, khub_error *err)
{
    out->text = khub__strndup(text, strnlen(text, length < TEXT_MAX ? length : TEXT_MAX));
    return out->text ? KHUB_OK : khub__fail_memory(err, "loading a library");
}

static int judge(khub__trial *out, const story *s, const khub__end *end, khub_error *err)
{
    char buffer[24];
    const char *signal = khub__signal_name(end->number);
    out->number = end->number;
    switch (end->how) {
    case KHUB__RETURNED:
        out->end = s->loaded ? KHUB__TRIAL_LOADED : KHUB__TRIAL_REFUSED;
        out->number = s->loaded ? 0 : s->code;
        return take_text(out, s->text, s->length, err);
    case KHUB__SIGNALED:
        out->end = KHUB__TRIAL_KILLED;
        snprintf(buffer, sizeof(buffer), "signal %d", end->number);
        return take_text(out, signal ? signal : buffer, sizeof(buffer), err);
    case KHUB__LEFT:
        out->end = KHUB__TRIAL_EXITED;
        return KHUB_OK;
    case KHUB__HUNG:
        out->end = KHUB__TRIAL_HUNG;
        out->number = PATIENCE_S;
        return KHUB_OK;
    }
    return KHUB_OK;
}

int khub__trial_load(khub__trial *out, const khub__trial_of *what, khub_error *err)
{
    khub__end end;
    memset(out, 0, sizeof(*out));
    story *s = khub__shared_new(sizeof(*s));
    if (!s) return khub__fail_memory(err, "loading a library");
    s->what = *what;
    s->beat = 1;
    int rc = khub__contain(&end, load, s, &s->beat, PATIENCE_S * 1000, err);
    if (rc == KHUB_OK) rc = judge(out, s, &end, err);
    khub__shared_free(s, sizeof(*s));
    return rc;
}
