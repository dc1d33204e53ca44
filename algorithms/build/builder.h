// How a user writes an algorithm: a Builder declares dims, tensors and outputs, and Tiles compose.
//
//     Algorithm linear_gelu(const Numerics &numerics) {
//         Builder f("linear_gelu", numerics);
//         Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
//         Tile x = f.input("x", {M, K});
//         Tile w = f.input("w", {K, N});
//         Tile b = f.input("b", {N}, DType::f32);
//         Tile acc = dot(x, w).named("acc");           // (M, N)
//         return f.output("y", gelu(acc + b)).build();
//     }
//
// A Tile is an expression over named dims. Operators combine tiles dim by dim, by name: a dim that one side lacks is
// broadcast. Element-wise work stays an expression until `named`, `output` or a fold that would recompute it makes it a
// stage.
//
// Functions have a last argument `caller`, which is never given: it is the line of the call, with which errors begin and which stages keep
// (support/text/span.h). A tile function of your own that has none speaks of its own lines.
#pragma once
#include <initializer_list>
#include <optional>

#include "algorithms/ir/algorithm.h"

namespace tessera {

class Builder;

// Which rows of a flat dim belong together: segment p of `parent` has the rows made[p] ..= made[p + 1] - 1 of `flat`, where `made` are
// offsets that do not decrease and stay in 0 ..= |flat|, whatever was given. Builder::segments makes it.
struct Segments {
    std::string made;
    Dim parent, flat;
    Expr first(const Expr &parent_index) const;  // row 0 in `flat`
};

class Tile {
public:
    Tile() = default;  // nothing: an optional argument that is not given. Its members throw UserError algorithm.tile.
    Tile(Builder *builder, Expr value, std::vector<std::string> dims);

    Expr value() const { return defined().value_; }
    explicit operator bool() const { return value_.defined(); }
    const std::vector<std::string> &dims() const { return dims_; }  // outermost first
    const Span &span() const { return span_; }                      // where it was made
    DType dtype() const { return defined().value_.type(); }
    Builder &builder() const { return *defined().builder_; }
    // The same tile as a stage of that name, which a schedule can address. A fold that has no name yet takes it.
    Tile named(const std::string &name, Span caller = std::source_location::current()) const;
    // The tile read at another index: dim -> expression over other dims. `dims` are those of the result.
    Tile at(const std::map<std::string, Expr> &index, std::vector<std::string> dims, Span caller = std::source_location::current()) const;
    // Its rows along a flat dim, by segments: x (T, D) as (B, R, D). `rows` is of Builder::rows. UserError shape.rows where the tile has no
    // such flat dim.
    Tile rows(const Dim &rows, Span caller = std::source_location::current()) const;
    std::string describe() const;  // "x[M, K]", for messages

private:
    Builder *builder_ = nullptr;
    Expr value_;
    std::vector<std::string> dims_;
    Span span_;

    const Tile &defined() const;
};

class Builder {
public:
    explicit Builder(std::string name, Numerics numerics = {});

    // Dims. The same name twice must mean the same thing (UserError algorithm.dim).
    Dim dim(const std::string &name, Span caller = std::source_location::current());                 // symbolic
    Dim dim(const std::string &name, int64_t value, Span caller = std::source_location::current());  // fixed
    Dim dim(const Dim &description, Span caller = std::source_location::current());  // with constraints, ragged, counted, derived
    // One that was declared, here or by a tile function: conv2d's "P". UserError algorithm.unknown-dim.
    Dim dim_named(const std::string &name, Span caller = std::source_location::current()) const;

    // Rows of a flat tensor that offsets group: `offsets`, integers over a dim of |parent| + 1, are clamped into 0 ..= |flat|, and each
    // counts as no less than those before it: of 0, 5, 3, 8 the segments have the rows 0 ..= 4, none, and 5 ..= 7. A stage "<offsets>.made"
    // has them so. UserError shape.segments where the tile has more dims than one, or is of floats.
    Segments segments(const Tile &offsets, const Dim &parent, const Dim &flat, Span caller = std::source_location::current());
    // A dim over the rows of a segment. Stages that map over it, inside its parent, keep their results flat: (B, R, N) as [T, N], with 0 in
    // rows that no segment has.
    Dim rows(const std::string &name, const Segments &segments, Span caller = std::source_location::current());

