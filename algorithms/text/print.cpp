#include "algorithms/text/print.h"

#include <algorithm>

#include "algorithms/text/shared_text.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

const char *name_of(Role role) {
    switch (role) {
    case Role::input: return "input";
    case Role::state: return "state";
    case Role::constant: return "constant";
    }
    throw InternalError("a role without a name");
}

const char *name_of(ScanDirection direction) {
    switch (direction) {
    case ScanDirection::forward: return "forward";
    case ScanDirection::backward: return "backward";
    }
    throw InternalError("a direction without a name");
}

namespace {

std::string list(const std::vector<std::string> &names) { return names.empty() ? "" : join(names); }
std::string brackets(const std::vector<std::string> &names) { return names.empty() ? "" : "[" + join(names) + "]"; }
std::string literal(const Scalar &value) { return to_string(constant(value)); }

std::string parts_text(const Monoid &m) {
    if (m.parts.size() == 1 && m.parts[0].dims.empty()) return name_of(m.parts[0].identity.type);
    std::vector<std::string> texts;
    for (const Part &p : m.parts) texts.push_back(p.name + brackets(p.dims) + ": " + name_of(p.identity.type));
    return "(" + join(texts) + ")";
}

std::string definition_of(const Monoid &m) {
    std::vector<std::string> inputs, batch_parts;
    for (DType type : m.inputs) inputs.emplace_back(name_of(type));
    std::string text = "  monoid " + m.name + "(" + list(inputs) + ")" + (m.commutative ? "" : ", not commutative") + "\n";
    for (size_t i = 0; i < m.parts.size(); i++) {
        const Part &p = m.parts[i];
        text += "    " + p.name + brackets(p.dims) + ": " + name_of(p.identity.type) + " from " + literal(p.identity) + "\n";
        for (auto [what, expressions] : {std::pair{"lift", &m.lift}, {"combine", &m.combine}, {"step", &m.step}})
            if (i < expressions->size()) {
                SharedText line({(*expressions)[i]});
                text += line.finish("      ", std::string(what) + " " + line((*expressions)[i]));
            }
    }
    for (const BatchPass &p : m.batch) {
        SharedText line(p.values);
        std::string how = p.monoid.empty() ? "map" : p.monoid;
        text += line.finish("    ", "pass " + p.name + brackets(p.dims) + " = " + how + " of (" + line(p.values) + ")");
    }
    for (int part : m.batch_parts) batch_parts.push_back(std::to_string(part));
    if (!batch_parts.empty()) text += "    parts from passes " + join(batch_parts) + "\n";
    if (!m.derivative) return text;
    const auto says = [&](const std::string &what, const Expr &value) {
        SharedText line({value});
        text += line.finish("    ", what + " = " + line(value));
    };
    const auto part_named = [&](int p) { return m.parts.at(static_cast<size_t>(p)).name; };
    for (const ElementDerivative::Entry &e : m.derivative->entries)
        says("derivative of " + part_named(e.part) + " by input " + std::to_string(e.input) + (e.shared ? ", shared," : ""), e.value);
    for (const ElementDerivative::Follow &f : m.derivative->follows)
        says("derivative of " + part_named(f.part) + " by " + part_named(f.leader), f.value);
    return text;
}

bool is_standard(const Monoid &m) {
    if (m.inputs.empty() || m.parts.empty() || !is_arithmetic(m.inputs[0]) || m.inputs[0] == DType::boolean) return false;
    DType type = m.inputs[0];
    std::string text = definition_of(m);
    for (const StandardMonoid &standard : standard_monoids)
        if (standard.name == m.name && definition_of(standard.make(type)) == text) return true;
    const std::vector<std::string> &dims = m.parts.back().dims;
    const bool float_type = is_float(type) && is_arithmetic(type);
    return float_type && dims.size() == 1 && definition_of(online_softmax_monoid(type, dims[0])) == text;
}

std::string dim_text(const Dim &d) {
    if (d.kind == DimKind::derived) {
        SharedText line({d.size});
        return line.finish("  ", "dim " + d.name + " = " + line(d.size));
    }
    std::vector<std::string> facts;
    if (d.kind == DimKind::symbolic) {
        if (d.multiple_of != 1) facts.push_back("a multiple of " + std::to_string(d.multiple_of));
        if (d.min != Dim().min) facts.push_back("at least " + std::to_string(d.min));
        if (d.max != Dim().max) facts.push_back("at most " + std::to_string(d.max));
    }
    if (!d.equals.empty()) facts.push_back("equal to " + d.equals);
    std::string fixed = d.kind == DimKind::fixed ? " = " + std::to_string(d.value) : "";
    return "  dim " + d.name + fixed + (facts.empty() ? "" : ": " + join(facts)) + "\n";
}

std::string tensor_text(const Tensor &t) {
    std::string text = std::string("  ") + name_of(t.role) + " " + t.name + "[" + list(t.dims) + "]: " + name_of(t.dtype);
    return text + (t.role == Role::constant ? " = " + values_text(t) : "") + "\n";
}

std::string real_text(double value) { return value_text(Scalar::of_real(DType::f64, value)); }

std::string check_text(const NumericsCheck &check) {
    std::vector<std::string> asked;
    if (check.stable) asked.emplace_back("stable");
    if (check.bounded) asked.push_back("in " + real_text(check.bounded->first) + " ..= " + real_text(check.bounded->second));
    if (check.loss) asked.push_back("loses at most " + real_text(*check.loss) + " ulp");
    return list(asked);
}

class Printer {
public:
    std::string stage_text(const Stage &stage) {
        std::vector<Expr> expressions = expressions_of(stage);
        SharedText line(expressions);
        const std::string head = stage.name + "[" + list(stage.dims) + "]: ", results = list(stage.results);
        const std::string body = std::visit([&](const auto &body) { return body_text(body, line); }, stage.body);
        std::vector<std::string> rows;
        for (const Rows &r : stage.rows) rows.push_back(r.dim + " in " + r.flat + " from " + line(r.first));
        return line.finish("  ", head + body + (results.empty() ? "" : " as " + results) + (rows.empty() ? "" : " rows " + list(rows)));
    }

