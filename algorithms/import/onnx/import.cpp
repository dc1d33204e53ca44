#include "algorithms/import/onnx/import.h"

#include <algorithm>
#include <optional>
#include <set>

#include "algorithms/import/onnx/callees.h"
#include "algorithms/import/onnx/constants.h"
#include "algorithms/import/onnx/exported.h"
#include "algorithms/import/onnx/layers.h"
#include "algorithms/import/onnx/needs.h"
#include "algorithms/import/onnx/operators.h"
#include "algorithms/import/onnx/outline.h"
#include "algorithms/import/onnx/products_of_codes.h"
#include "algorithms/import/onnx/refusals.h"
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

class Walker : public Runner {
public:
    Walker(const Model &model, const ImportOptions &options, const std::vector<Part> &parts = {})
        : model_(model), options_(options), own_(std::in_place, options.name, Numerics{}), space_(*own_) {
        for (const Part &p : parts)
            for (const Node *n : p.nodes) parts_[n] = &p;
    }
    Walker(const Model &model, const ImportOptions &options, Space &space) : model_(model), options_(options), space_(space) {}

    const std::map<const Node *, NodeFacts> &facts() const { return facts_; }

    static constexpr const char *bounds_id = "algorithm.bounds";

    // What does not hold for all extents may hold for one, or for some.
    std::string remedy_of_bounds() const {
        std::vector<std::string> dims;
        for (const ImportedDim &d : made_.dims) dims.push_back(d.name + " (" + d.origin + ")");
        if (dims.empty()) return "Export the model again, so that it reads what is there.";
        return "It does not hold for all extents of dynamic dims. Say an extent by --shape, or what bounds it by --multiple or --max; they "
               "are " +
               join(dims) + ".";
    }

    Imported whole() {
        declare_inputs();
        for (const auto &[name, tensor] : model_.graph.initializers) names_.values[name] = initializer(tensor);
        std::vector<std::string> outputs = options_.until;
        if (outputs.empty())
            for (const ValueInfo &o : model_.graph.outputs) outputs.push_back(o.name);
        walk(model_.graph.nodes, outputs);
        declare_outputs(outputs);
        for (const auto &[input, values] : options_.bind)
            if (!bound_.count(input)) unknown_option("onnx.bind", "--bind", input, "input");
        for (const auto &[dim, value] : options_.shape)
            if (!shaped_.count(dim)) unknown_option("onnx.shape", "--shape", dim, "dim");
        for (const auto &[dim, of] : options_.multiples)
            if (!shaped_.count(dim)) unknown_option("onnx.shape", "--multiple", dim, "dim");
        for (const auto &[dim, of] : options_.most)
            if (!shaped_.count(dim)) unknown_option("onnx.shape", "--max", dim, "dim");
        refusals_.report();
        try {
            made_.program = space_.f.build();
        } catch (const UserError &e) {
            if (e.id() != bounds_id || !e.remedy().empty()) throw;
            throw UserError(e.id(), e.message(), remedy_of_bounds());
        }
        made_.weights = std::move(space_.weights);
        return std::move(made_);
    }

    std::vector<Value> run(const Graph &graph, const std::vector<Value> &inputs) override {
        Names inner{current_, {}};
        for (size_t i = 0; i < graph.inputs.size() && i < inputs.size(); i++) inner.values[graph.inputs[i].name] = inputs[i];
        return results_in(graph, inner);
    }

    std::vector<Value> run_in(Space &space, const Graph &graph, const std::map<std::string, Value> &names) override {
        Walker walker(model_, options_, space);
        walker.rounds_left = rounds_left;
        Names inner{nullptr, names};
        try {
            std::vector<Value> results = walker.results_in(graph, inner);
            walker.refusals_.report();
            return results;
        } catch (const Refused &) {
            walker.refusals_.report();
            throw;
        }
    }

    const Value *find(const std::string &name) const override { return current_->find(name); }

private:
    const Model &model_;
    const ImportOptions &options_;
    std::optional<Space> own_;
    Space &space_;
    Names names_;
    const Names *current_ = &names_;
    Names *writes_ = &names_;
    Refusals refusals_;
    Imported made_;
    std::set<std::string> bound_, shaped_, dim_names_;  // as options name them
    std::map<std::string, std::string> stages_;         // stages by the values of the graph that they hold
    std::map<const Node *, const Part *> parts_;
    std::map<const Node *, NodeFacts> facts_;
    Callees callees_;

    struct Refused {};  // a graph within another needs what is refused already

    std::vector<Value> results_in(const Graph &graph, Names &inner) {
        const Entered entered(*this, inner);
        for (const auto &[name, tensor] : graph.initializers) inner.values[name] = initializer(tensor);
        std::vector<std::string> outputs;
        for (const ValueInfo &o : graph.outputs) outputs.push_back(o.name);
        walk(graph.nodes, outputs);
        std::vector<Value> results;
        for (const ValueInfo &o : graph.outputs) {
            const Value *v = inner.find(o.name);
            if (!v) throw Refused();
            results.push_back(*v);
        }
        return results;
    }
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

