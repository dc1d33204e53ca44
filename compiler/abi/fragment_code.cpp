#include "compiler/abi/fragment_code.h"

#include <algorithm>
#include <cstdint>

namespace tessera {

// All are VEX with three bytes of prefix, map 0F38, 128 bits and W0 (Intel SDM 2, "AMX instructions"): C4, then inverted R, X and B over
// the map's number 2, then W, inverted vvvv, L and pp, the opcode, ModRM.
FragmentCode fragment_code_in(const std::string &code) {
    FragmentCode found;
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(code[i]); };
    enum Prefix : uint8_t { none = 0, x66 = 1, xF3 = 2, xF2 = 3 };
    for (size_t i = 0; i + 5 <= code.size(); i++) {
        if (byte(i) != 0xC4 || (byte(i + 1) & 0x9F) != 0x82 || (byte(i + 2) & 0x84) != 0) continue;
        const uint8_t prefix = byte(i + 2) & 3, third = byte(i + 2) >> 3 & 15, opcode = byte(i + 3), modrm = byte(i + 4);
        const bool of_registers = modrm >> 6 == 3, has_index = (modrm & 7) == 4 && !of_registers;
        if (opcode == 0x5C && of_registers && (prefix == xF3 || prefix == xF2)) found.steps++;  // tdpbf16ps, tdpfp16ps
        else if (opcode == 0x5E && of_registers) found.steps++;                                 // tdpbuud, tdpbusd, tdpbsud, tdpbssd
        else if (third != 15) continue;
        else if (opcode == 0x4B && has_index && (prefix == xF2 || prefix == x66)) found.loads++;         // tileloadd, tileloaddt1
        else if (opcode == 0x4B && has_index && prefix == xF3) found.stores++;                           // tilestored
        else if (opcode == 0x49 && of_registers && prefix == xF2) found.zeros++;                         // tilezero
        else if (opcode == 0x49 && !of_registers && prefix == none && !(modrm >> 3 & 7)) found.tasks++;  // ldtilecfg
    }
    return found;
}

std::string unlike_fragment_code(const FragmentCode &meant, const FragmentCode &found) {
    const auto more = [](int64_t is, const char *what, int64_t should) {
        return std::to_string(is) + " " + what + " where the program has " + std::to_string(should);
    };
    if (meant.steps > 0 && found.steps == 0) return more(found.steps, "steps of fragments", meant.steps);
    const int64_t copies = meant.steps > 0 ? std::max<int64_t>(1, (found.steps + meant.steps - 1) / meant.steps) : 1;
    // What is spilled is stored and loaded again.
    if (found.loads > copies * meant.loads && found.stores > copies * meant.stores)
        return more(found.loads, "loads of fragments", copies * meant.loads) + ", and " +
               more(found.stores, "stores", copies * meant.stores);
    if (found.tasks > copies * meant.tasks) return more(found.tasks, "configurations of tiles", copies * meant.tasks);
    return "";
}

}  // namespace tessera
