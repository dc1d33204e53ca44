#include "algorithms/ir/algorithm.h"

#include <algorithm>
#include <cmath>

#include "algorithms/ir/functions.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

std::string constant_bytes(const Tensor &table) {
    const auto size = static_cast<size_t>(size_of(table.dtype));
    std::string bytes(table.values.size() * size, '\0');
    for (size_t i = 0; i < table.values.size(); i++) store_scalar(bytes.data() + i * size, table.values[i]);
    return bytes;
}

std::vector<std::string> names_of(const std::vector<Dim> &dims) {
    std::vector<std::string> names;
    for (const Dim &d : dims) names.push_back(d.name);
    return names;
}

Dim fixed_dim(const std::string &name, int64_t value) {
    Dim d;
    d.name = name, d.kind = DimKind::fixed, d.value = value;
    return d;
}

Dim symbolic_dim(const std::string &name) {
    Dim d;
    d.name = name;
    return d;
}

Dim derived_dim(const std::string &name, Expr size) {
    Dim d;
    d.name = name, d.kind = DimKind::derived, d.size = std::move(size);
    return d;
}

Dim ragged_dim(const std::string &name, const std::string &offsets, DType type, const std::string &parent) {
    auto at = [&](Expr position) { return cast(DType::index, load(offsets, type, {position})); };
    Expr p = variable(parent);
    return derived_dim(name, max(at(p + 1) - at(p), 0));
}

Dim counted_dim(const std::string &name, Expr count, Expr limit) {
    return derived_dim(name, max(min(cast(DType::index, count), limit), 0));
}

static const std::vector<Numerics> &all_numerics() {
    static const std::vector<Numerics> all = {
        {},
        {"f64", DType::f64, DType::f64, DType::f64, Rounding::nearest_even, false},
        {"bf16", DType::bf16, DType::f32, DType::f32, Rounding::nearest_even, false},
        {"f16", DType::f16, DType::f32, DType::f32, Rounding::nearest_even, false},
    };
    return all;
}

std::vector<std::string> numerics_names() {
    std::vector<std::string> names;
    for (const Numerics &n : all_numerics()) names.push_back(n.name);
    return names;
}

Numerics numerics_named(const std::string &name) {
    for (const Numerics &n : all_numerics())
        if (n.name == name) return n;
    throw UserError("numerics.unknown", "there is no numerics policy '" + name + "'; the policies are " + join(numerics_names()) + "." +
                                            did_you_mean(name, numerics_names()));
}

template <typename T>
static const T *find_named(const std::vector<T> &items, const std::string &name) {
    auto it = std::find_if(items.begin(), items.end(), [&](const T &item) { return item.name == name; });
    return it == items.end() ? nullptr : &*it;
}

const Dim *Algorithm::find_dim(const std::string &n) const { return find_named(dims, n); }
const Tensor *Algorithm::find_tensor(const std::string &n) const { return find_named(tensors, n); }
const Stage *Algorithm::find_stage(const std::string &n) const { return find_named(stages, n); }

const Dim &Algorithm::dim(const std::string &n) const {
    const Dim *d = find_dim(n);
    require(d, "no dim " + n + " in " + name);
    return *d;
}

static std::vector<Tensor> parts_of(const Stage &stage, const Monoid &monoid) {
    std::vector<Tensor> results;
    for (const Part &part : monoid.parts) {
        Tensor t;
        t.name = monoid.parts.size() == 1 ? stage.name : stage.name + "." + part.name;
        t.dtype = part.identity.type;
        t.dims = stage.dims;
        t.dims.insert(t.dims.end(), part.dims.begin(), part.dims.end());
        results.push_back(t);
    }
    return results;
}

