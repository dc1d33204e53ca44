#include "algorithms/import/onnx/import.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/import/onnx/operators.h"
#include "algorithms/import/onnx/outline.h"
#include "algorithms/text/json.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

namespace tessera::onnx {

namespace {

// Names of values, inner graphs seeing those of outer ones.
struct Names {
    const Names *outer = nullptr;
    std::map<std::string, Value> values;

    const Value *find(const std::string &name) const {
        for (const Names *n = this; n; n = n->outer)
            if (const auto it = n->values.find(name); it != n->values.end()) return &it->second;
        return nullptr;
    }
};

// What could not be imported, by its words, so that a thousand nodes of one kind are one line.
struct Refusals {
    struct Line {
        std::string first, remedy;
        int64_t count = 0;
    };
    std::map<std::string, Line> lines;
    std::vector<std::string> order;
    std::set<std::string> unknown;  // values that nothing is known of, since what makes them is refused

    void add(const std::string &why, const std::string &node, const std::string &remedy) {
        Line &line = lines[why];
        if (line.count++ == 0) line.first = node, line.remedy = remedy, order.push_back(why);
    }
};

class Walker : public Runner {
public:
    Walker(const Model &model, const ImportOptions &options, const std::vector<Part> &parts = {})
        : model_(model), options_(options), space_(options.name, Numerics{}) {
        for (const Part &p : parts)
            for (const Node *n : p.nodes) parts_[n] = &p;
    }

    const std::map<const Node *, NodeFacts> &facts() const { return facts_; }

    Imported whole() {
        declare_inputs();
        for (const auto &[name, tensor] : model_.graph.initializers) names_.values[name] = initializer(tensor);
        walk(model_.graph.nodes);
        declare_outputs();
        for (const auto &[input, values] : options_.bind)
            if (!bound_.count(input)) unknown_option("onnx.bind", "--bind", input, "input");
        for (const auto &[dim, value] : options_.shape)
            if (!shaped_.count(dim)) unknown_option("onnx.shape", "--shape", dim, "dim");
        for (const auto &[dim, of] : options_.multiples)
            if (!shaped_.count(dim)) unknown_option("onnx.shape", "--multiple", dim, "dim");
        report();
        made_.program = space_.f.build();
        made_.weights = std::move(space_.weights);
        return std::move(made_);
    }

    std::vector<Value> run(const Graph &graph, const std::vector<Value> &inputs) override {
        Names inner{current_, {}};
        for (size_t i = 0; i < graph.inputs.size() && i < inputs.size(); i++) inner.values[graph.inputs[i].name] = inputs[i];
        const Entered entered(*this, inner);
        for (const auto &[name, tensor] : graph.initializers) inner.values[name] = initializer(tensor);
        walk(graph.nodes);
        std::vector<Value> results;
        for (const ValueInfo &o : graph.outputs) {
            const Value *v = inner.find(o.name);
            if (!v) throw Refused();
            results.push_back(*v);
        }
        return results;
    }

private:
    const Model &model_;
    const ImportOptions &options_;
    Space space_;
    Names names_;
    const Names *current_ = &names_;
    Names *writes_ = &names_;
    Refusals refusals_;
    Imported made_;
    std::set<std::string> bound_, shaped_, dim_names_;  // as options name them
    std::map<const Node *, const Part *> parts_;
    std::map<const Node *, NodeFacts> facts_;
    std::map<std::string, std::shared_ptr<const Algorithm>> callees_;  // by their text without a name
    std::set<std::string> callee_names_;

    struct Refused {};  // a graph within another needs what is refused already
    // The names of an inner graph, as long as it lives.
    struct Entered {
        Walker &walker;
        const Names *current = walker.current_;
        Names *writes = walker.writes_;
        Entered(Walker &w, Names &inner) : walker(w) { walker.current_ = walker.writes_ = &inner; }
        ~Entered() { walker.current_ = current, walker.writes_ = writes; }
        Entered(const Entered &) = delete;
        Entered &operator=(const Entered &) = delete;
    };

    [[noreturn]] void unknown_option(const char *id, const char *option, const std::string &name, const char *what) {
        std::vector<std::string> there;
        if (std::string(what) == "input") {
            for (const ValueInfo &i : model_.graph.inputs) there.push_back(i.name);
        } else {
            there.assign(dim_names_.begin(), dim_names_.end());
        }
        throw UserError(id, std::string(option) + " " + name + ": the model has no such " + what + "; it has " + join(there) + "." +
                                did_you_mean(name, there));
    }

