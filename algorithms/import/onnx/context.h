// What a node's handler has: the node, the values of its inputs, and ways to make values. Handlers are in operators*.cpp.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/import/onnx/model.h"
#include "algorithms/import/onnx/value.h"
#include "algorithms/index/bounds.h"

namespace tessera::onnx {

// A constant that the program takes as an input.
struct Weight {
    std::string name;  // of the program's input
    Array array;       // in the order of the input's dims
    Value value;       // what it was made of, and the order of its axes
    std::vector<int64_t> order;
};

// The builder of one algorithm, and what its values have in common: canonical dims, one for each extent, so that values of one shape
// have one set of dims, and element-wise work on them renames nothing.
class Space {
public:
    // `anonymous`: names of stages and weights say what they are, not what the model calls them, so that equal callees are equal.
    Space(const std::string &name, const Numerics &numerics, bool anonymous = false) : f(name, numerics), anonymous(anonymous) {}

    Builder f;
    const bool anonymous;
    std::vector<Weight> weights;
    // What the symbols of a callee stand for where it is called first: the caller's space, and its extents by the callee's symbols.
    struct Meaning {
        const Space *caller = nullptr;
        std::map<std::string, Expr> extents;

        Expr in_caller(const Expr &extent) const;  // as it is where it has none of the symbols
    } meaning;
    // Thrown where a callee is right only if two of its symbols are one, or some are numbers.
    struct Unify {
        std::string a, b;
    };
    struct Fix {
        std::set<std::string> symbols;
    };
    // The extent in the caller's terms; itself where there is no caller.
    Expr in_caller(const Expr &extent) const;
    // The number that an extent is, here or in the caller.
    std::optional<int64_t> number(const Expr &extent) const;
    // UserError or Fix (above) where the extent is no number here.
    std::optional<int64_t> fixed(const Expr &extent) const;

    // A symbolic dim of the program, of at least one element and at most `most`; of a callee, where its first caller keeps to that.
    Expr symbol(const std::string &name, bool at_least_one = true, bool limited = true, int64_t multiple_of = 1,
                int64_t most = most_extent);
    Expr simplified(const Expr &extent) const;
    bool same(const Expr &a, const Expr &b) const;  // throws Unify or Fix where a callee's extents are the same only in the caller
    // A dim of that extent which is none of `taken`.
    Dim dim(const Expr &extent, const std::set<std::string> &taken);
    // A name for a tensor or stage like `wanted` that nothing has yet.
    std::string fresh(const std::string &wanted);
    const Bounds &bounds() const { return bounds_; }

    // A table of known integers that expressions may read before it is replaced by what it holds (resolved).
    Expr read_known(const std::shared_ptr<const std::vector<Expr>> &known, const std::vector<Axis> &axes, DType dtype);
    // The expression with its reads of known integers in their place.
    Expr resolved(const Expr &e) const;
    // The same of type index, where the expression is one of integers or truths without loads (truths stay); else undefined.
    Expr as_index(const Expr &e) const;
    // The input of a constant, declared when it is first asked for.
    // In memory its axes lie in this order, outermost first; none: ONNX's. The first that asks decides.
    // `dims`, one for each axis of more than one element, in the order of memory: those of whoever calls; none: canonical ones.
    Tile weight(const Value &constant, const std::vector<int64_t> &order = {}, const std::vector<Dim> &dims = {});

private:
    Bounds bounds_;
    std::vector<std::pair<Expr, std::vector<Dim>>> dims_;  // by extent
    std::set<std::string> names_, dim_names_;
    std::map<std::string, int64_t> multiples_;  // of symbols

    // Whether it is 0, for all extents that symbols may have.
    bool is_zero(const Expr &difference) const;
    struct Table {
        std::shared_ptr<const std::vector<Expr>> known;
        std::vector<int64_t> extents;
    };
    std::map<std::string, Table> tables_;
    std::map<const Array *, Tile> made_;
    std::vector<std::shared_ptr<const Array>> kept_;  // whose addresses `made_` has
};

// Runs graphs within graphs (If, Loop, Scan).
class Runner {
public:
    virtual ~Runner() = default;
    // The outputs of a graph whose inputs are given, in the scope of the node that has it.
    virtual std::vector<Value> run(const Graph &graph, const std::vector<Value> &inputs) = 0;
    // Those of a graph that becomes an algorithm of its own, and sees only these names. UserError onnx.refused.
    virtual std::vector<Value> run_in(Space &space, const Graph &graph, const std::map<std::string, Value> &names) = 0;
    // How many rounds of loops may still be written out, in all; run_in shares it.
    int64_t own_rounds = 4096, *rounds_left = &own_rounds;
    // What a name stands for where the node is, or null.
    virtual const Value *find(const std::string &name) const = 0;
};

class Context {
public:
    Context(Space &space, const Node &node, std::vector<Value> inputs, int64_t opset, const Model &model, Runner *runner)
        : space(space), f(space.f), node(node), opset(opset), model(model), runner(runner), inputs_(std::move(inputs)) {}

