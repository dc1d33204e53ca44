// Expressions of a tile program as Halide expressions that LLVM may not reassociate, contract or assume away.
#pragma once
#include <map>
#include <set>
#include <string>

#include "algorithms/expr/expr.h"
#include "compiler/tile/wide_positions.h"
#include "compiler/tile/tile_program.h"

#include <Halide.h>

namespace tessera::emit {

// Halide's node of the same name as one of ours.
using Call = Halide::Internal::Call;
using Halide::DeviceAPI;
using Halide::LinkageType;
using Halide::MemoryType;
using Halide::NameMangling;
using Halide::Partition;
using Halide::type_of;

// How an element of a buffer lies in memory, and how its value is held in a register.
Halide::Type stored_type(DType type);
Halide::Type value_type(DType type);
// An operation on numbers of a type of integers, or on vectors of them.
Halide::Expr integer_operation(Op op, DType type, const std::vector<Halide::Expr> &x);

// The position of an element, from the first one of the buffer.
class Addresses {
public:
    // Row-major where it has extents; arguments without by the run-time strides that stride_name names.
    // Positions in a large one have 64 bits.
    void declare(const Buffer &buffer, bool is_large = false);
    Halide::Expr flat(const std::string &buffer, const std::vector<Halide::Expr> &index) const;
    // The same as one expression where that says it more simply: quotients and remainders by which axes are taken apart go
    // away where the axes have constant extents. Otherwise undefined.
    Expr simply_flat(const std::string &buffer, const std::vector<Expr> &index) const;
    DType dtype(const std::string &buffer) const;
    Halide::Type position_type(const std::string &buffer) const;
    // Tells Halide that an argument may start at any element; it takes other memory to be aligned to a vector.
    Halide::Parameter origin(const std::string &buffer) const;

private:
    std::map<std::string, Buffer> buffers;
    std::set<std::string> large;
    std::map<std::string, Halide::Parameter> origins;
};

std::string stride_name(const std::string &buffer, size_t axis);
std::string extent_name(const std::string &dim);
std::string parameter_name(const std::string &parameter);

class Values {
public:
    // With `has_f16c` the processor widens an f16, which is exact.
    explicit Values(const Addresses &addresses, bool has_f16c = false) : addresses(addresses), has_f16c(has_f16c) {}
    // Indices have 32 bits, and 64 where they are not proved to fit.
    Halide::Expr emit(const Expr &e);
    // The position of an element: 32 bits, and 64 in what is large.
    Halide::Expr position(const std::string &buffer, const std::vector<Expr> &index);
    // How often a loop runs, at most 2^31 - 1 times.
    Halide::Expr count(const Expr &e);
    // A number of bytes or elements, over extents: 64 bits.
    Halide::Expr size(const Expr &e);
    // Before anything of the program is emitted: which of its positions have 64 bits.
    void look_at(const TileProgram &program, const TileBody &body) { widths.look_at(program, body); }
    // What follows uses the variable for the value.
    void bind(const std::string &variable, const Expr &value) { widths.bind(variable, value); }
    // What follows is another statement: what was proved of an index there may not hold here.
    void enter_statement();
    // What follows is inside a vector loop, or in none.
    void enter_lanes(const std::string &variable, int64_t count);
    void leave_lanes() { enter_lanes("", 0); }
    // Inside these lanes the value of `e`, wherever it stands under no condition, is that of a variable.
    void name(const Expr &e, const std::string &variable);
    // The stored form of a value.
    Halide::Expr stored(DType type, const Halide::Expr &value) const;

private:
    const Addresses &addresses;
    bool has_f16c;
    std::string lane;  // the variable of the vector loop around, and its count
    int64_t lanes = 0;
    WidePositions widths;
    Halide::Expr context;  // loads happen only where it holds; undefined: everywhere
    using Key = std::pair<const Expr::Node *, const Halide::Internal::IRNode *>;
    std::map<Key, Halide::Expr> done;                                 // under each context
    std::map<const Halide::Internal::IRNode *, Halide::Expr> around;  // the context outside of each
    std::vector<std::pair<Expr, Halide::Expr>> kept;                  // so that addresses of nodes stay unique while `done` refers to them

    Halide::Expr emit_node(const Expr &e);
    Halide::Expr emit_operation(const Expr &e);
    Halide::Expr widened(const Expr &e);
    Halide::Expr emit_cast(const Expr &e);
    Halide::Expr emit_load(const Expr &e);
    Halide::Expr emit_bounded(const Expr &e);
    // An index inside some buffer, or one that nobody looks at.
    Halide::Expr index(const Expr &e, const Halide::Type &type);
    bool varies(const Halide::Expr &e) const;  // from lane to lane
    Halide::Expr in_lanes(const Halide::Expr &v) const;
    Halide::Expr in_some_lane(const Halide::Expr &condition) const;
    std::pair<Halide::Expr, Halide::Expr> split_by_lanes(const Halide::Expr &condition) const;
};

}  // namespace tessera::emit
