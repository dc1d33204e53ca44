// An instruction family: what one machine instruction does to accumulators and to consecutive products of a reduction, as a value.
//
// A schedule asks for a family by the knob `instruction`. Lowering then folds K products at a time, and writes the family's exact
// meaning into the tile program: interpreters, verifiers and other emitters need to know nothing of it. The emitter for a processor
// that has the instruction recognises the meaning and emits the instruction; any other emits the arithmetic, which gives the same
// bits. So a family is right everywhere by its meaning, and fast where it says how its instruction is written.
//
// Each family has a file (fma.cpp, dot2.cpp, …) and a row of the table (families.h).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "compiler/instructions/vector_form.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// Rows and columns of accumulators that one instruction has, and products for each. Accumulators are computed independently of one
// another; a vector repeats one of them along its lanes.
struct InstructionShape {
    int m = 1, n = 1, k = 1;
};

// Who executes one together.
enum class ExecutionScope : uint8_t { thread, warp, warpgroup };

struct InstructionCost {
    int instructions = 1;  // for a step, without what the rows of a register tile share
    double slots = 1;      // for each of them, of those in which a multiply-add of f32 may start
};

// C of a step for each lane of vectors: `sum`, and `a` and `b` with 32 bits of elements for each lane. In bodies "$name" stands for what
// the emitter defines: $result (the type), $lanes, $elements (of a or b), $fma, $f32_of_bits and $bits_of_f32 (functions of scalars).
struct CStep {
    struct Function {
        std::string result, name, parameters, body;
    };
    // The intrinsics, as an expression, under a line of the preprocessor.
    struct Native {
        std::string when, value;  // no value: the target has no instruction of this width
    };
    std::vector<Function> helpers;
    std::string portable;  // a body
    std::function<Native(int lanes, const Target &)> native;
};

// How an emitter writes a step of a family with fragments, which are all of one size: a tile of AMX, 16 rows of 64 bytes, or a vector of
// ARM, 2 rows of 8 bytes.
struct FragmentForm {
    enum class Held : uint8_t { tile, vector };
    Held held = Held::tile;
    std::vector<CStep::Function> helpers;
    std::string portable;     // C: a body over `sum`, `a` and `b`, which point to the elements of fragments, in order
    std::string native = {};  // C: the intrinsic that takes the numbers of three tiles; a value of the bytes of vectors `sum`, `a` and `b`
};

// How a family of warps is written in PTX, whose threads hold the elements of fragments in registers of 32 bits.
struct WarpForm {
    // Which element of a fragment a thread has as its i-th, over variable("lane") < 32 and variable("i"): row and product of a, column and
    // product of b, row and column of accumulators (NVIDIA, PTX ISA, "Matrix Fragments for mma").
    struct Held {
        Expr first, second;
    };
    std::string instruction;  // "mma.sync.aligned.…"
    Held a, b, accumulator;
    // Whether ldmatrix loads fragments of a and b whose rows lie side by side.
    bool has_ldmatrix = false;
};

struct Instruction {
    std::string name;
    InstructionShape shape = {};
    DType accumulator = DType::f32, first = DType::f32, second = DType::f32;  // of the elements, in either order
    // What becomes of one accumulator: over left(0), and input(2 * i), input(2 * i + 1) of product i < K.
    Expr meaning = {};
    // For families of one product: the types that they take, which all three are then, and what they do, for errors. The meaning is in f32.
    std::function<bool(DType)> takes = {};
    std::string says = {};
    ExecutionScope scope = ExecutionScope::thread;
    // For families of several rows and columns: the elements of a fragment of the first operands and of the second ones, in the order in
    // which they lie in memory, by digits of the dims M, N and K; and how many fragments of any kind there are registers for.
    std::vector<LayoutAxis> a = {}, b = {};
    int registers = 0;
    std::vector<std::string> features = {};  // CPU features of which each alone brings the instruction; none: every processor has it
    bool flushes = false;                    // takes subnormal numbers for zeros
    std::string peak = {};                   // the name of its measured peak (peak_names of schedules/target/target.h); "": none
    std::function<InstructionCost(const Target &)> cost = {};  // empty: one instruction, as fast as a multiply-add

    // How it is emitted; what is empty is emitted as the meaning.
    CStep c = {};
    // For processors with these features, where no first element is more than `largest`; undefined: there is none.
    std::function<VectorForm(const std::vector<std::string> &features, int64_t largest)> vectors = {};
    std::optional<FragmentForm> fragments = {};
    std::optional<WarpForm> warp = {};
    // Whether its vendor publishes what it computes. Where not, the meaning is a model, and its results are judged by a bound on errors.
    bool is_exact = true;
};

// How many threads execute one together.
int64_t threads_of(ExecutionScope scope);
// Whether its step is a node of its own over fragments (Fragment, compiler/tile/tile_program.h).
bool has_fragments(const Instruction &family);
// How many elements a fragment has along each axis: of accumulators, rows and columns; of operands, those of their layout.
enum class FragmentRole : uint8_t { accumulator, a, b };
std::vector<int64_t> fragment_extents(const Instruction &family, FragmentRole role);
DType fragment_type(const Instruction &family, FragmentRole role);
// How many elements of a fragment a thread of a warp holds.
int64_t elements_of_thread(const Instruction &family, FragmentRole role);

bool is_on(const Instruction &family, const std::vector<std::string> &features);
bool is_on(const Instruction &family, const Target &target);
// Whether some emitter writes its instruction.
bool is_emitted(const Instruction &family);
InstructionCost cost_of(const Instruction &family, const Target &target);
// Whether a fold by the family has the bits that it has by itself.
bool keeps_bits(const Instruction &family);

// Whether the monoid adds a * b with one rounding.
bool is_sum_of_products(const Monoid &monoid);
// The operands of a sum of products, in the family's order, before their casts to the accumulator's type. Nothing if the fold is no
// such sum. A sum of integers counts as a sum of products with ones.
std::optional<std::vector<Expr>> operands_for(const Instruction &family, const Reduce &reduce);
// The meaning applied to an accumulator and 2 * K operands.
Expr apply(const Instruction &family, const Expr &accumulator, const std::vector<Expr> &operands);
// The accumulator and the operands, in this order, if `e` is the meaning of a family of several products; otherwise empty.
std::vector<Expr> match(const Instruction &family, const Expr &e);

}  // namespace tessera
