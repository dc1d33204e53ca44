/** Inputs that are made of a seed and a step (docs/bundle.md, "replay"): Philox 4x32-10, the same on every machine. */
#ifndef TESSERA_BUNDLE_RANDOM_VALUES_H
#define TESSERA_BUNDLE_RANDOM_VALUES_H

#include "runtime/abi/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The four words of a block (Random123's philox4x32-10). */
void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

/** Fills a row-major tensor of so many elements, in rows of `row` elements; 0 for a type that is not made so (f8e8m0fnu and what is no
 *  TessDType). */
int tess_random_values(void *data, int32_t dtype, uint64_t elements, uint64_t row, uint64_t seed, uint32_t argument, uint32_t step);

#ifdef __cplusplus
}
#endif
#endif
