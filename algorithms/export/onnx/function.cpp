#include "algorithms/export/onnx/function.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "algorithms/import/onnx/exported.h"
#include "algorithms/index/prove.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera::onnx {

// What is asked of a dim that a model's dim_param does not say; "" where that is nothing.
static std::string constraint_text(const Dim &d) {
    if (d.kind == DimKind::fixed) return "";
    if (d.kind == DimKind::derived) return to_string(d.size);
    std::vector<std::string> all;
    if (!d.equals.empty()) all.push_back("equals " + d.equals);
    if (d.multiple_of > 1) all.push_back("a multiple of " + std::to_string(d.multiple_of));
    if (d.min > 0) all.push_back("at least " + std::to_string(d.min));
    if (d.max < INT32_MAX) all.push_back("at most " + std::to_string(d.max));
    return all.empty() ? "" : join(all);
}

const MadeFunction &Functions::of(const Algorithm &algorithm, const std::string &scope) {
    const std::string text = to_json(algorithm).dump();
    if (const auto it = made.find(text); it != made.end()) return it->second;
    MadeFunction how;
    ModelFunction function = FunctionMaker(algorithm, *this, scope).make(how);
    const std::string base = identifier(algorithm.name);
    const int64_t before = names[base]++;
    how.name = function.name = before == 0 ? base : base + "_" + std::to_string(before + 1);
    function.domain = exported_domain;
    function.metadata = {{exported_hash, semantic_hash(algorithm)}, {exported_algorithm, text}};
    for (const Dim &d : algorithm.dims)
        if (const std::string constraint = constraint_text(d); !constraint.empty()) function.metadata[exported_dim + d.name] = constraint;
    all.push_back(std::move(function));
    return made[text] = how;
}

std::optional<Linear> sum_form(const Expr &index, const Bounds &bounds) {
    try {
        return linear_form(index, bounds);
    } catch (const LinearOverflow &) { return std::nullopt; }
}

FunctionMaker::FunctionMaker(const Algorithm &algorithm, Functions &functions, const std::string &scope)
    : a_(algorithm),
      functions_(functions),
      scope_(scope),
      top_(functions.parts, names_),
      outermost_{top_},
      bounds_(algorithm.dims, algorithm.parameters) {}

DType FunctionMaker::held_type(DType type) {
    if (type == DType::index) return DType::i64;
    if (type == DType::i4) return DType::i8;
    if (is_coded_float(type)) return DType::f32;
    return type == DType::u4 ? DType::u8 : type;
}

void FunctionMaker::refuse(const std::string &what, const Refused &why) {
    if (why.why.empty()) return;
    functions_.refusals.push_back({scope_ + step_, what, why.why, why.remedy});
}

template <class Make>
void FunctionMaker::guarded(const std::string &what, Make make) {
    try {
        make();
    } catch (const Refused &why) { refuse(what, why); }
}

// What inputs a function has: tensors, parameters, extents. The names of results are theirs before nodes take them.
void FunctionMaker::declare(ModelFunction &f, MadeFunction &how) {
    for (const Tensor &t : a_.tensors) {
        step_ = t.name;
        guarded("tensor " + t.name, [&] {
            if (onnx_type(t.dtype) == 0 && t.role != Role::constant)
                throw Refused{"ONNX has no type " + std::string(name_of(t.dtype)), "Declare the tensor in a type that it has."};
            if (t.role != Role::constant) {
                const std::string name = names_.fresh(identifier(t.name));
                f.inputs.push_back(name);
                const Term whole = converted({name, t.dtype, t.dims}, held_type(t.dtype), top_);
                tensors_[t.name] = {whole.name, whole.dtype, t.dims};
            }
        });
    }
    for (const Parameter &p : a_.parameters) {
        const std::string name = names_.fresh(identifier(p.name));
        f.inputs.push_back(name);
        tensors_["%" + p.name] = {name, held_type(p.dtype), {}};
    }
    for (const Tensor &t : exported_results(a_))
        results_[t.name] = names_.fresh(identifier(t.name) + (a_.find_tensor(t.name) ? "_out" : ""));
    declare_extents(f, how);
    for (const Tensor &t : a_.tensors) {
        if (t.role != Role::constant) continue;
        const DType held = held_type(t.dtype);
        std::string bytes;
        std::vector<int64_t> extents;
        for (const std::string &d : t.dims) extents.push_back(a_.dim(d).value);
        for (const Scalar &v : t.values) {
            Scalar s = v;
            s.type = held;
            bytes.resize(bytes.size() + static_cast<size_t>(size_of(held)));
            store_scalar(bytes.data() + bytes.size() - size_of(held), s);
        }
        tensors_[t.name] = {top_.table(held, extents, bytes), held, t.dims};
    }
}

