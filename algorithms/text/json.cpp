#include "algorithms/text/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "algorithms/text/print.h"
#include "support/containers/alternatives.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

static constexpr const char *format = "tessera-algorithm";
static constexpr int version = 2;

static json list(const std::vector<Expr> &expressions) {
    json result = json::array();
    for (const Expr &e : expressions) result.push_back(to_json(e));
    return result;
}

static json write(const Dim &d) {
    const Dim plain;
    json j = {{"name", d.name}};
    if (d.kind == DimKind::fixed) j["fixed"] = d.value;
    if (d.kind == DimKind::derived) j["size"] = to_json(d.size);
    if (d.multiple_of != plain.multiple_of) j["multiple_of"] = d.multiple_of;
    if (d.min != plain.min) j["min"] = d.min;
    if (d.max != plain.max) j["max"] = d.max;
    if (!d.equals.empty()) j["equals"] = d.equals;
    return j;
}

static json write(const Tensor &t) {
    json j = {{"name", t.name}, {"dtype", name_of(t.dtype)}, {"dims", t.dims}, {"role", name_of(t.role)}};
    for (const Scalar &value : t.values) j["values"].push_back(to_json(value)[1]);
    return j;
}

json to_json(const Monoid &m) {
    json parts = json::array(), inputs = json::array(), batch = json::array();
    for (const Part &p : m.parts) {
        json part = {{"name", p.name}, {"identity", to_json(p.identity)}};
        if (!p.dims.empty()) part["dims"] = p.dims;
        parts.push_back(part);
    }
    for (DType type : m.inputs) inputs.push_back(name_of(type));
    json j = {{"name", m.name},
              {"parts", parts},
              {"inputs", inputs},
              {"lift", list(m.lift)},
              {"combine", list(m.combine)},
              {"step", list(m.step)},
              {"commutative", m.commutative}};
    for (const BatchPass &p : m.batch) {
        json pass = {{"name", p.name}, {"monoid", p.monoid}, {"values", list(p.values)}};
        if (!p.dims.empty()) pass["dims"] = p.dims;
        j["batch"].push_back(pass);
    }
    if (!m.batch_parts.empty()) j["batch_parts"] = m.batch_parts;
    return j;
}

static json write(const Value &v) {
    json j = {{"value", to_json(v.value)}};
    if (v.to) j["state"] = v.to->state, j["index"] = list(v.to->index);
    return j;
}

static json write(const Stage &stage) {
    json j = {{"name", stage.name}, {"dims", stage.dims}};
    std::visit(Overloaded{
                   [&](const Map &m) {
                       if (const Expr *value = only_value(stage)) j["map"] = to_json(*value);
                       else if (m.values.size() == 1) j["update"] = write(m.values[0]);
                       else
                           for (const Value &v : m.values) j["values"].push_back(write(v));
                   },
                   [&](const Reduce &r) {
                       json body = {{"monoid", to_json(r.monoid)}, {"dims", r.dims}, {"inputs", list(r.inputs)}};
                       if (r.where.defined()) body["where"] = to_json(r.where);
                       if (!r.at.empty()) body["at"] = list(r.at);
                       j["reduce"] = body;
                   },
                   [&](const Scan &s) {
                       json body = {{"monoid", to_json(s.monoid)}, {"dim", s.dim}, {"inclusive", s.inclusive}, {"inputs", list(s.inputs)}};
                       if (s.direction != ScanDirection::forward) body["direction"] = name_of(s.direction);
                       if (s.segments.defined()) body["segments"] = to_json(s.segments);
                       j["scan"] = body;
                   },
               },
               stage.body);
    if (!stage.results.empty()) j["results"] = stage.results;
    return j;
}

static json write(const Numerics &n) {
    json j = {{"name", n.name},
              {"storage", name_of(n.storage)},
              {"compute", name_of(n.compute)},
              {"accumulate", name_of(n.accumulate)},
              {"rounding", name_of(n.rounding)},
              {"saturate", n.saturate},
              {"denormals", name_of(n.denormals)}};
    if (n.outputs) j["outputs"] = name_of(*n.outputs);
    if (n.states) j["states"] = name_of(*n.states);
    if (n.tf32) j["multiply"] = "tf32";
    if (n.weights != WeightFormat::storage) j["weights"] = name_of(n.weights);
    return j;
}

static json write(const Parameter &p) {
    json j = {{"name", p.name}, {"dtype", name_of(p.dtype)}};
    if (!p.range) return j;
    j["range"] = json::object();
    if (p.range->has_least()) j["range"][p.range->above ? "above" : "min"] = to_json(p.range->least)[1];
    if (p.range->has_most()) j["range"][p.range->below ? "below" : "max"] = to_json(p.range->most)[1];
    return j;
}