    // That --shape does not say other than the model, --multiple or --max.
    static void check_extent(const std::string &dim, int64_t given, std::optional<int64_t> there, std::optional<int64_t> multiple,
                             std::optional<int64_t> most) {
        std::string why;
        if (there && *there != given) why = "the model has " + std::to_string(*there) + " there.";
        else if (most && given > *most) why = "--max says at most " + std::to_string(*most) + ".";
        else if (multiple && *multiple > 0 && given % *multiple) why = "--multiple says a multiple of " + std::to_string(*multiple) + ".";
        if (!why.empty())
            throw UserError("onnx.shape", "--shape " + dim + "=" + std::to_string(given) + ": " + why, "Say one of them, or export anew.");
    }

    // What a dim of an input is called: by its own name, or by its place.
    static std::string key_of(const ValueInfo &info, size_t axis) {
        const std::string &name = (*info.extents)[axis].name;
        return name.empty() || name == "?" ? info.name + "." + std::to_string(axis) : name;
    }

    // The extents of dims that inputs with known values have; other inputs may have them too.
    std::map<std::string, int64_t> dims_of_bound_inputs() const {
        std::map<std::string, int64_t> extents;
        for (const ValueInfo &info : model_.graph.inputs) {
            const auto bound = options_.bind.find(info.name);
            if (bound == options_.bind.end() || !info.extents || info.extents->size() != bound->second.extents.size()) continue;
            for (size_t i = 0; i < info.extents->size(); i++) {
                const ValueInfo::Extent &e = (*info.extents)[i];
                if (e.number) continue;
                const std::string key = key_of(info, i);
                const auto [known, added] = extents.emplace(key, bound->second.extents[i]);
                if (!added && known->second != bound->second.extents[i])
                    throw UserError("onnx.bind", "--bind " + info.name + ": its axis " + std::to_string(i) + " has " +
                                                     std::to_string(bound->second.extents[i]) + " elements, and the dim '" + key +
                                                     "' has " + std::to_string(known->second) + " by another input that is bound.");
            }
        }
        return extents;
    }

