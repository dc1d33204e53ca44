#include "algorithms/text/hash.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "algorithms/expr/function.h"
#include "algorithms/text/print.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

std::string number(int64_t value) { return std::to_string(value); }

std::string typed_literal(const Scalar &s) {
    std::string type = name_of(s.type);
    if (!is_float(s.type)) return type + ":" + number(s.integer);
    return type + ":" + (std::isnan(s.real) ? "nan" : std::to_string(std::bit_cast<uint64_t>(s.real)));
}

// Names go into texts with their length, so that no character in one can imitate structure.
std::string quoted(const std::string &name) { return number(static_cast<int64_t>(name.size())) + "'" + name + "'"; }
std::string quoted(const std::vector<std::string> &names) {
    std::string text = "[";
    for (const std::string &name : names) text += quoted(name) + " ";
    return text + "]";
}

struct Semantics {
    std::string hash;
    std::vector<std::string> dims;  // the algorithm's own names in canonical order
};
using Known = std::map<const Algorithm *, Semantics>;

class Canonical {
public:
    Canonical(const Algorithm &algorithm, Known &known) : a_(algorithm), known_(known) { take_steps(); }

    std::string text() {
        const Numerics &n = a_.numerics;
        emit(std::string("numerics ") + name_of(n.storage) + " " + name_of(n.compute) + " " + name_of(n.accumulate) + " " +
             name_of(n.rounding) + " " + number(n.saturate));
        if (a_.updates_state) emit("effect memory");
        for (const Parameter &p : a_.parameters)
            emit(std::string("parameter ") + name_of(p.dtype) + (p.range ? " " + to_string(*p.range) : ""));
        for (Role role : {Role::input, Role::state})
            for (const Tensor &t : a_.tensors)
                if (t.role == role)
                    emit(std::string(name_of(role)) + " " + name_of(t.dtype) + dim_list(t.dims) + large(t.name) + halves(t.name));
        std::string results;
        for (const std::string &output : a_.outputs) results += " " + tensor(output, final_) + large(output) + halves(output);
        for (const Tensor &t : a_.tensors)
            if (t.role == Role::state) results += " " + tensor(t.name, final_);
        emit("results" + results);
        return lines_;
    }
    const std::vector<std::string> &dim_order() const { return dim_order_; }

private:
    // Which item wrote a state last; a state that none wrote is missing.
    using Versions = std::map<std::string, size_t>;
    struct Item {
        const Stage *stage = nullptr;
        const Call *call = nullptr;
        Versions before;
        std::string token;
    };
    using Seen = std::unordered_map<const Expr::Node *, std::string>;

    static std::vector<std::string> made_by(const Item &item) {
        std::vector<std::string> names;
        if (item.stage)
            for (const Tensor &t : results_of(*item.stage)) names.push_back(t.name);
        else
            for (const std::string &output : item.call->callee->outputs) names.push_back(name_of_result(*item.call, output));
        return names;
    }

    // Every step has the versions of the states that it sees.
    void take_steps() {
        for (const Step &step : a_.steps) {
            Item item{std::get_if<Stage>(&step), std::get_if<Call>(&step), final_, {}};
            const std::vector<std::string> made = made_by(item);
            for (size_t i = 0; i < made.size(); i++) makers_[made[i]] = {items_.size(), i};
            for (const std::string &state : written_by(item)) final_[state] = items_.size();
            items_.push_back(std::move(item));
        }
    }

    std::vector<std::string> written_by(const Item &item) const {
        if (item.stage) {
            std::vector<std::string> states;
            for (const Write *write : writes_of(*item.stage)) states.push_back(write->state);
            return states;
        }
        std::vector<std::string> states;
        for (const Tensor &t : item.call->callee->tensors)
            if (auto it = item.call->tensors.find(t.name); t.role == Role::state && it != item.call->tensors.end())
                states.push_back(it->second.tensor);
        return states;
    }

    std::string large(const std::string &name) const { return a_.large.count(name) ? " large" : ""; }
    std::string halves(const std::string &name) const {
        const auto half = a_.half_bytes.find(name);
        return half == a_.half_bytes.end() ? "" : std::string(" of ") + name_of(half->second.dtype);
    }
    void emit(const std::string &line) { lines_ += line + "\n"; }

    // The number of `content` among the lines that open with `prefix`; a new content is written.
    std::string intern(char prefix, const std::string &content) {
        auto [it, fresh] = interned_.emplace(prefix + content, counts_[prefix]);
        std::string token = prefix + number(it->second);
        if (fresh) counts_[prefix]++, emit(token + " = " + content);
        return token;
    }