// Callees are told apart by what is written, so that equal algorithms have equal JSON however their pointers are shared.
class CalleeWriter {
public:
    json body(const Algorithm &a) {
        json j = {{"name", a.name}, {"outputs", a.outputs}, {"numerics", write(a.numerics)}};
        for (const char *field : {"dims", "parameters", "tensors", "steps"}) j[field] = json::array();
        for (const Dim &d : a.dims) j["dims"].push_back(write(d));
        for (const Parameter &p : a.parameters) j["parameters"].push_back(write(p));
        for (const Tensor &t : a.tensors) j["tensors"].push_back(write(t));
        for (const Step &s : a.steps)
            j["steps"].push_back(std::visit(Overloaded{[](const Stage &stage) { return write(stage); },
                                                       [&](const Call &c) {
                                                           return json{{"call", call(c)}};
                                                       }},
                                            s));
        for (const Effect e : effects_of(a)) j["effects"].push_back(name_of(e));
        if (!a.large.empty()) j["large"] = a.large;
        for (const auto &[name, range] : a.stated_ranges) j["ranges"][name] = {range.first, range.second};
        for (const auto &[stage, check] : a.checks) {
            json &asked = j["checks"][stage] = json{{"stable", check.stable}};
            if (check.bounded) asked["bounded"] = {check.bounded->first, check.bounded->second};
            if (check.loss) asked["loss"] = *check.loss;
        }
        require(a.half_bytes.empty(), "a document has tensors as they are declared");
        return j;
    }
    const json &callees() const { return callees_; }

private:
    json call(const Call &c) {
        json parameters = json::object();
        for (auto &[name, value] : c.parameters) parameters[name] = to_json(value);
        json tensors = json::object();
        for (auto &[name, view] : c.tensors) {
            if (view.index.empty()) tensors[name] = view.tensor;
            else tensors[name] = {{"tensor", view.tensor}, {"index", list(view.index)}};
        }
        json written = {
            {"scope", c.scope}, {"callee", place(c.callee.get())}, {"dims", c.dims}, {"tensors", tensors}, {"parameters", parameters}};
        if (!c.results.empty()) written["results"] = c.results;
        if (c.repeat) written["repeat"] = repeat(*c.repeat);
        return written;
    }
    static json repeat(const Repeat &r) {
        json written = {{"dim", r.dim}};
        if (!r.carried.empty()) written["carried"] = r.carried;
        if (!r.stacked.empty()) written["stacked"] = r.stacked;
        if (!r.until.empty()) written["until"] = r.until;
        return written;
    }
    size_t place(const Algorithm *callee) {
        require(callee, "a call without a callee");
        if (auto it = places_.find(callee); it != places_.end()) return it->second;
        json written = body(*callee);
        auto it = std::find(callees_.begin(), callees_.end(), written);
        auto at = static_cast<size_t>(it - callees_.begin());
        if (it == callees_.end()) callees_.push_back(std::move(written));
        return places_[callee] = at;
    }

    json callees_ = json::array();
    std::map<const Algorithm *, size_t> places_;
};

json to_json(const Algorithm &algorithm) {
    CalleeWriter writer;
    json j = writer.body(algorithm);
    j["format"] = format;
    j["version"] = version;
    if (!writer.callees().empty()) j["callees"] = writer.callees();
    return j;
}

// Reading.

template <typename T, typename F>
static std::vector<T> each(const std::optional<JsonReader> &reader, F read) {
    std::vector<T> result;
    if (!reader) return result;
    for (const JsonReader &item : reader->items()) result.push_back(read(item));
    return result;
}

static std::vector<Expr> exprs(const std::optional<JsonReader> &reader) {
    return each<Expr>(reader, [](const JsonReader &r) { return expr_from_json(r); });
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
    check.stable = r.at("stable").truth();
    if (auto bounded = r.find("bounded")) check.bounded = read_range(*bounded);
    if (auto loss = r.find("loss")) check.loss = loss->real(0, std::numeric_limits<double>::max());
    return check;
}

static Dim read_dim(const JsonReader &r) {
    r.only({"name", "fixed", "size", "multiple_of", "min", "max", "equals"});
    Dim d;
    d.name = r.at("name").text();
    if (auto fixed = r.find("fixed")) d.kind = DimKind::fixed, d.value = fixed->integer(0, INT32_MAX);
    if (auto size = r.find("size")) {
        if (d.kind == DimKind::fixed) r.fail("json.value", "a dim has \"fixed\" or \"size\", got both; remove one.");
        d.kind = DimKind::derived, d.size = expr_from_json(*size);
    }
    if (auto multiple = r.find("multiple_of")) d.multiple_of = multiple->integer(1, INT32_MAX);
    if (auto min = r.find("min")) d.min = min->integer(0, INT32_MAX);
    if (auto max = r.find("max")) d.max = max->integer(0, INT32_MAX);
    if (auto equals = r.find("equals")) d.equals = equals->text();
    return d;
}

