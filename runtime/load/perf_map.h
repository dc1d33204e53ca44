/** Names for profilers: Linux's perf reads /tmp/perf-<process>.map, a line for each function that was made while the program runs. */
#ifndef TESSERA_LOAD_PERF_MAP_H
#define TESSERA_LOAD_PERF_MAP_H

#include <stdint.h>
#include <stdio.h>

/** The map, to be written to by the function below and closed by the caller; null where the environment does not ask for it by
 *  TESSERA_PERF_MAP=1, or it cannot be written. */
FILE *tess_load_perf_map(void);

void tess_load_perf_name(FILE *map, uint64_t address, uint64_t bytes, const char *name);

#endif
