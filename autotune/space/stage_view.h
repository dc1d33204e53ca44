// What a space needs to know of a stage before it can ask anything: its loops, what it loads, and how the element that it
// loads moves with each loop.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "bench/measure/inputs.h"

namespace tessera {

// One load of a stage.
struct Operand {
    std::string tensor;
    DType dtype = DType::f32;
    std::vector<Expr> index;
};

struct StageView {
    const Stage *stage = nullptr;
    std::vector<std::string> pure;     // the stage's ordinary dims, without a scanned one
    std::vector<std::string> reduced;  // a fold's dims
    std::vector<std::string> extra;    // of a monoid's parts
    std::string scanned;               // a scan's dim, or ""
    std::set<std::string> by_points;   // of these the sizes of others depend, so each point is taken by itself
    std::vector<Operand> operands;     // distinct loads
    DType dtype = DType::f32;          // of the first result
    bool folds = false;                // a Reduce to the stage's own points
    bool scatters = false;             // a Reduce with a computed destination
    bool maps = false;
    bool updates = false;  // writes a state
    int operations = 0;    // of one point or step
};

StageView view_of(const Stage &stage, const Algorithm &algorithm);

// By how much an index moves while `dim` goes through `size` values from 0 and every other loop stands at 0; 0 for an index that
// does not depend on it. What is loaded inside the index counts as 0.
int64_t movement(const Expr &index, const std::string &dim, int64_t size, const Extents &extents);

// How many elements apart, along each axis of the tensor, are those that the loops of these sizes read at most.
std::vector<int64_t> spans(const Operand &operand, const Extents &sizes, const Extents &extents);

// Whether consecutive values of `dim` read consecutive elements, one and the same element, or elements apart from each other.
enum class Stride { none, one, other };
Stride stride_of(const Operand &operand, const std::string &dim, const Extents &extents);

// Whether the element is different for different values of `dim`.
bool moves_with(const Operand &operand, const std::string &dim, const Extents &extents);

// Whether a copy of the operand in another order may pay: each axis is a dim of the fold of its own, and points along another dim read
// each element again. Its axes may then have any stride.
bool may_be_packed(const StageView &fold, const Operand &operand, const Extents &extents);

}  // namespace tessera