static Tensor read_tensor(const JsonReader &r) {
    r.only({"name", "dtype", "dims", "role", "values"});
    Tensor t;
    t.name = r.at("name").text();
    t.dtype = dtype(r.at("dtype"));
    t.dims = r.at("dims").texts();
    t.role = named(r.at("role"), "role", {Role::input, Role::state, Role::constant});
    t.values = each<Scalar>(r.find("values"), [&](const JsonReader &v) { return scalar_from_json(t.dtype, v); });
    return t;
}

static Part read_part(const JsonReader &r) {
    r.only({"name", "identity", "dims"});
    auto dims = r.find("dims");
    return {r.at("name").text(), scalar_from_json(r.at("identity")), dims ? dims->texts() : std::vector<std::string>{}};
}

static BatchPass read_pass(const JsonReader &r) {
    r.only({"name", "monoid", "values", "dims"});
    auto dims = r.find("dims");
    return {r.at("name").text(), r.at("monoid").text(), exprs(r.at("values")), dims ? dims->texts() : std::vector<std::string>{}};
}

static Monoid read_monoid(const JsonReader &r) {
    r.only({"name", "parts", "inputs", "lift", "combine", "step", "commutative", "batch", "batch_parts"});
    Monoid m;
    m.name = r.at("name").text();
    m.parts = each<Part>(r.at("parts"), read_part);
    m.inputs = each<DType>(r.at("inputs"), dtype);
    m.commutative = r.at("commutative").truth();
    for (auto [field, expressions] : {std::pair{"lift", &m.lift}, {"combine", &m.combine}, {"step", &m.step}}) {
        *expressions = exprs(r.at(field));
        if (expressions->size() != m.parts.size())
            r.at(field).fail("json.value", "expected one expression for each of the " + std::to_string(m.parts.size()) + " parts, got " +
                                               std::to_string(expressions->size()) + ".");
    }
    m.batch = each<BatchPass>(r.find("batch"), read_pass);
    int64_t last = static_cast<int64_t>(m.batch.size()) - 1;
    m.batch_parts = each<int>(r.find("batch_parts"), [&](const JsonReader &p) { return static_cast<int>(p.integer(0, last)); });
    return m;
}

static Reduce read_reduce(const JsonReader &r) {
    r.only({"monoid", "dims", "inputs", "where", "at"});
    Reduce body{read_monoid(r.at("monoid")), r.at("dims").texts(), exprs(r.at("inputs")), {}, exprs(r.find("at"))};
    body.monoid = with_identity_of_elements(std::move(body.monoid), body.inputs);
    if (auto where = r.find("where")) body.where = expr_from_json(*where);
    return body;
}

static Scan read_scan(const JsonReader &r) {
    r.only({"monoid", "dim", "inclusive", "inputs", "direction", "segments"});
    Scan body{read_monoid(r.at("monoid")), r.at("dim").text(), r.at("inclusive").truth(), exprs(r.at("inputs")), {}, {}};
    body.monoid = with_identity_of_elements(std::move(body.monoid), body.inputs);
    if (auto direction = r.find("direction"))
        body.direction = named(*direction, "direction", {ScanDirection::forward, ScanDirection::backward});
    if (auto segments = r.find("segments")) body.segments = expr_from_json(*segments);
    return body;
}

static Value read_value(const JsonReader &r) {
    r.only({"state", "index", "value"});
    Value v{expr_from_json(r.at("value"))};
    if (r.find("state") || r.find("index")) v.to = Write{r.at("state").text(), exprs(r.at("index"))};
    return v;
}

static Map read_update(const JsonReader &r) {
    Map map;
    map.values = {read_value(r)};
    if (!map.values[0].to) r.fail("json.missing", "an update names the state that it writes.");
    return map;
}

static Stage read_stage(const JsonReader &r) {
    r.only({"name", "dims", "map", "reduce", "scan", "update", "values", "results"});
    Stage stage;
    stage.name = r.at("name").text();
    stage.dims = r.at("dims").texts();
    int bodies = 0;
    if (auto map = r.find("map")) stage.body = Map(expr_from_json(*map)), bodies++;
    if (auto reduce = r.find("reduce")) stage.body = read_reduce(*reduce), bodies++;
    if (auto scan = r.find("scan")) stage.body = read_scan(*scan), bodies++;
    if (auto update = r.find("update")) stage.body = read_update(*update), bodies++;
    if (auto values = r.find("values")) {
        Map map;
        for (const JsonReader &value : values->items()) map.values.push_back(read_value(value));
        stage.body = std::move(map), bodies++;
    }
    if (auto results = r.find("results")) stage.results = results->texts();
    if (bodies != 1)
        r.fail("json.value", "a stage has one of map, values, reduce, scan and update, got " + std::to_string(bodies) + " of them.");
    return stage;
}

