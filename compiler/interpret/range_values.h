// Expressions in a stage: between which values their results lie, and how far they may be off, for all points of the stage and all
// inputs in their ranges.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"
#include "compiler/interpret/function_image.h"
#include "compiler/interpret/real_interval.h"

namespace tessera {

// The range of all elements of a tensor.
struct KnownRange {
    RealInterval values = {};                      // those that are finite; lo > hi: there are none
    double error = 0;                              // the most that one may be off; infinite where nothing is known
    bool has_lowest = false, has_highest = false;  // -inf or inf is among them because a program says so, as masks do
    bool is_lost = false;                          // nothing is known
    double gap = 0;                                // values that are not 0 are at least this, where none is negative
};

KnownRange lost_range();
KnownRange merged(const KnownRange &a, const KnownRange &b);
inline constexpr double no_bound = std::numeric_limits<double>::infinity();
inline constexpr RealInterval no_values = {no_bound, -no_bound};
inline bool is_empty(const RealInterval &i) { return i.lo > i.hi; }

double unit_roundoff(DType type);
double least_subnormal(DType type);
// By its steps, whatever it is called.
bool is_monoid(const Monoid &m, const Monoid &known);

class RangeValues {
public:
    // All three outlive it.
    RangeValues(const Algorithm &algorithm, const Extents &extents, const std::map<std::string, RealInterval> &given);

    KnownRange of(const Expr &e);
    // The same where differences x - m from this maximum over x are 0, as one of them is; what it defined is taken as it is there.
    KnownRange at_top(const Expr &e, const std::string &maximum);
    // The maximum from which of() last found a difference; "" for none.
    const std::string &top() const { return found_top_; }

    void define(const std::string &tensor, const KnownRange &range) { known_[tensor] = range; }
    void define_at_top(const std::string &tensor, const std::string &maximum, const KnownRange &range) { tops_[tensor] = {maximum, range}; }
    const KnownRange &known(const std::string &tensor) const { return known_.at(tensor); }
    // The stages of maxima of which something is known at the top.
    std::vector<std::string> maxima() const;
    // A stage begins: nothing is wrong, and it has no earlier values.
    void begin() { trouble_.clear(), earlier_.clear(), found_top_.clear(); }
    void add_earlier(const KnownRange &value) { earlier_.push_back(value); }
    const std::string &trouble() const { return trouble_; }

    // What is wrong with the stage, of which the first counts; nothing is known of the result.
    KnownRange lose(const std::string &what);
    // The result of an operation on floats, whose exact values for computed operands are `exact`.
    KnownRange result(DType type, const RealInterval &exact, double error, const KnownRange &flags, const Expr &e);
    std::optional<double> points(const std::string &dim) const;

private:
    // x - max over x, and what is made of it, for the largest x.
    struct AtTop {
        std::string of;  // the stage of the maximum
        KnownRange range;
    };
    const Algorithm &a_;
    const Extents &extents_;
    const std::map<std::string, RealInterval> &given_;
    std::map<std::string, KnownRange> known_;
    std::map<std::string, AtTop> tops_;
    std::map<const Expr::Node *, KnownRange> done_;
    std::deque<Expr> definitions_;     // of functions, whose nodes done_ knows by address
    std::vector<KnownRange> earlier_;  // values of a Map
    const std::string *at_top_of_ = nullptr;
    // Where a select has found that an expression is not 0, it is this.
    std::optional<std::pair<Expr, KnownRange>> assumed_;
    std::string found_top_, trouble_;
    FunctionImages images_;

    KnownRange of_type(const std::string &name, DType type) const;
    KnownRange of_tensor(const Tensor &t) const;
    KnownRange value(const Expr &e);
    KnownRange make(const Expr &e);
    KnownRange operation(const Expr &e);
    KnownRange selection(const Expr &e);
    KnownRange float_operation(const Expr &e, const std::vector<KnownRange> &x);
    KnownRange integer_operation(const Expr &e, const std::vector<KnownRange> &x);
    KnownRange rounded_by_function(const Expr &e);
    KnownRange function(const Expr &e);
    KnownRange conversion(const Expr &e);
    bool is_below_maximum(const Expr &e);
};

}  // namespace tessera
