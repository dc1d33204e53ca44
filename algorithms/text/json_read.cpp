// Reading of algorithms, where what follows from the rest may be left out.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "algorithms/ir/derivative_rule.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

template <typename T, typename F>
static std::vector<T> each(const std::optional<JsonReader> &reader, F read) {
    std::vector<T> result;
    if (!reader) return result;
    for (const JsonReader &item : reader->items()) result.push_back(read(item));
    return result;
}

static std::vector<Expr> exprs(const std::optional<JsonReader> &reader, const Declared &known = {}) {
    return each<Expr>(reader, [&](const JsonReader &r) { return expr_from_json(r, known); });
}

static std::vector<std::string> texts(const std::optional<JsonReader> &reader) {
    return reader ? reader->texts() : std::vector<std::string>();
}

static DType dtype(const JsonReader &reader) {
    const std::string name = reader.quotable();
    return reader.located([&] { return dtype_named(name); });
}

template <typename E, size_t N>
static E named(const JsonReader &reader, const char *what, const E (&all)[N]) {
    std::vector<std::string> names;
    for (E e : all) {
        if (reader.text() == name_of(e)) return e;
        names.emplace_back(name_of(e));
    }
    reader.fail("json.value", std::string("there is no ") + what + " '" + reader.quotable() + "'; expected one of " + join(names) + "." +
                                  did_you_mean(reader.quotable(), names));
}

static std::pair<double, double> read_range(const JsonReader &r) {
    const std::vector<JsonReader> ends = r.items();
    if (ends.size() != 2) r.fail("json.value", "expected a lower and an upper end, got " + std::to_string(ends.size()) + " numbers.");
    constexpr double most = std::numeric_limits<double>::max();
    return {ends[0].real(-most, most), ends[1].real(-most, most)};
}

static NumericsCheck read_check(const JsonReader &r) {
    r.only({"stable", "bounded", "loss"});
    NumericsCheck check;
    if (auto stable = r.find("stable")) check.stable = stable->truth();
    if (auto bounded = r.find("bounded")) check.bounded = read_range(*bounded);
    if (auto loss = r.find("loss")) check.loss = loss->real(0, std::numeric_limits<double>::max());
    return check;
}

static Dim read_dim(const JsonReader &r, const Declared &known) {
    if (r.is_text()) return symbolic_dim(r.text());
    r.only({"name", "fixed", "size", "multiple_of", "min", "max", "equals"});
    Dim d;
    d.name = r.at("name").text();
    if (auto fixed = r.find("fixed")) d.kind = DimKind::fixed, d.value = fixed->integer(0, INT32_MAX);
    if (auto size = r.find("size")) {
        if (d.kind == DimKind::fixed) r.fail("json.value", "a dim has \"fixed\" or \"size\", got both; remove one.");
        d.kind = DimKind::derived, d.size = expr_from_json(*size, known);
    }
    if (auto multiple = r.find("multiple_of")) d.multiple_of = multiple->integer(1, INT32_MAX);
    if (auto min = r.find("min")) d.min = min->integer(0, INT32_MAX);
    if (auto max = r.find("max")) d.max = max->integer(0, INT32_MAX);
    if (auto equals = r.find("equals")) d.equals = equals->text();
    return d;
}

static Tensor read_tensor(const JsonReader &r, const Numerics &numerics) {
    r.only({"name", "dtype", "dims", "role", "values"});
    Tensor t;
    t.name = r.at("name").text();
    t.dims = texts(r.find("dims"));
    if (auto role = r.find("role")) t.role = named(*role, "role", {Role::input, Role::state, Role::constant});
    const auto given = r.find("dtype");
    t.dtype = given ? dtype(*given) : t.role == Role::state ? numerics.state_type() : numerics.storage;
    t.values = each<Scalar>(r.find("values"), [&](const JsonReader &v) { return scalar_from_json(t.dtype, v); });
    return t;
}

static Part read_part(const JsonReader &r) {
    r.only({"name", "identity", "dims"});
    return {r.at("name").text(), scalar_from_json(r.at("identity")), texts(r.find("dims"))};
}

static BatchPass read_pass(const JsonReader &r) {
    r.only({"name", "monoid", "values", "dims"});
    return {r.at("name").text(), r.at("monoid").text(), exprs(r.at("values")), texts(r.find("dims"))};
}