    // Tensors, in the policy's storage type, states in its type of states, unless one is given; their tiles have the compute type.
    Tile input(const std::string &name, const std::vector<Dim> &dims, std::optional<DType> dtype = {},
               Span caller = std::source_location::current());
    Tile state(const std::string &name, const std::vector<Dim> &dims, std::optional<DType> dtype = {},
               Span caller = std::source_location::current());
    // A scalar argument; its tile has no dims. A call with a value outside of a declared range gives a status that names the parameter
    // (ir/parameter.h). What a callee is given must lie in the range of its own; a parameter that is passed on as it is, and has no range,
    // takes the callee's. UserError algorithm.parameter-range.
    Tile parameter(const std::string &name, DType dtype, Span caller = std::source_location::current());
    Tile parameter(const std::string &name, DType dtype, const LowerEnd &least, const UpperEnd &most = {},
                   Span caller = std::source_location::current());
    // A table inside the kernel: fixed dims, row-major `values`, rounded to the type.
    Tile constant(const std::string &name, const std::vector<Dim> &dims, const std::vector<double> &values, std::optional<DType> dtype = {},
                  Span caller = std::source_location::current());

    // The index of a dim as a tile of type index.
    Tile index(const Dim &dim, Span caller = std::source_location::current());
    // A scalar tile.
    Tile scalar(DType dtype, double value, Span caller = std::source_location::current());
    // A tile of any expression over the dims.
    Tile tile(Expr value, const std::vector<Dim> &dims, Span caller = std::source_location::current());

    // Folds. `inputs` are combined over `over`; the result is one tile for each part of the monoid. `where` may be undefined.
    std::vector<Tile> fold(const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<std::string> &over,
                           const Tile &where = {}, Span caller = std::source_location::current());
    // Prefix folds along a dim. `segments`, if given, has only dims of the inputs. It is a bool tile, true at each element where a
    // fold begins anew, or an integer tile of ids: a fold begins wherever an id differs from the one before. The second takes several
    // inputs, which have the dims of all of them, and gives one tile for each part; the first is for monoids of one part (UserError
    // algorithm.parts).
    Tile scan(const Monoid &monoid, const Tile &input, const Dim &along, bool inclusive = true,
              ScanDirection direction = ScanDirection::forward, const Tile &segments = {}, Span caller = std::source_location::current());
    std::vector<Tile> scan_parts(const Monoid &monoid, const std::vector<Tile> &inputs, const Dim &along, bool inclusive = true,
                                 ScanDirection direction = ScanDirection::forward, const Tile &segments = {},
                                 Span caller = std::source_location::current());
    // result[at…] accumulates the inputs; positions outside are dropped. `at` has one for each of `dims` (UserError algorithm.scatter).
    // A dim whose position is its own index is not folded: with ids (T) and g (T, D), scatter(sum, g, {ids, index(D)}, {V, D}) is the
    // gradient of a lookup. One input and part, or several, as above.
    Tile scatter(const Monoid &monoid, const Tile &input, const std::vector<Tile> &at, const std::vector<Dim> &dims,
                 Span caller = std::source_location::current());
    std::vector<Tile> scatter_parts(const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<Tile> &at,
                                    const std::vector<Dim> &dims, Span caller = std::source_location::current());
    // state[index…] = value, for every point of the value's dims. An unnamed tile of the state is only an expression: used after
    // the update, it reads what the update wrote. One that was `named` before the update keeps what it read.
    void update(const std::string &name, const Tile &state, const std::vector<Tile> &index, const Tile &value,
                Span caller = std::source_location::current());

    // Donates an input: its memory becomes the result, and the kernel has one argument for both, which it reads and writes (a state).
    // `donated` is the tile of a whole input, `value` has its dims; it is rounded to the input's type. An unnamed tile of the input is only
    // an expression, which reads what it became where it is used later, as with update(). UserError algorithm.donate.
    Builder &output_in_place(const Tile &donated, const Tile &value, Span caller = std::source_location::current());

    // Calls another algorithm and gives its outputs. `arguments` are in the order in which it declares inputs and states;
    // `parameters` are tiles without dims. Stages of the callee are named scope.stage. A tile that reads a tensor at affine indices,
    // adjacent elements along its last dim, is a view of it (a slice, a head of a joined axis); any other becomes a stage.
    std::vector<Tile> call(const std::string &scope, const Algorithm &callee, const std::vector<Tile> &arguments,
                           const std::map<std::string, Tile> &parameters = {}, Span caller = std::source_location::current());
    // Calls it once for each index of `rounds.dim` (Repeat, algorithm.h). An argument that has this dim is read at the round, as a
    // layer's weights w (L, K, N) are; so may a parameter be. A stacked output has the dim in front.
    std::vector<Tile> repeat(const std::string &scope, const Algorithm &callee, const Repeat &rounds, const std::vector<Tile> &arguments,
                             const std::map<std::string, Tile> &parameters = {}, Span caller = std::source_location::current());

