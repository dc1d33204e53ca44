#include "compiler/check/slots.h"

namespace tessera {

bool may_be_same(const Slot &a, const Slot &b) {
    if (a.buffer != b.buffer) return false;
    const bool are_apart = a.of > 0 && a.of == b.of && a.variable == b.variable && a.offset != b.offset;
    return !are_apart;
}

Slot slot_of(const std::string &buffer, const std::vector<Expr> &index, const std::function<bool(const std::string &)> &is_uniform,
             int64_t slots) {
    if (index.empty()) return buffer;
    const Expr &at = index[0];
    if (at.is_constant() && slots > 0) return {buffer, "", at->value.integer, slots};
    if (!at.is_operation(Op::mod) || !at->args[1].is_constant() || at->args[1]->value.integer < 1) return buffer;
    const int64_t of = at->args[1]->value.integer;
    const Expr &sum = at->args[0];
    if (sum.is_constant()) return {buffer, "", sum->value.integer, of};
    const auto uniform = [&](const Expr &e) { return e.kind() == ExprKind::variable && is_uniform(e->name); };
    if (uniform(sum)) return {buffer, sum->name, 0, of};
    if (sum.is_operation(Op::add))
        for (int i = 0; i < 2; i++)
            if (uniform(sum->args[i]) && sum->args[1 - i].is_constant())
                return {buffer, sum->args[i]->name, sum->args[1 - i]->value.integer, of};
    return buffer;
}

}  // namespace tessera