    std::string dim(const std::string &name) {
        if (auto it = dims_.find(name); it != dims_.end()) return it->second;
        const Dim *d = a_.find_dim(name);
        if (!d) return "unknown" + quoted(name);
        std::string token = dims_[name] = "d" + number(static_cast<int64_t>(dim_order_.size()));
        dim_order_.push_back(name);
        std::string line = token + " = dim " + number(d->multiple_of) + " " + number(d->min) + " " + number(d->max);
        if (d->kind == DimKind::fixed) line += " fixed " + number(d->value);
        if (d->kind == DimKind::derived) {
            Seen seen;
            line += " size " + expr(d->size, {}, seen);
        }
        if (!d->equals.empty()) line += " equals " + dim(d->equals);
        emit(line);
        return token;
    }

    std::string dim_list(const std::vector<std::string> &names) {
        std::string text = " [";
        for (const std::string &name : names) text += dim(name) + " ";
        return text + "]";
    }

    // The value that a load of `name` sees where the states have these versions.
    std::string tensor(const std::string &name, const Versions &versions) {
        if (auto it = versions.find(name); it != versions.end()) {
            const Item &writer = items_[it->second];
            std::string token = item(it->second);
            if (writer.stage && written_by(writer).size() == 1) return token;
            int64_t position = 0;
            for (const std::string &state : written_by(writer)) {
                if (state == name) break;
                position++;
            }
            return token + ".state" + number(position);
        }
        int64_t position[2] = {0, 0};
        for (const Tensor &t : a_.tensors) {
            if (t.name == name && t.role == Role::constant) return constant_tensor(t);
            if (t.name == name) return name_of(t.role) + number(position[t.role == Role::state]);
            if (t.role != Role::constant) position[t.role == Role::state]++;
        }
        auto maker = makers_.find(name);
        if (maker == makers_.end()) return "unknown" + quoted(name);
        return item(maker->second.first) + "." + number(static_cast<int64_t>(maker->second.second));
    }

    std::string constant_tensor(const Tensor &t) {
        std::string text = std::string(name_of(t.dtype)) + dim_list(t.dims);
        for (const Scalar &value : t.values) text += " " + typed_literal(value);
        return intern('k', text);
    }

    std::string expr(const Expr &e, const Versions &versions, Seen &seen) {
        if (!e.defined()) return "-";
        if (auto it = seen.find(e.get()); it != seen.end()) return it->second;
        const Expr::Node &x = *e.get();
        std::string text;
        switch (x.kind) {
        case ExprKind::constant: text = typed_literal(x.value); break;
        case ExprKind::variable: text = x.name[0] == '%' ? "axis " + x.name.substr(1) : "variable " + dim(x.name); break;
        case ExprKind::extent: text = "extent " + dim(x.name); break;
        case ExprKind::parameter: text = std::string("parameter ") + name_of(x.type) + " " + parameter_position(x.name); break;
        case ExprKind::load: text = std::string(x.guarded ? "load_or " : "load ") + name_of(x.type) + " " + tensor(x.name, versions); break;
        case ExprKind::bounded: text = "bounded"; break;
        case ExprKind::operation: text = name_of(x.op); break;
        // By what it computes: two that are defined alike are one, whatever they are called.
        case ExprKind::function: return seen[e.get()] = expr(definitions_.emplace_back(definition_of(e)), versions, seen);
        case ExprKind::bitcast: text = std::string("bitcast ") + name_of(x.type); break;
        case ExprKind::cast: text = std::string("cast ") + name_of(x.type) + " " + name_of(x.rounding) + " " + number(x.saturate); break;
        case ExprKind::left: text = std::string("left ") + name_of(x.type) + " " + number(x.number); break;
        case ExprKind::right: text = std::string("right ") + name_of(x.type) + " " + number(x.number); break;
        case ExprKind::input: text = std::string("input ") + name_of(x.type) + " " + number(x.number); break;
        }
        for (const Expr &arg : x.args) text += " " + expr(arg, versions, seen);
        return seen[e.get()] = intern('e', text);
    }

    std::string parameter_position(const std::string &name) const {
        for (size_t i = 0; i < a_.parameters.size(); i++)
            if (a_.parameters[i].name == name) return number(static_cast<int64_t>(i));
        return "unknown" + quoted(name);
    }

    std::string exprs(const std::vector<Expr> &list, const Versions &versions, Seen &seen) {
        std::string text = " (";
        for (const Expr &e : list) text += expr(e, versions, seen) + " ";
        return text + ")";
    }

