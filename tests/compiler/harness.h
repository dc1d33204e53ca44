// What the tests of the compiler share: inputs for any algorithm, and four ways to run it that must agree, from its
// definition to the code that comes out.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/evaluate/array.h"
#include "compiler/emit/emit_library.h"
#include "compiler/interpret/lockstep.h"
#include "runtime/abi/tessera.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera::test {

using Arrays = std::map<std::string, Array>;
using Parameters = std::map<std::string, Scalar>;

// One algorithm, how it is scheduled, and the extents of its symbolic dims that it is run with.
struct Case {
    std::string name;  // a C identifier
    Algorithm algorithm;
    KnobsByStage stages;
    std::vector<Extents> shapes;
    std::vector<Condition> when = {};  // of a variant: all of the shapes meet them
};

// The extents of all dims that have one.
Extents complete(const Algorithm &algorithm, const Extents &symbolic);
// Inputs and states. One-dimensional i64 tensors are increasing, so that they can be offsets. With `specials` some floats are
// NaN, infinite, subnormal or -0.
Arrays make_inputs(const Algorithm &algorithm, const Extents &symbolic, uint32_t seed, bool specials = false);
Parameters make_parameters(const Algorithm &algorithm, uint32_t seed);

// Outputs and states after the reference interpreter, and after the tile program's.
Arrays run_reference(const Algorithm &algorithm, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters);
Arrays run_interpreter(const TileProgram &program, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters);
// After the kernels of a program for GPUs, in lock step.
Arrays run_lockstep(const TileProgram &program, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters,
                    const LockstepOptions &options, LockstepReport &report);

// "" when equal, otherwise the first element that differs. Bits: any NaN equals any other.
std::string differ_in_bits(const Arrays &got, const Arrays &expected);
std::string differ(const Arrays &got, const Arrays &expected, double tolerance);
// Whether a schedule leaves the order and the roundings of every fold as the algorithm declares them.
bool keeps_order(const Algorithm &algorithm, const KnobsByStage &stages);

struct Layout {
    bool at_end = true;  // data ends, or starts, where a page that nobody may touch begins
    int gap = 0;         // elements between the data and that page
    int pitch = 0;       // elements between rows
    int threads = 1;
    uint64_t features_off = 0;
    bool backwards = false;  // the first axis of several has a negative stride
    bool apart = false;      // rows of large arguments are more than 2^31 elements apart, with nothing that may be touched between them
};

// How tile programs become machine code: by the back end, or as C by a compiler with options.
struct Build {
    std::string compiler;  // "" for the back end; any name is that of the toolchain's for a target of another architecture
    std::string options;
};
// As C by gcc, and by clang where there is one.
std::vector<Build> c_builds(const std::string &options);

class Foreign;

// Tile programs made runnable from their static library or their C: a shared object that is loaded, or, for a target of another
// architecture, a program under an emulator. Its folder goes with it.
class Loaded {
public:
    Loaded(const std::vector<TileProgram> &programs, const Target &target, const Build &build = {});
    // One library for several targets, best first.
    explicit Loaded(const std::vector<TargetKernels> &targets, const Build &build = {});
    ~Loaded();
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;

    // Outputs and states. Outputs start poisoned. Packed arguments have a tensor of the layout's axes here, as for the interpreter;
    // the header stands in memory only, written and compared as tessera.h says. Throws std::runtime_error when a status is not 0
    // or memory beside an argument or inside an input has changed.
    // What the workspace query says of tensors without data.
    struct Room {
        int status;
        uint64_t bytes;
    };
    Room workspace(const TileProgram &program, const Extents &symbolic) const;
    Arrays run(const TileProgram &program, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters,
               const Layout &layout) const;
    // The status of a call on tensors in memory of the test's own.
    int call(const TileProgram &program, const std::vector<TessTensor> &tensors, const std::vector<int64_t> &parameters,
             const Layout &layout) const;

private:
    std::filesystem::path folder;
    void *library = nullptr;
    std::unique_ptr<Foreign> foreign;
    std::vector<std::string> names;
    mutable TessFault fault = tess_fault();  // of the last call
    void check_size(const TileProgram &program, const std::vector<TessTensor> &tensors, const Layout &layout) const;
};

// Whether kernels for OpenCL can be linked here.
bool has_opencl();

// The status of a call of which a tensor is more than the device allows (opencl_call.h).
constexpr int no_room_on_device = -1002;
// Those of x86-64, avx2 and avx512 that this machine has.
std::vector<Target> targets();
// Whether kernels for the target can be linked and emulated here; if not, says on stdout that the test is skipped and why.
bool can_emulate(const Target &target);
// The case's program under its name, verified.
TileProgram lowered(const Case &c, const Target &target);
TileProgram lowered(const std::string &name, const Algorithm &algorithm, const KnobsByStage &stages, const Target &target);
// The same for what packs its operands ahead of time: "<name>_pack_<operand>".
std::vector<TileProgram> lowered_packings(const std::string &name, const Algorithm &algorithm, const KnobsByStage &stages,
                                          const Target &target);

}  // namespace tessera::test
