// Evaluators of an expression of input(0), for tests: one value at a time by the definition, or f32 in blocks by the
// processor's own float operations, fast enough for all 2^32 values.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera {

Scalar evaluate(const Expr &e, const Scalar &input);

class F32Blocks {
public:
    static constexpr int lanes = 256;
    explicit F32Blocks(const Expr &e);
    const float *run(const float *x);  // lanes values in, lanes out; the result lives until the next run

    struct Step {
        ExprKind kind;
        Op op;
        bool real;  // operands are floats
        int args[3];
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