    Value initializer(const TensorData &tensor) {
        Value v;
        if (!dtype_of(tensor.type)) {
            refusals_.unknown.insert(tensor.name);
            refusals_.add("elements of " + type_name(tensor.type), "tensor '" + tensor.name + "'", "Cast them in the model.");
            return v;
        }
        Array array = elements(tensor, model_);
        v.dtype = array.dtype, v.name = tensor.name;
        for (int64_t e : array.extents) v.axes.push_back({Expr(e), ""});
        v.constant = std::make_shared<const Array>(std::move(array));
        return v;
    }

    void declare_inputs() {
        std::map<std::string, Expr> symbols;
        for (const ValueInfo &info : model_.graph.inputs) {
            if (model_.graph.initializers.count(info.name)) continue;
            const std::optional<DType> type = dtype_of(info.type);
            if (!info.is_tensor || !type) {
                refusals_.unknown.insert(info.name);
                refusals_.add(info.is_tensor ? "elements of " + type_name(info.type) : "an input that is no tensor",
                              "input '" + info.name + "'", "Convert it before the model.");
                continue;
            }
            if (!info.extents) {
                refusals_.unknown.insert(info.name);
                refusals_.add("an input without a rank", "input '" + info.name + "'", "Export the model with the ranks of its inputs.");
                continue;
            }
            Value value;
            value.dtype = *type, value.name = info.name;
            for (size_t i = 0; i < info.extents->size(); i++) {
                const ValueInfo::Extent &e = (*info.extents)[i];
                const std::string place = info.name + "." + std::to_string(i);
                const std::string key = e.name.empty() || e.name == "?" ? place : e.name;
                // What an option says of the dim, by either of its names.
                auto said = [&](const std::map<std::string, int64_t> &option) -> std::optional<int64_t> {
                    auto it = option.find(e.name.empty() ? place : e.name);
                    if (it == option.end()) it = option.find(place);
                    if (it == option.end()) return std::nullopt;
                    shaped_.insert(it->first);
                    return it->second;
                };
                const std::optional<int64_t> given = said(options_.shape);
                if (!e.number) dim_names_.insert(key);
                Expr size;
                if (given) size = Expr(*given);
                else if (e.number) size = Expr(*e.number);
                else {
                    if (!symbols.count(key)) {
                        const int64_t of = said(options_.multiples).value_or(1);
                        if (of < 1 || of > 1 << 20)
                            throw UserError("onnx.shape", "--multiple " + key + "=" + std::to_string(of) + ": expected 1 to 2^20.");
                        const std::string wanted = e.name.empty() || e.name == "?" ? info.name + "_" + std::to_string(i) : e.name;
                        symbols[key] = space_.symbol(wanted, true, true, of);
                        made_.dims.push_back({symbols[key]->name, "input '" + info.name + "', axis " + std::to_string(i), of});
                    }
                    size = symbols[key];
                }
                value.axes.push_back({size, ""});
            }
            if (const auto bound = options_.bind.find(info.name); bound != options_.bind.end()) {
                bound_.insert(info.name);
                const Array &given = bound->second;
                bool fits = given.extents.size() == value.axes.size() && given.dtype == *type;
                for (size_t i = 0; i < value.axes.size() && fits; i++)
                    fits = !value.axes[i].extent.is_constant() || value.axes[i].extent.is_constant(given.extents[i]);
                if (!fits) throw UserError("onnx.bind", "--bind " + info.name + ": its type or shape is not that of the input.");
                value.constant = std::make_shared<const Array>(given);
                for (size_t i = 0; i < given.extents.size(); i++) value.axes[i] = {Expr(given.extents[i]), ""};
            } else {
                std::vector<Dim> dims;
                std::set<std::string> taken;
                for (Axis &a : value.axes) {
                    dims.push_back(space_.dim(a.extent, taken));
                    a.dim = dims.back().name;
                    taken.insert(a.dim);
                }
                const std::string name = space_.fresh(info.name);
                made_.inputs[name] = info.name;
                value.tile = space_.f.input(name, dims, *type);
            }
            names_.values[info.name] = value;
        }
    }

