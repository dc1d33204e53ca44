// Evaluators of an expression of input(0) and input(1), for tests: one value at a time by the definition, or f32 in blocks by the
// processor's own float operations, fast enough for all 2^32 values.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera {

Scalar evaluate(const Expr &e, const Scalar &x, const Scalar &y = {});

class F32Blocks {
public:
    static constexpr int lanes = 256;
    explicit F32Blocks(const Expr &e);
    // lanes values in, lanes out; the result lives until the next run. y is for expressions of two inputs.
    const float *run(const float *x, const float *y = nullptr);

    struct Step {
        ExprKind kind;
        Op op;
        bool real;  // operands are floats
        int args[3];
        int number;  // of an input
    };
    union alignas(64) Block {
        float f[lanes];
        int32_t i[lanes];
    };

private:
    std::vector<Step> steps_;
    std::vector<Block> blocks_;
};

}  // namespace tessera
