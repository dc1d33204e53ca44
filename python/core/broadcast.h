// How arrays of several shapes and strides are gone through together, as NumPy broadcasts: rows for a kernel, and loops around them.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/containers/small_vector.h"

namespace tessera::python {

constexpr int max_axes = 64;  // of NumPy's arrays

// An array as NumPy has it: strides in bytes.
struct Operand {
    char *data = nullptr;
    int64_t item = 1;  // bytes of an element
    int rank = 0;
    const int64_t *extents = nullptr, *strides = nullptr;
};

struct Shape {
    int rank = 0;
    std::array<int64_t, max_axes> extents;

    int64_t elements() const;
    std::string text() const;  // "(3,4)"
};

// An operand's strides along the axes of the shape that all have together: 0 where its extent is 1 or it has no such axis.
using Strides = std::array<int64_t, max_axes>;

// False where the operand's extents do not fit.
bool broadcast(Shape &shape, const Operand &operand);
bool is_of_shape(const Operand &operand, const Shape &shape);
Strides strides_along(const Shape &shape, const Operand &operand);

// The axes of more than one element, outermost first: as the memory of most operands lies, and in their own order where that does not tell
// (NumPy's order K).
std::vector<int> axes_by_memory(const Shape &shape, const std::vector<Strides> &operands);

// Whether a kernel takes it as it is, where that is the innermost axis (-1: there is none). Its elements are aligned, and along that axis
// they are next to each other, or one for the whole row where it is no result. A result's elements do not share memory.
bool is_taken(const Shape &shape, const Operand &operand, const Strides &strides, int innermost, bool is_result);

// Whether the bytes from the first to the last have one in common.
bool overlap(const Shape &shape, const Operand &a, const Strides &strides_of_a, const Operand &b, const Strides &strides_of_b);

// rows x columns elements for one call of a kernel, and loops around it. Axes that follow each other in all operands are one.
struct Walk {
    int64_t rows = 1, columns = 1;
    SmallVector<int64_t, 4> row_strides;   // of each operand, in bytes
    uint32_t repeated = 0;                 // a bit for each operand: one element for the whole row
    std::vector<int64_t> loops;            // extents, outermost first
    std::vector<std::vector<int64_t>> by;  // for each loop, of each operand: bytes
};
Walk walk_over(const Shape &shape, const std::vector<int> &axes, const std::vector<Strides> &operands);

}  // namespace tessera::python
