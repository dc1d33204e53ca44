// Where the exact results of a function lie, for arguments that lie in intervals.
//
// The function's own definition in f64 is evaluated at the ends of intervals, and its claimed error there (FunctionFacts) is added. So an
// f32 result is judged by a value that is some 2^29 times as exact, and nothing is assumed of it; an f64 result by the claim.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "algorithms/evaluate/tape.h"
#include "algorithms/expr/function.h"
#include "compiler/interpret/real_interval.h"

namespace tessera {

class FunctionImages {
public:
    // Contains f(x, …) for all x, … of the intervals at which it is a number. Tight at points and, of functions that rise or fall, for
    // intervals; elsewhere by the mean value theorem, from the derivative that the function's facts have. whole() where nothing is known.
    RealInterval image(const Function &f, const std::vector<RealInterval> &x);
    // Contains the derivative by one argument at all such points; whole() where nobody said it.
    RealInterval slope(const Function &f, const std::vector<RealInterval> &x, size_t of);
    // Whether anything is known: the facts claim an error.
    static bool is_known(const Function &f) { return f.facts.ulp_f64 > 0; }
    // Whether its definition in f32 is the one in f64 of narrower numbers. Otherwise the two may be apart by more than what its operations
    // round away, as where one is an approximation of the other.
    bool has_one_definition(const Function &f);

private:
    struct Prepared {
        Tape tape;
        std::vector<Register> frame;
        std::vector<Expr> derivatives;  // by each argument; empty where nobody said them
    };
    std::map<const Function *, Prepared> prepared_;
    std::map<const Function *, bool> has_one_definition_;
    int depth_ = 0;  // of derivatives that have functions of their own

    Prepared &prepare(const Function &f);
    RealInterval at(const Function &f, const std::vector<double> &x);
    RealInterval corners(const Function &f, const std::vector<RealInterval> &x);
    RealInterval in_pieces(const Function &f, const RealInterval &x);
    RealInterval by_mean_value(const Function &f, const std::vector<RealInterval> &x);
    RealInterval value(const Expr &root, const std::vector<RealInterval> &x);
    RealInterval value_over(const Expr &e, const std::vector<RealInterval> &x, AddressMap<RealInterval> &values);
};

}  // namespace tessera
