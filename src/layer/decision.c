#include "layer/decision.h"

#include "base/error.h"
#include "base/memory.h"
#include "layer/shapes.h"

static int no_memory(khub_error *err)
{
    return khub__fail_memory(err, "filling slots");
}

/* Keeps the words; KHUB_E_NOMEM goes on. */
static int keep_reason(char **out, int rc, const khub_error *why, khub_error *err)
{
    if (rc == KHUB_E_NOMEM) return no_memory(err);
    *out = khub__strdup(why->message);
    return *out ? KHUB_OK : no_memory(err);
}

static void mark_layers(khub__decision *d)
{
    const khub_mapping *mapping = d->sources->mapping;
    for (size_t i = 0; i < mapping->key_count; i++) {
        const khub__key *key = mapping->keys[i].key;
        const khub__layer_def *layer = key ? khub__layer_find(key->part[0].layer) : NULL;
        if (layer && key->part[0].pattern) d->by_path[khub__layer_number(layer)] = 1;
    }
    for (size_t i = 0; i < d->layers->count; i++) /* a run is known by its parts */
        if (d->layers->slots[i]->parts) d->by_path[khub__layer_number(d->layers->slots[i]->layer)] = 1;
}

/* Groups told apart by path stand in lists by the key that counts. */
static khub__group **list_of(khub__decision *d, const khub_slot *slot, const khub__counting *by)
{
    if (!by) return &d->groups[khub__layer_number(slot->layer)];
    return &d->lists[(uintptr_t)by->mapped / sizeof(khub__mapped) % KHUB__GROUP_LISTS];
}

static int same_counting(const khub__counting *a, const khub__counting *b)
{
    return a->mapped == b->mapped && a->lost == b->lost && (a->mapped || a->miss == b->miss);
}

static khub__group *find_group(khub__decision *d, const khub_slot *slot, khub__on on,
                               const khub__counting *by)
{
    khub__group *group = *list_of(d, slot, by);
    for (; group; group = by ? group->next_in_list : group->next)
        if (group->layer == slot->layer && !memcmp(&group->dtype, &slot->dtype, sizeof(slot->dtype)) &&
            group->on.device == on.device && group->on.capability == on.capability &&
            group->on.gpu == on.gpu && group->of_runs == (slot->parts != NULL) &&
            (!by || same_counting(by, &group->by)))
            return group;
    return NULL;
}

static void add_group(khub__decision *d, khub__group *group, const khub_slot *slot, int by_path)
{
    khub__group **end = &d->groups[khub__layer_number(slot->layer)];
    while (*end)
        end = &(*end)->next;
    *end = group;
    if (group->by.mapped) d->counted[group->by.mapped - d->sources->mapping->keys] = 1;
    if (!by_path) return;
    khub__group **list = list_of(d, slot, &group->by);
    group->next_in_list = *list;
    *list = group;
}

static int begin_group(khub__group *group, const khub__decision *d, khub_error *err)
{
    const khub__candidates *all = &group->all;
    khub_error why = {0};
    int rc = KHUB_OK;
    for (size_t i = 0; i < all->count; i++)
        group->offers[i].entry = all->entry[i];
    group->named = all->count && khub__entry_names_kernel(all->entry[0]);
    if (d->forbidden)
        rc = khub__fail(&why, KHUB_E_NOTFOUND, "kernels are switched off by %s", d->forbidden);
    else if (!all->count)
        rc = khub__candidates_miss(&why, all, d->sources->mapping, group->layer->name, group->on, d->mode);
    return rc == KHUB_OK ? rc : keep_reason(&group->miss, rc, &why, err);
}

static khub__counting find_counting(const khub__decision *d, const khub_slot *slot, khub__on on)
{
    khub__wanted_slot parts[KHUB__MAX_RUN];
    khub__wanted_slot wanted = {slot->layer->name, slot->path, parts, slot->part_count, slot->first};
    if (wanted.part_count > KHUB__MAX_RUN) wanted.part_count = 0; /* no key is that long */
    for (size_t i = 0; i < wanted.part_count; i++)
        parts[i] = (khub__wanted_slot){slot->parts[i]->layer->name, slot->parts[i]->path, NULL, 0, 0};
    return khub__counting_find(&d->shelves, &wanted, on);
}