static ElementDerivative read_derivative(const JsonReader &r, const Monoid &m) {
    r.only({"entries", "follows"});
    const auto number = [](const JsonReader &of, size_t count) { return static_cast<int>(of.integer(0, static_cast<int64_t>(count) - 1)); };
    ElementDerivative derivative;
    for (const JsonReader &e : r.at("entries").items()) {
        e.only({"part", "input", "value", "shared"});
        const std::optional<JsonReader> shared = e.find("shared");
        derivative.entries.push_back({number(e.at("part"), m.parts.size()), number(e.at("input"), m.inputs.size()),
                                      expr_from_json(e.at("value")), shared && shared->truth()});
    }
    if (const auto follows = r.find("follows"))
        for (const JsonReader &f : follows->items()) {
            f.only({"part", "leader", "value"});
            derivative.follows.push_back(
                {number(f.at("part"), m.parts.size()), number(f.at("leader"), m.parts.size()), expr_from_json(f.at("value"))});
        }
    return derivative;
}

static Monoid read_monoid(const JsonReader &r) {
    r.only({"name", "parts", "inputs", "lift", "combine", "step", "commutative", "batch", "batch_parts", "derivative"});
    Monoid m;
    m.name = r.at("name").text();
    m.parts = each<Part>(r.at("parts"), read_part);
    m.inputs = each<DType>(r.at("inputs"), dtype);
    if (auto commutative = r.find("commutative")) m.commutative = commutative->truth();
    for (auto [field, expressions] : {std::pair{"lift", &m.lift}, {"combine", &m.combine}, {"step", &m.step}}) {
        *expressions = exprs(r.at(field));
        if (expressions->size() != m.parts.size())
            r.at(field).fail("json.value", "expected one expression for each of the " + std::to_string(m.parts.size()) + " parts, got " +
                                               std::to_string(expressions->size()) + ".");
    }
    m.batch = each<BatchPass>(r.find("batch"), read_pass);
    int64_t last = static_cast<int64_t>(m.batch.size()) - 1;
    m.batch_parts = each<int>(r.find("batch_parts"), [&](const JsonReader &p) { return static_cast<int>(p.integer(0, last)); });
    if (const auto derivative = r.find("derivative")) m.derivative = read_derivative(*derivative, m);
    return m;
}

Numerics numerics_from_json(const JsonReader &r) {
    r.only({"name", "storage", "outputs", "states", "weights", "compute", "accumulate", "rounding", "saturate", "denormals", "multiply",
            "licensed", "products"});
    Numerics n;
    n.name = r.at("name").text(), n.storage = dtype(r.at("storage"));
    n.compute = n.accumulate = n.storage == DType::f64 ? DType::f64 : DType::f32;
    if (const auto given = r.find("outputs")) n.outputs = dtype(*given);
    if (const auto given = r.find("states")) n.states = dtype(*given);
    if (const auto given = r.find("weights")) n.weights = named(*given, "format of weights", weight_formats);
    if (const auto given = r.find("compute")) n.compute = n.accumulate = dtype(*given);
    if (const auto given = r.find("accumulate")) n.accumulate = dtype(*given);
    if (const auto given = r.find("rounding")) n.rounding = named(*given, "rounding", roundings);
    if (const auto given = r.find("saturate")) n.saturate = given->truth();
    if (const auto given = r.find("multiply")) n.multiply = named(*given, "way to multiply", multiplies);
    if (const auto given = r.find("licensed"))
        for (const JsonReader &word : given->items()) n.licensed.insert(named(word, "licence", licences));
    if (const auto given = r.find("products")) n.products = named(*given, "promise of products", products_all);
    n.denormals = Denormals::any;
    if (const auto given = r.find("denormals")) n.denormals = named(*given, "way with denormals", denormals_all);
    r.located([&] { check(n); });
    return n;
}

static Parameter read_parameter(const JsonReader &r) {
    r.only({"name", "dtype", "range"});
    Parameter p{r.at("name").text(), dtype(r.at("dtype"))};
    const std::optional<JsonReader> range = r.find("range");
    if (!range) return p;
    range->only({"min", "above", "max", "below"});
    const auto end = [&](const char *closed, const char *open, Scalar &value, bool &is_open) {
        const std::optional<JsonReader> inside = range->find(closed), outside = range->find(open);
        if (inside && outside) range->fail("json.value", std::string("expected '") + closed + "' or '" + open + "', got both.");
        if (inside || outside) value = scalar_from_json(p.dtype, inside ? *inside : *outside), is_open = outside.has_value();
    };
    range->located([&] { p.range = parameter_range("parameter '" + p.name + "'", p.dtype, any_finite, {}); });
    end("min", "above", p.range->least, p.range->above);
    end("max", "below", p.range->most, p.range->below);
    p.range = with_closed_integers(*p.range);
    return p;
}

