// What is known about variables and extents while index arithmetic is simplified and proved (prove.h).
#pragma once
#include <forward_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/index/ascending.h"
#include "algorithms/index/linear.h"
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Inclusive; an end at or beyond ±unbounded is not known.
struct Interval {
    static constexpr int64_t unbounded = INT64_MAX / 2;
    int64_t lo = -unbounded, hi = unbounded;
    bool finite() const { return lo > -unbounded && hi < unbounded; }
};
// What both hold; `a` where that is nothing.
Interval meet(Interval a, Interval b);

// Facts that hold at every point where an expression is evaluated. A name means one thing within one Bounds: copy it
// to enter a scope. Answers are remembered inside, also for its copies, so all of them serve one thread.
class Bounds {
public:
    Bounds();
    // Facts of every dim and parameter of an algorithm, by set_dim and set_parameter.
    explicit Bounds(const std::vector<Dim> &dims, const std::vector<Parameter> &parameters = {});

    // lo <= variable <= hi; either may be undefined (unknown) and may use variables that enclose this one. Where the
    // variable is used, the range is taken to hold at least one point.
    void set(const std::string &variable, Expr lo, Expr hi);
    // The extent of `dim`: its constraints and, for a derived dim, max(size, 0). An extent without facts is 0 or more.
    void set_dim(const Dim &dim);
    // A parameter: its declared range.
    void set_parameter(const Parameter &parameter);
    // The elements of a tensor of one axis do not decrease along it, and lie in 0 ..= most.
    void set_ascending(const Ascending &tensor);
    // A condition that holds: lt, le, eq on index expressions, `e % c == 0`, and any `&` of these; others are kept as they
    // are and prove only themselves.
    void assume(const Expr &condition);
    // Proofs under these facts, and under those of copies made from now on, take at most so many steps together; what is asked later is
    // not proved. Without a limit each proof has its own.
    void limit(int64_t steps) { steps_left_ = std::make_shared<int64_t>(steps); }
    bool spend_step() const { return !steps_left_ || --*steps_left_ >= 0; }  // false where none is left

    struct Range {
        Expr lo, hi;
        Linear lo_form, hi_form;
        int rank = 0;  // above that of every variable in lo and hi
    };
    struct Extent {
        int64_t min = 0, max = INT32_MAX, multiple_of = 1;
        bool fixed = false;
        std::string equals;
        Expr size;  // derived
    };
    struct Answers;
    const Range *find(const std::string &variable) const;
    const Extent &find_extent(const std::string &dim) const;
    std::string representative(const std::string &dim) const;           // follows `equals`
    const std::vector<Linear> &facts() const { return known_->facts; }  // each is >= 0
    bool assumed(const Expr &condition) const;
    Interval known(const Expr &atom) const;  // from facts about this atom alone
    Interval known_parameter(const std::string &name) const;
    // What is known of the tensor that index(load(tensor, i)) reads, if it ascends; null for any other atom.
    const Ascending *ascending(const Expr &atom) const;
    int64_t known_multiple(const Expr &atom) const;
    // Where answers about an expression of these variables are kept (Expr::Node::variables).
    Answers &answers(uint64_t variables) const;
    int &depth() const { return depth_; }  // of the simplification that is under way
    // The proof that is under way: how many are nested in each other, and the steps of all of them.
    struct Proof {
        int depth = 0, steps = 0;
    };
    Proof &proof() const { return proof_; }

private:
    // Scopes share what they have in common: a copy costs nothing, and a change is of the copy alone.
    struct Known {
        std::map<std::string, Extent> extents;
        std::map<std::string, Interval> parameters;  // with declared ranges
        std::vector<Linear> facts;
        std::vector<std::pair<Expr, Interval>> atoms;
        std::vector<std::pair<Expr, int64_t>> multiples;
        std::vector<Expr> opaque;
        std::map<std::string, Ascending> ascending;
        uint64_t variables = 0;  // the bits of those that any of it speaks of
    };
    struct Variable;
    struct Memo;

    Known &change();
    void assume_nonnegative(const Linear &form, const Bounds &before);
    void assume_multiple(const Expr &remainder, const Bounds &before);
    std::shared_ptr<Known> known_;
    std::shared_ptr<const Variable> variables_;  // the innermost one
    std::shared_ptr<Memo> memo_;
    std::shared_ptr<int64_t> steps_left_;
    mutable int depth_ = 0;
    mutable Proof proof_;
};

// A variable and those of the scopes around it.
struct Bounds::Variable {
    std::string name;
    Range range;
    std::shared_ptr<const Variable> outer;
    uint64_t names = 0, used = 0;  // the bits of all names so far, and of those in ranges
};

// Answers under unchanged facts, by node. The range of a new variable says nothing about an expression without it, so answers about
// such expressions stay with the outer scope.
struct Bounds::Answers {
    AddressMap<const Linear *> forms;
    AddressMap<Expr> simplified;
    AddressMap<Interval> ranges;    // of high operations, and of what is bounded
    AddressMap<int64_t> multiples;  // of high operations
    std::map<std::string, Interval> variables;
    std::forward_list<std::pair<Expr, Linear>> kept_forms;  // with their keys, so that the addresses of those stay their own
    std::forward_list<Expr> kept;
};

struct Bounds::Memo {
    std::shared_ptr<Memo> outer;
    uint64_t own = 0;  // the bits of variables that `outer` knows nothing of
    std::unique_ptr<Answers> answers;
};

// The constant interval of a form, and the largest constant known to divide it (0 for the constant 0).
Interval range_of(const Linear &form, const Bounds &bounds);
Interval range_of_atom(const Expr &atom, const Bounds &bounds);
int64_t multiple_of(const Linear &form, const Bounds &bounds);
// 1 where the form is known to be >= 0, -1 where it is <= 0, otherwise 0.
int sign_of(const Linear &form, const Bounds &bounds);

// A form as factor * inside + outside.
struct Factored {
    Expr factor;
    Linear inside, outside;
    int sign = 0;                                                              // of inside
    Linear at(const Linear &value) const { return inside * value + outside; }  // the form where the factor is that
};

}  // namespace tessera
