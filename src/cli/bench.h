/* How the results of khub bench are shown. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli.h"

#include <khub/bench.h>

void cli_bench_table(FILE *to, const khub_bench *bench);
void cli_bench_json(FILE *to, const khub_bench *bench);

/* A chart of a khub_bench (svg.h). */
void cli_bench_chart(FILE *to, const void *bench);

/* Per second, by the median; 0: unknown. */
double cli_bench_rate(double amount, const khub_timing *timing);

/* "Example 7000, 2 threads, avx2 path". */
void cli_bench_machine(FILE *to, const khub_bench_machine *machine);

/* `seconds` as people read them: "12.3 µs"; always of 9 characters. */
const char *cli_bench_time(char text[16], double seconds);

/* Three digits, as long as there are no more before the point; "-" for what is unknown. */
const char *cli_bench_number(char text[16], double value);

#endif