    void declare_inputs() {
        std::map<std::string, Expr> symbols;
        const std::map<std::string, int64_t> of_bound = dims_of_bound_inputs();
        for (const ValueInfo &info : model_.graph.inputs) {
            if (model_.graph.initializers.count(info.name)) {
                // Before version 4 of the format every initializer had to be an input.
                if (model_.ir_version >= 4) made_.fixed_defaults.push_back(info.name);
                continue;
            }
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
                const std::string key = key_of(info, i);
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
                if (given) check_extent(key, *given, e.number, said(options_.multiples), said(options_.most));
                Expr size;
                if (given) size = Expr(*given);
                else if (const auto bound = of_bound.find(key); bound != of_bound.end()) size = Expr(bound->second);
                else if (e.number) size = Expr(*e.number);
                else {
                    if (!symbols.count(key)) {
                        const int64_t of = said(options_.multiples).value_or(1);
                        if (of < 1 || of > 1 << 20)
                            throw UserError("onnx.shape", "--multiple " + key + "=" + std::to_string(of) + ": expected 1 to 2^20.");
                        const std::string wanted = e.name.empty() || e.name == "?" ? info.name + "_" + std::to_string(i) : e.name;
                        const int64_t most = said(options_.most).value_or(most_extent);
                        if (most < of || most > most_extent)
                            throw UserError("onnx.shape",
                                            "--max " + key + "=" + std::to_string(most) + ": expected " + std::to_string(of) + " to 10^9.");
                        symbols[key] = space_.symbol(wanted, true, true, of, most);
                        made_.dims.push_back({symbols[key]->name, "input '" + info.name + "', axis " + std::to_string(i), of, most});
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

    void declare_outputs(const std::vector<std::string> &wanted) {
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
            const Tile tile(&space_.f, space_.resolved(spread.value()), dims);
            // A stage that others read is the output itself. What is an input as it is, or another output, becomes a stage of its own.
            const Expr value = tile.value();
            const auto kept = stages_.find(name);
            const bool is_kept =
                kept != stages_.end() && value.kind() == ExprKind::load && value->name == kept->second && value.type() == v->dtype &&
                !made_.outputs.count(value->name) &&
                std::equal(value->args.begin(), value->args.end(), dims.begin(), dims.end(),
                           [](const Expr &e, const std::string &d) { return e.kind() == ExprKind::variable && e->name == d; });
            const std::string own = is_kept ? value->name : space_.fresh(name);
            made_.outputs[own] = name;
            space_.f.output(own, tile, v->dtype);
        }
    }

    void walk(const std::vector<Node> &nodes, const std::vector<std::string> &outputs) {
        const std::vector<const Node *> needed = needed_of(nodes);
        std::map<std::string, int64_t> readers;
        for (const std::string &o : outputs) readers[o]++;
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
        const std::optional<Value> result = callees_.call(part, space_, model_, values);
        if (result) writes_->values[result->name] = *result;
        return result.has_value();
    }

    void count(const Node &node) { made_.operators[(node.domain.empty() ? "" : node.domain + ".") + node.op]++; }

    void step(const Node &node, const std::map<std::string, int64_t> &readers) {
        if (const auto part = parts_.find(&node); part != parts_.end()) {
            if (part->second->nodes.back() != &node) return;
            const Part &whole = *part->second;
            if (called(whole)) {
                for (const Node *n : whole.nodes) count(*n);
                return;
            }
            for (const Node *n : whole.nodes) parts_.erase(n);
            for (const Node *n : whole.nodes) step(*n, readers);
            return;
        }
        count(node);
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
            give_up(why, e.id() == bounds_id && e.remedy().empty() ? remedy_of_bounds() : e.remedy());
        } catch (const std::bad_alloc &) { throw; } catch (const std::exception &e) {
            // Inputs or attributes that no check of the operator told apart.
            give_up(node.op + ": it cannot be built of these inputs and attributes: " + e.what(), "Check the exporter.");
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
        const Expr &value = v.tile.value();
        if (current_ == &names_ && v.name == node.outputs[0] && value.kind() == ExprKind::load) stages_[v.name] = value->name;
    }

    const ModelFunction *function_of(const Node &node) const {
        for (const ModelFunction &f : model_.functions)
            if (f.name == node.op && (f.domain == node.domain || (f.domain == "ai.onnx" && node.domain.empty()))) return &f;
        return nullptr;
    }

    // Functions within each other, as long as one is open.
    struct Level {
        int &levels;
        Level(int &of, const std::string &function) : levels(of) {
            if (++levels <= most_levels) return;
            levels--;
            throw UserError("onnx.depth", "the function '" + function + "' is called by itself, or over " + std::to_string(most_levels) +
                                              " deep; expected functions without cycles. Export the model again.");
        }
        ~Level() { levels--; }
        Level(const Level &) = delete;
        Level &operator=(const Level &) = delete;
        static constexpr int most_levels = 64;
    };
    int levels_ = 0;

    std::vector<Value> run_function(const ModelFunction &function, const Node &node, const std::vector<Value> &inputs) {
        const Level level(levels_, function.name);
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
        check_needs(Context(space_, node, inputs, opset, model_, this));
        bool constants = true, known = true;
        for (size_t i = 0; i < inputs.size(); i++) {
            if (!node.has_input(i)) continue;
            constants &= inputs[i].is_constant();
            known &= inputs[i].is_constant() || inputs[i].is_known();
        }
        if (constants)
            if (auto folded = folded_node(op, node, inputs, model_)) return made_.folded++, *folded;
        std::vector<Value> given = inputs;
        if (known)
            for (Value &v : given) v = as_known(v);
        Context c(space_, node, given, opset, model_, this);
        const Builder::Scope scope = space_.f.scope(c.stage_name());
        std::vector<Value> results = op.handler(c);
        bool all_known = known;
        for (Value &r : results) {
            if (r.is_constant() || r.is_known()) continue;
            if (!known || !become_known(space_, c, r)) all_known = false;
            if (!r.is_constant() && !r.is_known()) r.tile = Tile(&space_.f, space_.resolved(r.tile.value()), r.tile.dims());
        }
        if (all_known) made_.folded++;
        return results;
    }
};

}  // namespace

// The newest opset whose operators the importer was read against.
static constexpr int64_t newest_opset = 28;

static void check_opset(const Model &model) {
    const auto it = model.opsets.find("");
    const auto is_onnx = [](const Node &n) { return n.domain.empty(); };
    if (it == model.opsets.end() && std::none_of(model.graph.nodes.begin(), model.graph.nodes.end(), is_onnx)) return;
    if (it == model.opsets.end() || it->second < 1 || it->second > newest_opset)
        throw UserError("onnx.opset",
                        "the model " + (it == model.opsets.end() ? "says no opset" : "is of opset " + std::to_string(it->second)) +
                            " of ONNX's own operators (opset_import); expected 1 to " + std::to_string(newest_opset) + ".",
                        "Export it for one of these.");
}

static Imported import_graph(const Model &model, const ImportOptions &options) {
    Walker plain(model, options);
    Imported whole = plain.whole();
    if (!options.outline) return whole;
    const std::vector<Part> parts = parts_of(model.graph, plain.facts());
    if (parts.size() < 2) return whole;  // a program of one call is its callee
    return with_layers(Walker(model, options, parts).whole());
}

Imported import_model(const Model &model, const ImportOptions &options) {
    check_opset(model);
    if (std::optional<Imported> exported = import_exported(model, options)) return std::move(*exported);
    std::optional<Graph> graph = with_products_of_codes(model, {options.until.begin(), options.until.end()});
    if (!graph) return import_graph(model, options);
    Model changed;  // its tensors' bytes are those of the content that was read
    changed.folder = model.folder, changed.opsets = model.opsets, changed.ir_version = model.ir_version;
    changed.functions = model.functions, changed.graph = std::move(*graph);
    return import_graph(changed, options);
}

}  // namespace tessera::onnx