static int take_group(khub__group **out, khub__decision *d, const khub_slot *slot, khub_error *err)
{
    int by_path = d->by_path[khub__layer_number(slot->layer)];
    khub__counting by;
    khub__on on;
    int rc = khub__sources_on(&on, d->sources, slot, err);
    if (rc != KHUB_OK) return rc;
    if (by_path) by = find_counting(d, slot, on);
    *out = find_group(d, slot, on, by_path ? &by : NULL);
    if (*out) return KHUB_OK;
    khub__group *group = khub__calloc(1, sizeof(*group));
    if (!group) return no_memory(err);
    *out = group;
    group->layer = slot->layer;
    group->on = on;
    group->dtype = slot->dtype;
    group->of_runs = slot->parts != NULL;
    group->by = by_path ? by : find_counting(d, slot, on);
    khub__candidates_from(&group->all, &group->by, on, d->mode);
    add_group(d, group, slot, by_path);
    return begin_group(group, d, err);
}

static khub__choice *part_of(const khub__decision *d, const khub_slot *run, size_t part)
{
    return &d->choices[khub__index_find(&d->layers->by_path, run->parts[part]->path)];
}

/* No candidate serves, or none is needed. */
static void settle_empty(khub__choice *choice)
{
    choice->settled = 1;
    choice->at = choice->group->all.count;
}

/* A run is settled: its parts are served by it, or need not wait for it any more. */
static void settle_parts(khub__decision *d, const khub_slot *run, const khub__choice *choice)
{
    for (size_t i = 0; i < run->part_count; i++) {
        khub__choice *part = part_of(d, run, i);
        part->waits--;
        if (choice->filling && !part->run) part->run = choice;
        if (part->run) settle_empty(part);
    }
}

/* 1: somebody says of slots like these what becomes of them, khub's own mapping doesn't. */
static int is_spoken_for(const khub__group *group)
{
    return group->all.count && !group->all.entry[0]->built_in;
}

/* 1: its parts are called one by one anyway: somebody switched one off, or named a kernel for one alone where
 * khub's own mapping has one for the run, or another run serves one. */
static int is_broken(const khub__decision *d, const khub_slot *run, const khub__choice *choice)
{
    if (!run->part_count) return 0;
    int broken = 0, own = is_spoken_for(choice->group);
    for (size_t i = 0; i < run->part_count; i++) {
        const khub__choice *part = part_of(d, run, i);
        broken |= run->parts[i]->disabled || part->run || (!own && is_spoken_for(part->group));
    }
    return broken;
}

static int group_slots(khub__decision *d, khub_error *err)
{
    int made = khub__shelves_make(&d->shelves, d->sources->mapping, err);
    if (made != KHUB_OK) return made;
    mark_layers(d);
    for (size_t i = 0; i < d->layers->count; i++) {
        const khub_slot *slot = d->layers->slots[i];
        khub__slots_ask_ahead(d->layers, i);
        int rc = take_group(&d->choices[i].group, d, slot, err);
        if (rc != KHUB_OK) return rc;
        d->choices[i].group->slots++;
        for (size_t k = 0; k < slot->part_count; k++)
            part_of(d, slot, k)->waits++;
    }
    for (size_t i = 0; i < d->layers->count; i++) {
        khub__choice *choice = &d->choices[i];
        if (choice->group->miss) settle_empty(choice);
        if (choice->settled) settle_parts(d, d->layers->slots[i], choice);
    }
    return KHUB_OK;
}

/* A slot to be decided now. */
static int is_next(khub__decision *d, size_t i)
{
    khub__choice *choice = &d->choices[i];
    if (choice->settled || choice->waits) return 0;
    choice->broken = is_broken(d, d->layers->slots[i], choice);
    if (!choice->broken) return 1;
    settle_empty(choice);
    settle_parts(d, d->layers->slots[i], choice);
    return 0;
}

/* 1: leaves the layer standard on purpose. */
static int is_off(const khub__entry *entry)
{
    return !entry->fault && !*entry->kernel;
}

