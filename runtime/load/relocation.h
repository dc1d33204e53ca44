/** The relocations of position-independent code that are known, by processor: how an address is written into code or data. It is a
 *  pure function of numbers, so both processors' are here wherever it runs. */
#ifndef TESSERA_LOAD_RELOCATION_H
#define TESSERA_LOAD_RELOCATION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a relocation leads to. */
enum {
    TESS_LOAD_DIRECT,  /**< the symbol */
    TESS_LOAD_BY_CALL, /**< the symbol or, where it is far outside, code that jumps there */
    TESS_LOAD_BY_GOT   /**< a word in a table that has the symbol's address */
};

enum { TESS_LOAD_STUB_BYTES = 16 };

typedef struct TessLoadRelocation {
    uint32_t type;
    uint8_t bytes;     /**< that it writes to; 0: nothing */
    uint8_t alignment; /**< of where it writes */
    uint8_t through;
    uint8_t form; /**< how it writes: relocation.c's */
    const char *name;
} TessLoadRelocation;

/** Null where it is not known. */
const TessLoadRelocation *tess_load_relocation(unsigned machine, uint32_t type);
/** The names of what is known, for a message. */
const char *tess_load_relocation_names(unsigned machine);

/** Writes the address `to` into the memory `at`, which code sees at the address `from`. 0 where it does not fit. */
int tess_load_relocate(const TessLoadRelocation *relocation, unsigned char *at, uint64_t from, uint64_t to);

/** Code of TESS_LOAD_STUB_BYTES bytes that jumps to the address in the word at `slot`. 0 where that is too far away. */
int tess_load_stub(unsigned machine, unsigned char *at, uint64_t from, uint64_t slot);

#ifdef __cplusplus
}
#endif

#endif
