#include "serve/metrics.h"

#include "serve/names.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_uint_least64_t requests[600], bytes_sent, aborted;
static atomic_int open_connections, active_requests;

void serve_count_request(unsigned status, uint64_t bytes)
{
    if (status < 600) atomic_fetch_add_explicit(&requests[status], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes_sent, bytes, memory_order_relaxed);
}

void serve_count_aborted(void)
{
    atomic_fetch_add_explicit(&aborted, 1, memory_order_relaxed);
}

void serve_count_open(int change)
{
    atomic_fetch_add_explicit(&open_connections, change, memory_order_relaxed);
}

void serve_count_active(int change)
{
    atomic_fetch_add(&active_requests, change);
}

int serve_active(void)
{
    return atomic_load(&active_requests);
}

static unsigned add(char *out, unsigned size, unsigned used, const char *name, const char *kind,
                    const char *help, uint64_t value)
{
    int n = snprintf(out + used, size - used, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, kind,
                     name, (unsigned long long)value);
    return n < 0 || (unsigned)n >= size - used ? size - 1 : used + (unsigned)n;
}

void serve_metrics_text(char *out, unsigned size)
{
    unsigned used = (unsigned)snprintf(out, size,
                                       "# HELP khub_serve_requests_total Requests answered, by status.\n"
                                       "# TYPE khub_serve_requests_total counter\n");
    for (unsigned status = 100; status < 600; status++) {
        uint64_t n = atomic_load_explicit(&requests[status], memory_order_relaxed);
        if (!n || used + 100 > size) continue;
        used += (unsigned)snprintf(out + used, size - used, "khub_serve_requests_total{code=\"%u\"} %llu\n",
                                   status, (unsigned long long)n);
    }
    used = add(out, size, used, "khub_serve_aborted_total", "counter",
               "Requests whose client went before the end.", atomic_load(&aborted));
    used = add(out, size, used, "khub_serve_sent_bytes_total", "counter",
               "Bytes of the bodies of whole answers.", atomic_load(&bytes_sent));
    used = add(out, size, used, "khub_serve_hashed_bytes_total", "counter",
               "Bytes of files that were hashed.", serve_names_hashed());
    used = add(out, size, used, "khub_serve_connections", "gauge", "Connections that are open.",
               (uint64_t)atomic_load(&open_connections));
    add(out, size, used, "khub_serve_active_requests", "gauge", "Requests that are being answered.",
        (uint64_t)atomic_load(&active_requests));
}
