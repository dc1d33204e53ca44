// Data to run a kernel on: extents for its dims, and tensors and parameters filled at random, the same in every run.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/evaluate/array.h"
#include "algorithms/ir/algorithm.h"
#include "bench/measure/random_elements.h"
#include "bench/measure/stated_inputs.h"
#include "compiler/tile/tile_program.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// Splitmix64 (Steele, Lea, Flood 2014): the same numbers on every platform.
class RandomNumbers {
public:
    explicit RandomNumbers(uint64_t seed) : seed_(seed) {}
    uint64_t next();
    int64_t below(int64_t limit);  // in 0 ..= limit - 1
    double signed_unit();          // in [-1, 1)
    double unit();                 // in [0, 1), all 53 bits of it

private:
    uint64_t seed_, made_ = 0;
};

// The extents of all dims except those whose size depends on data, from the extents of the symbolic dims; a dim that is declared equal
// to another needs none of its own. UserError command.extents: a symbolic dim has none. Those of given_extents.
Extents all_extents(const Algorithm &algorithm, const Extents &symbolic);

// Whether a dim has no points.
bool is_empty(const Algorithm &algorithm, const Extents &symbolic);

// Shapes that tend to break kernels: every extent 1, each dim empty, primes, one beside and one over the usual tiles; at most
// `count`, none with more than 2^22 points. Every second one has points, if random choice finds such a shape. Only symbolic dims
// are in them; without any there is one shape.
std::vector<Extents> awkward_shapes(const Algorithm &algorithm, int count, uint64_t seed);

// A shape with points at which that one of `variants`, each with its conditions, is the first that runs; or why there is none, or none is
// found.
struct ShapeOfVariant {
    std::optional<Extents> shape;
    std::string why;
};
ShapeOfVariant shape_that_meets(const Algorithm &algorithm, const std::vector<std::vector<Condition>> &variants, size_t variant,
                                uint64_t seed);

// The same with the derived dims of the program, which has more where an operand is packed.
Extents all_extents(const TileProgram &program, const Extents &extents);

struct Inputs {
    std::map<std::string, Array> tensors;  // inputs and states; operands as the algorithm has them, before they are packed
    std::map<std::string, Scalar> parameters;
};

// What a tensor holds before a kernel runs, any part of it by itself.
struct InputTensor {
    DType dtype = DType::f32;
    std::vector<int64_t> shape;
    uint64_t seed = 0;           // of random_elements
    std::optional<Array> given;  // what they cannot be: offsets of ragged dims
    bool of_halves = false;      // bytes of two elements each
    RandomKind kind() const;
    void make(int64_t first, int64_t count, std::byte *to) const;
};
struct InputPlan {
    std::map<std::string, InputTensor> tensors;  // as in Inputs
    std::map<std::string, Scalar> parameters;
};
// What nobody stated is random: floats in [-1, 1), float parameters in (0, 1]; offsets of ragged dims ascend and stay inside, whatever
// range is stated of them; other integers are small. A parameter lies in its declared range. UserError command.inputs: a stated array has
// another shape.
InputPlan planned_inputs(const TileProgram &program, const Extents &extents, uint64_t seed, const StatedInputs &stated = {});
// All of it.
Inputs random_inputs(const TileProgram &program, const Extents &extents, uint64_t seed, const StatedInputs &stated = {});

// The extents of a tensor's dims.
std::vector<int64_t> shape_of(const Tensor &tensor, const Extents &extents);

}  // namespace tessera
