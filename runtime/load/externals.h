/** What a library may call that is not in it: an explicit list. */
#ifndef TESSERA_LOAD_EXTERNALS_H
#define TESSERA_LOAD_EXTERNALS_H

#include <stdint.h>

/** The address of a function by its name; 0 where it is not in the list. */
uint64_t tess_load_external(const char *name);

#endif
