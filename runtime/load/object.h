/** One relocatable object of a library: 64-bit ELF as LLVM and GCC write it for position-independent code, read with suspicion. What is
 *  read of an opened object is inside it. */
#ifndef TESSERA_LOAD_OBJECT_H
#define TESSERA_LOAD_OBJECT_H

#include <elf.h>

#include "runtime/load/archive.h"

typedef struct TessLoadObject {
    TessLoadMember member;
    uint32_t n_sections, n_symbols;
    uint64_t sections_at, symbols_at;
    const char *names; /**< of the symbols; the last byte is 0 */
    uint64_t name_bytes;
} TessLoadObject;

/** Checks everything that can be checked of an object alone, for the processor of an ELF machine number: its sections, symbols and
 *  relocations. */
TessLoadStatus tess_load_object_open(const TessLoadMember *member, unsigned machine, TessLoadObject *object, TessLoadError *error);

Elf64_Shdr tess_load_section(const TessLoadObject *object, uint32_t section);
Elf64_Sym tess_load_symbol(const TessLoadObject *object, uint32_t symbol);
/** A relocation of a section of relocations. */
Elf64_Rela tess_load_rela(const TessLoadObject *object, const Elf64_Shdr *section, uint64_t number);

static inline const char *tess_load_symbol_name(const TessLoadObject *object, const Elf64_Sym *symbol) {
    return object->names + symbol->st_name;
}

/** Whether a section becomes memory. */
static inline int tess_load_is_loaded(const Elf64_Shdr *section) { return (section->sh_flags & SHF_ALLOC) != 0; }

/** Whether a section has the relocations of one that becomes memory. */
int tess_load_has_relocations(const TessLoadObject *object, const Elf64_Shdr *section);

#endif
