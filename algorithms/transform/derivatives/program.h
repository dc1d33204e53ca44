// The algorithm that a transform makes, while it is made: names that nobody has, stages whose loads are inside of what they read.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "algorithms/index/bounds.h"
#include "algorithms/transform/derivatives/terms.h"

namespace tessera::differentiation {

class Program {
public:
    // Begins with the dims, parameters, tensors and policy of the algorithm, and no steps.
    Program(const Algorithm &of, std::string name);

    Algorithm made;

    // The name, or with the next number behind it where it is taken.
    std::string fresh(const std::string &name);
    void take_names_of(const Stage &stage);
    // A dim of the extent of another one. `renamed`: what outer dims of a ragged one are called there.
    std::string dim_like(const std::string &dim, const std::map<std::string, std::string> &renamed);

    // Adds the stage with every load guarded whose index is not proved to be inside. `points` are those of its expressions.
    const Stage &add(Stage stage);
    void add_as_it_is(const Stage &stage);
    void add_as_it_is(const Call &call);
    // The result of a stage that is 0 everywhere.
    const Tensor &zeros(DType type, const std::vector<std::string> &dims, const std::string &name);

    void know(const Tensor &tensor) { tensors_[tensor.name] = tensor; }
    const Tensor &tensor(const std::string &name) const { return tensors_.at(name); }
    bool is_ragged(const std::string &dim) const;
    // The extent of a dim as an expression at the points of its outer dims.
    Expr extent_of(const std::string &dim) const;
    // What is known at a point of these dims, outermost first.
    Bounds facts_at(const std::vector<std::string> &points) const;

    // What sums of derivatives are computed in.
    DType folded_in(DType type) const;
    // The value as the policy keeps it in a tensor of that type, and as it reads an element of one.
    Expr kept(DType type, const Expr &value) const;
    Expr read(const Tensor &tensor) const;
    // The type of the tangent or cotangent that a tensor's caller has: its own, or f32 where it has less than 16 bits.
    static DType type_at_interface(DType type);

    // Removes steps that no output needs, and outputs of callees.
    // Writes to states are needed where `keeps_writes`, or where a state is read later.
    void drop_unneeded(bool keeps_writes);
    // Removes inputs that no step reads, but those that are `kept`.
    void drop_unread_inputs(const std::set<std::string> &kept);
    // The verified algorithm.
    Algorithm finished();

private:
    std::set<std::string> names_;
    std::map<std::string, Tensor> tensors_;  // with results

    Expr guarded(const Expr &e, const Bounds &facts) const;
};

// Names of what a step reads: tensors, states that it writes, parameters.
std::set<std::string> reads_of(const Step &step);

// The expression at other points, with some dims called otherwise in its extents too.
Expr at_points(const Expr &e, const std::map<std::string, Expr> &points, const std::map<std::string, std::string> &dims);

}  // namespace tessera::differentiation
