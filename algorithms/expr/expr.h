// Expressions: pure scalar values over dims, parameters and tensors. One small language serves algorithms (where a
// variable is a dim's index) and tile programs (where it is a loop variable).
//
//   Expr := constant | variable(name) | extent(dim) | parameter(name)
//         | load(tensor, [Expr]) | load(tensor, [Expr], guard, fill)     the second form reads only where guard holds
//         | bounded(Expr, lo, hi)                                        a data-dependent index, clamped to lo ..= hi-1
//         | op(Expr…) | bitcast | cast(dtype, rounding, saturate)
//         | function(Expr…)                                              a function with a name (function.h)
//         | left(part) | right(part) | input(i)                          operands of a monoid's or a function's definition
//
// Nodes are immutable and shared; an Expr is a value. Every kind keeps its operands in `args`, so a traversal is total
// by construction and a new kind cannot be forgotten by one.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/expr/scalar.h"
#include "support/containers/address_map.h"
#include "support/containers/small_vector.h"

namespace tessera {

struct Function;
using FunctionRef = std::shared_ptr<const Function>;

enum class ExprKind : uint8_t {
    constant,
    variable,
    extent,
    parameter,
    load,
    bounded,
    operation,
    bitcast,
    cast,
    left,
    right,
    input,
    function
};

class Expr {
public:
    struct Node;
    Expr() = default;
    Expr(int value);             // an index constant
    Expr(int64_t value);         // an index constant
    explicit Expr(Node &&node);  // as it is, nothing folded

    bool defined() const { return node_ != nullptr; }
    const Node *operator->() const { return node_.get(); }
    const Node *get() const { return node_.get(); }
    DType type() const;
    ExprKind kind() const;
    bool is_constant() const;
    bool is_constant(int64_t value) const;  // an integer constant of that value
    bool is_operation(Op op) const;

private:
    std::shared_ptr<const Node> node_;
};

using Operands = SmallVector<Expr, 3>;

struct Expr::Node {
    ExprKind kind;
    DType type;
    Op op = Op::add;                             // operation
    std::string name;                            // variable, extent, parameter, load (the tensor), function
    Scalar value;                                // constant
    Rounding rounding = Rounding::nearest_even;  // cast
    bool saturate = false;                       // cast
    bool guarded = false;                        // load: args ends in guard, fill
    int number = 0;                              // left, right: part; input: position
    FunctionRef function = {};                   // function
    Operands args;                               // operands; a load's indices

    // Facts of the whole tree, filled in when an Expr is made of the node. They tell most expressions apart, and a traversal skips
    // what cannot concern it.
    size_t hash = 0;         // equal expressions have equal ones
    uint64_t variables = 0;  // the bits of the names of its variables
    bool extents = false, loads = false, functions = false;
    bool conversions = false;  // casts that `is_expanded` says
    int height = 1;            // nodes on the longest path down

    // The bit of a name. Other names may share it; where it is clear, the variable is not in the tree.
    static uint64_t bit_of(size_t hash_of_name) { return uint64_t{1} << (hash_of_name & 63); }
    static uint64_t bit_of(const std::string &name) { return bit_of(std::hash<std::string>()(name)); }
};

// How results go with the first argument while others stay.
enum class Course : uint8_t { any, rising, falling };

// A function that rounds: in real arithmetic it is its first argument; others say how to round. It never falls, keeps signs, and moves a
// value by at most a part of its magnitude and so much more.
struct RoundingFacts {
    double relative = 0, absolute = 0;
};

// The partial derivatives of a function, by argument, over input(i): of arguments of f32 and of f64. They may use functions. Empty: nobody
// said them.
struct Derivatives {
    std::vector<Expr> in_f32, in_f64;
    bool known() const { return !in_f32.empty(); }
    const std::vector<Expr> &of(DType type) const { return type == DType::f64 ? in_f64 : in_f32; }
};

// What is known of a function beside its definition. Bounds are those of exact results; a computed one may lie a unit in the last place
// outside.
struct FunctionFacts {
    Course course = Course::any;
    double least = -std::numeric_limits<double>::infinity();  // of results that are numbers
    double most = std::numeric_limits<double>::infinity();
    double ulp_f32 = 0, ulp_f64 = 0;  // the largest error where the function's documentation claims one; 0: nothing is claimed
    Derivatives derivative = {};
    std::optional<RoundingFacts> rounds = {};
    double absolute_f32 = 0;  // what an error in f32 may be beside ulp_f32: of small results that claim no more
};

// Immutable. Two functions are the same if name and definitions are.
struct Function {
    std::string name;
    int arity = 1;
    Expr in_f32, in_f64;  // the definitions, over input(0) .. input(arity - 1)
    FunctionFacts facts;

