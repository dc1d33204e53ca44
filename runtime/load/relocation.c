#include "runtime/load/relocation.h"

#include <elf.h>
#include <string.h>

/* Constants that older headers lack. */
enum { X86_64_GOTPCRELX = 41, X86_64_REX_GOTPCRELX = 42 };

enum {
    NOTHING,
    WORD64,     /* the address */
    DISTANCE64, /* the address from here */
    DISTANCE32,
    PAGE_DISTANCE, /* ARM's ADRP: 4 KiB pages from here */
    LOW_ADD,       /* the address within its page, in an ADD */
    LOW_8,         /* in a load or store of 8, 16, 32, 64, 128 bits */
    LOW_16,
    LOW_32,
    LOW_64,
    LOW_128,
    BRANCH /* ARM's B and BL */
};

static const TessLoadRelocation x86_64[] = {
    {R_X86_64_NONE, 0, 1, TESS_LOAD_DIRECT, NOTHING, "NONE"},
    {R_X86_64_64, 8, 1, TESS_LOAD_DIRECT, WORD64, "64"},
    {R_X86_64_PC32, 4, 1, TESS_LOAD_BY_CALL, DISTANCE32, "PC32"},
    {R_X86_64_PC64, 8, 1, TESS_LOAD_DIRECT, DISTANCE64, "PC64"},
    {R_X86_64_PLT32, 4, 1, TESS_LOAD_BY_CALL, DISTANCE32, "PLT32"},
    {R_X86_64_GOTPCREL, 4, 1, TESS_LOAD_BY_GOT, DISTANCE32, "GOTPCREL"},
    {X86_64_GOTPCRELX, 4, 1, TESS_LOAD_BY_GOT, DISTANCE32, "GOTPCRELX"},
    {X86_64_REX_GOTPCRELX, 4, 1, TESS_LOAD_BY_GOT, DISTANCE32, "REX_GOTPCRELX"},
};

static const TessLoadRelocation aarch64[] = {
    {R_AARCH64_NONE, 0, 1, TESS_LOAD_DIRECT, NOTHING, "NONE"},
    {R_AARCH64_ABS64, 8, 1, TESS_LOAD_DIRECT, WORD64, "ABS64"},
    {R_AARCH64_PREL64, 8, 1, TESS_LOAD_DIRECT, DISTANCE64, "PREL64"},
    {R_AARCH64_PREL32, 4, 1, TESS_LOAD_BY_CALL, DISTANCE32, "PREL32"},
    {R_AARCH64_ADR_PREL_PG_HI21, 4, 4, TESS_LOAD_DIRECT, PAGE_DISTANCE, "ADR_PREL_PG_HI21"},
    {R_AARCH64_ADD_ABS_LO12_NC, 4, 4, TESS_LOAD_DIRECT, LOW_ADD, "ADD_ABS_LO12_NC"},
    {R_AARCH64_LDST8_ABS_LO12_NC, 4, 4, TESS_LOAD_DIRECT, LOW_8, "LDST8_ABS_LO12_NC"},
    {R_AARCH64_LDST16_ABS_LO12_NC, 4, 4, TESS_LOAD_DIRECT, LOW_16, "LDST16_ABS_LO12_NC"},
    {R_AARCH64_LDST32_ABS_LO12_NC, 4, 4, TESS_LOAD_DIRECT, LOW_32, "LDST32_ABS_LO12_NC"},
    {R_AARCH64_LDST64_ABS_LO12_NC, 4, 4, TESS_LOAD_DIRECT, LOW_64, "LDST64_ABS_LO12_NC"},
    {R_AARCH64_LDST128_ABS_LO12_NC, 4, 4, TESS_LOAD_DIRECT, LOW_128, "LDST128_ABS_LO12_NC"},
    {R_AARCH64_JUMP26, 4, 4, TESS_LOAD_BY_CALL, BRANCH, "JUMP26"},
    {R_AARCH64_CALL26, 4, 4, TESS_LOAD_BY_CALL, BRANCH, "CALL26"},
    {R_AARCH64_ADR_GOT_PAGE, 4, 4, TESS_LOAD_BY_GOT, PAGE_DISTANCE, "ADR_GOT_PAGE"},
    {R_AARCH64_LD64_GOT_LO12_NC, 4, 4, TESS_LOAD_BY_GOT, LOW_64, "LD64_GOT_LO12_NC"},
};