    Space &space;
    Builder &f;
    const Node &node;
    const int64_t opset;  // of the node's domain
    const Model &model;
    Runner *const runner;

    // Inputs.
    size_t inputs() const { return inputs_.size(); }
    bool has(size_t i) const { return node.has_input(i) && i < inputs_.size(); }
    const Value &in(size_t i) const;  // UserError onnx.input where it is left out
    Tile tile(size_t i) { return tile(in(i)); }
    Tile tile(const Value &value);  // over the dims of its axes; a bool as bool
    // A constant is laid out in this order of its axes.
    Tile tile_in_order(const Value &value, const std::vector<int64_t> &order);
    // The same cast to an arithmetic type.
    Tile tile(const Value &value, DType type);
    // Elements that must be known when the model is imported: over extents, as numbers. UserError onnx.unknown with `what`.
    std::vector<Expr> integers(size_t i, const char *what) const;
    std::vector<int64_t> numbers(size_t i, const char *what) const;
    std::vector<double> reals(size_t i, const char *what) const;
    // An attribute that is an input in newer opsets.
    std::vector<int64_t> numbers(const char *attribute, size_t input, const std::vector<int64_t> &otherwise = {}) const;
    // The number of an axis that may count from the end. UserError onnx.axis.
    int64_t axis(int64_t number, int64_t rank) const;
    std::vector<int64_t> axes(std::vector<int64_t> numbers, int64_t rank) const;
    // An extent that must be a number. UserError onnx.extent.
    int64_t fixed(const Axis &axis, const char *what) const;

    // Values.
    Axis new_axis(const Expr &extent, const std::vector<Axis> &others) const;
    std::vector<Axis> new_axes(const std::vector<Expr> &extents) const;
    Dim dim(const Axis &axis) const;  // InternalError where it has none
    // The value's tile with a dim for each axis, also for those along which it does not vary. `axes` are those of the result.
    Tile spread(const Value &value, std::vector<Axis> &axes);
    // The tile read at these positions, one for each axis of the value; its dims are those of `axes`, and of what the positions use.
    Tile read(const Value &value, const std::vector<Expr> &at, const std::vector<Axis> &axes);
    // Several values as tiles over common dims, as NumPy broadcasts them. UserError onnx.broadcast.
    std::vector<Tile> broadcast(const std::vector<Value> &values, std::vector<Axis> &axes);
    // A result: rounded to `dtype`. Axes whose dim the tile lacks are axes along which it does not vary.
    Value result(const Tile &tile, std::vector<Axis> axes, DType dtype) const;
    Value constant(Array array) const;
    Value integers_value(std::vector<Expr> elements, const std::vector<int64_t> &extents, DType dtype = DType::i64) const;
    // One tile of the result's type for each value, and what `make` makes of them, element by element.
    template <class Make>
    std::vector<Value> element_wise(const std::vector<Value> &values, DType dtype, Make make) {
        std::vector<Axis> axes;
        const std::vector<Tile> tiles = broadcast(values, axes);
        return {result(ordered(make(tiles), tiles), axes, dtype)};
    }
    // The tile with its dims in the order of the axes; those without a dim of it are passed over.
    static Tile in_order(const Tile &tile, const std::vector<Axis> &axes);
    // The value with other axes of as many elements in the same order; the tile stays.
    Value with_axes(const Value &value, std::vector<Axis> axes);
    // Values of one rank behind each other along an axis. UserError onnx.broadcast.
    Value concatenated(const std::vector<Value> &parts, size_t axis);
    // One number a channel, (C), as axes (1, C, 1, …).
    Value by_channel(const Value &value, size_t rank);
    // The tile with its dims in the order of the operand that has the most.
    static Tile ordered(const Tile &tile, const std::vector<Tile> &operands);
    // The tile in the type in which it is stored, where it has been rounded to one that is computed in another: bytes of codes. The second
    // says which type holds it; types of half a byte stay as they are computed.
    static Tile as_stored(const Tile &tile);
    static Tile as_stored(const Tile &tile, DType dtype);
    // The value as a stage, where computing it again for each reader costs more than keeping it.
    Value kept(const Value &value);
    // The same where it is not stored already: for what is read at positions that data tells, or by many windows.
    Value settled(const Value &value);
    std::string stage_name() const;  // like the node's, fresh

    // The remedy where extents must be equal and are not known to be.
    static constexpr const char *equal_extents =
        "Fix the dims (--shape), or say what they are multiples of (--multiple), if they are equal only then.";
    [[noreturn]] void refuse(const std::string &why, const std::string &remedy, const char *id = "onnx.unsupported") const;

private:
    std::vector<Value> inputs_;
};

}  // namespace tessera::onnx
