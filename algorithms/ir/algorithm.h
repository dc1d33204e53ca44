// An Algorithm says what is computed: stages over named dims, pure, with no word about how.
//
//   Algorithm := name, dims, parameters (with ranges), tensors (inputs, states, constants), [Step], outputs, numerics
//   Step      := Stage | Call
//   Dim       := fixed(n) | symbolic, constraints | derived(Expr)        derived covers ragged and counted dims
//   Stage     := name, [Dim], Map | Reduce | Scan, names of results, [Rows]
//   Call      := scope, callee Algorithm, views of tensors, rounds?
//
// Within a stage the variable named like a dim is that dim's index. A tensor's element (i, j) is load(tensor, {i, j}).
// Everything is a value; the verifier (verify.h) says whether a value is a legal algorithm. A `span` says where something is declared, for
// messages alone: texts, JSON and hashes do not have it.
#pragma once
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "algorithms/expr/expr.h"
#include "algorithms/ir/numerics.h"
#include "algorithms/ir/parameter.h"
#include "support/text/span.h"

namespace tessera {

enum class DimKind : uint8_t { fixed, symbolic, derived };

struct Dim {
    std::string name;
    DimKind kind = DimKind::symbolic;
    int64_t value = 0;  // fixed
    // derived: an index expression over extents, parameters, indices of outer dims and loads. A dim whose size uses an
    // index is ragged: it varies with that outer dim and can be reduced or mapped over only inside it. It is an axis of no tensor: see
    // Rows.
    Expr size;
    int64_t multiple_of = 1;  // symbolic
    int64_t min = 0, max = INT32_MAX;
    std::string equals;  // symbolic: the name of a dim of the same extent, or ""
    Span span = {};
};

std::vector<std::string> names_of(const std::vector<Dim> &dims);
Dim fixed_dim(const std::string &name, int64_t value);
Dim symbolic_dim(const std::string &name);
Dim derived_dim(const std::string &name, Expr size);
// The extent is offsets[parent + 1] - offsets[parent], or 0 if that is negative. Nothing else bounds it: see ragged_rows
// (ragged.h).
Dim ragged_dim(const std::string &name, const std::string &offsets, DType offsets_type, const std::string &parent);
// The extent is `count`, clamped to 0 ..= max.
Dim counted_dim(const std::string &name, Expr count, Expr max);

// What callers see of a tensor of bytes, each of which has two elements (DTypeTraits::in_half_bytes).
struct HalfBytes {
    DType dtype = DType::i4;
    std::vector<std::string> dims;  // the last one in elements
    friend bool operator==(const HalfBytes &, const HalfBytes &) = default;
};

enum class Role : uint8_t { input, state, constant };

struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::string> dims;  // outermost first
    Role role = Role::input;
    std::vector<Scalar> values;  // constant: row-major
    Span span = {};
};

// The values of a constant as they lie in memory.
std::string constant_bytes(const Tensor &table);

// One component of a monoid's element. A part with extra dims holds a value for each point of them.
struct Part {
    std::string name;
    Scalar identity;                // also gives the dtype
    std::vector<std::string> dims;  // beside the stage's
};

// One pass of a monoid's batch form. `monoid` names the fold over the reduced dims (find_pass_monoid); "" maps over them instead, giving
// a value for each element; "each" maps without them, giving one value for the chunk. Passes see earlier ones as right(k), k counted over
// passes.
struct BatchPass {
    std::string name;
    std::string monoid;
    std::vector<Expr> values;       // over input(i) and right(k)
    std::vector<std::string> dims;  // extra dims of the result
};

// How a finished fold changes with one of its elements: what a person knows of a monoid that its definition, step by step, hides.
// Derivatives of folds read it where it is there. An expression is over input(i), the element, and right(q), the finished parts. A part
// that has no entry does not change with the elements by itself.
struct ElementDerivative {
    // The derivative of `part` by input `input` of the element. `shared`: divided by its sum over the fold, as among equal maxima.
    struct Entry {
        int part = 0, input = 0;
        Expr value;
        bool shared = false;
    };
    // The derivative of `part` by the part `leader` where no element changes, over right(q) alone: sums of weights exp(x - m) follow m. The
    // entries of `part` are then those at a fixed leader.
    struct Follow {
        int part = 0, leader = 0;
        Expr value;
    };
    std::vector<Entry> entries;
    std::vector<Follow> follows = {};
};

