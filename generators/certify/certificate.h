// Error certificates: for given inputs, the running error bound of each result (compiler/interpret/running_error.h) beside what is measured
// against the algorithm in double.
#pragma once
#include <string>
#include <vector>

#include "generators/certify/comparison.h"

namespace tessera {

// Largest and 99.9th percentile.
struct Spread {
    double largest = 0, most = 0;  // most: 99.9 % are at most this
};

// Errors of the elements of one output, over all shapes that were tried.
struct Certificate {
    std::string output;
    int64_t elements = 0;           // that are numbers
    int64_t unbounded = 0;          // of these, without a bound
    std::string unknown;            // why; "" where all have one
    double bound = 0;               // the largest
    Spread error, units, relative;  // measured: as they are, in units in the last place of the exact result, and relative to it
    // What the kernel and the reference may be off, by the error: of the largest ones, and in the median over elements that have an error.
    // 0 where nothing has one. The reference may be off where it stores states in their own type, and in f64.
    double ratio = 0, median_ratio = 0;
};

class ErrorSamples {
public:
    // Runs the tile program for this shape on the inputs that compare() takes. Gives what is wrong: an element whose error is above its
    // bound and that of the reference in double; "" where there is none. Where a call repeats, the reference rounds what is stored
    // between rounds, so nothing is said to be wrong.
    std::string add(const PreparedKernel &prepared, const Extents &extents, uint64_t seed, const StatedInputs &stated = {});
    std::vector<Certificate> certificates() const;

private:
    struct Samples {
        std::vector<double> bounds, allowed, errors, units, relative;  // allowed: with what the reference may be off
        std::string unknown;
    };
    std::map<std::string, Samples> samples_;
};

// How long add() takes, in steps of an interpreter: two runs with bounds.
double steps_to_certify(const PreparedKernel &prepared, const Extents &extents);

}  // namespace tessera
