// What is known about variables and extents while index arithmetic is simplified and proved (prove.h).
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/linear.h"

namespace tessera {

// Inclusive; an end at or beyond ±unbounded is not known.
struct Interval {
    static constexpr int64_t unbounded = INT64_MAX / 2;
    int64_t lo = -unbounded, hi = unbounded;
    bool finite() const { return lo > -unbounded && hi < unbounded; }
};

// Facts that hold at every point where an expression is evaluated. A name means one thing within one Bounds: copy it
// to enter a scope. Answers are remembered inside, so one Bounds serves one thread.
class Bounds {
public:
    Bounds();
    // Facts of every dim of an algorithm, by set_dim.
    explicit Bounds(const std::vector<Dim> &dims);

    // lo <= variable <= hi; either may be undefined (unknown) and may use variables that enclose this one. Where the
    // variable is used, the range is taken to hold at least one point.
    void set(const std::string &variable, Expr lo, Expr hi);
    // The extent of `dim`: its constraints and, for a derived dim, max(size, 0). An extent without facts is 0 or more.
    void set_dim(const Dim &dim);
    // A condition that holds: lt, le, eq on index expressions, `e % c == 0`, and any `&` of these; others are kept as they
    // are and prove only themselves.
    void assume(const Expr &condition);

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
    struct Memo;
    const Range *find(const std::string &variable) const;
    const Extent &find_extent(const std::string &dim) const;
    std::string representative(const std::string &dim) const;  // follows `equals`
    const std::vector<Linear> &facts() const { return facts_; }  // each is >= 0
    bool assumed(const Expr &condition) const;
    Interval known(const Expr &atom) const;  // from facts about this atom alone
    int64_t known_multiple(const Expr &atom) const;
    Memo &memo() const { return *memo_; }

private:
    void forget();
    void assume_nonnegative(const Linear &form);
    void assume_multiple(const Expr &remainder);
    std::map<std::string, Range> variables_;
    std::map<std::string, Extent> extents_;
    std::vector<Linear> facts_;
    std::vector<std::pair<Expr, Interval>> atoms_;
    std::vector<std::pair<Expr, int64_t>> multiples_;
    std::vector<Expr> opaque_;
    std::shared_ptr<Memo> memo_;
};

// Answers under unchanged facts, by node; the key is held so that its address stays its own.
struct Bounds::Memo {
    std::unordered_map<const Expr::Node *, std::pair<Expr, Linear>> forms;
    std::unordered_map<const Expr::Node *, std::pair<Expr, Expr>> simplified;
    std::map<std::string, Interval> variables;
    int depth = 0;
    int proofs = 0;
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
    int sign = 0;  // of inside
    Linear at(const Linear &value) const { return inside * value + outside; }  // the form where the factor is that
};

}  // namespace tessera