// A fold over elements: `combine` is associative with `identity`; `step` absorbs one element and equals combine(left,
// lift(inputs)): laws that monoid_laws.h tests. `commutative` permits reordering. The batch form folds a whole chunk by plain passes;
// `batch_parts` says which pass gives each part. Splitting a reduction online uses it for each chunk.
struct Monoid {
    std::string name;
    std::vector<Part> parts;
    std::vector<DType> inputs;
    std::vector<Expr> lift;     // one for each part, over input(i)
    std::vector<Expr> combine;  // one for each part, over left(p), right(p)
    std::vector<Expr> step;     // one for each part, over left(p), input(i)
    bool commutative = true;
    std::vector<BatchPass> batch;
    std::vector<int> batch_parts;                      // the pass that gives each part
    std::optional<ElementDerivative> derivative = {};  // changes no value: in no hash
};

// Where a value goes in place of a result: an element of a state.
struct Write {
    std::string state;
    std::vector<Expr> index;
};

struct Value {
    Expr value;  // may use earlier values of the point, as left(i)
    std::optional<Write> to = {};
};

// Values at every point of the stage's dims, in row-major order. All see states as they were before the first point. A Map whose one value
// is written is an update.
struct Map {
    std::vector<Value> values;
    Map() = default;
    explicit Map(Expr value) { values.push_back({std::move(value)}); }
    Map(Write to, Expr value) { values.push_back({std::move(value), std::move(to)}); }
};
constexpr size_t max_values = 32;  // of a Map

// Folds `inputs` over `dims` where `where` holds (undefined: everywhere). With `at` the fold scatters: each element goes to a computed
// position along the stage's dims, and is dropped where that is outside (histograms, gradients of gathers). A dim whose position is its own
// index, `at[i]` = variable(dims[i]), is ordinary: the stage goes over its points. A dim of the fold is never ordinary.
struct Reduce {
    Monoid monoid;
    std::vector<std::string> dims;
    std::vector<Expr> inputs;
    Expr where;
    std::vector<Expr> at;
};

enum class ScanDirection : uint8_t { forward, backward };

// Prefix folds along `dim`, one of the stage's dims. Forward they begin at its first element. Backward they begin at its last, and
// the result at i folds the elements from the last down to i (inclusive) or i + 1. The fold begins anew at each element where
// `segments` holds (undefined: nowhere).
struct Scan {
    Monoid monoid;
    std::string dim;
    bool inclusive = true;
    std::vector<Expr> inputs;
    ScanDirection direction = ScanDirection::forward;
    Expr segments = {};
};

// Where results keep a ragged dim of their stage: along an axis of the extent of `flat`, at `first` + its index. `first` uses the indices
// of the dim's parents, other dims of the stage. The rows of all parents lie one behind another along the axis, so results have no axis of
// the parents themselves: over (B, R, N) with R's rows in T a result is [T, N]. Elements that no point of the stage has are 0.
struct Rows {
    std::string dim, flat;
    Expr first;
};

struct Stage {
    std::string name;
    std::vector<std::string> dims;  // outermost first; also the storage order of its result, but for what `rows` says
    std::variant<Map, Reduce, Scan> body;
    // The names of its results, one for each value or part: "" where a value is only used by later ones, or written. Empty: a single
    // result is named like the stage, one of several "<stage>.<part>".
    std::vector<std::string> results = {};
    Span span = {};
    std::vector<Rows> rows = {};  // one for each ragged dim that its results keep
};

struct Algorithm;

// What a callee sees of a tensor of its caller: the element at axis(0), axis(1), … of its own tensor is the caller's at `index`, which is
// affine in each axis (a slice, a part of a joined axis, one round of a stack).
struct View {
    std::string tensor;
    std::vector<Expr> index = {};  // for each axis of `tensor`; empty: the same axes
    View() = default;
    View(std::string whole) : tensor(std::move(whole)) {}
    View(const char *whole) : tensor(whole) {}
    View(std::string of, std::vector<Expr> at) : tensor(std::move(of)), index(std::move(at)) {}
};
bool operator==(const View &a, const View &b);

// The index along an axis of what a View is bound to. No dim has its name.
Expr axis(size_t number);
// Where the element `at` of what the view is bound to lies in the view's tensor.
std::vector<Expr> index_in(const View &view, const std::vector<Expr> &at);

// Runs a call once for each index of `dim`, a dim of the caller, in order. The index stands in the call's views and parameters.
// What a round computes is seen by later rounds through `carried` and through states. With no rounds, an output that is carried is what
// the first round would have been given, and `until` is false. Jax's scan and while_loop in one.
struct Repeat {
    std::string dim;
    std::map<std::string, std::string> carried = {};  // callee input -> the output of the round before; the first takes its view
    std::set<std::string> stacked = {};  // outputs of which each round's stays, with `dim` in front; of others the last round's
    std::string until = {};              // an output, one bool: after a round in which it holds there is none; "": all are run
    friend bool operator==(const Repeat &, const Repeat &) = default;
};

