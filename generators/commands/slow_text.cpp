#include "generators/commands/slow_text.h"

#include <fmt/format.h>

#include "algorithms/transform/given_extents.h"
#include "compiler/compile/variants.h"
#include "costmodel/features/limiters.h"
#include "support/text/error.h"

namespace tessera {

std::string slow_text(const PreparedKernel &prepared, const Extents &given, int threads) {
    const Algorithm &algorithm = prepared.request.bound;
    const Target &target = prepared.request.target;
    if (target.is_gpu())
        throw UserError("command.arguments", "show: --what slow estimates kernels for processors, and '" + target.name +
                                                 "' is a GPU. Choose another target, or --what lockstep, which counts accesses to memory.");
    constexpr int64_t usual = 256;
    const Extents symbolic = with_usual_extents(algorithm, given, usual);
    const Extents extents = all_extents(algorithm, symbolic);
    const TileProgram &program = variant_for(prepared.compiled.kernel, extents).program;
    std::string text =
        fmt::format("at {}, {} thread{}, by the cost model's draft\n", to_string(symbolic), threads, threads == 1 ? "" : "s");
    constexpr double least_share = 0.005;
    double others = 0;
    for (const PartOfProgram &part : parts_of(program, extents, target, threads)) {
        if (part.share < least_share) {
            others += part.share;
            continue;
        }
        text += fmt::format("{:5.1f} %  {:>9.3g} us  {}\n", 100 * part.share, 1e6 * part.seconds, join(part.stores));
        for (const Limiter &l : part.limiters) text += "         " + l.id + ": " + l.text + "\n";
    }
    if (others > 0) text += fmt::format("{:5.1f} %  others\n", 100 * others);
    return text;
}

}  // namespace tessera