std::vector<Tensor> results_of(const Stage &stage) {
    using Tensors = std::vector<Tensor>;
    return std::visit(Overloaded{
                          [&](const Map &map) {
                              Tensor t;
                              t.name = stage.name, t.dtype = map.value.type(), t.dims = stage.dims;
                              return Tensors{t};
                          },
                          [&](const Reduce &reduce) { return parts_of(stage, reduce.monoid); },
                          [&](const Scan &scan) { return parts_of(stage, scan.monoid); },
                          [](const Update &) { return Tensors{}; },
                      },
                      stage.body);
}

const Stage *defining_stage(const Algorithm &algorithm, const std::string &tensor) {
    for (const Stage &stage : algorithm.stages)
        for (const Tensor &t : results_of(stage))
            if (t.name == tensor) return &stage;
    return nullptr;
}

namespace {

// What each body is made of, where it is const and where it is to be changed.
void each_of(auto &expressions, const auto &visit) {
    for (auto &e : expressions) visit(e);
}
void each_where(auto &condition, const auto &visit) {
    if (condition.defined()) visit(condition);
}
void each_expression(Is<Map> auto &b, const auto &visit) { visit(b.value); }
void each_expression(Is<Reduce> auto &b, const auto &visit) { each_of(b.inputs, visit), each_where(b.where, visit), each_of(b.at, visit); }
void each_expression(Is<Scan> auto &b, const auto &visit) { each_of(b.inputs, visit), each_where(b.segments, visit); }
void each_expression(Is<Update> auto &b, const auto &visit) { each_of(b.index, visit), visit(b.value); }

// The monoid and the inputs of a fold, null where the stage is none.
struct Fold {
    const Monoid *monoid = nullptr;
    const std::vector<Expr> *inputs = nullptr;
};
Fold fold_of(const Stage &stage) {
    return std::visit(Overloaded{
                          [](const Map &) { return Fold{}; },
                          [](const Reduce &b) {
                              return Fold{&b.monoid, &b.inputs};
                          },
                          [](const Scan &b) {
                              return Fold{&b.monoid, &b.inputs};
                          },
                          [](const Update &) { return Fold{}; },
                      },
                      stage.body);
}

}  // namespace

std::vector<Expr> expressions_of(const Stage &stage) {
    std::vector<Expr> all;
    std::visit([&](const auto &body) { each_expression(body, [&](const Expr &e) { all.push_back(e); }); }, stage.body);
    return all;
}

Stage map_expressions(Stage stage, const ChangeExpr &change) {
    std::visit([&](auto &body) { each_expression(body, [&](Expr &e) { e = change(e); }); }, stage.body);
    return stage;
}

Monoid map_expressions(Monoid monoid, const ChangeExpr &change) {
    auto each = [&](std::vector<Expr> &expressions) { each_of(expressions, [&](Expr &e) { e = change(e); }); };
    each(monoid.lift), each(monoid.combine), each(monoid.step);
    for (BatchPass &pass : monoid.batch) each(pass.values);
    return monoid;
}

Algorithm map_expressions(Algorithm algorithm, const ChangeExpr &change) {
    for (Dim &dim : algorithm.dims)
        if (dim.size.defined()) dim.size = change(dim.size);
    for (Stage &stage : algorithm.stages) stage = map_expressions(std::move(stage), change);
    for (Call &call : algorithm.calls)
        for (auto &[name, value] : call.parameters) value = change(value);
    return algorithm;
}

Stage map_monoid(Stage stage, const std::function<Monoid(const Monoid &)> &change) {
    std::visit(Overloaded{
                   [](Map &) {},
                   [&](Reduce &b) { b.monoid = change(b.monoid); },
                   [&](Scan &b) { b.monoid = change(b.monoid); },
                   [](Update &) {},
               },
               stage.body);
    return stage;
}

bool is_fold(const Stage &stage) { return fold_of(stage).monoid; }

const Monoid &monoid_of(const Stage &fold) {
    const Monoid *monoid = fold_of(fold).monoid;
    require(monoid, fold.name + " is no fold");
    return *monoid;
}