// Runs the callee. A result is named scope + "." + the callee's output, or as `results` says. `scope` prefixes the callee's stage names
// ("ffn.up.acc"), so a schedule of the callee applies where it is called.
struct Call {
    std::string scope;
    std::shared_ptr<const Algorithm> callee;
    std::map<std::string, std::string> dims;  // callee dim -> caller dim
    std::map<std::string, View> tensors;      // callee input or state -> what it is of the caller
    std::map<std::string, Expr> parameters;
    std::map<std::string, std::string> results = {};  // callee output -> what the caller calls it; of others the scope and the output
    std::optional<Repeat> repeat = {};
    Span span = {};
};

// How a dim goes on through calls: " 'K' of pair is 'N' of linear (call up), which is 'M' of matmul (call up.acc)."; "" where it goes into
// none. The calls of the callee are named from where it was called, after `scope`.
std::string path_through_calls(const Algorithm &algorithm, const std::string &dim, const std::string &scope = "");

// What the caller calls an output of the callee.
std::string name_of_result(const Call &call, const std::string &output);

// What is done at one time: a stage or a call.
using Step = std::variant<Stage, Call>;

// The steps of one kind, in order: for (const Stage &s : algorithm.stages()). It is a view: it lives no longer than the algorithm, and
// what is at a position is found by counting.
template <class Kind, class Steps>
class StepsOfKind {
public:
    explicit StepsOfKind(Steps &steps) : steps_(&steps) {}

    class Iterator {
    public:
        using value_type = Kind;
        using difference_type = std::ptrdiff_t;
        using reference = std::conditional_t<std::is_const_v<Steps>, const Kind &, Kind &>;
        using pointer = std::remove_reference_t<reference> *;
        using iterator_category = std::bidirectional_iterator_tag;
        Iterator() = default;
        Iterator(Steps &steps, size_t position) : steps_(&steps), position_(position) { skip_others(); }
        reference operator*() const { return std::get<Kind>((*steps_)[position_]); }
        pointer operator->() const { return &**this; }
        Iterator &operator++() {
            position_++;
            skip_others();
            return *this;
        }
        Iterator operator++(int) {
            Iterator before = *this;
            ++*this;
            return before;
        }
        // Not from the first of its kind.
        Iterator &operator--() {
            do position_--;
            while (!std::holds_alternative<Kind>((*steps_)[position_]));
            return *this;
        }
        Iterator operator--(int) {
            Iterator before = *this;
            --*this;
            return before;
        }
        friend bool operator==(const Iterator &a, const Iterator &b) { return a.position_ == b.position_; }

    private:
        Steps *steps_ = nullptr;
        size_t position_ = 0;
        void skip_others() {
            while (position_ < steps_->size() && !std::holds_alternative<Kind>((*steps_)[position_])) position_++;
        }
    };

    Iterator begin() const { return Iterator(*steps_, 0); }
    Iterator end() const { return Iterator(*steps_, steps_->size()); }
    auto rbegin() const { return std::make_reverse_iterator(end()); }
    auto rend() const { return std::make_reverse_iterator(begin()); }
    bool empty() const { return begin() == end(); }
    size_t size() const { return static_cast<size_t>(std::distance(begin(), end())); }
    typename Iterator::reference operator[](size_t i) const { return *std::next(begin(), static_cast<std::ptrdiff_t>(i)); }
    typename Iterator::reference front() const { return *begin(); }
    typename Iterator::reference back() const { return *rbegin(); }

private:
    Steps *steps_;
};

// What an algorithm does beside giving results that its inputs decide: it updates states; or it draws random numbers, which a seed and a
// step decide (build/random.h). Neither keeps it from giving the same bits each time.
enum class Effect : uint8_t { memory, random };
constexpr Effect all_effects[] = {Effect::memory, Effect::random};
const char *name_of(Effect effect);  // "memory", "random"

// What an author asks of a stage of floats, for all inputs in the ranges that the algorithm states. It is proved whenever a kernel is made
// (compiler/interpret/numerics_checks.h), and changes no value.
struct NumericsCheck {
    bool stable = true;                                     // neither it nor what it is made of overflows or is no number
    std::optional<std::pair<double, double>> bounded = {};  // its values lie there
    // How far rounding may take it, in units in the last place of its largest value: what cancellation loses is in it.
    std::optional<double> loss = {};
    friend bool operator==(const NumericsCheck &, const NumericsCheck &) = default;
};