    std::string call_text(const Call &call) {
        require(call.callee != nullptr, "a call without a callee");
        note(call.callee);
        std::vector<Expr> values;
        for (auto &[name, value] : call.parameters) values.push_back(value);
        for (auto &[name, view] : call.tensors) values.insert(values.end(), view.index.begin(), view.index.end());
        SharedText line(values);
        std::vector<std::string> arguments;
        for (auto &[name, value] : call.dims) arguments.push_back(name + " = " + value);
        for (auto &[name, view] : call.tensors)
            arguments.push_back(name + " = " + view.tensor + (view.index.empty() ? "" : "[" + line(view.index) + "]"));
        for (auto &[name, value] : call.parameters) arguments.push_back("$" + name + " = " + line(value));
        std::vector<std::string> results;
        for (auto &[output, result] : call.results) results.push_back(output + " as " + result);
        return line.finish("  ", "call " + call.scope + " = " + call.callee->name + "(" + list(arguments) + ")" +
                                     (results.empty() ? "" : " with " + list(results)) + (call.repeat ? repeat_text(*call.repeat) : ""));
    }

    // The rule's parts by name, which are printed behind, as callees are.
    std::string rule_text(const DerivativeRule &rule) {
        std::vector<std::string> parts;
        for (const auto &[name, part] : {std::pair{"jvp ", rule.jvp}, {"forward ", rule.forward}, {"backward ", rule.backward}})
            if (part) note(part), parts.push_back(name + part->name);
        if (rule.differs) parts.emplace_back("differs on purpose");
        return "  derivative " + list(parts) + "\n";
    }

    static std::string repeat_text(const Repeat &repeat) {
        std::string text = " for each " + repeat.dim;
        std::vector<std::string> carried;
        for (auto &[input, output] : repeat.carried) carried.push_back(input + " = " + output);
        if (!carried.empty()) text += ", carrying " + join(carried);
        if (!repeat.stacked.empty()) text += ", stacking " + join({repeat.stacked.begin(), repeat.stacked.end()});
        return text + (repeat.until.empty() ? "" : ", until " + repeat.until);
    }