using Callees = std::vector<std::shared_ptr<const Algorithm>>;

static Repeat read_repeat(const JsonReader &r) {
    r.only({"dim", "carried", "stacked", "until"});
    Repeat repeat;
    repeat.dim = r.at("dim").text();
    if (auto carried = r.find("carried"))
        for (auto &[input, output] : carried->fields()) repeat.carried[input] = output.text();
    if (auto stacked = r.find("stacked"))
        for (const JsonReader &output : stacked->items()) repeat.stacked.insert(output.text());
    if (auto until = r.find("until")) repeat.until = until->text();
    return repeat;
}

// A policy by its name, or by all that it says; `otherwise` where neither is there.
static Numerics read_policy(const std::optional<JsonReader> &r, const Numerics &otherwise) {
    if (!r) return otherwise;
    if (!r->is_text()) return numerics_from_json(*r);
    return r->located([&] { return numerics_named(r->quotable()); });
}

namespace {

// One algorithm; the document's own, or a callee.
class BodyReader {
public:
    BodyReader(const JsonReader &reader, const Callees &callees, const Numerics &numerics) : r_(reader), callees_(callees) {
        a_.name = r_.at("name").text();
        a_.numerics = read_policy(r_.find("numerics"), numerics);
    }

    Algorithm read() {
        a_.parameters = each<Parameter>(r_.find("parameters"), read_parameter);
        for (const Parameter &p : a_.parameters) known_.parameters[p.name] = p.dtype;
        a_.tensors = each<Tensor>(r_.find("tensors"), [&](const JsonReader &t) { return read_tensor(t, a_.numerics); });
        for (const Tensor &t : a_.tensors) known_.tensors[t.name] = t;
        read_dims();
        for (const JsonReader &s : r_.at("steps").items()) {
            a_.steps.push_back(read_step(s));
            for (const Tensor &t : std::visit([](const auto &step) { return results_of(step); }, a_.steps.back()))
                known_.tensors.emplace(t.name, t);
        }
        a_.outputs = r_.at("outputs").texts();
        if (auto effects = r_.find("effects"))
            for (const JsonReader &e : effects->items())
                (named(e, "effect", all_effects) == Effect::memory ? a_.updates_state : a_.draws) = true;
        for (const std::string &name : texts(r_.find("large"))) a_.large.insert(name);
        if (auto ranges = r_.find("ranges"))
            for (const auto &[name, range] : ranges->fields()) a_.stated_ranges[name] = read_range(range);
        if (auto checks = r_.find("checks"))
            for (const auto &[stage, check] : checks->fields()) a_.checks[stage] = read_check(check);
        if (auto rule = r_.find("rule")) a_.rule = read_rule(*rule);
        return std::move(a_);
    }

private:
    Expr expr(const JsonReader &r) const { return expr_from_json(r, known_); }

    // Where none are listed, those of tensors are symbolic.
    void read_dims() {
        const std::optional<JsonReader> dims = r_.find("dims");
        a_.dims = each<Dim>(dims, [&](const JsonReader &d) { return read_dim(d, known_); });
        if (dims) return;
        for (const Tensor &t : a_.tensors)
            for (const std::string &d : t.dims)
                if (!a_.find_dim(d)) a_.dims.push_back(symbolic_dim(d));
    }

    Step read_step(const JsonReader &s) {
        const auto call = s.find("call");
        if (!call) return read_stage(s);
        s.only({"call"});
        return read_call(*call);
    }

