// What a name of an ONNX graph stands for while the graph becomes an algorithm. ONNX numbers axes; tiles name dims. A value has both: its
// axes in ONNX's order, and of each the dim of the tile that it is. So transposing, adding axes of one element and broadcasting cost
// nothing, and the order in memory is a choice of whoever makes a stage.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "algorithms/build/builder.h"
#include "algorithms/evaluate/array.h"

namespace tessera::onnx {

struct Axis {
    Expr extent;      // over the extents of the program's symbolic dims
    std::string dim;  // of the tile; "": the tile does not vary along the axis
};

// The index along the axis, at a point of the tile; 0 where it does not vary.
inline Expr at(const Axis &a) { return a.dim.empty() ? Expr(0) : variable(a.dim); }

// One of three:
//   constant   elements that are known when the model is imported. It becomes a literal, or a weight, when a tile is asked for.
//   known      integers or truths that follow from extents, such as a shape: index or bool expressions over extents, row-major.
//   tile       all else
struct Value {
    DType dtype = DType::f32;  // ONNX's type of the elements; the tile has the arithmetic type that holds it
    std::vector<Axis> axes;
    Tile tile;
    std::shared_ptr<const Array> constant;
    std::shared_ptr<const std::vector<Expr>> known;
    std::string name;  // of the graph

    int64_t rank() const { return static_cast<int64_t>(axes.size()); }
    bool is_constant() const { return constant != nullptr; }
    bool is_known() const { return known != nullptr; }
};

// The arithmetic type in which a type's elements are computed: f32 for bf16, i32 for u8.
DType computed_as(DType type);

// The extent of a dynamic dim. Exporters write a slice up to the end as one up to 10^9 or further.
inline constexpr int64_t most_extent = 1'000'000'000;

// Tables of shape arithmetic end here.
inline constexpr int64_t most_known = 4096;

}  // namespace tessera::onnx