// The extent of each symbolic dim: from an axis of an input, from one whose extent is a sum with it, or else an input of its own.
void FunctionMaker::declare_extents(ModelFunction &f, MadeFunction &how) {
    auto extent_at = [&](const Tensor &t, size_t axis) {
        const std::string shape = top_.one("Shape", {tensors_.at(t.name).name});
        return top_.one("Gather", {shape, top_.integer(static_cast<int64_t>(axis))}, attributes({integer_attribute("axis", 0)}));
    };
    auto each_axis = [&](const std::function<void(const Tensor &, size_t, const Dim &)> &visit) {
        for (const Tensor &t : a_.tensors)
            if (t.role != Role::constant && tensors_.count(t.name))
                for (size_t i = 0; i < t.dims.size(); i++) visit(t, i, a_.dim(t.dims[i]));
    };
    top_.topic = "extent";
    each_axis([&](const Tensor &t, size_t i, const Dim &d) {
        const std::string root = root_of(d.name);
        if (a_.dim(root).kind == DimKind::symbolic && !extents_.count(root)) extents_[root] = {extent_at(t, i), DType::i64, {}};
    });
    each_axis([&](const Tensor &t, size_t i, const Dim &d) {
        if (d.kind != DimKind::derived || has_load(d.size)) return;
        const std::optional<Linear> sum = sum_form(d.size, bounds_);
        if (!sum) return;
        const Linear &size = *sum;
        if (size.terms.size() != 1 || size.terms[0].factors.size() != 1 || size.terms[0].coefficient < 1) return;
        const Expr &of = size.terms[0].factors[0];
        if (of.kind() != ExprKind::extent) return;
        const std::string root = root_of(of->name);
        if (a_.dim(root).kind != DimKind::symbolic || extents_.count(root)) return;
        const Term there{extent_at(t, i), DType::i64, {}};
        const Term rest = element_wise("Sub", {there, number(DType::i64, static_cast<double>(size.constant), top_)}, DType::i64, top_);
        extents_[root] =
            element_wise("Div", {rest, number(DType::i64, static_cast<double>(size.terms[0].coefficient), top_)}, DType::i64, top_);
    });
    for (const Dim &d : a_.dims) {
        if (d.kind != DimKind::symbolic || root_of(d.name) != d.name || extents_.count(d.name)) continue;
        const std::string name = names_.fresh("extent_of_" + identifier(d.name));
        how.extents.push_back(d.name);
        f.inputs.push_back(name);
        extents_[d.name] = {name, DType::i64, {}};
    }
}

FunctionMaker::Stored FunctionMaker::keep(const Tensor &tensor, const Term &term, Place &at) {
    const Term whole = spread(term, tensor.dims, at.body);
    return tensors_[tensor.name] = {whole.name, whole.dtype, tensor.dims};
}

void FunctionMaker::map_stage(const Stage &stage, const Map &map) {
    Place at{top_};
    const std::vector<std::string> names = names_of_results(stage);
    std::map<std::string, Tensor> results;
    for (const Tensor &t : results_of(stage)) results[t.name] = t;
    std::vector<std::pair<std::string, Stored>> states;
    for (size_t i = 0; i < map.values.size(); i++) {
        const auto &v = map.values[i];
        guarded("value " + brief(v.value), [&] {
            at.left.emplace_back();
            const Term term = value(v.value, at);
            at.left.back() = term;
            if (v.to) states.emplace_back(v.to->state, written(tensors_.at(v.to->state), v.to->index, term, stage.dims, at));
            else if (!names[i].empty()) keep(results.at(names[i]), term, at);
        });
    }
    for (const auto &[name, next] : states) tensors_[name] = next;
}

void FunctionMaker::steps() {
    for (const Step &step : a_.steps) {
        if (const auto *call = std::get_if<Call>(&step)) {
            step_ = call->scope, top_.topic = identifier(call->scope), order_.clear();
            guarded("call of " + call->callee->name, [&] { call->repeat ? repeat_step(*call) : call_step(*call); });
            continue;
        }
        const Stage &stage = std::get<Stage>(step);
        step_ = stage.name, top_.topic = identifier(stage.name);
        order_ = stage.dims;
        for (const std::string &d : folded_dims(stage)) order_.push_back(d);
        guarded("stage", [&] {
            if (!stage.rows.empty())
                throw Refused{"it keeps rows of segments, where data says", "Compute over the flat dim, or fold the rows"};
            for (const std::string &d : stage.dims) extent_of(d);
            std::visit(Overloaded{[&](const Map &m) { map_stage(stage, m); }, [&](const Reduce &r) { reduce_stage(stage, r); },
                                  [&](const Scan &s) { scan_stage(stage, s); }},
                       stage.body);
        });
    }
}

// Renames a value in nodes and in graphs within them.
static void rename(std::vector<Node> &nodes, const std::string &from, const std::string &to) {
    for (Node &n : nodes) {
        std::replace(n.inputs.begin(), n.inputs.end(), from, to);
        std::replace(n.outputs.begin(), n.outputs.end(), from, to);
        for (auto &[name, a] : n.attributes) {
            if (!a.graph) continue;
            rename(a.graph->nodes, from, to);
            for (ValueInfo &o : a.graph->outputs)
                if (o.name == from) o.name = to;
        }
    }
}

void FunctionMaker::finish(ModelFunction &f) {
    for (const Tensor &t : exported_results(a_)) {
        const auto it = tensors_.find(t.name);
        if (it == tensors_.end()) continue;  // refused
        step_ = t.name, top_.topic = identifier(t.name);
        guarded("result " + t.name, [&] {
            const std::string value = converted({it->second.name, it->second.dtype, {}}, t.dtype, top_).name, wanted = results_.at(t.name);
            const bool is_made = std::any_of(top_.nodes.begin(), top_.nodes.end(), [&](const Node &n) {
                return std::find(n.outputs.begin(), n.outputs.end(), value) != n.outputs.end();
            });
            const bool is_taken = std::find(f.outputs.begin(), f.outputs.end(), value) != f.outputs.end();
            if (!is_made || is_taken) {
                Node identity;
                identity.op = "Identity", identity.inputs = {value}, identity.outputs = {wanted};
                top_.nodes.push_back(identity);
            } else {
                rename(top_.nodes, value, wanted);
                for (auto &[other, stored] : tensors_)
                    if (stored.name == value) stored.name = wanted;
            }
            f.outputs.push_back(wanted);
        });
    }
    f.nodes = std::move(top_.nodes);
}

ModelFunction FunctionMaker::make(MadeFunction &how) {
    ModelFunction f;
    declare(f, how);
    steps();
    finish(f);
    return f;
}

}  // namespace tessera::onnx