    const Expr &definition(DType type) const { return type == DType::f64 ? in_f64 : in_f32; }
};

inline DType Expr::type() const { return node_->type; }
inline ExprKind Expr::kind() const { return node_->kind; }
inline bool Expr::is_constant() const { return node_ && node_->kind == ExprKind::constant; }
inline bool Expr::is_operation(Op op) const { return node_ && node_->kind == ExprKind::operation && node_->op == op; }

// Leaves.
Expr constant(DType type, double value);  // rounded to a float type; exact for integers up to 2^53
Expr constant_int(DType type, int64_t value);
Expr constant(const Scalar &value);
Expr variable(const std::string &name);  // of type index
Expr extent(const std::string &dim);     // of type index
Expr parameter(const std::string &name, DType type);
Expr left(int part, DType type);
Expr right(int part, DType type);
Expr input(int position, DType type);

// Memory.
Expr load(const std::string &tensor, DType type, Operands index);
Expr load_or(const std::string &tensor, DType type, Operands index, Expr guard, Expr fill);
Expr load_of(const std::string &tensor, const Expr &like);  // as another load does, of another tensor of its type
Expr bounded(Expr value, Expr lo, Expr hi);                 // an integer expression, as index, clamped to lo ..= hi-1

// Operations. Operands must have one common type (UserError expr.type); constants fold.
Expr operation(Op op, Operands operands);
// Identity if the types are equal. Rounding and saturation are for integers and narrow floats (UserError expr.cast); convert (scalar.h)
// says what they give.
Expr cast(DType type, Expr value, Rounding rounding = Rounding::nearest_even, bool saturate = false);
// Whether lowering makes the cast out of other operations (functions/conversions.h): no emitter has it.
bool is_expanded(const Expr &cast);
Expr bitcast(DType type, Expr value);
// f(x, …), of the arguments' common type, f32 or f64 (UserError functions.type). It folds where all are constants.
Expr applied(const FunctionRef &function, Operands arguments);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator%(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator==(Expr a, Expr b);
Expr operator!=(Expr a, Expr b);
Expr operator&&(Expr a, Expr b);
Expr operator||(Expr a, Expr b);
Expr operator!(Expr a);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr fma(Expr a, Expr b, Expr c);
Expr select(Expr condition, Expr a, Expr b);
Expr sqrt(Expr a);
Expr abs(Expr a);
Expr floor(Expr a);
Expr round(Expr a);

// Structural equality and a total order (by content, not by address).
bool equal(const Expr &a, const Expr &b);
int compare(const Expr &a, const Expr &b);

// Rebuilds bottom-up: `rule` sees each node after its operands were rebuilt and returns a replacement, or an undefined
// Expr to keep it. Shared nodes are visited once.
Expr rewrite(const Expr &e, const std::function<Expr(const Expr &)> &rule);
// The node with other operands, folded again where it is an operation.
Expr rebuild(const Expr &e, Operands args);
// Replaces variables by name.
Expr substitute(const Expr &e, const std::map<std::string, Expr> &values);
// Replaces each extent, load, function or cast that is expanded, whose operands were rebuilt before; an undefined value keeps it.
Expr replace_extents(const Expr &e, const std::function<Expr(const Expr &)> &value);
Expr replace_loads(const Expr &e, const std::function<Expr(const Expr &)> &value);
Expr replace_functions(const Expr &e, const std::function<Expr(const Expr &)> &value);
Expr replace_conversions(const Expr &e, const std::function<Expr(const Expr &)> &value);
// The expression with every load guarded by `guard`, for a place where the expression has a meaning only under it.
Expr read_where(const Expr &e, const Expr &guard);
// Calls `visit` on every distinct node, operands first.
template <typename Visit>
void walk(const Expr &e, Visit &&visit);
std::set<std::string> variables_in(const Expr &e);
bool uses_variable(const Expr &e, const std::string &name);
bool has_load(const Expr &e);

// "fma(x[m, k], w[k, n], acc)": the text form. Its length is exponential in the depth of sharing: SharedText writes what repeats once.
std::string to_string(const Expr &e);
// The first characters of the text, and "..." if there are more: for messages.
std::string brief(const Expr &e, size_t most = 160);

template <typename Visit>
void walk_unseen(const Expr &e, Visit &visit, AddressSet &seen) {
    if (!seen.insert(e.get())) return;
    for (const Expr &arg : e->args) walk_unseen(arg, visit, seen);
    visit(e);
}

template <typename Visit>
void walk(const Expr &e, Visit &&visit) {
    if (!e.defined()) return;
    if (e->args.empty()) return static_cast<void>(visit(e));
    AddressSet seen;
    walk_unseen(e, visit, seen);
}

}  // namespace tessera