    void declare_outputs() {
        std::vector<std::string> wanted = options_.until;
        if (wanted.empty())
            for (const ValueInfo &o : model_.graph.outputs) wanted.push_back(o.name);
        if (wanted.empty()) throw UserError("onnx.output", "the model has no outputs.");
        const Node none;
        Context c(space_, none, {}, 0, model_, this);
        for (const std::string &name : wanted) {
            const Value *v = names_.find(name);
            if (!v) {
                if (!refusals_.unknown.count(name))
                    throw UserError("onnx.output", "no node of the model makes its output '" + name + "'." +
                                                       (options_.until.empty() ? "" : " Name a value of the graph with --until."));
                continue;
            }
            std::vector<Axis> axes;
            const Tile spread = c.spread(*v, axes);
            std::vector<std::string> dims;
            for (const Axis &a : axes) dims.push_back(a.dim);
            const std::string own = space_.fresh(name);
            made_.outputs[own] = name;
            const Tile tile(&space_.f, space_.resolved(spread.value()), dims);
            // What is an input as it is, or another output, becomes a stage of its own.
            space_.f.output(own, tile, v->dtype);
        }
    }

    void walk(const std::vector<Node> &nodes) {
        const std::vector<const Node *> needed = needed_of(nodes);
        std::map<std::string, int64_t> readers;
        for (const Node *n : needed)
            for (const std::string &i : n->inputs) readers[i]++;
        for (const Node *n : needed) step(*n, readers);
    }

    // Those that the outputs need, where only some are wanted.
    std::vector<const Node *> needed_of(const std::vector<Node> &nodes) const {
        std::vector<const Node *> all;
        if (options_.until.empty() || &nodes != &model_.graph.nodes) {
            for (const Node &n : nodes) all.push_back(&n);
            return all;
        }
        std::set<std::string> wanted(options_.until.begin(), options_.until.end());
        for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
            if (std::none_of(n->outputs.begin(), n->outputs.end(), [&](const std::string &o) { return wanted.count(o); })) continue;
            wanted.insert(n->inputs.begin(), n->inputs.end());
            all.push_back(&*n);
        }
        std::reverse(all.begin(), all.end());
        return all;
    }