    // A standard one by its name, of the type of its first input; floats in the type that the policy adds up in. Inputs are cast to it.
    Monoid read_fold(const JsonReader &r, std::vector<Expr> &inputs) const {
        if (!r.is_text()) return read_monoid(r);
        std::vector<std::string> names;
        for (const StandardMonoid &row : standard_monoids) names.emplace_back(row.name);
        const auto row = std::find(names.begin(), names.end(), r.text());
        if (row == names.end())
            r.fail("json.value", "there is no standard monoid '" + r.quotable() + "'; there are " + join(names) +
                                     ", and others are said by an object of their parts." + did_you_mean(r.quotable(), names));
        const std::string which = "the standard monoid '" + *row + "'";
        if (inputs.empty()) r.fail("json.value", which + " takes its type from its inputs, and there are none.");
        DType type = inputs[0].type();
        if (is_float(type) && !(is_arithmetic(type) && size_of(type) > size_of(a_.numerics.accumulate))) type = a_.numerics.accumulate;
        if (!is_arithmetic(type) || type == DType::boolean || type == DType::index || (*row == "welford" && !is_float(type)))
            r.fail("json.value", which + " folds no " + name_of(type) + "; cast its inputs.");
        if (a_.numerics.multiply != Multiply::full && *row == "dot" && type == DType::f32)
            r.fail("json.value", which + " rounds what it multiplies in the policy '" + a_.numerics.name +
                                     "', which JSON says in its inputs; write the monoid as an object, and its inputs rounded.");
        const Monoid m = standard_monoids[static_cast<size_t>(row - names.begin())].make(type);
        for (size_t i = 0; i < std::min(inputs.size(), m.inputs.size()); i++)
            if (is_float(inputs[i].type()) && is_float(m.inputs[i])) inputs[i] = cast(m.inputs[i], inputs[i]);
        return m;
    }

    Reduce read_reduce(const JsonReader &r) const {
        r.only({"monoid", "dims", "inputs", "where", "at"});
        const JsonReader monoid = r.at("monoid");
        Reduce body{{}, r.at("dims").texts(), exprs(r.at("inputs"), known_), {}, exprs(r.find("at"), known_)};
        body.monoid = with_identity_of_elements(read_fold(monoid, body.inputs), body.inputs);
        if (auto where = r.find("where")) body.where = expr(*where);
        return body;
    }

    Scan read_scan(const JsonReader &r) const {
        r.only({"monoid", "dim", "inclusive", "inputs", "direction", "segments"});
        const JsonReader monoid = r.at("monoid");
        Scan body{{}, r.at("dim").text(), true, exprs(r.at("inputs"), known_), {}, {}};
        if (auto inclusive = r.find("inclusive")) body.inclusive = inclusive->truth();
        body.monoid = with_identity_of_elements(read_fold(monoid, body.inputs), body.inputs);
        if (auto direction = r.find("direction"))
            body.direction = named(*direction, "direction", {ScanDirection::forward, ScanDirection::backward});
        if (auto segments = r.find("segments")) body.segments = expr(*segments);
        return body;
    }

    Value read_value(const JsonReader &r) const {
        r.only({"state", "index", "value"});
        Value v{expr(r.at("value"))};
        if (r.find("state") || r.find("index")) v.to = Write{r.at("state").text(), exprs(r.at("index"), known_)};
        return v;
    }

    Map read_update(const JsonReader &r) const {
        Map map;
        map.values = {read_value(r)};
        if (!map.values[0].to) r.fail("json.missing", "an update names the state that it writes.");
        return map;
    }

    Stage read_stage(const JsonReader &r) const {
        r.only({"name", "dims", "map", "reduce", "scan", "update", "values", "results", "rows"});
        Stage stage;
        stage.name = r.at("name").text();
        stage.dims = texts(r.find("dims"));
        int bodies = 0;
        if (auto map = r.find("map")) stage.body = Map(expr(*map)), bodies++;
        if (auto reduce = r.find("reduce")) stage.body = read_reduce(*reduce), bodies++;
        if (auto scan = r.find("scan")) stage.body = read_scan(*scan), bodies++;
        if (auto update = r.find("update")) stage.body = read_update(*update), bodies++;
        if (auto values = r.find("values")) {
            Map map;
            for (const JsonReader &value : values->items()) map.values.push_back(read_value(value));
            stage.body = std::move(map), bodies++;
        }
        if (auto results = r.find("results")) stage.results = results->texts();
        if (auto all = r.find("rows"))
            for (const JsonReader &rows : all->items()) {
                rows.only({"dim", "flat", "first"});
                stage.rows.push_back({rows.at("dim").text(), rows.at("flat").text(), expr(rows.at("first"))});
                if (!std::count(stage.dims.begin(), stage.dims.end(), stage.rows.back().dim))
                    rows.fail("json.value",
                              "the stage has no dim '" + rows.at("dim").quotable() + "'; its dims are " + join(stage.dims) + ".");
                for (const std::string &parent : variables_in(stage.rows.back().first))
                    if (!std::count(stage.dims.begin(), stage.dims.end(), parent))
                        rows.fail("json.value",
                                  "\"first\" uses the index of '" + parent + "', and the dims of the stage are " + join(stage.dims) + ".");
            }
        if (bodies != 1)
            r.fail("json.value", "a stage has one of map, values, reduce, scan and update, got " + std::to_string(bodies) + " of them.");
        return stage;
    }

