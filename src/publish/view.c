#include "publish/view.h"

#include <string.h>

int khub__view_has(const khub__view *view, uint64_t at, uint64_t bytes)
{
    return at <= view->length && bytes <= view->length - at;
}

static const unsigned char *bytes_at(khub__view *view, uint64_t at, size_t bytes)
{
    if (khub__view_has(view, at, bytes)) return (const unsigned char *)view->data + at;
    view->outside = 1;
    return NULL;
}

uint64_t khub__view_little(khub__view *view, uint64_t at, size_t bytes)
{
    const unsigned char *data = bytes_at(view, at, bytes);
    uint64_t value = 0;
    for (size_t i = data ? bytes : 0; i > 0; i--)
        value = value << 8 | data[i - 1];
    return value;
}

uint64_t khub__view_big(khub__view *view, uint64_t at, size_t bytes)
{
    const unsigned char *data = bytes_at(view, at, bytes);
    uint64_t value = 0;
    for (size_t i = 0; data && i < bytes; i++)
        value = value << 8 | data[i];
    return value;
}

const char *khub__view_text(khub__view *view, uint64_t at, uint64_t end)
{
    if (end > view->length) end = view->length;
    const char *text = at < end ? view->data + at : NULL;
    if (text && memchr(text, 0, (size_t)(end - at))) return text;
    view->outside = 1;
    return NULL;
}