    // The call of a part, at its last node; false where it cannot be one, and its nodes are imported one by one.
    bool called(const Part &part) {
        std::map<std::string, Value> values;
        for (const Node *n : part.nodes)
            for (const std::string &name : n->inputs)
                if (const Value *v = current_->find(name)) values[name] = *v;
        std::optional<Callee> callee = callee_of(part, space_, model_, values);
        if (!callee) return false;
        nlohmann::json text = to_json(*callee->algorithm);
        text.erase("name");
        std::shared_ptr<const Algorithm> &shared = callees_[text.dump()];
        if (!shared) {
            Algorithm named = *callee->algorithm;
            std::string base;
            for (const Node *n : part.nodes) {
                if (base.size() > 24) break;
                for (char c : n->op) base += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
                if (n != part.nodes.back()) base += '_';
            }
            if (base.ends_with('_')) base.pop_back();
            named.name = base;
            for (int i = 2; callee_names_.count(named.name); i++) named.name = base + "_" + std::to_string(i);
            callee_names_.insert(named.name);
            shared = std::make_shared<const Algorithm>(std::move(named));
        }
        // Dims of the callee are bound to canonical ones of their extents, each to its own.
        std::map<std::string, std::string> bound;
        std::set<std::string> taken;
        auto extent_in_caller = [&](const Dim &d) {
            if (d.kind == DimKind::fixed) return Expr(d.value);
            if (d.kind == DimKind::derived) return callee->meaning.in_caller(d.size);
            return callee->meaning.extents.at(d.name);
        };
        auto bind = [&](const std::string &dim) {
            auto [it, fresh] = bound.emplace(dim, "");
            if (fresh) {
                it->second = space_.dim(extent_in_caller(shared->dim(dim)), taken).name;
                taken.insert(it->second);
            }
            return it->second;
        };
        // Weights come last, so that they are declared over the dims that data have.
        std::vector<Tile> arguments(callee->tensors.size());
        for (size_t i = 0; i < callee->tensors.size(); i++) {
            if (callee->inputs[i].empty()) continue;
            const Tile given = values.at(callee->inputs[i]).tile;
            const Tile tile(&space_.f, space_.resolved(given.value()), given.dims());
            std::map<std::string, Expr> index;
            std::vector<std::string> dims;
            const std::vector<std::string> own = shared->find_tensor(callee->tensors[i])->dims;
            for (size_t d = 0; d < own.size(); d++) {
                dims.push_back(bind(own[d]));
                index[tile.dims().at(d)] = variable(dims.back());
            }
            arguments[i] = Tile(&space_.f, substitute(tile.value(), index), dims);
        }
        size_t next_weight = 0;
        for (size_t i = 0; i < callee->tensors.size(); i++) {
            if (!callee->inputs[i].empty()) continue;
            const Weight &w = callee->weights.at(next_weight++);
            Value value = w.value;
            for (size_t a = 0; a < value.axes.size(); a++) value.axes[a] = {Expr(value.constant->extents[a]), ""};
            std::vector<Dim> dims;
            std::map<std::string, Expr> index;
            std::vector<std::string> names;
            for (const std::string &d : shared->find_tensor(callee->tensors[i])->dims) {
                names.push_back(bind(d));
                dims.push_back(space_.f.dim_named(names.back()));
            }
            const Tile tile = space_.weight(value, w.order, dims);
            for (size_t d = 0; d < names.size(); d++) index[tile.dims().at(d)] = variable(names[d]);
            arguments[i] = Tile(&space_.f, substitute(tile.value(), index), names);
        }
        std::map<std::string, Tile> parameters;
        for (const auto &[name, number] : callee->parameters) parameters[name] = space_.f.scalar(DType::f32, number);
        const Tile result = space_.f.call(space_.fresh(part.nodes.back()->outputs[0]), *shared, arguments, parameters)[0];
        Value value = callee->result;
        value.name = part.nodes.back()->outputs[0];
        std::vector<std::string> own = value.tile.dims(), dims = result.dims();
        std::map<std::string, Expr> index;
        std::set<std::string> used;
        for (Axis &a : value.axes) {
            a.extent = space_.simplified(callee->meaning.in_caller(a.extent));
            if (a.dim.empty()) continue;
            const size_t at = static_cast<size_t>(std::find(own.begin(), own.end(), a.dim) - own.begin());
            a.dim = space_.dim(a.extent, used).name;
            used.insert(a.dim);
            index[dims.at(at)] = variable(a.dim);
            dims[at] = a.dim;
        }
        value.tile = Tile(&space_.f, substitute(result.value(), index), dims);
        writes_->values[value.name] = value;
        return true;
    }

    void step(const Node &node, const std::map<std::string, int64_t> &readers) {
        if (const auto part = parts_.find(&node); part != parts_.end()) {
            if (part->second->nodes.back() != &node) return;
            const Part &whole = *part->second;
            if (called(whole)) {
                for (const Node *n : whole.nodes) made_.operators[n->op]++;
                return;
            }
            for (const Node *n : whole.nodes) parts_.erase(n);
            for (const Node *n : whole.nodes) step(*n, readers);
            return;
        }
        made_.operators[(node.domain.empty() ? "" : node.domain + ".") + node.op]++;
        std::vector<Value> inputs;
        bool is_reachable = true;
        for (const std::string &name : node.inputs) {
            inputs.emplace_back();
            if (name.empty()) continue;
            const Value *v = current_->find(name);
            if (!v && !refusals_.unknown.count(name))
                throw UserError("onnx.graph", node.describe() + ": its input '" + name +
                                                  "' is made by no node before it; ONNX wants nodes in the order of their use.");
            is_reachable &= v != nullptr;
            if (v) inputs.back() = *v, inputs.back().name = name;
        }
        auto give_up = [&](const std::string &why, const std::string &remedy) {
            refusals_.add(why, node.describe(), remedy);
            refusals_.unknown.insert(node.outputs.begin(), node.outputs.end());
        };
        const Operator *op = find_operator(node.domain, node.op);
        const ModelFunction *function = function_of(node);
        if (!op && !function)
            return give_up("the operator " + (node.domain.empty() ? "" : node.domain + ".") + node.op,
                           "Do it in your own code after the model (--until), or export the model without it.");
        if (!is_reachable) {
            refusals_.unknown.insert(node.outputs.begin(), node.outputs.end());
            return;
        }
        try {
            const size_t steps = space_.f.algorithm().steps.size();
            std::vector<Value> results = function ? run_function(*function, node, inputs) : apply(*op, node, inputs);
            if (!function && current_ == &names_) note_facts(node, results, steps);
            for (size_t i = 0; i < results.size() && i < node.outputs.size(); i++) {
                if (node.outputs[i].empty()) continue;
                Value &r = results[i];
                r.name = node.outputs[i];
                const auto uses = readers.find(node.outputs[i]);
                if (uses != readers.end() && uses->second > 1) keep_once(node, r);
                writes_->values[node.outputs[i]] = r;
            }
        } catch (const Refused &) { refusals_.unknown.insert(node.outputs.begin(), node.outputs.end()); } catch (const UserError &e) {
            std::string why = e.message();
            const std::string prefix = node.describe() + ": ";
            if (why.starts_with(prefix)) why = node.op + ": " + why.substr(prefix.size());
            if (!e.remedy().empty() && why.ends_with(e.remedy())) why = why.substr(0, why.size() - e.remedy().size());
            why.erase(why.find_last_not_of(' ') + 1);
            give_up(why, e.remedy());
        }
    }