    std::string text(const Algorithm &a) {
        monoids_.clear();
        std::string text = "algorithm " + a.name + ": " + a.numerics.name + " (" + text_of(a.numerics) + ")\n";
        for (const Dim &d : a.dims) text += dim_text(d);
        for (const Parameter &p : a.parameters) text += "  parameter " + to_string(p) + "\n";
        for (const Tensor &t : a.tensors) {
            text += tensor_text(t);
            const auto half = a.half_bytes.find(t.name);
            if (half == a.half_bytes.end()) continue;
            text.pop_back();
            text += std::string(", of ") + name_of(half->second.dtype) + "[" + list(half->second.dims) + "]\n";
        }
        for (const Step &step : a.steps)
            text += std::visit(
                Overloaded{[&](const Stage &stage) { return stage_text(stage); }, [&](const Call &call) { return call_text(call); }}, step);
        text += "  outputs " + list(a.outputs) + "\n";
        std::vector<std::string> effects;
        for (const Effect e : effects_of(a)) effects.emplace_back(name_of(e));
        if (!effects.empty()) text += "  effects " + list(effects) + "\n";
        if (!a.large.empty()) text += "  large " + join({a.large.begin(), a.large.end()}) + "\n";
        for (const auto &[name, range] : a.stated_ranges)
            text += "  range " + name + ": " + real_text(range.first) + " ..= " + real_text(range.second) + "\n";
        for (const auto &[stage, check] : a.checks) text += "  check " + stage + ": " + check_text(check) + "\n";
        if (a.rule) text += rule_text(*a.rule);
        for (const std::string &definition : monoids_) text += definition;
        return text;
    }

    std::string whole(const Algorithm &a) {
        std::string result = text(a);
        std::vector<std::string> written;
        for (size_t i = 0; i < callees_.size(); i++) {
            std::string callee = text(*callees_[i]);
            if (std::find(written.begin(), written.end(), callee) != written.end()) continue;
            written.push_back(callee);
            result += "\n" + callee;
        }
        return result;
    }

private:
    std::string body_text(const Map &m, SharedText &line) {
        std::vector<std::string> values;
        for (const Value &v : m.values)
            values.push_back((v.to ? v.to->state + "[" + line(v.to->index) + "] := " : std::string(name_of(v.value.type())) + " = ") +
                             line(v.value));
        return join(values, "; ");
    }
    std::string body_text(const Reduce &r, SharedText &line) {
        std::string text = parts_text(r.monoid) + " = " + monoid(r.monoid) + " over " + list(r.dims) + " of (" + line(r.inputs) + ")";
        if (r.where.defined()) text += " where " + line(r.where);
        if (!r.at.empty()) text += " at [" + line(r.at) + "]";
        return text;
    }
    std::string body_text(const Scan &s, SharedText &line) {
        std::string text = parts_text(s.monoid) + " = " + (s.inclusive ? "inclusive" : "exclusive") + " scan of " + monoid(s.monoid) +
                           (s.direction == ScanDirection::backward ? " backward" : "") + " along " + s.dim + " of (" + line(s.inputs) + ")";
        if (s.segments.defined()) text += " anew where " + line(s.segments);
        return text;
    }

    void note(const std::shared_ptr<const Algorithm> &callee) {
        if (std::find(callees_.begin(), callees_.end(), callee) == callees_.end()) callees_.push_back(callee);
    }

    // The monoid's name, with its definition noted to be printed once.
    std::string monoid(const Monoid &m) {
        if (is_standard(m)) return m.name;
        std::string definition = definition_of(m);
        if (std::find(monoids_.begin(), monoids_.end(), definition) == monoids_.end()) monoids_.push_back(definition);
        return m.name;
    }

    std::vector<std::string> monoids_;
    std::vector<std::shared_ptr<const Algorithm>> callees_;
};

}  // namespace

std::string values_text(const Tensor &t) {
    constexpr size_t shown = 8;
    std::string all;
    std::vector<std::string> some;
    for (const Scalar &value : t.values) {
        std::string one = literal(value);
        if (some.size() < shown) some.push_back(one);
        all += one + ",";
    }
    if (t.values.size() > shown) some.push_back("... " + std::to_string(t.values.size()) + " values, " + sha256(all));
    return list(some);
}

std::string to_text(const Algorithm &algorithm) { return Printer().whole(algorithm); }

}  // namespace tessera
