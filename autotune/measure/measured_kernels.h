/* The kernels that the worker measures, and where it finds them: behind its own bytes as static libraries, which it loads
 * (loaded_kernels.c), or linked with it, since what starts a kernel on a device is C (linked_kernels.c). */
#ifndef TESSERA_MEASURED_KERNELS_H
#define TESSERA_MEASURED_KERNELS_H

#include "runtime/abi/kernel.h"

enum { CANDIDATE, BASE };
#define CANDIDATE_NAME "tessera_candidate"
#define BASE_NAME "tessera_base"

/* Before all else; gives what is wrong, or null. */
const char *measured_open(void);
/* The kernel of that name with `suffix` behind it; 0 where there is none. Where there is no candidate, the base stands in its place. */
int measured_kernel(int which, const char *suffix, TessKernel *kernel);

#endif
