/// How an address is written into code: numbers worked out by hand, and the nearest ones that do not fit.
#include "runtime/load/relocation.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>

namespace tessera::test::relocation {

struct Written {
    int fits;
    uint64_t bits;
};

// Into eight bytes that are `before`.
Written written(unsigned machine, uint32_t type, uint64_t from, uint64_t to, uint64_t before = 0) {
    const TessLoadRelocation *relocation = tess_load_relocation(machine, type);
    REQUIRE(relocation);
    unsigned char bytes[8];
    std::memcpy(bytes, &before, sizeof before);
    const int fits = tess_load_relocate(relocation, bytes, from, to);
    std::memcpy(&before, bytes, sizeof before);
    return {fits, before};
}

void check(const Written &w, uint64_t bits) {
    CHECK(w.fits);
    CHECK(w.bits == bits);
}

constexpr uint64_t here = 0x7f0000001000;

TEST_CASE("x86-64: a word is an address or a distance", "[load]") {
    check(written(EM_X86_64, R_X86_64_64, here, here + 5), here + 5);
    check(written(EM_X86_64, R_X86_64_PC64, here, here - 5), uint64_t(-5));
    for (const uint32_t type : {R_X86_64_PC32, R_X86_64_PLT32, R_X86_64_GOTPCREL, 41, 42}) {
        check(written(EM_X86_64, type, here, here - 4, 0x1234567800000000), 0x12345678fffffffc);
        check(written(EM_X86_64, type, here, here + 0x7fffffff), 0x7fffffff);
        check(written(EM_X86_64, type, here, here - 0x80000000), 0x80000000);
        CHECK_FALSE(written(EM_X86_64, type, here, here + 0x80000000).fits);
        CHECK_FALSE(written(EM_X86_64, type, here, here - 0x80000001).fits);
    }
    for (const uint32_t type : {3, 5, 6, 8, 10, 11, 16, 18, 19, 22, 23, 37, 100}) CHECK_FALSE(tess_load_relocation(EM_X86_64, type));
}

TEST_CASE("64-bit ARM: branches reach 128 MiB, pages 4 GiB, loads count elements", "[load]") {
    constexpr uint64_t bl = 0x94000000, adrp = 0x90000010, add = 0x91000000, load = 0xf9400210;
    check(written(EM_AARCH64, R_AARCH64_CALL26, here, here + 8, bl), bl | 2);
    check(written(EM_AARCH64, R_AARCH64_JUMP26, here, here - 4, bl | 5), bl | 0x3ffffff);
    check(written(EM_AARCH64, R_AARCH64_CALL26, here, here + 0x7fffffc, bl), bl | 0x1ffffff);
    CHECK_FALSE(written(EM_AARCH64, R_AARCH64_CALL26, here, here + 0x8000000).fits);
    CHECK_FALSE(written(EM_AARCH64, R_AARCH64_CALL26, here, here - 0x8000004).fits);
    CHECK_FALSE(written(EM_AARCH64, R_AARCH64_CALL26, here, here + 2).fits);
    // Page 5 has the low bits 1 and the high bits 1; where in the pages both are does not count.
    for (const uint32_t type : {R_AARCH64_ADR_PREL_PG_HI21, R_AARCH64_ADR_GOT_PAGE}) {
        check(written(EM_AARCH64, type, here + 0xff8, here + 0x5004, adrp), adrp | 1u << 29 | 1u << 5);
        check(written(EM_AARCH64, type, here, here - 0x1000, adrp), adrp | 3u << 29 | 0x7ffffu << 5);
        CHECK_FALSE(written(EM_AARCH64, type, here, here + (UINT64_C(1) << 32)).fits);
        CHECK_FALSE(written(EM_AARCH64, type, here, here - (UINT64_C(1) << 32) - 0x1000).fits);
    }
    check(written(EM_AARCH64, R_AARCH64_ADD_ABS_LO12_NC, here, here + 0xabc, add), add | 0xabc << 10);
    const uint32_t loads[] = {R_AARCH64_LDST8_ABS_LO12_NC, R_AARCH64_LDST16_ABS_LO12_NC, R_AARCH64_LDST32_ABS_LO12_NC,
                              R_AARCH64_LDST64_ABS_LO12_NC, R_AARCH64_LDST128_ABS_LO12_NC};
    for (unsigned shift = 0; shift < 5; shift++) {
        check(written(EM_AARCH64, loads[shift], here, here + 0xab0, load), load | uint64_t(0xab0 >> shift) << 10);
        if (shift > 0) CHECK_FALSE(written(EM_AARCH64, loads[shift], here, here + 0xab0 + (1u << shift) / 2).fits);
    }
    check(written(EM_AARCH64, R_AARCH64_LD64_GOT_LO12_NC, here, here + 0x18, load), load | 3 << 10);
    check(written(EM_AARCH64, R_AARCH64_PREL32, here, here - 4), 0xfffffffc);
    check(written(EM_AARCH64, R_AARCH64_ABS64, here, here + 5), here + 5);
    check(written(EM_AARCH64, R_AARCH64_PREL64, here, here - 5), uint64_t(-5));
}

TEST_CASE("What jumps outside loads the address from the table", "[load]") {
    unsigned char code[TESS_LOAD_STUB_BYTES];
    CHECK(tess_load_stub(EM_X86_64, code, here, here - 0x1000));
    const unsigned char jump[] = {0xff, 0x25, 0xfa, 0xef, 0xff, 0xff, 0xcc};  // -0x1000 - 6
    CHECK(std::memcmp(code, jump, sizeof jump) == 0);
    CHECK(tess_load_stub(EM_AARCH64, code, here, here - 0xff8));
    const uint32_t words[] = {0x90000010 | 3u << 29 | 0x7ffffu << 5, 0xf9400210 | 1 << 10, 0xd61f0200, 0xd4200000};
    CHECK(std::memcmp(code, words, sizeof words) == 0);
}

}  // namespace tessera::test::relocation
