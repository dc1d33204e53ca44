#include "compiler/emit/halide/uniform_loads.h"

#include <map>
#include <string>

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace {

class UniformLoads : public IRMutator {
    using IRMutator::visit;

    std::string lane;  // of the vector loop around; "" outside of one
    int64_t lanes = 0;
    Scope<> varying;                     // the lane, and names whose values it is in
    std::map<std::string, HExpr> named;  // those names' values, over nothing else that varies but the lane

    bool varies(const HExpr &e) const { return !lane.empty() && expr_uses_vars(e, varying); }

    HExpr at_lane(const HExpr &e, int64_t i) const { return graph_substitute(lane, make_const(H::Int(32), i), substitute(named, e)); }

    Stmt visit(const For *op) override {
        const auto count = as_const_int(op->extent);
        if (op->for_type != ForType::Vectorized || !lane.empty() || !count) return IRMutator::visit(op);
        lane = op->name, lanes = *count;
        Stmt body;
        {
            ScopedBinding<> bound(varying, lane);
            body = mutate(op->body);
        }
        lane.clear();
        return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, body);
    }

    // What a name stands for inside `body`, where that varies.
    template <typename Op, typename Body>
    Body of_let(const Op *op, const Body &body) {
        const HExpr value = mutate(op->value);
        if (!varies(value)) return Op::make(op->name, value, mutate(body));
        ScopedBinding<> bound(varying, op->name);
        named[op->name] = substitute(named, value);
        const Body inside = mutate(body);
        named.erase(op->name);
        return Op::make(op->name, value, inside);
    }
    Stmt visit(const LetStmt *op) override { return of_let(op, op->body); }
    HExpr visit(const Halide::Internal::Let *op) override { return of_let(op, op->body); }

    HExpr visit(const Load *op) override {
        const HExpr index = mutate(op->index), predicate = mutate(op->predicate);
        HExpr some = predicate;
        if (!varies(index) && varies(predicate)) {
            some = const_false();
            for (int64_t i = 0; i < lanes; i++) some = some || at_lane(predicate, i);
        }
        return Load::make(op->type, op->name, index, op->image, op->param, some, op->alignment);
    }
};

}  // namespace

Stmt with_uniform_loads(const Stmt &s) { return UniformLoads().mutate(s); }

}  // namespace tessera::emit
