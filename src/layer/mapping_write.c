/* A mapping as JSON again, in the one form that reads back to the same. */
#include "base/json.h"
#include "layer/mapping.h"

static void write_value(khub__text *to, const khub__entry *entry)
{
    if (entry->fault) {
        khub__text_add(to, entry->value);
        return;
    }
    khub__text name = {0};
    khub__text_addf(&name, "%s%s%s", entry->kernel, entry->layer ? ":" : "",
                    entry->layer ? entry->layer : "");
    if (entry->value) khub__text_add(to, "{\"kernel\": ");
    if (name.data)
        khub__json_add_string(to, name.data);
    else
        to->failed = 1;
    /* "{...}" without its "{"; there is a function in it at least */
    if (entry->value) khub__text_addf(to, ", %s", entry->value + 1);
    khub__text_free(&name);
}

/* 1: stands where a table by mode could, and isn't taken for one. */
static int needs_no_table(const khub__entry *entry)
{
    return entry->read == KHUB__ENTRY_ALL && entry->line.mode == KHUB_MODE_FALLBACK &&
           !(entry->fault && entry->value[0] == '{');
}

static int same_row(const khub__entry *a, const khub__entry *b)
{
    if (a->read == KHUB__ENTRY_DEVICE || b->read == KHUB__ENTRY_DEVICE) return a == b;
    return khub__target_same(&a->target, &b->target);
}

/* The entries of one device, of which the first is given. */
static void write_modes(khub__text *to, const khub__mapped *mapped, size_t first)
{
    const khub__entry *entry = mapped->entries[first];
    size_t count = 0;
    for (size_t i = first; i < mapped->count; i++)
        count += same_row(entry, mapped->entries[i]);
    if (entry->read == KHUB__ENTRY_DEVICE || (count == 1 && needs_no_table(entry))) {
        write_value(to, entry);
        return;
    }
    const char *before = "{";
    for (size_t i = first; i < mapped->count; i++) {
        const khub__entry *row = mapped->entries[i];
        if (!same_row(entry, row)) continue;
        khub__text_add(to, before);
        khub__json_add_string(to,
                              row->read == KHUB__ENTRY_MODE ? row->word : khub__mode_text(row->line.mode));
        khub__text_add(to, ": ");
        write_value(to, row);
        before = ", ";
    }
    khub__text_add(to, "}");
}

static int is_first_of_row(const khub__mapped *mapped, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (same_row(mapped->entries[j], mapped->entries[i])) return 0;
    return 1;
}

static void write_devices(khub__text *to, const khub__mapped *mapped)
{
    char device[KHUB__TARGET_MAX];
    const char *before = "{";
    for (size_t i = 0; i < mapped->count; i++) {
        const khub__entry *entry = mapped->entries[i];
        if (!is_first_of_row(mapped, i)) continue;
        khub__text_add(to, before);
        khub__json_add_string(
            to, entry->read == KHUB__ENTRY_DEVICE ? entry->word : khub__target_text(device, &entry->target));
        khub__text_add(to, ": ");
        write_modes(to, mapped, i);
        before = ", ";
    }
    khub__text_add(to, "}");
}

static int is_for_every_device(const khub__mapped *mapped)
{
    for (size_t i = 0; i < mapped->count; i++)
        if (mapped->entries[i]->target.device != KHUB__DEVICE_ANY ||
            mapped->entries[i]->read == KHUB__ENTRY_DEVICE)
            return 0;
    return 1;
}

static void write_key(khub__text *to, const khub__mapped *mapped)
{
    khub__json_add_string(to, mapped->text);
    khub__text_add(to, ": ");
    if (mapped->entries[0]->read == KHUB__ENTRY_KEY)
        write_value(to, mapped->entries[0]);
    else if (is_for_every_device(mapped))
        write_modes(to, mapped, 0);
    else
        write_devices(to, mapped);
}

char *khub_mapping_json(const khub_mapping *mapping)
{
    khub__text text = {0};
    const char *before = "{\n  ";
    for (size_t i = 0; i < mapping->key_count; i++) {
        if (!mapping->keys[i].count) continue;
        khub__text_add(&text, before);
        write_key(&text, &mapping->keys[i]);
        before = ",\n  ";
    }
    khub__text_add(&text, *before == ',' ? "\n}\n" : "{}\n");
    return khub__text_take(&text);
}
