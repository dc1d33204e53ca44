#include "costmodel/features/index_value.h"

#include <algorithm>

namespace tessera {

bool LoopPositions::is_position(const Expr &load) {
    return !is_float(load.type()) && load.type() != DType::boolean && load->args.size() == (load->guarded ? 3 : 1);
}

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
    case ExprKind::load: return is_position(e) ? typical * value(n.args[0]) : 0;
    case ExprKind::parameter:
    case ExprKind::bitcast:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: return 0;
    }
    const int64_t a = value(n.args[0]);
    if (n.op == Op::select) return a ? value(n.args[1]) : value(n.args[2]);
    const int64_t b = n.args.size() > 1 ? value(n.args[1]) : 0;
    switch (n.op) {
    case Op::neg:
    case Op::abs:
    case Op::logical_not:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::mod:
    case Op::min:
    case Op::max:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return static_cast<int64_t>(integer_value(n.op, n.args[0].type(), a, b, 0));
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le: return compared(n.op, a, b);
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::shl:
    case Op::shr:
    case Op::fma:
    case Op::select: break;  // no position is made by these
    }
    return 0;
}

}  // namespace tessera