const std::vector<Expr> &inputs_of(const Stage &fold) {
    const std::vector<Expr> *inputs = fold_of(fold).inputs;
    require(inputs, fold.name + " is no fold");
    return *inputs;
}

std::vector<std::string> reduced_dims(const Stage &stage) {
    auto *reduce = std::get_if<Reduce>(&stage.body);
    return reduce ? reduce->dims : std::vector<std::string>{};
}

std::string scanned_dim(const Stage &stage) {
    auto *scan = std::get_if<Scan>(&stage.body);
    return scan ? scan->dim : "";
}

std::vector<std::string> folded_dims(const Stage &stage) {
    using Dims = std::vector<std::string>;
    return std::visit(Overloaded{
                          [](const Map &) { return Dims{}; },
                          [](const Reduce &b) { return b.dims; },
                          [](const Scan &b) { return Dims{b.dim}; },
                          [](const Update &) { return Dims{}; },
                      },
                      stage.body);
}

Algorithm renamed(const Call &call, const KeepsCall &keeps) {
    auto scoped = [&](const std::string &n) { return call.scope.empty() ? n : call.scope + "." + n; };
    Algorithm callee = inline_calls(*call.callee, [&](const std::string &scope) { return keeps(scoped(scope)); }).algorithm;
    std::map<std::string, std::string> dim_names, tensor_names = call.tensors;
    for (const Dim &d : callee.dims) {
        auto it = call.dims.find(d.name);
        dim_names[d.name] = it != call.dims.end() ? it->second : scoped(d.name);
    }
    for (const Tensor &t : callee.tensors)
        if (!tensor_names.count(t.name)) tensor_names[t.name] = scoped(t.name);
    for (const Stage &stage : callee.stages)
        for (const Tensor &t : results_of(stage)) tensor_names[t.name] = scoped(t.name);
    for (const Call &inner : callee.calls)
        for (const Tensor &t : results_of(inner)) tensor_names[t.name] = scoped(t.name);
    auto rename_dims = [&](std::vector<std::string> &names) {
        for (std::string &n : names) n = dim_names.at(n);
    };
    auto rename = [&](const Expr &root) {
        return rewrite(root, [&](const Expr &e) -> Expr {
            if (e.kind() == ExprKind::variable) return dim_names.count(e->name) ? variable(dim_names.at(e->name)) : Expr();
            if (e.kind() == ExprKind::extent) return extent(dim_names.at(e->name));
            if (e.kind() == ExprKind::parameter) return call.parameters.at(e->name);
            if (e.kind() != ExprKind::load) return {};
            std::vector<Expr> args = e->args;
            const std::string &name = tensor_names.at(e->name);
            if (!e->guarded) return load(name, e.type(), args);
            Expr fill = args.back(), guard = args[args.size() - 2];
            args.resize(args.size() - 2);
            return load_or(name, e.type(), args, guard, fill);
        });
    };
    auto rename_monoid = [&](Monoid &m) {
        for (Part &p : m.parts) rename_dims(p.dims);
        for (BatchPass &p : m.batch) rename_dims(p.dims);
    };
    callee = map_expressions(std::move(callee), rename);
    for (Dim &d : callee.dims) {
        if (!d.equals.empty()) d.equals = dim_names.at(d.equals);
        d.name = dim_names.at(d.name);
    }
    for (Tensor &t : callee.tensors) t.name = tensor_names.at(t.name), rename_dims(t.dims);
    for (Stage &stage : callee.stages) {
        stage.name = scoped(stage.name);
        rename_dims(stage.dims);
        std::visit(Overloaded{
                       [](Map &) {},
                       [&](Reduce &b) { rename_dims(b.dims), rename_monoid(b.monoid); },
                       [&](Scan &b) { b.dim = dim_names.at(b.dim), rename_monoid(b.monoid); },
                       [&](Update &b) { b.state = tensor_names.at(b.state); },
                   },
                   stage.body);
    }
    for (Call &inner : callee.calls) {
        inner.scope = scoped(inner.scope);
        for (auto &[name, dim] : inner.dims) dim = dim_names.at(dim);
        for (auto &[name, tensor] : inner.tensors) tensor = tensor_names.at(tensor);
    }
    for (std::string &name : callee.outputs) name = tensor_names.at(name);
    return callee;
}

