#include "compiler/tile/data_positions.h"

namespace tessera {

void DataPositions::bind(const std::string &variable, const Expr &value) {
    bound_[variable] = value.type() == DType::index ? find(value) : Kind{};
    known_.clear();
}

DataPositions::Kind DataPositions::find(const Expr &e) {
    if (e.type() != DType::index) return {};
    if (auto it = known_.find(e.get()); it != known_.end()) return it->second.second;
    Kind kind;
    switch (e.kind()) {
    case ExprKind::variable:
        if (auto it = bound_.find(e->name); it != bound_.end()) kind = it->second;
        break;
    case ExprKind::cast: {
        const DType from = e->args[0].type();
        kind.data = from != DType::boolean && from != DType::i8 && from != DType::u8;
        break;
    }
    case ExprKind::bounded: {
        const Kind lo = find(e->args[1]), hi = find(e->args[2]);
        kind = {lo.data || hi.data, lo.wide || hi.wide};
        break;
    }
    case ExprKind::operation: kind = of_operation(e); break;
    case ExprKind::constant:
    case ExprKind::extent:
    case ExprKind::parameter:
    case ExprKind::load:
    case ExprKind::bitcast:
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
    case ExprKind::function: break;
    }
    known_.emplace(e.get(), std::pair(e, kind));
    return kind;
}

DataPositions::Kind DataPositions::of_operation(const Expr &e) {
    Kind any;
    for (const Expr &arg : e->args) {
        const Kind kind = find(arg);
        any = {any.data || kind.data, any.wide || kind.wide};
    }
    switch (e->op) {
    case Op::select:
    case Op::min:
    case Op::max: return any;
    case Op::mod: return {find(e->args[1]).data, any.wide};
    case Op::div: return {any.data, any.wide || (any.data && !(e->args[1].is_constant() && e->args[1]->value.integer > 0))};
    case Op::neg:
    case Op::abs:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::logical_not:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::fma: break;
    }
    return {any.data, any.data || any.wide};
}

}  // namespace tessera
