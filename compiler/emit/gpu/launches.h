// What the host does of a tile program: kernel functions that it puts into the stream, calls, and loops and choices around them. It sees
// no data. Where data tells whether something is done, a kernel of one thread writes that to the workspace, the host puts all of it into
// the stream, and every kernel function that is not to run returns at once. What a call hands over as parameters is computed by such a
// kernel too, so that its bits are the interpreter's whatever compiles the host's file.
#pragma once
#include <optional>

#include "compiler/emit/gpu/callees.h"

namespace tessera::emit_gpu {

// 1 in a kernel that the choices around it let run, and 0 in others; a variable of what decides a choice.
inline const std::string launched_variable = "%launched";

// One kernel function: a loop over blocks.
struct PlannedKernel {
    Loop blocks;
    bool decides = false;  // runs always: it writes for a choice, and 0 where it is not to be
};

struct HostStep;
using HostSteps = std::vector<HostStep>;

struct Launch {
    size_t kernel;  // of the plan's
};
struct HostLoop {
    std::string variable;
    Expr count;
    HostSteps body;
};
struct HostLet {
    std::string variable;
    Expr value;
    HostSteps body;
};
// By what the host knows.
struct HostChoice {
    Expr condition;
    HostSteps then, otherwise;
};
// By data: the kernel writes two i32 to the buffer, of which the first is for `then` and the second for `otherwise`.
struct DeviceChoice {
    size_t kernel;
    std::string buffer;
    HostSteps then, otherwise;
};
// The kernel, if the callee has parameters, writes the bits of each to an i64 of the buffer.
struct HostCall {
    Invoke invoke;
    std::optional<size_t> kernel;
    std::string buffer;
};
struct HostStep : std::variant<Launch, HostLoop, HostLet, HostChoice, DeviceChoice, HostCall> {
    using variant::variant;
};

struct LaunchPlan {
    HostSteps steps;
    std::vector<PlannedKernel> kernels;
    std::vector<Buffer> buffers;            // in the workspace, outside of blocks: the program's, then what its choices and calls need
    std::map<std::string, Expr> variables;  // of the host's loops, with their counts, and lets, with nothing
};

// UserError emit.gpu where a count, an extent or the place of a view around kernels is data.
LaunchPlan launches_of(const TileProgram &program, const Callees &callees);

}  // namespace tessera::emit_gpu
