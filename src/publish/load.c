/* Whether a library loads here, found out in a child process. */
#include "publish/checking.h"
#include "publish/trial.h"

#include "base/memory.h"

/* Does it need what not every machine has? Then that it doesn't load here says nothing. */
static int needs_more(const khub__object *object)
{
    for (size_t i = 0; i < object->needed.count; i++) {
        const khub__provider *p = khub__needed_provider(object, object->needed.items[i]);
        if (p && strcmp(p->name, "tvm-ffi") != 0) return 1;
    }
    for (size_t i = 0; i < object->symbol_count; i++) {
        const khub__object_symbol *s = &object->symbols[i];
        const khub__provider *p = s->undefined && !s->version ? khub__symbol_provider(s->name) : NULL;
        if (p && strcmp(p->name, "tvm-ffi") != 0) return 1;
    }
    return 0;
}

static void report_functions(khub_check_report *report, char *lines)
{
    khub__names names = {0};
    for (char *line = lines, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        khub__names_add(&names, line);
    }
    khub__finding(report, "load", KHUB_CHECK_LEVEL_NOTE, "loaded", &names,
                  "loads here, and has %zu function%s", names.count, names.count == 1 ? "" : "s");
    khub__names_free(&names);
}

/* "/WHERE/IT/IS/PATH: …" without the path, which the finding has. */
static const char *plain_words(const char *words, const char *path)
{
    const char *at = strstr(words, path), *end = at ? at + strlen(path) : NULL;
    return end && !strncmp(end, ": ", 2) ? end + 2 : words;
}

/* What other findings say already, or what says something about this machine alone. */
static int is_known(const khub__object *object, const khub__trial *trial)
{
    if (trial->number == KHUB_E_UNSUPPORTED || trial->number == KHUB_E_OFFLINE) return 1;
    return trial->number == KHUB_E_LOAD && needs_more(object);
}

static void report(khub_check_report *to, const khub__opened *opened, const khub__object *object,
                   khub__trial *trial)
{
    switch (trial->end) {
    case KHUB__TRIAL_LOADED:
        report_functions(to, trial->text);
        break;
    case KHUB__TRIAL_REFUSED:
        khub__finding(to, "load", is_known(object, trial) ? KHUB_CHECK_LEVEL_NOTE : KHUB_CHECK_LEVEL_ERROR,
                      "refused", NULL, "doesn't load here: %s", plain_words(trial->text, opened->path));
        break;
    case KHUB__TRIAL_EXITED:
        khub__finding(to, "load", KHUB_CHECK_LEVEL_ERROR, "exit", NULL,
                      "loading it ended the process: it called exit(%d)", trial->number);
        break;
    case KHUB__TRIAL_KILLED:
        khub__finding(to, "load", KHUB_CHECK_LEVEL_ERROR, trial->text, NULL,
                      "loading it ended the process: %s", trial->text);
        break;
    case KHUB__TRIAL_HUNG:
        khub__finding(to, "load", KHUB_CHECK_LEVEL_ERROR, "hung", NULL,
                      "loading it didn't end within %d seconds", trial->number);
        break;
    }
}

int khub__opened_load(const khub__opened *opened, khub__checking *c, const char *variant)
{
    const khub__object *object = NULL;
    for (size_t i = 0; i < opened->objects.count; i++)
        if (khub__trial_can(&opened->objects.items[i])) object = &opened->objects.items[i];
    if (!c->options.load || !object) return KHUB_OK;
    khub__trial trial;
    const khub__trial_of what = {opened->path, variant ? c->name : NULL, variant, c->options.hub};
    int rc = khub__trial_load(&trial, &what, c->err);
    c->report->file = opened->shown;
    if (rc == KHUB_OK) report(c->report, opened, object, &trial);
    c->report->file = NULL;
    khub__free(trial.text);
    return rc;
}
