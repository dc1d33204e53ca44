/** Floats in words: no locale, no allocation. For this library's own sources. */
#ifndef TESSERA_DECIMAL_H
#define TESSERA_DECIMAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_DECIMAL_BYTES = 32 };

/** The shortest decimal number that reads back as the float: "0.1", "-1.5e-07", "inf", "nan". `bits` are those of an f32 (`wide` 0) or of
 *  an f64 (1); `text` has TESS_DECIMAL_BYTES. Steele and White, PLDI 1990: digits come out until what is left tells the float from its
 *  neighbours. */
void tess_abi2_decimal(uint64_t bits, int wide, char *text);

#ifdef __cplusplus
}
#endif

#endif
