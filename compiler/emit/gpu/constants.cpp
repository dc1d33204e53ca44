#include "compiler/emit/gpu/constants.h"

#include <cstring>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera::emit_gpu {

static constexpr size_t alignment = 64;

Constants::Constants(const std::vector<Kernel> &kernels) {
    for (const Kernel &kernel : kernels)
        for (const auto &variant : kernel.variants) {
            add(variant.program, kernel.name);
            for (const TileProgram &callee : variant.program.programs) add(callee, kernel.name);
        }
}

void Constants::add(const TileProgram &program, const std::string &kernel) {
    for (const Tensor &table : program.constants) {
        if (table.values.empty())
            throw UserError("emit.constant", kernel + ": the constant '" + table.name + "' has no values; pass it as an input.");
        const std::string bytes = constant_bytes(table);
        if (!where_.emplace(bytes, static_cast<int64_t>(bytes_.size())).second) continue;
        bytes_ += bytes;
        bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    }
}

int64_t Constants::at(const Tensor &table) const { return where_.at(constant_bytes(table)); }

std::string Constants::definition(const std::string &name) const {
    std::string text = fmt::format("static const uint32_t {}[{}] = {{", name, bytes_.size() / 4);
    for (size_t i = 0; i < bytes_.size(); i += 4) {
        uint32_t word = 0;
        std::memcpy(&word, bytes_.data() + i, 4);
        text += fmt::format("{}0x{:08x}", i % 32 ? ", " : i ? ",\n    " : "\n    ", word);
    }
    return text + "};\n";
}

}  // namespace tessera::emit_gpu
