#include "algorithms/evaluate/in_double.h"

#include <unordered_map>

#include "algorithms/expr/function.h"
#include "support/text/error.h"

namespace tessera {

namespace {

DType widened(DType type) { return is_float(type) ? DType::f64 : type; }

class Widener {
public:
    explicit Widener(const std::set<std::string> &stored) : stored_(stored) {}
    Expr operator()(const Expr &e);

private:
    Expr make(const Expr &e);
    const std::set<std::string> &stored_;
    std::unordered_map<const Expr::Node *, Expr> done_;
};

Expr Widener::operator()(const Expr &e) {
    if (!e.defined()) return e;
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    return done_[e.get()] = make(e);
}

Expr Widener::make(const Expr &e) {
    std::vector<Expr> args;
    for (const Expr &arg : e->args) args.push_back((*this)(arg));
    switch (e.kind()) {
    case ExprKind::constant: return is_float(e.type()) ? constant(Scalar::of_real(DType::f64, e->value.real)) : e;
    case ExprKind::variable:
    case ExprKind::extent: return e;
    case ExprKind::parameter: return cast(widened(e.type()), e);
    case ExprKind::left: return left(e->number, widened(e.type()));
    case ExprKind::right: return right(e->number, widened(e.type()));
    case ExprKind::input: return input(e->number, widened(e.type()));
    case ExprKind::bounded: return bounded(args[0], args[1], args[2]);
    case ExprKind::operation: return operation(e->op, args);
    case ExprKind::function: return applied(e->function, Operands(args.begin(), args.end()));
    case ExprKind::cast:
        if (is_float(e.type())) return cast(widened(e.type()), args[0]);
        return cast(e.type(), args[0], e->rounding, e->saturate);
    case ExprKind::bitcast: {
        if (e.type() == DType::i32) return bitcast(DType::i32, cast(DType::f32, args[0]));
        if (is_coded_float(e->args[0].type())) return bitcast(e.type(), cast(e->args[0].type(), args[0]));
        return cast(widened(e.type()), bitcast(e.type(), args[0]));
    }
    case ExprKind::load: {
        bool kept = stored_.count(e->name);
        DType type = kept ? e.type() : widened(e.type());
        if (!e->guarded) return cast(widened(e.type()), load(e->name, type, args));
        Expr guard = args[args.size() - 2], fill = args.back();
        args.resize(args.size() - 2);
        return cast(widened(e.type()), load_or(e->name, type, args, guard, cast(type, fill)));
    }
    }
    throw InternalError("an expression of unknown kind");
}

Monoid widened_monoid(const Monoid &monoid, Widener &widen) {
    Monoid m = monoid;
    for (Part &p : m.parts)
        if (is_float(p.identity.type)) p.identity = Scalar::of_real(DType::f64, p.identity.real);
    for (DType &type : m.inputs) type = widened(type);
    m.batch.clear(), m.batch_parts.clear();
    return map_expressions(std::move(m), [&](const Expr &e) { return widen(e); });
}

}  // namespace

Expr in_double(const Expr &e, const std::set<std::string> &stored) { return Widener(stored)(e); }

Algorithm in_double(const Algorithm &algorithm) {
    std::set<std::string> stored;
    for (const Tensor &t : algorithm.tensors) stored.insert(t.name);
    Widener widen(stored);
    Algorithm result = map_expressions(algorithm, [&](const Expr &e) { return widen(e); });
    for (Stage &stage : result.stages()) {
        stage = map_monoid(std::move(stage), [&](const Monoid &m) { return widened_monoid(m, widen); });
        if (auto *map = std::get_if<Map>(&stage.body))
            for (Value &v : map->values)
                if (v.to) v.value = cast(algorithm.find_tensor(v.to->state)->dtype, v.value);
    }
    return result;
}

}  // namespace tessera