    std::string monoid(const Monoid &m, const Versions &versions, Seen &seen) {
        std::string text = number(m.commutative);
        for (const Part &p : m.parts) text += " part " + typed_literal(p.identity) + dim_list(p.dims);
        for (DType type : m.inputs) text += std::string(" in ") + name_of(type);
        for (auto *list : {&m.lift, &m.combine, &m.step}) text += exprs(*list, versions, seen);
        for (const BatchPass &p : m.batch) text += " pass " + quoted(p.monoid) + exprs(p.values, versions, seen) + dim_list(p.dims);
        for (int part : m.batch_parts) text += " " + number(part);
        return intern('m', text);
    }

    // The token of a stage or call, whose line is written when it is first needed.
    std::string item(size_t at) {
        if (!items_[at].token.empty()) return items_[at].token;
        items_[at].token = "cycle";
        const Versions &versions = items_[at].before;
        std::string text = items_[at].call ? call_text(*items_[at].call, versions) : stage_text(*items_[at].stage, versions);
        text += sizes_text(items_[at]);
        std::string token = "s" + number(stages_++);
        emit(token + " = " + text);
        return items_[at].token = token;
    }

    // The states that sizes of its dims are read from, as the item sees them. A dim has one line, whoever goes over it.
    std::string sizes_text(const Item &item) {
        std::vector<std::string> dims, seen;
        if (item.stage) {
            dims = item.stage->dims;
            for (const std::string &d : folded_dims(*item.stage)) dims.push_back(d);
            if (is_fold(*item.stage))
                for (const Part &p : monoid_of(*item.stage).parts) dims.insert(dims.end(), p.dims.begin(), p.dims.end());
        } else {
            for (const auto &[own, callers] : item.call->dims) dims.push_back(callers);
            if (item.call->repeat) dims.push_back(item.call->repeat->dim);
        }
        std::string text;
        for (size_t i = 0; i < dims.size(); i++) {
            const Dim *d = a_.find_dim(dims[i]);
            if (!d || !d->size.defined()) continue;
            walk(d->size, [&](const Expr &e) {
                if (e.kind() == ExprKind::extent && std::find(dims.begin(), dims.end(), e->name) == dims.end()) dims.push_back(e->name);
                if (e.kind() != ExprKind::load || !item.before.count(e->name)) return;
                if (std::find(seen.begin(), seen.end(), e->name) != seen.end()) return;
                seen.push_back(e->name);
                text += " sized by " + tensor(e->name, item.before);
            });
        }
        return text;
    }

    std::string stage_text(const Stage &stage, const Versions &versions) {
        Seen seen;
        std::string text = dim_list(stage.dims);
        for (const Rows &r : stage.rows) text += " rows " + dim(r.dim) + " " + dim(r.flat) + " " + expr(r.first, versions, seen);
        return std::visit(
            Overloaded{
                [&](const Map &m) {
                    if (m.values.size() == 1) return map_text(m.values[0], text, versions, seen);
                    const std::vector<std::string> names = names_of_results(stage);
                    std::string all = "values";
                    for (size_t i = 0; i < m.values.size(); i++)
                        all += (names[i].empty() ? " (" : " (result ") + map_text(m.values[i], text, versions, seen) + ")";
                    return all;
                },
                [&](const Reduce &r) {
                    return "reduce" + text + dim_list(r.dims) + " " + monoid(r.monoid, versions, seen) + exprs(r.inputs, versions, seen) +
                           " where " + expr(r.where, versions, seen) + " at" + exprs(r.at, versions, seen);
                },
                [&](const Scan &s) {
                    return "scan" + text + " " + dim(s.dim) + " " + monoid(s.monoid, versions, seen) + exprs(s.inputs, versions, seen) +
                           " " + number(s.inclusive) + (s.direction == ScanDirection::backward ? " backward" : "") +
                           (s.segments.defined() ? " segments " + expr(s.segments, versions, seen) : "");
                },
            },
            stage.body);
    }

    std::string map_text(const Value &v, const std::string &dims, const Versions &versions, Seen &seen) {
        if (!v.to) return "map" + dims + " " + expr(v.value, versions, seen);
        return "update" + dims + " " + tensor(v.to->state, versions) + exprs(v.to->index, versions, seen) + " " +
               expr(v.value, versions, seen);
    }

    std::string call_text(const Call &call, const Versions &versions);
    std::string repeat_text(const Call &call);

    const Algorithm &a_;
    Known &known_;
    std::vector<Item> items_;
    std::map<std::string, std::pair<size_t, size_t>> makers_;  // result -> item and position in it
    Versions final_;
    std::map<std::string, std::string> dims_;
    std::vector<std::string> dim_order_;
    std::map<std::string, int64_t> interned_;
    std::map<char, int64_t> counts_;
    int64_t stages_ = 0;
    std::string lines_;
    std::deque<Expr> definitions_;  // put in for functions; `Seen` knows their nodes by address
};