    void note_facts(const Node &node, const std::vector<Value> &results, size_t steps_before) {
        NodeFacts &facts = facts_[&node];
        const std::vector<Step> &steps = space_.f.algorithm().steps;
        for (size_t i = steps_before; i < steps.size(); i++) {
            const auto *stage = std::get_if<Stage>(&steps[i]);
            facts.folds |= stage && is_fold(*stage);
        }
        facts.is_plain = steps.size() == steps_before && !results.empty() && !results[0].is_constant() && !results[0].is_known();
        for (const Value &r : results) {
            std::vector<Expr> extents;
            for (const Axis &a : r.axes) extents.push_back(a.extent);
            facts.extents.push_back(extents);
        }
    }

    // A value with several readers is computed once, where it is more than reads and a few operations.
    void keep_once(const Node &node, Value &v) {
        if (v.is_constant() || v.is_known()) return;
        size_t operations = 0;
        bool functions = false;
        tessera::walk(v.tile.value(), [&](const Expr &e) {
            operations += e.kind() == ExprKind::operation && is_float(e.type());
            functions |= e.kind() == ExprKind::function;
        });
        if (!functions && operations <= 2) return;
        Context c(space_, node, {}, 0, model_, this);
        v = c.kept(v);
    }

    const ModelFunction *function_of(const Node &node) const {
        for (const ModelFunction &f : model_.functions)
            if (f.name == node.op && (f.domain == node.domain || (f.domain == "ai.onnx" && node.domain.empty()))) return &f;
        return nullptr;
    }

    std::vector<Value> run_function(const ModelFunction &function, const Node &node, const std::vector<Value> &inputs) {
        Graph body;
        body.name = function.name;
        for (const std::string &i : function.inputs) body.inputs.emplace_back().name = i;
        for (const std::string &o : function.outputs) body.outputs.emplace_back().name = o;
        body.nodes = function.nodes;
        for (Node &n : body.nodes) {
            std::map<std::string, Attribute> own;
            for (auto &[name, a] : n.attributes) {
                if (a.refers_to.empty()) {
                    own[name] = a;
                    continue;
                }
                const Attribute *given = node.find(a.refers_to);
                const auto fallback = function.defaults.find(a.refers_to);
                if (given) own[name] = *given;
                else if (fallback != function.defaults.end()) own[name] = fallback->second;
            }
            n.attributes = own;
        }
        std::vector<Value> given;
        for (size_t i = 0; i < body.inputs.size(); i++) given.push_back(i < inputs.size() ? inputs[i] : Value());
        return run(body, given);
    }

    std::vector<Value> apply(const Operator &op, const Node &node, const std::vector<Value> &inputs) {
        const int64_t opset = model_.opset(node.domain);
        bool constants = true, known = true;
        for (size_t i = 0; i < inputs.size(); i++) {
            if (!node.has_input(i)) continue;
            constants &= inputs[i].is_constant();
            known &= inputs[i].is_constant() || inputs[i].is_known();
        }
        if (constants)
            if (auto folded = fold(op, node, inputs, opset)) return made_.folded++, *folded;
        Context c(space_, node, inputs, opset, model_, this);
        const Builder::Scope scope = space_.f.scope(c.stage_name());
        std::vector<Value> results = op.handler(c);
        bool all_known = known;
        for (Value &r : results) {
            if (r.is_constant() || r.is_known()) continue;
            if (!known || !element_wise(c, r)) all_known = false;
            if (!r.is_constant() && !r.is_known()) r.tile = Tile(&space_.f, space_.resolved(r.tile.value()), r.tile.dims());
        }
        if (all_known) made_.folded++;
        return results;
    }