    // Declares an output, in the policy's type of outputs unless one is given. The whole of a call's result, or of a stage of that name,
    // is that output itself; any other tile becomes a stage.
    Builder &output(const std::string &name, const Tile &tile, std::optional<DType> dtype = {},
                    Span caller = std::source_location::current());
    // Declares that an input, a state or an output, by its name, may have more elements than fit positions of 32 bits, end to end:
    // f.large("pool"). Its positions then have 64 bits, which costs a little where data tells them.
    Builder &large(const std::string &name);
    // verify_numerics("scores", {.bounded = {{-100, 100}}, .loss = 64}): asks that the stage be stable, bounded, and lose at most so many
    // units in the last place, for all inputs in the ranges that state_range("q", -1, 1) tells, parameters in their own, and dims that are
    // fixed or have a declared maximum. Whoever makes a kernel that cannot keep to it gets UserError numerics.unstable, numerics.unbounded
    // or numerics.loss.
    Builder &verify_numerics(const std::string &stage, const NumericsCheck &check = {});
    Builder &state_range(const std::string &input, double lowest, double highest);
    // The finished, verified algorithm, with what the policy licenses (transform/licensed.h).
    Algorithm build(Span caller = std::source_location::current()) const;

    // As long as it lives, what has one of these effects is refused: an update, a draw, a call of an algorithm that has it. With all of
    // them the stages of a scope are functions of their operands alone. UserError effects.suspended.
    class Suspended;
    [[nodiscard]] Suspended suspend(const std::vector<Effect> &effects);
    void draws(Span caller =
                   std::source_location::current());  // says that the algorithm draws random numbers, as tile functions do that draw some

    // Stages made inside the returned object's life are named prefix + "." + name.
    class Scope;
    Scope scope(const std::string &prefix);
    const Numerics &numerics() const { return algorithm_.numerics; }
    Tile make_stage(const std::string &name, const Tile &tile, Span caller = std::source_location::current());
    const Algorithm &algorithm() const { return algorithm_; }

private:
    friend class Tile;
    Algorithm algorithm_;
    std::string prefix_;
    std::vector<Effect> suspended_;
    std::set<std::string> anonymous_;
    std::map<std::string, std::string> renamed_;  // tensors that tiles may still call by the first name
    std::map<std::string, Segments> segments_;    // by the dim over their rows

    std::string scoped(const std::string &name) const { return prefix_ + name; }
    std::string fresh(const std::string &base);
    Tile stored(const Tensor &tensor) const;
    Tile stored(const Stage &stage, const Tensor &result) const;
    Tile in_compute_type(const Tensor &tensor, const std::vector<Expr> &index, const std::vector<std::string> &dims) const;
    Stage keeping_rows(Stage stage) const;        // the rows that its dims ask for
    const Stage *keeper(const Tile &tile) const;  // the stage with rows of which it is all of the flat result; null: of none
    friend Tile flat(const Tile &tile, Span caller);
    bool flushes(DType type) const;
    Expr kept(DType type, const Expr &value) const;  // as the policy rounds to what is kept
    Tile rename_stage(const std::string &from, const std::string &to);
    // Whether the tile is the whole of a call's result as it is; that then has this name.
    bool name_result(const Tile &tile, const std::string &name);
    Tile materialized(const Tile &tile, const std::string &name);
    std::vector<Expr> operands(const Monoid &monoid, const std::vector<Tile> &inputs, const std::vector<std::string> &dims);
    // What a fold multiplies as the policy rounds it; an element of a tensor becomes one of a stage that has all of them in bf16, which
    // matrix instructions read as it lies.
    Expr rounded_operand(const Expr &value);
    void has_effect(Effect effect, const std::string &subject, const std::string &what);
    std::vector<Tile> make_fold(const Stage &stage);
    std::vector<std::string> dims_of(const std::string &tensor) const;
    std::vector<Tile> bind(const std::string &scope, const Algorithm &callee, const std::optional<Repeat> &rounds,
                           const std::vector<Tile> &arguments, const std::map<std::string, Tile> &parameters);
};

// A tile over rows of segments as the flat tensor that has them all: (B, R, N) as (T, N), with 0 in rows that no segment has. Computed rows
// become a stage. UserError shape.rows where no dim is of Builder::rows.
Tile flat(const Tile &tile, Span caller = std::source_location::current());

class Builder::Suspended {
public:
    Suspended(Builder &builder, const std::vector<Effect> &effects) : builder_(builder), saved_(builder.suspended_) {
        builder.suspended_.insert(builder.suspended_.end(), effects.begin(), effects.end());
    }
    ~Suspended() { builder_.suspended_ = saved_; }
    Suspended(const Suspended &) = delete;
    Suspended &operator=(const Suspended &) = delete;

private:
    Builder &builder_;
    std::vector<Effect> saved_;
};

class Builder::Scope {
public:
    Scope(Builder &builder, const std::string &prefix) : builder_(builder), saved_(builder.prefix_) { builder.prefix_ += prefix + "."; }
    ~Scope() { builder_.prefix_ = saved_; }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

private:
    Builder &builder_;
    std::string saved_;
};

}  // namespace tessera
