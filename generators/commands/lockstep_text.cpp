#include "generators/commands/lockstep_text.h"

#include <algorithm>

#include "algorithms/transform/given_extents.h"
#include "bench/measure/inputs.h"
#include "compiler/compile/variants.h"
#include "compiler/interpret/lockstep.h"
#include "compiler/tile/arguments.h"
#include "generators/certify/comparison.h"
#include "support/text/error.h"

namespace tessera {

std::string lockstep_text(const PreparedKernel &prepared, const Extents &given) {
    const Algorithm &algorithm = prepared.request.bound;
    if (!prepared.request.target.is_gpu())
        throw UserError("command.arguments", "show: --what lockstep is for GPUs, whose threads take steps together, and '" +
                                                 prepared.request.target.name +
                                                 "' is a processor. Choose --target opencl, or another view.");
    constexpr int64_t usual = 64;
    const Extents symbolic = with_usual_extents(algorithm, given, usual);
    const Extents extents = all_extents(algorithm, symbolic);
    const TileProgram &program = variant_for(prepared.compiled.kernel, extents).program;
    const Inputs inputs = random_inputs(program, extents, 1);
    std::map<std::string, Array> arrays = arguments_before(program, inputs, extents);
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : arrays) views[name] = array.view(name);
    return "at " + to_string(symbolic) + "\n" + to_text(run_in_lockstep(program, views, extents, inputs.parameters));
}

}  // namespace tessera
