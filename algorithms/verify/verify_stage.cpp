// One stage: its dims, its monoid and inputs, what it writes.
#include <algorithm>

#include "algorithms/index/prove.h"
#include "algorithms/verify/verify_scope.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Names = std::vector<std::string>;

Names joined(Names a, const Names &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

class StageChecker {
public:
    StageChecker(const VerifyScope &scope, const Stage &stage) : scope_(scope), stage_(stage) {}
    void check();

private:
    void check_dims(const Names &outer, const Names &dims) const;  // of loops inside `outer`
    void check_rows(const Rows &rows) const;
    void check_axes(const Names &dims) const;
    void check_fold(const Monoid &monoid, const std::vector<Expr> &inputs, const Names &points) const;
    void check_inputs_of_parts(const Monoid &monoid, const std::vector<Expr> &inputs) const;
    void check_accumulators(const Monoid &monoid) const;
    void check_body(const Map &map) const;
    void check_body(const Reduce &reduce) const;
    void check_body(const Scan &scan) const;
    void check_value(const Map &map, size_t number, const Expr &alone) const;  // `alone`: values_alone
    void check_write(const Write &write, DType type) const;
    void check_names_of_results() const;
    void expect(const Expr &e, DType type, const std::string &what) const;
    [[noreturn]] void fail(const std::string &rule, const std::string &message) const { scope_.fail(rule, stage_.name, message); }

    const VerifyScope &scope_;
    const Stage &stage_;
};

void StageChecker::check() {
    check_dims({}, stage_.dims);
    for (const Rows &rows : stage_.rows) check_rows(rows);
    if (!results_of(stage_).empty()) check_axes(stage_.dims);
    check_names_of_results();
    std::visit([&](const auto &body) { check_body(body); }, stage_.body);
}

void StageChecker::check_dims(const Names &outer, const Names &dims) const {
    Names seen = outer;
    for (const std::string &name : dims) {
        const Dim &d = scope_.dim(name, stage_.name);
        if (std::count(seen.begin(), seen.end(), name)) fail("dim", "it has the dim '" + name + "' twice; rename one of them.");
        if (d.size.defined())
            for (const std::string &parent : variables_in(d.size))
                if (!std::count(seen.begin(), seen.end(), parent))
                    fail("ragged", "the extent of '" + name + "' varies with the index of '" + parent + "'; '" + name +
                                       "' can only be inside '" + parent + "', and the dims around it are " + join(seen) + ".");
        verify_size_is_made(scope_, stage_.name, d);
        seen.push_back(name);
    }
}

void StageChecker::check_axes(const Names &dims) const {
    for (const std::string &d : dims)
        if (scope_.ragged(scope_.dim(d, stage_.name)) && !rows_of(stage_, d))
            fail("ragged", "its result would have the ragged dim '" + d + "' as an axis; reduce over '" + d +
                               "', map over the flat dim that it divides, or keep its rows there (Builder::rows).");
}

// That every row has an element of its own, whatever data says.
void StageChecker::check_rows(const Rows &rows) const {
    const Names &dims = stage_.dims;
    const std::string subject = "the rows of '" + rows.dim + "' ";
    if (scatters(stage_))
        fail("ragged", subject + "cannot be kept by a fold to computed positions; let it fold to the flat dim '" + rows.flat + "'.");
    if (!std::count(dims.begin(), dims.end(), rows.dim) || rows_of(stage_, rows.dim) != &rows)
        fail("ragged", subject + "are to be kept once, by a stage that has the dim; its dims are " + join(dims) + ".");
    if (scope_.ragged(scope_.dim(rows.flat, stage_.name)))
        fail("ragged", subject + "are to lie along '" + rows.flat + "', which is ragged itself; give a dim of one extent.");
    expect(rows.first, DType::index, "the first of " + subject);
    const std::set<std::string> parents = variables_in(rows.first);
    if (parents.size() > 1) fail("ragged", subject + "have several parents, " + join({parents.begin(), parents.end()}) + "; expected one.");
    for (const std::string &parent : parents)
        if (!std::count(dims.begin(), dims.end(), parent) || rows_of(stage_, parent) || scope_.ragged(scope_.dim(parent, stage_.name)))
            fail("ragged",
                 subject + "begin where '" + parent + "' says, which is no plain dim of the stage; its dims are " + join(dims) + ".");
    verify_expression(scope_, stage_.name, rows.first, {parents.begin(), parents.end()});
    Names around(parents.begin(), parents.end());
    around.push_back(rows.dim);
    const Bounds facts = scope_.facts(around);
    const Expr at = rows.first + variable(rows.dim);
    for (const Expr &claim : {Expr(0) <= at, at < extent(rows.flat)})
        if (!prove(claim, facts))
            fail("ragged", subject + "are to lie along '" + rows.flat + "', and " + brief(claim) +
                               " cannot be proved; make the dim by Builder::segments and rows.");
    if (parents.empty()) return;
    // A later parent's begin where those of all earlier ones have ended.
    const std::string &parent = *parents.begin(), later = parent + "'";
    Bounds both = scope_.facts({parent});
    both.set(later, variable(parent) + 1, extent(parent) - 1);
    const Dim &dim = scope_.dim(rows.dim, stage_.name);
    const Expr size = dim.size.defined() ? dim.size : extent(rows.dim);
    if (!prove(rows.first + max(size, Expr(0)) <= substitute(rows.first, {{parent, variable(later)}}), both))
        fail("ragged", subject + "of one '" + parent +
                           "' cannot be proved to end where those of the next begin; make the dim by "
                           "Builder::segments and rows.");
}

void StageChecker::expect(const Expr &e, DType type, const std::string &what) const {
    if (!e.defined()) fail("type", what + " is missing.");
    if (e.type() != type) fail("type", what + " is " + name_of(e.type()) + ", but must be " + name_of(type) + "; cast it.");
}

void StageChecker::check_fold(const Monoid &monoid, const std::vector<Expr> &inputs, const Names &points) const {
    verify_monoid(scope_, stage_.name, monoid);
    if (inputs.size() != monoid.inputs.size())
        fail("type", "the monoid '" + monoid.name + "' takes " + std::to_string(monoid.inputs.size()) + " inputs, got " +
                         std::to_string(inputs.size()) + ".");
    Names extra;
    for (const Part &p : monoid.parts)
        for (const std::string &d : p.dims) {
            bool taken = std::count(points.begin(), points.end(), d) || std::count(stage_.dims.begin(), stage_.dims.end(), d);
            if (taken) fail("dim", "the extra dim '" + d + "' of part '" + p.name + "' is already a dim of the stage; use another.");
            if (!std::count(extra.begin(), extra.end(), d)) extra.push_back(d);
        }
    for (size_t i = 0; i < inputs.size(); i++) {
        expect(inputs[i], monoid.inputs[i], "input " + std::to_string(i) + " of the monoid '" + monoid.name + "'");
        // An input without the index of an extra dim is computed even when that dim is empty.
        Names dims = points;
        for (const std::string &d : extra)
            if (uses_variable(inputs[i], d)) dims.push_back(d);
        verify_expression(scope_, stage_.name, inputs[i], dims);
    }
    check_inputs_of_parts(monoid, inputs);
    check_accumulators(monoid);
}

// A part's step sees only indices of its own extra dims.
void StageChecker::check_inputs_of_parts(const Monoid &monoid, const std::vector<Expr> &inputs) const {
    std::set<std::string> extra;
    for (const Part &p : monoid.parts) extra.insert(p.dims.begin(), p.dims.end());
    for (size_t p = 0; p < monoid.parts.size(); p++)
        for (const Expr &definition : {monoid.step[p], monoid.lift[p]})
            walk(definition, [&](const Expr &e) {
                if (e.kind() != ExprKind::input) return;
                for (const std::string &name : variables_in(inputs[static_cast<size_t>(e->number)])) {
                    const Names &own = monoid.parts[p].dims;
                    if (extra.count(name) && !std::count(own.begin(), own.end(), name))
                        fail("variable", "part '" + monoid.parts[p].name + "' of the monoid '" + monoid.name + "' uses input " +
                                             std::to_string(e->number) + ", which varies with '" + name + "'; the part's extra dims are " +
                                             join(own) + ".");
                }
            });
}

void StageChecker::check_accumulators(const Monoid &monoid) const {
    DType least = scope_.algorithm.numerics.accumulate;
    for (const Part &p : monoid.parts) {
        DType type = p.identity.type;
        if (is_float(type) && size_of(type) < size_of(least))
            fail("accumulate", "part '" + p.name + "' of the monoid '" + monoid.name + "' accumulates in " + name_of(type) +
                                   ", but the policy '" + scope_.algorithm.numerics.name + "' accumulates in " + name_of(least) +
                                   "; cast the inputs to " + name_of(least) + " and use its monoid.");
    }
}

void StageChecker::check_names_of_results() const {
    if (stage_.results.empty()) return;
    auto *map = std::get_if<Map>(&stage_.body);
    const size_t wanted = map ? map->values.size() : monoid_of(stage_).parts.size();
    if (stage_.results.size() != wanted)
        fail("results", "it names " + std::to_string(stage_.results.size()) + " results; expected one name, or \"\", for each of its " +
                            std::to_string(wanted) + (map ? " values." : " parts."));
    for (size_t i = 0; i < wanted; i++) {
        if (map && map->values[i].to && !stage_.results[i].empty())
            fail("results", "'" + stage_.results[i] + "' names a value that is written to '" + map->values[i].to->state +
                                "'; it has no result, so name it \"\".");
        if (!map && stage_.results[i].empty()) fail("results", "part " + std::to_string(i) + " has no name; give it one.");
    }
}

void StageChecker::check_value(const Map &map, size_t number, const Expr &alone) const {
    const Value &v = map.values[number];
    const std::string which = map.values.size() == 1 ? "its value" : "value " + std::to_string(number);
    if (!v.value.defined()) fail("type", which + " is missing.");
    if (v.value.type() == DType::index) fail("type", which + " is of type index, which is never stored; cast it to i32 or i64.");
    walk(v.value, [&](const Expr &e) {
        if (e.kind() != ExprKind::left) return;
        const auto earlier = static_cast<size_t>(e->number);
        if (earlier < number && map.values[earlier].value.type() != e.type())
            fail("expression", which + " uses " + brief(e) + " as " + name_of(e.type()) + ", and that value is of another type; cast it.");
    });
    verify_expression(scope_, stage_.name, alone, stage_.dims);
}

void StageChecker::check_body(const Map &map) const {
    if (map.values.empty() || map.values.size() > max_values)
        fail("type", "it has " + std::to_string(map.values.size()) + " values; expected 1 to " + std::to_string(max_values) + ".");
    const std::vector<Expr> alone = values_alone(map);
    for (size_t i = 0; i < map.values.size(); i++) check_value(map, i, alone[i]);
    for (const Value &v : map.values)
        if (v.to) check_write(*v.to, v.value.type());
}

void StageChecker::check_body(const Reduce &reduce) const {
    const Names around = ordinary_dims(stage_);
    check_dims(around, reduce.dims);
    const Names points = joined(around, reduce.dims);
    check_fold(reduce.monoid, reduce.inputs, points);
    if (reduce.where.defined()) {
        expect(reduce.where, DType::boolean, "where");
        verify_expression(scope_, stage_.name, reduce.where, points);
    }
    if (scatters(stage_) && reduce.at.size() != stage_.dims.size())
        fail("rank", "`at` has " + std::to_string(reduce.at.size()) + " positions, but the stage has the dims " + join(stage_.dims) + ".");
    for (const Expr &e : reduce.at) {
        expect(e, DType::index, "`at`");
        verify_expression(scope_, stage_.name, e, points);
    }
}

void StageChecker::check_body(const Scan &scan) const {
    if (!std::count(stage_.dims.begin(), stage_.dims.end(), scan.dim))
        fail("dim", "it scans along '" + scan.dim + "', which is none of its dims, " + join(stage_.dims) + ".");
    check_fold(scan.monoid, scan.inputs, stage_.dims);
    if (!scan.segments.defined()) return;
    expect(scan.segments, DType::boolean, "the beginning of segments");
    verify_expression(scope_, stage_.name, scan.segments, stage_.dims);
}

void StageChecker::check_write(const Write &write, DType type) const {
    const Tensor *state = nullptr;
    Names states;
    for (const auto &[name, t] : scope_.tensors) {
        if (t.role == Role::state && scope_.algorithm.find_tensor(name)) states.push_back(name);
        if (name == write.state) state = &t;
    }
    if (!state || !std::count(states.begin(), states.end(), write.state))
        fail("update", "it updates '" + write.state + "', which is no state; the states are " + join(states) + "." +
                           did_you_mean(write.state, states));
    if (write.index.size() != state->dims.size())
        fail("rank", "it writes '" + state->name + "' by " + std::to_string(write.index.size()) + " indices, but that has the dims " +
                         join(state->dims) + ".");
    for (const Expr &e : write.index) {
        expect(e, DType::index, "the index of '" + state->name + "'");
        verify_expression(scope_, stage_.name, e, stage_.dims);
    }
    if (type != state->dtype)
        fail("type", "the value for '" + state->name + "' is " + name_of(type) + ", but must be " + name_of(state->dtype) + "; cast it.");
    verify_inside(scope_, stage_.name, *state, write.index, stage_.dims);
    for (const Expr &whole : expressions_of(stage_))
        walk(whole, [&](const Expr &e) {
            if (e.kind() == ExprKind::load && e->name == state->name && !reads_element(e, write.index))
                fail("update", "it reads " + brief(e) + " while it writes other elements of '" + state->name +
                                   "'; read the element it writes, or copy the state in a stage before.");
        });
}

}  // namespace

void verify_stage(const VerifyScope &scope, const Stage &stage) { StageChecker(scope, stage).check(); }

}  // namespace tessera