    View read_view(const JsonReader &r) const {
        if (r.is_text()) return {r.text()};
        r.only({"tensor", "index"});
        return {r.at("tensor").text(), exprs(r.at("index"), known_)};
    }

    std::shared_ptr<const Algorithm> read_callee(const JsonReader &place) const {
        if (callees_.empty())
            place.fail("json.value", "\"callees\" lists no algorithm before this one; a callee stands before its callers.");
        return callees_[static_cast<size_t>(place.integer(0, static_cast<int64_t>(callees_.size()) - 1))];
    }

    std::shared_ptr<const DerivativeRule> read_rule(const JsonReader &r) const {
        r.only({"jvp", "backward", "forward", "differs"});
        DerivativeRule rule;
        if (auto jvp = r.find("jvp")) rule.jvp = read_callee(*jvp);
        if (auto backward = r.find("backward")) rule.backward = read_callee(*backward);
        if (auto forward = r.find("forward")) rule.forward = read_callee(*forward);
        if (auto differs = r.find("differs")) rule.differs = differs->truth();
        return std::make_shared<const DerivativeRule>(std::move(rule));
    }

    Call read_call(const JsonReader &r) const {
        r.only({"scope", "callee", "dims", "tensors", "parameters", "results", "repeat"});
        Call call;
        call.scope = r.at("scope").text();
        call.callee = read_callee(r.at("callee"));
        if (auto dims = r.find("dims"))
            for (auto &[name, value] : dims->fields()) call.dims[name] = value.text();
        if (auto tensors = r.find("tensors"))
            for (auto &[name, value] : tensors->fields()) call.tensors[name] = read_view(value);
        if (auto parameters = r.find("parameters"))
            for (auto &[name, value] : parameters->fields()) call.parameters[name] = expr(value);
        if (auto results = r.find("results"))
            for (auto &[output, value] : results->fields()) call.results[output] = value.text();
        if (auto repeat = r.find("repeat")) call.repeat = read_repeat(*repeat);
        bind_by_name(call);
        return call;
    }

    // What a call leaves out: a tensor or parameter is the caller's of that name, and a dim is that of the tensor it is an axis of.
    void bind_by_name(Call &call) const {
        for (const Parameter &p : call.callee->parameters)
            if (known_.parameters.count(p.name)) call.parameters.emplace(p.name, parameter(p.name, known_.parameters.at(p.name)));
        for (const Tensor &t : call.callee->tensors) {
            if (t.role == Role::constant) continue;
            if (known_.tensors.count(t.name)) call.tensors.emplace(t.name, View(t.name));
            const auto view = call.tensors.find(t.name);
            const auto whole =
                view == call.tensors.end() || !view->second.index.empty() ? known_.tensors.end() : known_.tensors.find(view->second.tensor);
            if (whole == known_.tensors.end() || whole->second.dims.size() != t.dims.size()) continue;
            for (size_t i = 0; i < t.dims.size(); i++) call.dims.emplace(t.dims[i], whole->second.dims[i]);
        }
    }

    const JsonReader &r_;
    const Callees &callees_;
    Algorithm a_;
    Declared known_;
};

}  // namespace

Algorithm algorithm_from_json(const json &value) {
    JsonReader r(value, "algorithm");
    std::vector<std::string> fields = {"name",     "dims",    "parameters", "tensors", "steps",  "outputs",
                                       "numerics", "effects", "large",      "ranges",  "checks", "rule"};
    std::string got = r.at("format").text();
    if (got != algorithm_format)
        r.at("format").fail("json.version",
                            "expected the format \"" + std::string(algorithm_format) + "\", got \"" + quotable(got) + "\".");
    if (int64_t v = r.at("version").integer(); v != algorithm_version)
        r.at("version").fail("json.version", "this build reads version " + std::to_string(algorithm_version) + ", the text has version " +
                                                 std::to_string(v) +
                                                 "; write it again with this build or read it with the one that wrote it.");
    const Numerics numerics = read_policy(r.find("numerics"), {});
    Callees callees;
    if (auto list = r.find("callees"))
        for (const JsonReader &callee : list->items()) {
            callee.only(fields);
            callees.push_back(std::make_shared<const Algorithm>(BodyReader(callee, callees, numerics).read()));
        }
    fields.insert(fields.end(), {"format", "version", "callees"});
    r.only(fields);
    return BodyReader(r, callees, numerics).read();
}

}  // namespace tessera
