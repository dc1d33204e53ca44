#include "algorithms/ir/algorithm.h"

#include <algorithm>
#include <cmath>

#include "algorithms/functions/conversions.h"
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

static auto *find_named(const auto &items, const std::string &name) {
    auto it = std::find_if(items.begin(), items.end(), [&](const auto &item) { return item.name == name; });
    return it == items.end() ? nullptr : &*it;
}

const Dim *Algorithm::find_dim(const std::string &n) const { return find_named(dims, n); }
const Tensor *Algorithm::find_tensor(const std::string &n) const { return find_named(tensors, n); }
const Stage *Algorithm::find_stage(const std::string &n) const { return find_named(stages(), n); }

Span declared_at(const Algorithm &algorithm, const std::string &name) {
    if (const Stage *stage = algorithm.find_stage(name)) return stage->span;
    for (const Call &call : algorithm.calls()) {
        if (call.scope == name) return call.span;
        if (!name.starts_with(call.scope + ".")) continue;
        if (const Span inside = declared_at(*call.callee, name.substr(call.scope.size() + 1))) return inside;
    }
    if (const Tensor *tensor = algorithm.find_tensor(name)) return tensor->span;
    const Dim *dim = algorithm.find_dim(name);
    return dim ? dim->span : Span();
}

const Dim &Algorithm::dim(const std::string &n) const {
    const Dim *d = find_dim(n);
    require(d, "no dim " + n + " in " + name);
    return *d;
}

std::vector<std::string> names_of_results(const Stage &stage) {
    if (!stage.results.empty()) return stage.results;
    std::vector<std::string> names;
    if (auto *map = std::get_if<Map>(&stage.body)) {
        for (const Value &v : map->values) names.push_back(v.to || map->values.size() > 1 ? "" : stage.name);
        return names;
    }
    const std::vector<Part> &parts = monoid_of(stage).parts;
    for (const Part &part : parts) names.push_back(parts.size() == 1 ? stage.name : stage.name + "." + part.name);
    return names;
}

// Without the extra dims of parts.
static std::vector<std::string> axes_of_results(const Stage &stage) {
    if (stage.rows.empty()) return stage.dims;
    const std::set<std::string> parents = parents_of(stage);
    std::vector<std::string> axes;
    for (const std::string &d : stage.dims) {
        if (parents.count(d)) continue;
        const Rows *rows = rows_of(stage, d);
        axes.push_back(rows ? rows->flat : d);
    }
    return axes;
}

std::vector<Tensor> results_of(const Stage &stage) {
    const std::vector<std::string> names = names_of_results(stage), axes = axes_of_results(stage);
    std::vector<Tensor> results;
    auto add = [&](size_t i, DType dtype, const std::vector<std::string> &own_dims) {
        if (i >= names.size() || names[i].empty()) return;
        Tensor &t = results.emplace_back();
        t.name = names[i], t.dtype = dtype, t.dims = axes;
        t.dims.insert(t.dims.end(), own_dims.begin(), own_dims.end());
    };
    if (auto *map = std::get_if<Map>(&stage.body)) {
        for (size_t i = 0; i < map->values.size(); i++)
            if (!map->values[i].to) add(i, map->values[i].value.type(), {});
        return results;
    }
    const std::vector<Part> &parts = monoid_of(stage).parts;
    for (size_t i = 0; i < parts.size(); i++) add(i, parts[i].identity.type, parts[i].dims);
    return results;
}

std::vector<const Write *> writes_of(const Stage &stage) {
    std::vector<const Write *> writes;
    if (auto *map = std::get_if<Map>(&stage.body))
        for (const Value &v : map->values)
            if (v.to) writes.push_back(&*v.to);
    return writes;
}

bool updates(const Stage &stage) { return !writes_of(stage).empty(); }

std::vector<Expr> values_alone(const Map &map) {
    std::vector<Expr> values;
    for (const Value &v : map.values)
        values.push_back(rewrite(v.value, [&](const Expr &e) -> Expr {
            const auto number = static_cast<size_t>(e->number);
            return e.kind() == ExprKind::left && number < values.size() ? values[number] : Expr();
        }));
    return values;
}

const Expr *only_value(const Stage &stage) {
    auto *map = std::get_if<Map>(&stage.body);
    return map && map->values.size() == 1 && !map->values[0].to ? &map->values[0].value : nullptr;
}