/* The kernels of the candidates that are tried next. */
static int ask_kernels(khub__decision *d, int *any, khub_error *err)
{
    *any = 0;
    for (size_t i = 0; i < d->layers->count; i++) {
        khub__choice *choice = &d->choices[i];
        *any |= !choice->settled;
        if (!is_next(d, i)) continue;
        khub__offer *offer = &choice->group->offers[choice->at];
        if (offer->asked || offer->decided || offer->entry->fault || is_off(offer->entry)) continue;
        int rc =
            khub__sources_ask(&offer->asked, d->sources, offer->entry->kernel, choice->group->on.device, err);
        if (rc != KHUB_OK) return rc;
    }
    return KHUB_OK;
}

static int is_exact(const khub_layer_spec *spec, khub_dtype dtype)
{
    char own[32];
    const char *name = dtype.bits ? khub_dtype_name(dtype, own) : "";
    for (size_t i = 0; i < spec->tolerance_count; i++)
        if (!strcmp(spec->tolerances[i].dtype, name)) return spec->tolerances[i].ulp == 0;
    return 0;
}

/* What was asked for besides the kernel. */
static int check_promises(const khub__decision *d, const char *name, const khub_layer_spec *spec,
                          khub_dtype dtype, khub_error *why)
{
    if (d->exact && !is_exact(spec, dtype))
        return khub__fail(why, KHUB_E_UNSUPPORTED,
                          "%s: %s doesn't promise results right to the last bit, as is asked for", name,
                          spec->function);
    if (d->deterministic && !spec->deterministic)
        return khub__fail(why, KHUB_E_UNSUPPORTED,
                          "%s: %s doesn't promise to be deterministic, as is asked for", name,
                          spec->function);
    if (d->mode & KHUB_MODE_TRAINING && !spec->backward)
        return khub__fail(why, KHUB_E_UNSUPPORTED, "%s: %s has no backward, so it can't serve training", name,
                          spec->function);
    return KHUB_OK;
}

/* What the kernel says of the layer: the entry's own words, else its layers.json. */
static int make_recipe(khub__offer *offer, const khub__decision *d, const khub__group *group, khub_error *why)
{
    const khub__entry *entry = offer->entry;
    if (entry->fault) return khub__fail(why, KHUB_E_FORMAT, "%s", entry->fault);
    if (is_off(entry))
        return khub__fail(why, KHUB_E_NOTFOUND, "the mapping leaves %s standard", group->layer->name);
    khub__source *source = offer->asked->source;
    if (!source) return khub__fail(why, offer->asked->get.why.code, "%s", offer->asked->get.why.message);
    const khub_layer_spec *spec = entry->spec;
    int rc = KHUB_OK;
    if (!spec)
        rc = khub_kernel_layer(&spec, source->kernel, entry->layer ? entry->layer : group->layer->name, why);
    if (rc == KHUB_OK && spec->serves && strcmp(spec->serves, group->layer->name) != 0)
        rc = khub__fail(why, KHUB_E_UNSUPPORTED, "%s: %s serves %s, the slot is a %s", entry->kernel,
                        spec->layer, spec->serves, group->layer->name);
    if (rc == KHUB_OK) rc = check_promises(d, entry->kernel, spec, group->dtype, why);
    offer->spec = spec;
    return rc == KHUB_OK ? khub__recipe_of(&offer->recipe, d->layers, source, group->layer, group->dtype,
                                           group->on.gpu, spec, why)
                         : rc;
}

/* Once for all slots of the group. */
static int decide_offer(khub__offer *offer, const khub__decision *d, const khub__group *group,
                        khub_error *err)
{
    khub_error why = {0};
    offer->decided = 1;
    int rc = make_recipe(offer, d, group, &why);
    return rc == KHUB_OK ? rc : keep_reason(&offer->reason, rc, &why, err);
}

/* A slot whose shapes don't fit, or whose weight couldn't be prepared, has its own reasons. */
static int keep_own(khub__choice *choice, int rc, const khub_error *why, khub_error *err)
{
    if (!choice->own) choice->own = khub__calloc(KHUB__CANDIDATES, sizeof(*choice->own));
    return choice->own ? keep_reason(&choice->own[choice->at], rc, why, err) : no_memory(err);
}