struct DerivativeRule;

struct Algorithm {
    std::string name;
    std::vector<Dim> dims;
    std::vector<Parameter> parameters;
    std::vector<Tensor> tensors;
    std::vector<Step> steps;  // in the order in which they happen; each takes only tensors and results of earlier ones
    std::vector<std::string> outputs;
    Numerics numerics;
    bool updates_state = false;  // a write among its stages or those of its calls: the effect 'memory' of its text
    bool draws = false;          // random numbers, it or its callees: the effect 'random'
    // Inputs, states and outputs that may have more elements than positions of 32 bits reach (TESS_MAX_ELEMENTS of runtime/abi/tessera.h).
    // Each axis stays within them.
    std::set<std::string> large = {};
    // Inputs and outputs that are bytes in place of what was declared (algorithms/transform/half_bytes.h), by name.
    std::map<std::string, HalfBytes> half_bytes = {};
    // Where the elements of inputs and states are taken to lie by the checks of stages, both by name.
    std::map<std::string, std::pair<double, double>> stated_ranges = {};
    std::map<std::string, NumericsCheck> checks = {};
    // What its author says its derivative is (derivative_rule.h). It changes no value, so it is in no hash; null: that of its stages.
    std::shared_ptr<const DerivativeRule> rule = nullptr;

    StepsOfKind<Stage, const std::vector<Step>> stages() const & { return StepsOfKind<Stage, const std::vector<Step>>(steps); }
    StepsOfKind<Stage, std::vector<Step>> stages() & { return StepsOfKind<Stage, std::vector<Step>>(steps); }
    void stages() const && = delete;  // of what is gone
    StepsOfKind<Call, const std::vector<Step>> calls() const & { return StepsOfKind<Call, const std::vector<Step>>(steps); }
    StepsOfKind<Call, std::vector<Step>> calls() & { return StepsOfKind<Call, std::vector<Step>>(steps); }
    void calls() const && = delete;

    const Dim *find_dim(const std::string &name) const;
    const Tensor *find_tensor(const std::string &name) const;
    const Stage *find_stage(const std::string &name) const;
    const Dim &dim(const std::string &name) const;  // InternalError when missing
};

// Where a stage, call, tensor or dim of that name is declared. A stage inside of a call, "ffn.up.acc", is declared by the callee.
Span declared_at(const Algorithm &algorithm, const std::string &name);
// The tensors that a stage defines. What is written to a state is none.
std::vector<Tensor> results_of(const Stage &stage);
// How a stage keeps a dim; null: as it is, or it is a parent.
const Rows *rows_of(const Stage &stage, const std::string &dim);
// The dims that have no axis in results, as others' rows lie one behind another over them.
std::set<std::string> parents_of(const Stage &stage);
// The dims of a result with the stage's own in place of the axes that keep them: what names its elements by points.
std::vector<std::string> point_dims(const Stage &stage, const Tensor &result);
// The index in a result of the element at a point: an index for each of its point_dims, in order.
std::vector<Expr> element_of(const Stage &stage, const std::vector<Expr> &point);
// The point of an element of a result: what gives that index by element_of. Nothing where the index does not say it: a row of a segment is
// made[b] + r, and a plain row of the flat axis may be of any segment.
std::optional<std::vector<Expr>> point_of(const Stage &stage, const std::vector<Expr> &index);
// By value or part, "" where there is no result of it.
std::vector<std::string> names_of_results(const Stage &stage);
std::vector<Effect> effects_of(const Algorithm &algorithm);
// What a stage writes to states.
std::vector<const Write *> writes_of(const Stage &stage);
bool updates(const Stage &stage);
// The value of a Map that has one, which is its result; null: it has several, or writes it.
const Expr *only_value(const Stage &stage);
// Each value of a Map with those that it uses in their place.
std::vector<Expr> values_alone(const Map &map);
// The stage and part that define a tensor, or null.
const Stage *defining_stage(const Algorithm &algorithm, const std::string &tensor);

// Reaching through stages. A pass that gives their bodies a meaning uses std::visit with a case for each
// (support/containers/alternatives.h).

using ChangeExpr = std::function<Expr(const Expr &)>;
// Every expression of a stage (values, inputs, where, at, indices, first rows). Its monoid's are not: they are over elements, not over
// points.
std::vector<Expr> expressions_of(const Stage &stage);
// The stage with each of these changed.
Stage map_expressions(Stage stage, const ChangeExpr &change);
// The monoid with each expression of lift, combine, step, batch and derivative changed.
Monoid map_expressions(Monoid monoid, const ChangeExpr &change);
// The algorithm with the sizes of its dims, the expressions of its stages, and the parameters and views of its calls changed.
Algorithm map_expressions(Algorithm algorithm, const ChangeExpr &change);
// The stage with its monoid changed, where it has one.
Stage map_monoid(Stage stage, const std::function<Monoid(const Monoid &)> &change);

