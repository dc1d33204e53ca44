// An algorithm as the body of a function: what its stages, calls and expressions become.
//
// ONNX numbers axes, algorithms name dims. A Term has both, so an expression over dims becomes nodes operand by operand: two are aligned by
// the names of their axes, and what one lacks is broadcast.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/export/onnx/body.h"
#include "algorithms/index/bounds.h"
#include "algorithms/ir/algorithm.h"

namespace tessera::onnx {

// A value of the graph, and which index each of its axes is; an index that it does not vary with is no axis. Elements of four bits, and
// floats of a byte, are held in wider ones: few operators take them.
struct Term {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::string> axes;
};

// Why something has no form in ONNX. `stage` is called from the outermost algorithm: "ffn.up.acc".
struct Refusal {
    std::string stage, what, why, remedy;
};

// A function of the model, and how it is called: behind the algorithm's inputs and states, in their order, come its parameters, and then
// the extents of dims that none of these tells.
struct MadeFunction {
    std::string name;
    std::vector<std::string> extents;
};

// All functions of a model.
struct Functions {
    ModelParts parts;
    std::vector<ModelFunction> all;  // each before those that call it
    std::vector<Refusal> refusals;
    std::map<std::string, MadeFunction> made;  // by the text of their algorithm
    std::map<std::string, int64_t> names;

    // The function of an algorithm, made when it is first asked for. `scope` is for refusals: "ffn.".
    const MadeFunction &of(const Algorithm &algorithm, const std::string &scope);
};

// The name of the standard monoid that this one is, whatever it is called and begins with; "" where it is none.
std::string standard_name(const Monoid &monoid);

// The index as a sum; nothing where it is too large for one.
std::optional<Linear> sum_form(const Expr &index, const Bounds &bounds);

class FunctionMaker {
public:
    FunctionMaker(const Algorithm &algorithm, Functions &functions, const std::string &scope);
    ModelFunction make(MadeFunction &how);

private:
    // Thrown where an expression has no form, and where it needs what was refused already (`why` is empty).
    struct Refused {
        std::string why, remedy;
    };
    // A tensor of the algorithm: whole, with an axis for each dim.
    struct Stored {
        std::string name;
        DType dtype = DType::f32;  // as it is held
        std::vector<std::string> dims;
    };
    // Where an expression is evaluated: a body, and what variables and operands of monoids stand for in it.
    struct Place {
        Body &body;
        std::map<std::string, Term> variables = {};  // that are one number here
        std::vector<Term> inputs = {}, left = {}, right = {};
        std::map<const Expr::Node *, Term> known = {};
        bool is_definition = false;  // within a function's definition, which may rest on fma's one rounding
    };

    const Algorithm &a_;
    Functions &functions_;
    const std::string scope_;  // of refusals: "ffn."
    ValueNames names_;
    Body top_;
    Place outermost_;
    Bounds bounds_;
    std::map<std::string, Stored> tensors_;
    std::map<std::string, std::string> results_;  // what the function calls its results
    std::map<std::string, Term> extents_;         // of dims and axes, as they were asked for
    std::map<std::string, std::string> same_as_;  // the dim that a callee's axis has the extent of
    std::vector<std::string> order_;              // of axes, outermost first
    std::deque<Expr> kept_;                       // whose nodes `known` has
    std::string step_;                            // that is being made

    // function.cpp
    void declare(ModelFunction &f, MadeFunction &how);
    void declare_extents(ModelFunction &f, MadeFunction &how);
    void finish(ModelFunction &f);
    void steps();
    void refuse(const std::string &what, const Refused &why);
    template <class Make>
    void guarded(const std::string &what, Make make);
    Stored keep(const Tensor &tensor, const Term &term, Place &at);
    void map_stage(const Stage &stage, const Map &map);
    static DType held_type(DType type);  // in which elements of that type are held

