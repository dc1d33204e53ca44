#include "bench/measure/evict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

/* Linux says how much of a shared cache this machine sees; the processor itself, which sysconf asks, speaks of the whole package. Where
 * nobody tells, what is large today. */
static size_t bytes_that_displace(void) {
    size_t largest = 0;
    for (int i = 0; i < 16; i++) {
        char name[64];
        snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *file = fopen(name, "r");
        size_t kib = 0;
        if (!file) continue;
        if (fscanf(file, "%zuK", &kib) == 1 && kib < ((size_t)1 << 22) && kib * 1024 > largest) largest = kib * 1024;
        fclose(file);
    }
    return 2 * (largest > 0 ? largest : (size_t)64 << 20);
}

int evict_caches(void) {
    static unsigned char *memory;
    static size_t bytes;
    if (!memory) {
        bytes = bytes_that_displace();
        if (!(memory = malloc(bytes))) return -1;
        memset(memory, 1, bytes); /* pages of its own: those that nobody wrote are one and the same */
    }
    const volatile unsigned char *from = memory;
    for (size_t i = 0; i < bytes; i += LINE) (void)from[i];
    return 0;
}