const Stage *defining_stage(const Algorithm &algorithm, const std::string &tensor) {
    for (const Stage &stage : algorithm.stages())
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
void each_expression(Is<Map> auto &b, const auto &visit) {
    for (auto &v : b.values) {
        if (v.to) each_of(v.to->index, visit);
        visit(v.value);
    }
}
void each_expression(Is<Reduce> auto &b, const auto &visit) { each_of(b.inputs, visit), each_where(b.where, visit), each_of(b.at, visit); }
void each_expression(Is<Scan> auto &b, const auto &visit) { each_of(b.inputs, visit), each_where(b.segments, visit); }

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
                      },
                      stage.body);
}

}  // namespace

std::vector<Expr> expressions_of(const Stage &stage) {
    std::vector<Expr> all;
    std::visit([&](const auto &body) { each_expression(body, [&](const Expr &e) { all.push_back(e); }); }, stage.body);
    for (const Rows &rows : stage.rows) all.push_back(rows.first);
    return all;
}

Stage map_expressions(Stage stage, const ChangeExpr &change) {
    std::visit([&](auto &body) { each_expression(body, [&](Expr &e) { e = change(e); }); }, stage.body);
    for (Rows &rows : stage.rows) rows.first = change(rows.first);
    return stage;
}

Monoid map_expressions(Monoid monoid, const ChangeExpr &change) {
    auto each = [&](std::vector<Expr> &expressions) { each_of(expressions, [&](Expr &e) { e = change(e); }); };
    each(monoid.lift), each(monoid.combine), each(monoid.step);
    for (BatchPass &pass : monoid.batch) each(pass.values);
    if (monoid.derivative) {
        for (ElementDerivative::Entry &entry : monoid.derivative->entries) entry.value = change(entry.value);
        for (ElementDerivative::Follow &follow : monoid.derivative->follows) follow.value = change(follow.value);
    }
    return monoid;
}

Algorithm map_expressions(Algorithm algorithm, const ChangeExpr &change) {
    for (Dim &dim : algorithm.dims)
        if (dim.size.defined()) dim.size = change(dim.size);
    for (Stage &stage : algorithm.stages()) stage = map_expressions(std::move(stage), change);
    for (Call &call : algorithm.calls()) {
        for (auto &[name, value] : call.parameters) value = change(value);
        for (auto &[name, view] : call.tensors)
            for (Expr &e : view.index) e = change(e);
    }
    return algorithm;
}

Stage map_monoid(Stage stage, const std::function<Monoid(const Monoid &)> &change) {
    std::visit(Overloaded{
                   [](Map &) {},
                   [&](Reduce &b) { b.monoid = change(b.monoid); },
                   [&](Scan &b) { b.monoid = change(b.monoid); },
               },
               stage.body);
    return stage;
}

Algorithm expanded(Algorithm algorithm) {
    algorithm = map_expressions(std::move(algorithm), in_operations);
    for (Stage &stage : algorithm.stages())
        stage = map_monoid(std::move(stage), [&](const Monoid &m) { return map_expressions(m, in_operations); });
    return algorithm;
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

const char *name_of(Effect effect) {
    switch (effect) {
    case Effect::memory: return "memory";
    case Effect::random: return "random";
    }
    throw InternalError("an effect without a name");
}

std::vector<Effect> effects_of(const Algorithm &a) {
    std::vector<Effect> effects;
    if (a.updates_state) effects.push_back(Effect::memory);
    if (a.draws) effects.push_back(Effect::random);
    return effects;
}

std::vector<std::string> reduced_dims(const Stage &stage) {
    auto *reduce = std::get_if<Reduce>(&stage.body);
    return reduce ? reduce->dims : std::vector<std::string>{};
}

bool scatters(const Stage &stage) {
    auto *reduce = std::get_if<Reduce>(&stage.body);
    return reduce && !reduce->at.empty();
}

std::vector<std::string> ordinary_dims(const Stage &stage) {
    if (!scatters(stage)) return stage.dims;
    const auto &reduce = std::get<Reduce>(stage.body);
    std::vector<std::string> ordinary;
    for (size_t i = 0; i < std::min(stage.dims.size(), reduce.at.size()); i++) {
        const std::string &d = stage.dims[i];
        const Expr &at = reduce.at[i];
        const bool is_folded = std::find(reduce.dims.begin(), reduce.dims.end(), d) != reduce.dims.end();
        if (at.defined() && at.kind() == ExprKind::variable && at->name == d && !is_folded) ordinary.push_back(d);
    }
    return ordinary;
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
                      },
                      stage.body);
}

}  // namespace tessera