static const KeepsCall keeps_none = [](const std::string &) { return false; };

std::vector<Tensor> results_of(const Call &call) {
    Algorithm callee = renamed(call, keeps_none);
    std::vector<Tensor> results;
    for (const std::string &output : callee.outputs)
        for (const Stage &stage : callee.stages)
            for (const Tensor &t : results_of(stage))
                if (t.name == output) results.push_back(t);
    return results;
}

namespace {

// A stage, or a call that stays, on its way into the order of an algorithm.
struct Pending {
    std::optional<Stage> stage;
    std::optional<Call> call;
    std::vector<Tensor> makes;

    bool waits_for(const std::set<std::string> &unmade) const {
        bool waits = false;
        for (const Expr &e : stage ? expressions_of(*stage) : std::vector<Expr>{})
            walk(e, [&](const Expr &n) { waits |= n.kind() == ExprKind::load && unmade.count(n->name); });
        if (call)
            for (auto &[name, tensor] : call->tensors) waits |= unmade.count(tensor) > 0;
        return waits;
    }
    std::string name() const { return stage ? stage->name : call->scope; }
};

}  // namespace

Algorithm inline_calls(const Algorithm &algorithm) { return inline_calls(algorithm, keeps_none).algorithm; }

PartlyInlined inline_calls(const Algorithm &algorithm, const KeepsCall &keeps) {
    PartlyInlined whole{algorithm, {}};
    Algorithm &result = whole.algorithm;
    std::vector<Pending> pending;
    auto add_stage = [&](const Stage &stage) { pending.push_back({stage, {}, results_of(stage)}); };
    auto add_call = [&](const Call &call) { pending.push_back({{}, call, results_of(call)}); };
    auto add_dims = [&](const Algorithm &callee) {
        for (const Dim &d : callee.dims)
            if (!result.find_dim(d.name)) result.dims.push_back(d);
    };
    for (const Stage &stage : algorithm.stages) add_stage(stage);
    result.calls.clear(), result.stages.clear();
    for (const Call &call : algorithm.calls) {
        if (keeps(call.scope)) {
            Algorithm callee = renamed(call, keeps_none);
            add_dims(callee);
            result.updates_state |= callee.updates_state;
            add_call(call);
            continue;
        }
        Algorithm callee = renamed(call, keeps);
        add_dims(callee);
        std::set<std::string> bound;  // to tensors of the caller, which may be results of other calls
        for (auto &[name, tensor] : call.tensors) bound.insert(tensor);
        for (const Tensor &t : callee.tensors)
            if (!bound.count(t.name) && !result.find_tensor(t.name)) result.tensors.push_back(t);
        for (const Stage &stage : callee.stages) add_stage(stage);
        for (const Call &inner : callee.calls) add_call(inner);
        result.updates_state |= callee.updates_state;
    }
    // Stages and calls are declared apart, so the order of their union follows from who loads whom.
    std::set<std::string> unmade;
    for (const Pending &p : pending)
        for (const Tensor &t : p.makes) unmade.insert(t.name);
    while (!pending.empty()) {
        auto ready = std::find_if(pending.begin(), pending.end(), [&](const Pending &p) { return !p.waits_for(unmade); });
        if (ready == pending.end())
            throw UserError("algorithm.cycle", algorithm.name + ": the stages " + pending.front().name() +
                                                   " and those it loads form a cycle; a stage may load only earlier ones.");
        for (const Tensor &t : ready->makes) unmade.erase(t.name);
        if (ready->stage) {
            result.stages.push_back(*ready->stage);
        } else {
            result.calls.push_back(*ready->call);
            std::set<std::string> &before = whole.before.emplace_back();
            for (const Stage &stage : result.stages) before.insert(stage.name);
        }
        pending.erase(ready);
    }
    return whole;
}