/* One candidate for one slot. */
static int try_slot(khub__choice *choice, khub__decision *d, const khub_slot *slot, khub_error *err)
{
    khub__group *group = choice->group;
    khub__offer *offer = &group->offers[choice->at];
    khub_error why;
    int rc = offer->decided ? KHUB_OK : decide_offer(offer, d, group, err);
    if (rc != KHUB_OK) return rc;
    khub_error_clear(&why);
    if (offer->recipe) rc = khub__shapes_fit(offer->spec, offer->entry->kernel, slot, &why);
    if (offer->recipe && rc == KHUB_OK) rc = khub__recipe_fill(&choice->filling, offer->recipe, slot, &why);
    if (rc != KHUB_OK) {
        rc = keep_own(choice, rc, &why, err);
        if (rc != KHUB_OK) return rc;
    }
    choice->settled = choice->filling != NULL;
    if (!choice->filling && (++choice->at == group->all.count || is_off(offer->entry))) settle_empty(choice);
    if (choice->settled) settle_parts(d, slot, choice);
    return KHUB_OK;
}

/* 1: its candidate's kernel is here or known not to be; else it came up in this round, and is asked for in
 * the next. */
static int is_asked(const khub__choice *choice)
{
    const khub__offer *offer = &choice->group->offers[choice->at];
    return offer->asked || offer->decided || offer->entry->fault || is_off(offer->entry);
}

static int try_slots(khub__decision *d, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t i = 0; i < d->layers->count && rc == KHUB_OK; i++) {
        khub__slots_ask_ahead(d->layers, i);
        if (is_next(d, i) && is_asked(&d->choices[i]))
            rc = try_slot(&d->choices[i], d, d->layers->slots[i], err);
    }
    return rc;
}

static void count_misses(khub__decision *d)
{
    for (size_t i = 0; i < d->layers->count; i++) {
        const khub__choice *choice = &d->choices[i];
        if (choice->filling || choice->run || choice->broken) continue;
        if (!choice->group->misses++) choice->group->first_miss = i;
    }
}

/* In rounds: a kernel is got only when a slot needs it, and all that are needed at the same time. */
int khub__decision_make(khub__decision *d, khub_error *err)
{
    int any = 1;
    d->choices = khub__calloc(d->layers->count, sizeof(*d->choices));
    d->counted = khub__calloc(d->sources->mapping->key_count + 1, 1);
    int rc = d->counted && (d->choices || !d->layers->count) ? group_slots(d, err) : no_memory(err);
    while (rc == KHUB_OK && any) {
        rc = ask_kernels(d, &any, err);
        if (rc == KHUB_OK) rc = khub__sources_get(d->sources, err);
        if (rc == KHUB_OK) rc = try_slots(d, err);
    }
    if (rc == KHUB_OK) count_misses(d);
    return rc;
}

static void free_group(khub__group *group)
{
    for (size_t i = 0; i < group->all.count; i++) {
        khub__recipe_give_up(group->offers[i].recipe);
        khub__free(group->offers[i].reason);
    }
    khub__free(group->miss);
    khub__free(group);
}

void khub__decision_free(khub__decision *d)
{
    for (size_t i = 0; d->choices && i < d->layers->count; i++) {
        khub__choice *choice = &d->choices[i];
        khub__filling_give_up(d->layers, choice->filling);
        for (size_t k = 0; choice->own && k < KHUB__CANDIDATES; k++)
            khub__free(choice->own[k]);
        khub__free(choice->own);
    }
    khub__free(d->choices);
    khub__free(d->counted);
    khub__shelves_free(&d->shelves);
    for (size_t i = 0; i < KHUB__LAYERS; i++)
        for (khub__group *next, *group = d->groups[i]; group; group = next) {
            next = group->next;
            free_group(group);
        }
}

const char *khub__choice_reason(const khub__choice *choice, size_t i)
{
    if (choice->own && choice->own[i]) return choice->own[i];
    return choice->group->offers[i].reason;
}

const char *khub__choice_why(const khub__choice *choice)
{
    const khub__group *group = choice->group;
    if (choice->filling || choice->run) return NULL;
    if (choice->broken)
        return "its parts are called: one is switched off, mapped on its own, or served by another run";
    return group->miss ? group->miss : khub__choice_reason(choice, 0);
}
