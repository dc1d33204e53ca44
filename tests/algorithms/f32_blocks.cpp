#include "tests/algorithms/f32_blocks.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "algorithms/expr/function.h"
#include "support/text/error.h"

namespace tessera {

Scalar evaluate(const Expr &e, const Scalar &x, const Scalar &y) {
    if (e->functions) return evaluate(expand_functions(e), x, y);
    std::unordered_map<const Expr::Node *, Scalar> values;
    walk(e, [&](const Expr &n) {
        Scalar args[3];
        for (size_t i = 0; i < n->args.size(); i++) args[i] = values.at(n->args[i].get());
        Scalar &out = values[n.get()];
        switch (n.kind()) {
        case ExprKind::constant: out = n->value; break;
        case ExprKind::input: out = n->number == 0 ? x : y; break;
        case ExprKind::operation: out = apply(n->op, args); break;
        case ExprKind::bitcast: out = bitcast(n.type(), args[0]); break;
        case ExprKind::cast: out = convert(n.type(), n->rounding, n->saturate, args[0]); break;
        default: throw InternalError("a function of values holds a " + to_string(n));
        }
    });
    return values.at(e.get());
}

F32Blocks::F32Blocks(const Expr &e) {
    std::unordered_map<const Expr::Node *, int> places;
    const Expr plain = expand_functions(e);
    walk(plain, [&](const Expr &n) {
        int place = static_cast<int>(blocks_.size());
        places[n.get()] = place;
        Block block{};
        if (n.is_constant())
            for (int i = 0; i < lanes; i++) {
                if (is_float(n.type())) block.f[i] = static_cast<float>(n->value.real);
                else block.i[i] = static_cast<int32_t>(n->value.integer);
            }
        blocks_.push_back(block);
        Step step{n.kind(), n->op, !n->args.empty() && is_float(n->args.back().type()), {}, n->number};
        for (size_t i = 0; i < n->args.size(); i++) step.args[i] = places.at(n->args[i].get());
        steps_.push_back(step);
    });
}

using Block = F32Blocks::Block;

// Inlined into each of the two functions below, so that the second is compiled for fused multiply-add.
#define EACH(destination, expression)                                           \
    for (int i = 0; i < F32Blocks::lanes; i++) out.destination[i] = expression; \
    return true
[[gnu::always_inline]] static inline bool step_real(Op op, Block &out, const Block &a, const Block &b, const Block &c) {
    switch (op) {
    case Op::neg: EACH(f, -a.f[i]);
    case Op::abs: EACH(f, __builtin_fabsf(a.f[i]));
    case Op::sqrt: EACH(f, __builtin_sqrtf(a.f[i]));
    case Op::floor: EACH(f, __builtin_floorf(a.f[i]));
    case Op::add: EACH(f, a.f[i] + b.f[i]);
    case Op::sub: EACH(f, a.f[i] - b.f[i]);
    case Op::mul: EACH(f, a.f[i] * b.f[i]);
    case Op::div: EACH(f, a.f[i] / b.f[i]);
    case Op::min: EACH(f, b.f[i] < a.f[i] || b.f[i] != b.f[i] ? b.f[i] : a.f[i]);
    case Op::max: EACH(f, b.f[i] > a.f[i] || b.f[i] != b.f[i] ? b.f[i] : a.f[i]);
    case Op::eq: EACH(i, a.f[i] == b.f[i]);
    case Op::ne: EACH(i, a.f[i] != b.f[i]);
    case Op::lt: EACH(i, a.f[i] < b.f[i]);
    case Op::le: EACH(i, a.f[i] <= b.f[i]);
    case Op::fma: EACH(f, __builtin_fmaf(a.f[i], b.f[i], c.f[i]));
    case Op::select: EACH(i, a.i[i] ? b.i[i] : c.i[i]);
    default: return false;
    }
}
static bool step_integer(Op op, Block &out, const Block &a, const Block &b, const Block &c) {
    auto wrap = [](uint32_t v) { return static_cast<int32_t>(v); };
    auto u = [](int32_t v) { return static_cast<uint32_t>(v); };
    switch (op) {
    case Op::add: EACH(i, wrap(u(a.i[i]) + u(b.i[i])));
    case Op::sub: EACH(i, wrap(u(a.i[i]) - u(b.i[i])));
    case Op::max: EACH(i, a.i[i] > b.i[i] ? a.i[i] : b.i[i]);
    case Op::bit_and: EACH(i, a.i[i] & b.i[i]);
    case Op::bit_or: EACH(i, a.i[i] | b.i[i]);
    case Op::bit_xor: EACH(i, a.i[i] ^ b.i[i]);
    case Op::logical_not: EACH(i, !a.i[i]);  // of truth values; no function here has it of integers
    case Op::eq: EACH(i, a.i[i] == b.i[i]);
    case Op::ne: EACH(i, a.i[i] != b.i[i]);
    case Op::lt: EACH(i, a.i[i] < b.i[i]);
    case Op::le: EACH(i, a.i[i] <= b.i[i]);
    case Op::shl: EACH(i, wrap(u(a.i[i]) << (b.i[i] & 31)));
    case Op::shr: EACH(i, a.i[i] >> (b.i[i] & 31));
    case Op::select: EACH(i, a.i[i] ? b.i[i] : c.i[i]);
    default: return false;
    }
}
#undef EACH

static bool step_plain(Op op, Block &out, const Block &a, const Block &b, const Block &c) { return step_real(op, out, a, b, c); }
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] static bool step_fused(Op op, Block &out, const Block &a, const Block &b, const Block &c) {
    return step_real(op, out, a, b, c);
}
static const bool fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
static constexpr auto step_fused = step_plain;
static constexpr bool fused = false;
#endif

const float *F32Blocks::run(const float *x, const float *y) {
    for (size_t s = 0; s < steps_.size(); s++) {
        const Step &step = steps_[s];
        Block &out = blocks_[s];
        const Block &a = blocks_[step.args[0]], &b = blocks_[step.args[1]], &c = blocks_[step.args[2]];
        switch (step.kind) {
        case ExprKind::constant: break;
        case ExprKind::input: std::copy_n(step.number == 0 ? x : y, lanes, out.f); break;
        case ExprKind::bitcast: out = a; break;
        case ExprKind::cast:
            for (int i = 0; i < lanes; i++) out.f[i] = static_cast<float>(a.i[i]);
            break;
        case ExprKind::operation:
            require(!step.real ? step_integer(step.op, out, a, b, c)
                    : fused    ? step_fused(step.op, out, a, b, c)
                               : step_plain(step.op, out, a, b, c),
                    std::string("the tape lacks ") + name_of(step.op));
            break;
        default: throw InternalError("the tape lacks this kind of expression");
        }
    }
    return blocks_.back().f;
}

}  // namespace tessera