    // terms.cpp
    Term extent_of(const std::string &dim);
    bool same_extent(const std::string &a, const std::string &b);
    std::string root_of(const std::string &dim) const;
    std::vector<std::string> in_order(std::vector<std::string> axes) const;
    std::vector<std::string> joined(const std::vector<Term> &terms) const;
    std::string shape_of(const std::vector<std::string> &axes, Body &body);
    std::string aligned(const Term &term, const std::vector<std::string> &axes, Body &body);
    Term spread(const Term &term, const std::vector<std::string> &axes, Body &body);  // with all of them, in this order
    Term element_wise(const std::string &op, const std::vector<Term> &terms, DType dtype, Body &body, const Attributes &attributes = {});
    Term where(const Term &condition, const Term &a, const Term &b, Body &body);
    Term converted(const Term &term, DType type, Body &body);  // by Cast alone
    Term number(DType type, double value, Body &body);
    Term number(const Scalar &value, Body &body);
    Term range(const std::string &dim, Body &body);  // 0, 1, … along it
    Term reshaped(const Term &term, const std::string &shape, const std::vector<std::string> &axes, Body &body);
    Term flat(const Term &term, Body &body);  // all elements along one axis

    // expressions.cpp
    Term value(const Expr &e, Place &at);
    Term value_of(const Expr &e, Place &at);
    std::vector<Term> values(const Operands &args, Place &at);
    Term bitcast_of(const Expr &e, Place &at);
    Term cast_of(const Expr &e, Place &at);
    Term function_of(const Expr &e, Place &at);

    // operations.cpp
    Term operation_of(Op op, const std::vector<Term> &x, bool exact, Body &body);
    Term integer_quotient(const Term &a, const Term &b, Body &body);
    Term shifted(Op op, const Term &a, const Term &count, Body &body);

    // loads.cpp
    Term load(const Stored &from, const std::vector<Expr> &index, const Expr &guard, const Expr &fill, Place &at);
    Term gathered_flat(const Stored &from, const std::vector<Term> &index, Place &at);
    Term position(const Stored &of, const std::vector<Term> &index, Body &body);  // in row-major order
    Stored written(const Stored &state, const std::vector<Expr> &index, const Term &value, const std::vector<std::string> &dims, Place &at);
    bool is_whole(const Stored &tensor, const std::vector<Expr> &index, const std::vector<std::string> &dims);

    // folds.cpp
    void reduce_stage(const Stage &stage, const Reduce &reduce);
    std::vector<Term> folded(const Monoid &monoid, const std::vector<Term> &inputs, const std::vector<std::string> &over, const Term &where,
                             const Stage &stage, Place &at);
    Term folded_by(const std::string &monoid, const std::vector<Term> &inputs, const std::vector<std::string> &over, const Term &where,
                   Body &body);
    Term product_sum(const Term &a, const Term &b, const std::vector<std::string> &over, Body &body);
    std::vector<Term> folded_in_batches(const Monoid &monoid, const std::vector<Term> &inputs, const std::vector<std::string> &over,
                                        const Term &where, Body &body);
    void scatter_stage(const Stage &stage, const Reduce &reduce);

    // scans.cpp
    void scan_stage(const Stage &stage, const Scan &scan);
    struct Sequence {
        std::vector<Term> last, each;  // a part's fold of all elements, and of those up to each of them, with `along` in front
    };
    // The fold by steps, one element after another.
    Sequence stepped(const Monoid &monoid, const std::vector<Term> &inputs, const std::vector<std::string> &over, const Term &where,
                     const Term &begins, const std::vector<std::string> &dims, bool backward, bool inclusive, Body &body);

    // windows.cpp: nothing where it is none.
    std::optional<Term> convolution(const Stage &stage, const Reduce &reduce);
    std::optional<Term> pool(const Stage &stage, const Reduce &reduce);
    std::optional<Term> padded(const Stored &from, const std::vector<Expr> &index, const Expr &guard, const Expr &fill, Place &at);
    Expr size_expr(const std::string &dim) const;  // over the extents of symbolic dims
    bool has_whole_axes(const Expr &load, const std::vector<std::string> &plain);
    std::string grouped(const Expr &load, const std::vector<std::vector<size_t>> &groups);
    Term of_windows(const std::string &made, std::vector<std::string> axes, const std::vector<size_t> &window_axes,
                    const std::vector<int64_t> &strides, const std::vector<int64_t> &dilations, const std::vector<std::string> &taps,
                    const std::vector<std::string> &positions, const Expr &load);

    // calls.cpp
    void call_step(const Call &call);
    void repeat_step(const Call &call);
    Term argument(const Tensor &of_callee, const Call &call, Place &at);
    // The results of one run: outputs, then states, in the callee's order.
    std::vector<std::string> run(const Call &call, const MadeFunction &how, const std::map<std::string, std::string> &given, Place &at);
    void keep_state(const Tensor &of_callee, const Call &call, const std::string &value, Place &at);
};

}  // namespace tessera::onnx