Numerics numerics_from_json(const JsonReader &r) {
    r.only({"name", "storage", "outputs", "states", "weights", "compute", "accumulate", "rounding", "saturate", "denormals", "multiply"});
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
    if (const auto given = r.find("multiply")) {
        const std::string kind = given->text();
        if (kind != "full" && kind != "tf32")
            given->fail("json.value", "there is no way to multiply '" + given->quotable() + "'; expected 'full' or 'tf32'.");
        n.tf32 = kind == "tf32";
    }
    n.denormals = Denormals::any;
    if (const auto given = r.find("denormals")) n.denormals = named(*given, "way with denormals", denormals_all);
    r.located([&] { check(n); });
    return n;
}

using Callees = std::vector<std::shared_ptr<const Algorithm>>;

static View read_view(const JsonReader &r) {
    if (r.is_text()) return {r.text()};
    r.only({"tensor", "index"});
    return {r.at("tensor").text(), exprs(r.at("index"))};
}

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

static Call read_call(const JsonReader &r, const Callees &callees) {
    r.only({"scope", "callee", "dims", "tensors", "parameters", "results", "repeat"});
    Call call;
    call.scope = r.at("scope").text();
    JsonReader place = r.at("callee");
    if (callees.empty()) place.fail("json.value", "\"callees\" lists no algorithm before this one; a callee stands before its callers.");
    call.callee = callees[static_cast<size_t>(place.integer(0, static_cast<int64_t>(callees.size()) - 1))];
    for (auto &[name, value] : r.at("dims").fields()) call.dims[name] = value.text();
    for (auto &[name, value] : r.at("tensors").fields()) call.tensors[name] = read_view(value);
    for (auto &[name, value] : r.at("parameters").fields()) call.parameters[name] = expr_from_json(value);
    if (auto results = r.find("results"))
        for (auto &[output, value] : results->fields()) call.results[output] = value.text();
    if (auto repeat = r.find("repeat")) call.repeat = read_repeat(*repeat);
    return call;
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

static Algorithm read_body(const JsonReader &r, const Callees &callees) {
    Algorithm a;
    a.name = r.at("name").text();
    a.dims = each<Dim>(r.at("dims"), read_dim);
    a.parameters = each<Parameter>(r.at("parameters"), read_parameter);
    a.tensors = each<Tensor>(r.at("tensors"), read_tensor);
    a.steps = each<Step>(r.at("steps"), [&](const JsonReader &s) -> Step {
        auto call = s.find("call");
        if (!call) return read_stage(s);
        s.only({"call"});
        return read_call(*call, callees);
    });
    a.outputs = r.at("outputs").texts();
    a.numerics = numerics_from_json(r.at("numerics"));
    if (auto effects = r.find("effects"))
        for (const JsonReader &e : effects->items()) {
            (named(e, "effect", all_effects) == Effect::memory ? a.updates_state : a.draws) = true;
        }
    if (auto large = r.find("large"))
        for (const std::string &name : large->texts()) a.large.insert(name);
    if (auto ranges = r.find("ranges"))
        for (const auto &[name, range] : ranges->fields()) a.stated_ranges[name] = read_range(range);
    if (auto checks = r.find("checks"))
        for (const auto &[stage, check] : checks->fields()) a.checks[stage] = read_check(check);
    return a;
}

Algorithm algorithm_from_json(const json &value) {
    JsonReader r(value, "algorithm");
    std::vector<std::string> fields = {"name",     "dims",    "parameters", "tensors", "steps", "outputs",
                                       "numerics", "effects", "large",      "ranges",  "checks"};
    std::string got = r.at("format").text();
    if (got != format)
        r.at("format").fail("json.version", "expected the format \"" + std::string(format) + "\", got \"" + quotable(got) + "\".");
    if (int64_t v = r.at("version").integer(); v != version)
        r.at("version").fail("json.version", "this build reads version " + std::to_string(version) + ", the text has version " +
                                                 std::to_string(v) +
                                                 "; write it again with this build or read it with the one that wrote it.");
    Callees callees;
    if (auto list = r.find("callees"))
        for (const JsonReader &callee : list->items()) {
            callee.only(fields);
            callees.push_back(std::make_shared<const Algorithm>(read_body(callee, callees)));
        }
    fields.insert(fields.end(), {"format", "version", "callees"});
    r.only(fields);
    return read_body(r, callees);
}

}  // namespace tessera
