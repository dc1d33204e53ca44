/* Caches as a call finds them when other work ran since the last one: they hold nothing of what it reads or writes. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Reads, line by line, memory of its own of twice the size of the largest cache: what lay in the caches is displaced, and what takes its
 * place need not be written back. Kept memory is allocated by the first call; 0, or -1 where there is none. Of one thread at a time. */
int evict_caches(void);

#ifdef __cplusplus
}
#endif