const TessLoadRelocation *tess_load_relocation(unsigned machine, uint32_t type) {
    const TessLoadRelocation *all = machine == EM_X86_64 ? x86_64 : aarch64;
    const size_t n = machine == EM_X86_64 ? sizeof x86_64 / sizeof *x86_64 : sizeof aarch64 / sizeof *aarch64;
    size_t i;
    for (i = 0; i < n; ++i)
        if (all[i].type == type) return &all[i];
    return NULL;
}

const char *tess_load_relocation_names(unsigned machine) {
    return machine == EM_X86_64 ? "64, PC32, PC64, PLT32, GOTPCREL, GOTPCRELX, REX_GOTPCRELX"
                                : "ABS64, PREL32, PREL64, ADRP and its LO12, JUMP26, CALL26, the GOT's";
}

static int fits(int64_t value, int bits) { return value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1); }

/* Replaces some bits of an instruction. */
static int insert(unsigned char *at, uint32_t mask, uint64_t bits) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    word = (word & ~mask) | ((uint32_t)bits & mask);
    memcpy(at, &word, sizeof word);
    return 1;
}

/* The offset of a load or store counts elements. */
static int insert_low(unsigned char *at, uint64_t to, int shift) {
    const uint64_t low = to & 0xfff;
    return (low & ((UINT64_C(1) << shift) - 1)) == 0 && insert(at, 0xfffu << 10, low >> shift << 10);
}

int tess_load_relocate(const TessLoadRelocation *relocation, unsigned char *at, uint64_t from, uint64_t to) {
    const int64_t distance = (int64_t)(to - from), pages = (int64_t)((to & ~UINT64_C(0xfff)) - (from & ~UINT64_C(0xfff))) / 4096;
    const int32_t narrow = (int32_t)distance;
    switch (relocation->form) {
    case NOTHING: return 1;
    case WORD64: return memcpy(at, &to, sizeof to), 1;
    case DISTANCE64: return memcpy(at, &distance, sizeof distance), 1;
    case DISTANCE32: return memcpy(at, &narrow, sizeof narrow), fits(distance, 32);
    case PAGE_DISTANCE:
        return fits(pages, 21) && insert(at, 3u << 29 | 0x7ffffu << 5, ((uint64_t)pages & 3) << 29 | ((uint64_t)pages >> 2 & 0x7ffff) << 5);
    case BRANCH: return distance % 4 == 0 && fits(distance, 28) && insert(at, 0x3ffffff, (uint64_t)distance >> 2);
    case LOW_ADD: return insert_low(at, to, 0);
    default: return insert_low(at, to, relocation->form - LOW_8);
    }
}

int tess_load_stub(unsigned machine, unsigned char *at, uint64_t from, uint64_t slot) {
    /* jmp *slot(%rip); int3 */
    static const unsigned char jump[TESS_LOAD_STUB_BYTES] = {0xff, 0x25, 0,    0,    0,    0,    0xcc, 0xcc,
                                                             0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
    /* adrp x16, slot; ldr x16, [x16, slot]; br x16; brk #0 */
    static const uint32_t load[TESS_LOAD_STUB_BYTES / 4] = {0x90000010, 0xf9400210, 0xd61f0200, 0xd4200000};
    if (machine == EM_X86_64) {
        memcpy(at, jump, sizeof jump);
        return tess_load_relocate(tess_load_relocation(machine, R_X86_64_PC32), at + 2, from + 2, slot - 4);
    }
    memcpy(at, load, sizeof load);
    return tess_load_relocate(tess_load_relocation(machine, R_AARCH64_ADR_PREL_PG_HI21), at, from, slot) &&
           tess_load_relocate(tess_load_relocation(machine, R_AARCH64_LDST64_ABS_LO12_NC), at + 4, from + 4, slot);
}