// The algorithm with the definitions of its functions in their place, and those of the conversions that are made of other operations, in
// monoids too.
Algorithm expanded(Algorithm algorithm);

bool is_fold(const Stage &stage);                            // Reduce or Scan
const Monoid &monoid_of(const Stage &fold);                  // InternalError where it is none
const std::vector<Expr> &inputs_of(const Stage &fold);       // likewise
std::vector<std::string> reduced_dims(const Stage &stage);   // Reduce: its dims; otherwise none
bool scatters(const Stage &stage);                           // Reduce with computed positions
std::vector<std::string> ordinary_dims(const Stage &stage);  // those that it goes over: all but where a scatter computes the position
std::string scanned_dim(const Stage &stage);                 // Scan: its dim; otherwise ""
std::vector<std::string> folded_dims(const Stage &stage);    // those of both
// The results of a call in the names of its caller.
std::vector<Tensor> results_of(const Call &call);

// The monoid over (begun, value) pairs that folds a segmented scan's elements as one sequence (Blelloch 1990): input 0 says
// whether an element begins a segment, the other inputs are the monoid's. Part 0 says whether a segment begins somewhere in
// the fold, the others are the fold of what follows the last beginning.
Monoid segmented_monoid(const Monoid &monoid);

// Monoids of the standard vocabulary.
Monoid sum_monoid(DType type);  // from +0.0, as dot: so the sum of nothing is, and that of -0.0 alone
Monoid product_monoid(DType type);
Monoid max_monoid(DType type);         // NaN if any element is, as min
Monoid max_number_monoid(DType type);  // passes over NaN, which is cheaper: for what keeps a NaN elsewhere, as a softmax's sum does
Monoid min_monoid(DType type);
Monoid dot_monoid(DType type);                                           // inputs a, b: step is fma(a, b, left)
Monoid welford_monoid(DType type);                                       // parts n, mean, m2 (Chan, Golub, LeVeque 1979)
Monoid online_softmax_monoid(DType type, const std::string &value_dim);  // inputs score, value; parts m, l, acc (Milakov, Gimelshein 2018)
// inputs value, position; parts value, position: of equal values the first, and NaN is the greatest
Monoid argmax_monoid(DType type);
// h = a h + b along a scan, of what a linear recurrence multiplies and adds: inputs a, b; parts a, the product of all a, and h, from 0.
Monoid recurrence_monoid(DType type);
// Welford's fold of any finite x, with what rounding its mean leaves: parts n, largest, mean, m2, rest. `largest` is the largest magnitude.
// All others are of x * near_scale(largest). The mean is mean + rest / n; m2 is the sum of squares of differences from `mean`, and rest is
// the sum of these differences.
Monoid moments_monoid(DType type);
// A power of two: 1 up to 2^47 (of f64 2^495), where no sum of 2^31 squares of differences overflows, and beyond 2^-82 (2^-530), with which
// squares are not so small that they lose digits.
Expr near_scale(const Expr &largest);
// An operand of a product, of f32, as the policy rounds it; itself where it was widened from a type whose numbers the product takes all.
Expr as_operand(const Expr &x, Multiply multiply);
// The monoid whose identity is that of the inputs' elements: of max over casts of i8, -128, which the result of a fold of nothing may be
// cast to. It is the same fold of one element and of more.
Monoid with_identity_of_elements(Monoid monoid, const std::vector<Expr> &inputs);

// Those that a type alone decides, by their names in texts.
struct StandardMonoid {
    const char *name;
    Monoid (*make)(DType type);
    int operations = 0;  // of a step, where a pass of a batch form may fold by it; 0: none may
};
inline constexpr std::array standard_monoids = {
    StandardMonoid{"sum", sum_monoid, 1},
    StandardMonoid{"product", product_monoid, 1},
    StandardMonoid{"max", max_monoid, 1},
    StandardMonoid{"min", min_monoid, 1},
    StandardMonoid{"max_number", max_number_monoid, 1},
    StandardMonoid{"dot", dot_monoid, 2},
    StandardMonoid{"welford", welford_monoid},
    StandardMonoid{"argmax", argmax_monoid},
    StandardMonoid{"recurrence", recurrence_monoid},
};
// The one by which a pass of that name folds; null: it maps, or there is none.
const StandardMonoid *find_pass_monoid(const std::string &name);

}  // namespace tessera