    // A result that is made of known integers alone becomes known itself, element by element.
    bool element_wise(Context &c, Value &r) {
        if (is_float(r.dtype) || r.axes.size() > 8) return false;
        std::vector<int64_t> extents;
        int64_t count = 1;
        for (const Axis &a : r.axes) {
            if (!a.extent.is_constant()) return false;
            extents.push_back(a.extent->value.integer);
            if (__builtin_mul_overflow(count, extents.back(), &count) || count > most_known) return false;
        }
        std::vector<Expr> elements;
        for (int64_t at = 0; at < count; at++) {
            std::map<std::string, Expr> index;
            int64_t rest = at;
            for (size_t i = extents.size(); i-- > 0;) {
                if (!r.axes[i].dim.empty()) index[r.axes[i].dim] = Expr(rest % extents[i]);
                rest /= extents[i];
            }
            const Expr e = space_.as_index(space_.resolved(substitute(r.tile.value(), index)));
            if (!e.defined()) return false;
            bool has_loads = false;
            tessera::walk(e, [&](const Expr &n) { has_loads |= n.kind() == ExprKind::load || n.kind() == ExprKind::variable; });
            if (has_loads) return false;
            elements.push_back(e);
        }
        r = c.integers_value(elements, extents, r.dtype);
        return true;
    }

    // The node of constants, computed by the reference interpreter. Nothing where the operator draws numbers or takes graphs.
    std::optional<std::vector<Value>> fold(const Operator &op, const Node &node, const std::vector<Value> &inputs, int64_t opset) {
        if (std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto &a) { return a.second.graph != nullptr; })) return {};
        Space own("constants", Numerics{});
        Context c(own, node, inputs, opset, model_, nullptr);
        std::vector<Value> results = op.handler(c);
        std::vector<std::string> names(results.size());
        bool computes = false;
        for (size_t i = 0; i < results.size(); i++) {
            Value &r = results[i];
            if (r.is_constant() || (i < node.outputs.size() && node.outputs[i].empty())) continue;
            std::vector<Axis> axes;
            const Tile spread = c.spread(r, axes);
            std::vector<std::string> dims;
            for (const Axis &a : axes) {
                if (!a.extent.is_constant()) return {};
                dims.push_back(a.dim);
            }
            names[i] = own.fresh("result");
            own.f.output(names[i], Tile(&own.f, own.resolved(spread.value()), dims), r.dtype);
            computes = true;
        }
        if (!computes) return results;
        const Algorithm algorithm = own.f.build();
        if (algorithm.draws) return {};
        std::map<std::string, Array> tensors;
        for (Weight &w : own.weights) tensors[w.name] = std::move(w.array);
        std::map<std::string, Array> computed = evaluate(algorithm, std::move(tensors));
        for (size_t i = 0; i < results.size(); i++)
            if (!names[i].empty()) results[i] = c.constant(std::move(computed.at(names[i])));
        return results;
    }

    void report() const {
        if (refusals_.order.empty()) return;
        std::string text = "the model has what Tessera cannot import:";
        for (const std::string &why : refusals_.order) {
            const Refusals::Line &line = refusals_.lines.at(why);
            text += "\n  " + why + (why.ends_with('.') ? "" : ":") + " " + line.first +
                    (line.count > 1 ? " and " + std::to_string(line.count - 1) + " more" : "") + ". " + line.remedy;
        }
        throw UserError("onnx.refused", text);
    }
};

}  // namespace

Imported import_model(const Model &model, const ImportOptions &options) {
    Walker plain(model, options);
    Imported whole = plain.whole();
    if (!options.outline) return whole;
    const std::vector<Part> parts = parts_of(model.graph, plain.facts());
    if (parts.size() < 2) return whole;  // a program of one call is its callee
    return Walker(model, options, parts).whole();
}

}  // namespace tessera::onnx
