/** Values of parameters as texts: floats in hexadecimal, integers in decimal. Exact, and the same in every locale. */
#ifndef TESSERA_BUNDLE_STORED_VALUE_H
#define TESSERA_BUNDLE_STORED_VALUE_H

#include "runtime/bundle/fields.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Writes a value of a TessDType: f32 and f64 ("0x1.8p-3", "inf", "-inf", "nan"), integers of 8 to 64 bits and bool. 0 where the text is
 *  none of it, or says more than the type holds. */
int tess_stored_value(const char *text, int32_t dtype, unsigned char *value);

/** A field that is an integer of 64 bits without a sign: a number, or its digits as a text, which tools take that read 63 bits. */
uint64_t tess_stored_u64(TessFields *fields, const char *name);

#ifdef __cplusplus
}
#endif
#endif