const Semantics &semantics_of(const Algorithm &algorithm, Known &known) {
    if (auto it = known.find(&algorithm); it != known.end()) return it->second;
    Canonical canonical(algorithm, known);
    std::string hash = sha256(canonical.text());
    return known[&algorithm] = {hash, canonical.dim_order()};
}

// Inputs and outputs by their numbers.
std::string Canonical::repeat_text(const Call &call) {
    const Repeat &r = *call.repeat;
    auto input = [&](const std::string &name) {
        const Tensor *t = call.callee->find_tensor(name);
        return t ? number(t - call.callee->tensors.data()) : "unknown" + quoted(name);
    };
    auto output = [&](const std::string &name) {
        const std::vector<std::string> &all = call.callee->outputs;
        auto it = std::find(all.begin(), all.end(), name);
        return it == all.end() ? "unknown" + quoted(name) : number(it - all.begin());
    };
    std::vector<std::string> carried, stacked;
    for (const auto &[from, to] : r.carried) carried.push_back(input(from) + "=" + output(to));
    for (const std::string &name : r.stacked) stacked.push_back(output(name));
    std::sort(carried.begin(), carried.end()), std::sort(stacked.begin(), stacked.end());
    return " repeat " + dim(r.dim) + " carried" + quoted(carried) + " stacked" + quoted(stacked) +
           (r.until.empty() ? "" : " until " + output(r.until));
}

std::string Canonical::call_text(const Call &call, const Versions &versions) {
    const Algorithm &callee = *call.callee;
    const Semantics &semantics = semantics_of(callee, known_);
    std::string text = "call " + semantics.hash + " [";
    for (const std::string &name : semantics.dims) {
        auto it = call.dims.find(name);
        text += (it == call.dims.end() ? "-" : dim(it->second)) + " ";
    }
    text += "]";
    Seen seen;
    for (Role role : {Role::input, Role::state})
        for (const Tensor &t : callee.tensors) {
            auto it = call.tensors.find(t.name);
            if (t.role != role) continue;
            text += " " + (it == call.tensors.end() ? "-" : tensor(it->second.tensor, versions));
            if (it != call.tensors.end() && !it->second.index.empty()) text += " at" + exprs(it->second.index, versions, seen);
        }
    for (const Parameter &p : callee.parameters) {
        auto it = call.parameters.find(p.name);
        text += " " + (it == call.parameters.end() ? "-" : expr(it->second, versions, seen));
    }
    if (call.repeat) text += repeat_text(call);
    return text;
}

std::string monoid_parts(const Monoid &m) {
    std::string text;
    for (const Part &p : m.parts) text += " part " + quoted(m.parts.size() == 1 ? "" : p.name) + quoted(p.dims);
    return text;
}

std::string surface_of(const Stage &stage) {
    std::string text = "stage " + quoted(stage.name) + quoted(stage.dims);
    if (!stage.results.empty()) text += " results " + quoted(stage.results);
    return text + std::visit(Overloaded{
                                 [](const Map &m) {
                                     std::string text = m.values.size() == 1 && m.values[0].to ? "" : " map";
                                     for (const Value &v : m.values)
                                         if (v.to) text += " update " + quoted(v.to->state);
                                     return text;
                                 },
                                 [](const Reduce &r) { return " reduce " + quoted(r.dims) + monoid_parts(r.monoid); },
                                 [](const Scan &s) { return " scan " + quoted(s.dim) + monoid_parts(s.monoid); },
                             },
                             stage.body);
}

}  // namespace

std::string semantic_text(const Algorithm &algorithm) {
    Known known;
    return Canonical(algorithm, known).text();
}

std::string semantic_hash(const Algorithm &algorithm) { return sha256(semantic_text(algorithm)); }

std::string surface_text(const Algorithm &algorithm) {
    std::vector<std::string> lines;
    for (const Dim &d : algorithm.dims) lines.push_back("dim " + quoted(d.name));
    for (const Tensor &t : algorithm.tensors)
        lines.push_back(std::string("tensor ") + quoted(t.name) + quoted(t.dims) + " " + name_of(t.role));
    for (const Stage &stage : algorithm.stages()) lines.push_back(surface_of(stage));
    for (const std::string &output : algorithm.outputs) lines.push_back("output " + quoted(output));
    for (const Call &call : algorithm.calls()) {
        std::string line = "call " + quoted(call.scope);
        for (auto &[callee, caller] : call.dims) line += " " + quoted(callee) + quoted(caller);
        for (auto &[output, result] : call.results) line += " result " + quoted(output) + quoted(result);
        lines.push_back(line + " " + surface_hash(*call.callee));
    }
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (const std::string &line : lines) text += line + "\n";
    return text;
}

std::string surface_hash(const Algorithm &algorithm) { return sha256(surface_text(algorithm)); }

}  // namespace tessera
