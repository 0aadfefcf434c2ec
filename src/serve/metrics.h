/* Numbers of this server, counted by any thread. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdint.h>

void serve_count_request(unsigned status, uint64_t bytes); /* that was answered in full */
void serve_count_aborted(void);                            /* the client went before its answer was sent */
void serve_count_open(int change);                         /* connections: 1 or -1 */
void serve_count_active(int change);                       /* requests that aren't answered yet: 1 or -1 */
int serve_active(void);

/* Prometheus' text format. At most 4,000 bytes. */
void serve_metrics_text(char *out, unsigned size);

#endif
