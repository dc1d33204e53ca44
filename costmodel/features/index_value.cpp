#include "costmodel/features/index_value.h"

#include <algorithm>

namespace tessera {

int64_t LoopPositions::value(const Expr &e) const {
    const Expr::Node &n = *e.get();
    switch (n.kind) {
    case ExprKind::constant: return is_float(n.type) ? static_cast<int64_t>(n.value.real) : n.value.integer;
    case ExprKind::variable: {
        if (auto loop = loops.find(n.name); loop != loops.end()) return loop->second;
        auto let = lets.find(n.name);
        return let == lets.end() ? 0 : value(let->second);
    }
    case ExprKind::extent: {
        auto extent = extents.find(n.name);
        return extent == extents.end() ? 0 : extent->second;
    }
    case ExprKind::cast: return value(n.args[0]);
    case ExprKind::bounded: return std::clamp(value(n.args[0]), value(n.args[1]), std::max(value(n.args[1]), value(n.args[2]) - 1));
    case ExprKind::operation: break;
    default: return 0;
    }
    const int64_t a = value(n.args[0]);
    if (n.op == Op::select) return a ? value(n.args[1]) : value(n.args[2]);
    const int64_t b = n.args.size() > 1 ? value(n.args[1]) : 0;
    // Towards minus infinity, as index arithmetic has it.
    auto quotient = [&] { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); };
    switch (n.op) {
    case Op::neg: return -a;
    case Op::abs: return std::abs(a);
    case Op::logical_not: return !a;
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return quotient();
    case Op::mod: return b == 0 ? 0 : a - quotient() * b;
    case Op::min: return std::min(a, b);
    case Op::max: return std::max(a, b);
    case Op::bit_and: return a & b;
    case Op::bit_or: return a | b;
    case Op::bit_xor: return a ^ b;
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    default: return 0;
    }
}

}  // namespace tessera