static Part part(const std::string &name, Scalar identity, std::vector<std::string> dims = {}) { return {name, identity, std::move(dims)}; }

static Scalar number(DType type, double value) {
    return is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, static_cast<int64_t>(value));
}

static Scalar lowest(DType type) {
    if (is_float(type)) return Scalar::of_real(type, -INFINITY);
    return Scalar::of_integer(type, type == DType::i32 ? INT32_MIN : INT64_MIN);
}

static Scalar highest(DType type) {
    if (is_float(type)) return Scalar::of_real(type, INFINITY);
    return Scalar::of_integer(type, type == DType::i32 ? INT32_MAX : INT64_MAX);
}

static Monoid simple(const std::string &name, Op op, Scalar identity) {
    DType type = identity.type;
    Monoid m;
    m.name = name;
    m.parts = {part("value", identity)};
    m.inputs = {type};
    m.lift = {input(0, type)};
    m.combine = {operation(op, {left(0, type), right(0, type)})};
    m.step = {operation(op, {left(0, type), input(0, type)})};
    m.batch = {{"value", name, {input(0, type)}, {}}};
    m.batch_parts = {0};
    return m;
}

Monoid segmented_monoid(const Monoid &m) {
    std::string flag = "begun";
    while (std::any_of(m.parts.begin(), m.parts.end(), [&](const Part &p) { return p.name == flag; })) flag += "_";
    Monoid result;
    result.name = "segmented_" + m.name;
    result.commutative = false;
    result.parts = {part(flag, Scalar::of_integer(DType::boolean, 0))};
    result.parts.insert(result.parts.end(), m.parts.begin(), m.parts.end());
    result.inputs = {DType::boolean};
    result.inputs.insert(result.inputs.end(), m.inputs.begin(), m.inputs.end());
    Expr begins = input(0, DType::boolean), begun = left(0, DType::boolean), anew = right(0, DType::boolean);
    auto shifted = [](const Expr &e, const std::function<Expr(const Expr &)> &left_part) {
        return rewrite(e, [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::input) return input(n->number + 1, n.type());
            if (n.kind() == ExprKind::right) return right(n->number + 1, n.type());
            return n.kind() == ExprKind::left ? left_part(left(n->number + 1, n.type())) : Expr();
        });
    };
    auto kept = [](const Expr &e) { return e; };
    auto unless_new = [&](const Expr &e) { return select(begins, constant(result.parts[static_cast<size_t>(e->number)].identity), e); };
    result.lift = {begins}, result.combine = {begun || anew}, result.step = {begun || begins};
    for (size_t p = 0; p < m.parts.size(); p++) {
        result.lift.push_back(shifted(m.lift[p], kept));
        result.combine.push_back(select(anew, right(static_cast<int>(p) + 1, m.parts[p].identity.type), shifted(m.combine[p], kept)));
        result.step.push_back(shifted(m.step[p], unless_new));
    }
    return result;
}

Monoid sum_monoid(DType type) { return simple("sum", Op::add, number(type, is_float(type) ? -0.0 : 0)); }
Monoid product_monoid(DType type) { return simple("product", Op::mul, number(type, 1)); }
Monoid max_monoid(DType type) { return simple("max", Op::max, lowest(type)); }

Monoid nan_max_monoid(DType type) {
    Monoid m = simple("maximum", Op::max, lowest(type));
    if (!is_float(type)) return m;
    // max gives the second operand when either is NaN: what was found stays, and what is new is looked at.
    auto of = [](const Expr &found, const Expr &more) { return select(more != more, more, max(more, found)); };
    m.combine = {of(left(0, type), right(0, type))};
    m.step = {of(left(0, type), input(0, type))};
    return m;
}

Monoid min_monoid(DType type) { return simple("min", Op::min, highest(type)); }

