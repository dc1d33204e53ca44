#include "costmodel/features/index_value.h"

#include <algorithm>

#include "algorithms/expr/op_classes.h"

namespace tessera {

bool LoopPositions::is_position(const Expr &load) {
    return !is_float(load.type()) && load.type() != DType::boolean && load->args.size() == (load->guarded ? 3 : 1);
}

void LoopPositions::set_step(const std::string &list, int64_t elements, int64_t most) {
    const int64_t between = std::max<int64_t>(1, elements - 1);
    steps[list] = std::max<int64_t>(1, (most + between / 2) / between);
}

int64_t LoopPositions::step_of(const Expr &load) const {
    const auto step = steps.find(load->name);
    return step == steps.end() ? typical : step->second;
}

int64_t LoopPositions::value(const Expr &e) const {
    if (!may_share_much(e)) return value(e, nullptr);
    Known known;
    return value(e, &known);
}

int64_t LoopPositions::value(const Expr &e, Known *known) const {
    if (!known) return make_value(e, known);
    if (const int64_t *found = known->find(e.get())) return *found;
    const int64_t made = make_value(e, known);
    return *known->add(e.get()).first = made;
}

int64_t LoopPositions::make_value(const Expr &e, Known *known) const {
    const Expr::Node &n = *e.get();
    switch (n.kind) {
    case ExprKind::constant: return is_float(n.type) ? static_cast<int64_t>(n.value.real) : n.value.integer;
    case ExprKind::variable: {
        if (auto loop = loops.find(n.name); loop != loops.end()) return loop->second;
        auto let = lets.find(n.name);
        return let == lets.end() ? 0 : value(let->second, known);
    }
    case ExprKind::extent: {
        auto extent = extents.find(n.name);
        return extent == extents.end() ? 0 : extent->second;
    }
    case ExprKind::cast: return value(n.args[0], known);
    case ExprKind::bounded: {
        const int64_t lo = value(n.args[1], known), last = value(n.args[2], known) - 1;
        return std::clamp(value(n.args[0], known), lo, std::max(lo, last));
    }
    case ExprKind::operation: break;
    case ExprKind::load: return is_position(e) ? step_of(e) * value(n.args[0], known) : 0;
    case ExprKind::parameter:
    case ExprKind::bitcast:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: return 0;
    }
    const int64_t a = value(n.args[0], known);
    if (n.op == Op::select) return a ? value(n.args[1], known) : value(n.args[2], known);
    const int64_t b = n.args.size() > 1 ? value(n.args[1], known) : 0;
    if (!classes_of(n.op).makes_positions) return 0;
    if (is_comparison(n.op)) return compared(n.op, a, b);
    return static_cast<int64_t>(integer_value(n.op, n.args[0].type(), a, b, 0));
}

}  // namespace tessera
