#include "algorithms/text/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "algorithms/ir/derivative_rule.h"
#include "algorithms/text/print.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

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
    if (!m.derivative) return j;
    json entries = json::array();
    for (const ElementDerivative::Entry &e : m.derivative->entries) {
        json entry = {{"part", e.part}, {"input", e.input}, {"value", to_json(e.value)}};
        if (e.shared) entry["shared"] = true;
        entries.push_back(std::move(entry));
    }
    j["derivative"]["entries"] = std::move(entries);
    for (const ElementDerivative::Follow &f : m.derivative->follows)
        j["derivative"]["follows"].push_back({{"part", f.part}, {"leader", f.leader}, {"value", to_json(f.value)}});
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
    for (const Rows &r : stage.rows) j["rows"].push_back({{"dim", r.dim}, {"flat", r.flat}, {"first", to_json(r.first)}});
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
    if (n.multiply != Multiply::full) j["multiply"] = name_of(n.multiply);
    if (n.products != Products::exact) j["products"] = name_of(n.products);
    if (n.weights != WeightFormat::storage) j["weights"] = name_of(n.weights);
    for (const Licence l : n.licensed) j["licensed"].push_back(name_of(l));
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
        if (a.rule) j["rule"] = rule(*a.rule);
        require(a.half_bytes.empty(), "a document has tensors as they are declared");
        return j;
    }
    const json &callees() const { return callees_; }

private:
    json rule(const DerivativeRule &r) {
        json written = json::object();
        if (r.jvp) written["jvp"] = place(r.jvp.get());
        if (r.backward) written["backward"] = place(r.backward.get());
        if (r.forward) written["forward"] = place(r.forward.get());
        if (r.differs) written["differs"] = true;
        return written;
    }
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
    j["format"] = algorithm_format;
    j["version"] = algorithm_version;
    if (!writer.callees().empty()) j["callees"] = writer.callees();
    return j;
}

}  // namespace tessera