Monoid dot_monoid(DType type) {
    Monoid m = sum_monoid(type);
    m.name = "dot";
    m.parts[0].identity = number(type, 0);
    m.inputs = {type, type};
    m.lift = {input(0, type) * input(1, type)};
    m.step = {fma(input(0, type), input(1, type), left(0, type))};
    m.batch = {{"value", "dot", {input(0, type), input(1, type)}, {}}};
    return m;
}

Monoid welford_monoid(DType type) {
    Monoid m;
    m.name = "welford";
    m.parts = {part("n", number(type, 0)), part("mean", number(type, 0)), part("m2", number(type, 0))};
    m.inputs = {type};
    Expr zero = constant(type, 0), one = constant(type, 1), x = input(0, type);
    m.lift = {one, x, zero};
    Expr na = left(0, type), nb = right(0, type), ma = left(1, type), mb = right(1, type);
    Expr n = na + nb, delta = mb - ma, weight = select(n == zero, zero, nb / n);
    m.combine = {n, fma(delta, weight, ma), left(2, type) + right(2, type) + delta * delta * (na * weight)};
    Expr count = na + one, d = x - ma, mean = ma + d / count;
    m.step = {count, mean, fma(d, x - mean, left(2, type))};
    Expr chunk_mean = select(right(0, type) == zero, zero, right(1, type) / right(0, type));
    Expr centred = x - right(2, type);
    m.batch = {
        {"n", "sum", {one}, {}}, {"total", "sum", {x}, {}}, {"mean", "each", {chunk_mean}, {}}, {"m2", "dot", {centred, centred}, {}}};
    m.batch_parts = {0, 2, 3};
    return m;
}

Monoid online_softmax_monoid(DType type, const std::string &value_dim) {
    Monoid m;
    m.name = "online_softmax";
    m.parts = {part("m", lowest(type)), part("l", number(type, 0)), part("acc", number(type, 0), {value_dim})};
    m.inputs = {type, type};
    Expr minus_infinity = constant(lowest(type)), zero = constant(type, 0), one = constant(type, 1);
    Expr s = input(0, type), v = input(1, type);
    m.lift = {s, one, v};
    // exp(a - b) for a <= b, and 0 for the empty a, whose maximum is -inf: -inf - -inf would be NaN.
    auto weight = [&](Expr a, Expr b) { return exp_nonpositive(a - select(b == minus_infinity, zero, b)); };
    Expr top = max(left(0, type), right(0, type));
    Expr wa = weight(left(0, type), top), wb = weight(right(0, type), top);
    m.combine = {top, fma(left(1, type), wa, right(1, type) * wb), fma(left(2, type), wa, right(2, type) * wb)};
    Expr next = max(left(0, type), s);
    Expr keep = weight(left(0, type), next), w = weight(s, next);
    m.step = {next, fma(left(1, type), keep, w), fma(left(2, type), keep, w * v)};
    m.batch = {{"m", "max", {s}, {}},
               {"p", "", {weight(s, right(0, type))}, {}},
               {"l", "sum", {right(1, type)}, {}},
               {"acc", "dot", {right(1, type), v}, {value_dim}}};
    m.batch_parts = {0, 2, 3};
    return m;
}

Monoid argmax_monoid(DType type) {
    Monoid m;
    m.name = "argmax";
    m.parts = {part("value", lowest(type)), part("position", number(DType::i64, INT64_MAX))};
    m.inputs = {type, DType::i64};
    auto pick = [&](Expr value, Expr position) -> std::vector<Expr> {
        Expr v = left(0, type), p = left(1, DType::i64);
        Expr better = v < value || (v == value && position < p);
        return {select(better, value, v), select(better, position, p)};
    };
    m.lift = {input(0, type), input(1, DType::i64)};
    m.combine = pick(right(0, type), right(1, DType::i64));
    m.step = pick(input(0, type), input(1, DType::i64));
    return m;
}

}  // namespace tessera
