#include "compiler/interpret/interpret.h"

#include <algorithm>
#include <deque>
#include <set>

#include "algorithms/evaluate/tape_codes.h"
#include "compiler/tile/conditional_reads.h"
#include "compiler/tile/fragments.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int poison = 0xa7;
enum : uint8_t { unwritten, defined, spoiled };  // spoiled: by an operand that was unwritten

using Action = std::function<void()>;
using Shadow = std::vector<uint8_t>;  // one of the states above for each element, row-major
using Shadows = std::map<std::string, Shadow>;

class Interpreter {
public:
    Interpreter(const TileProgram &p, const std::map<std::string, TensorView> &arguments, const Extents &extents,
                const std::map<std::string, Scalar> &parameters, const InterpretOptions &asked, const std::vector<TileProgram> &all,
                const Shadows &shadows = {})
        : program(p), programs(all), options(asked), checked(asked.checked) {
        for (const Argument &a : p.arguments) bind(a.tensor, arguments, a.written, a.written && !a.read, shadows);
        for (const Tensor &t : p.constants) bind(t, arguments, false, false, {});
        for (auto &[name, value] : extents) set_extent(name, value);
        for (const Parameter &q : p.parameters) {
            auto it = parameters.find(q.name);
            require(it != parameters.end() && it->second.type == q.dtype, "parameter " + q.name + " has a value of its type");
            initial.emplace_back(next, to_register(it->second));
            parameter_slots[q.name] = next++;
        }
        body = compile(p.body);
        frame.resize(static_cast<size_t>(next));
        for (auto &[slot, value] : initial) frame[static_cast<size_t>(slot)] = value;
        for (const Tape *tape : tapes) tape->prepare(frame.data());
    }

    void run() {
        if (options.follower) options.follower->begins(frame.size(), passed_registers);
        try {
            for (const Action &action : body) action();
        } catch (const InternalError &e) {
            std::string text = program.name + (current.empty() ? "" : ", storing to " + current);
            for (auto &[name, slot] : active) text += ", " + name + " = " + std::to_string(frame[static_cast<size_t>(slot)].integer);
            std::string_view what = e.what();
            what.remove_prefix(std::min(what.size(), std::string_view("internal error: ").size()));
            throw InternalError(text + ": " + std::string(what.substr(0, what.find(" (this is"))));
        }
        if (options.follower) options.follower->ends();
        for (size_t t = 0; t < tensors.size(); t++)
            if (outputs[t])
                for (size_t i = 0; i < written[t].size(); i++)
                    if (written[t][i] == unwritten)
                        throw InternalError(program.name + ": " + tensors[t].name + index_text(t, i) + " is never written");
    }

private:
    struct Read {               // of a buffer whose elements start unwritten
        int tensor, condition;  // condition: -1 for always
        std::vector<int> index;
    };
    struct Evaluation {
        Tape tape;
        std::vector<Read> reads;
        std::vector<int> sites = {};  // of the tape's instructions that load; where somebody looks on
    };

    const TileProgram &program;
    const std::vector<TileProgram> &programs;  // that may be invoked
    const InterpretOptions &options;
    bool checked;
    std::map<std::string, int> variables, tensor_of, parameter_slots, extent_slots;
    Extents extent_values;
    std::vector<std::pair<int, Register>> initial;
    std::vector<std::pair<int, int>> passed_registers;  // the caller's, and those of the parameters that have their values
    int next = 0;
    std::vector<const Tape *> tapes;
    std::deque<TileBody> expansions;  // whose nodes actions refer to
    std::vector<Action> body;

    std::vector<Register> frame;
    std::vector<TensorView> tensors;
    std::vector<std::vector<std::byte>> storage;
    std::vector<Shadow> written;  // empty: not watched
    std::vector<bool> writable, watched, outputs;
    std::vector<std::pair<std::string, int>> active;
    std::string current;

    int add_tensor(const std::string &name, TensorView view, bool may_write, bool watch, bool output) {
        int position = static_cast<int>(tensors.size());
        view.name = name;
        int64_t count = 1;
        for (int64_t e : view.extents) count *= e;
        tensors.push_back(std::move(view));
        storage.emplace_back();
        written.emplace_back(watch ? static_cast<size_t>(count) : 0);
        writable.push_back(may_write), watched.push_back(watch), outputs.push_back(output);
        tensor_of[name] = position;
        return position;
    }

    void bind(const Tensor &tensor, const std::map<std::string, TensorView> &arguments, bool may_write, bool output,
              const Shadows &shadows) {
        if (tensor.role == Role::constant) {
            TensorView view{tensor.name, tensor.dtype, nullptr, {}, {}};
            for (const std::string &d : tensor.dims) view.extents.push_back(extent_value(d));
            view.strides = row_major_strides(view.extents);
            int t = add_tensor(tensor.name, view, false, false, false);
            const std::string bytes = constant_bytes(tensor);
            auto &memory = storage[static_cast<size_t>(t)];
            for (const char byte : bytes) memory.push_back(static_cast<std::byte>(byte));
            tensors[static_cast<size_t>(t)].data = memory.data();
            return;
        }
        auto it = arguments.find(tensor.name);
        require(it != arguments.end(), "argument " + tensor.name + " of " + program.name + " is given");
        const TensorView &view = it->second;
        require(view.dtype == tensor.dtype && view.extents.size() == tensor.dims.size() && view.strides.size() == tensor.dims.size(),
                "argument " + tensor.name + " has its type and rank");
        for (size_t i = 0; i < tensor.dims.size(); i++) set_extent(tensor.dims[i], view.extents[i]);
        auto shadow = shadows.find(tensor.name);
        int t = add_tensor(tensor.name, view, may_write, checked && (output || shadow != shadows.end()), checked && output);
        if (shadow != shadows.end()) written[static_cast<size_t>(t)] = shadow->second;
    }

    void set_extent(const std::string &dim, int64_t value) {
        auto [it, fresh] = extent_values.emplace(dim, value);
        require(fresh || it->second == value, "dim " + dim + " has one extent in every argument");
    }

    int64_t extent_value(const std::string &name) {
        if (auto it = extent_values.find(name); it != extent_values.end()) return it->second;
        for (const Dim &d : program.dims) {
            if (d.name != name) continue;
            if (d.kind == DimKind::fixed) return d.value;
            if (!d.equals.empty()) return extent_value(d.equals);
            if (d.kind == DimKind::symbolic) break;
            std::vector<Register> registers;
            std::map<std::string, int> slots;
            walk(d.size, [&](const Expr &e) {
                if (e.kind() != ExprKind::extent || slots.count(e->name)) return;
                slots[e->name] = static_cast<int>(registers.size());
                registers.push_back({.integer = extent_value(e->name)});
            });
            auto unknown = [&]() -> int { throw InternalError("the extent of dim " + name + " is not one number"); };
            TapeResolver resolver{[&](const Expr &e) { return e.kind() == ExprKind::extent ? slots.at(e->name) : unknown(); },
                                  [&](const std::string &) { return unknown(); }};
            Tape tape({d.size}, resolver, static_cast<int>(registers.size()));
            registers.resize(static_cast<size_t>(tape.end()));
            tape.prepare(registers.data());
            tape.run(registers.data(), nullptr);
            return std::max<int64_t>(0, registers[static_cast<size_t>(tape.result(0))].integer);
        }
        throw InternalError("dim " + name + " of " + program.name + " has no extent");
    }

    int slot_of(const Expr &leaf) {
        auto find = [&](const std::map<std::string, int> &slots) {
            auto it = slots.find(leaf->name);
            if (it == slots.end()) throw InternalError(program.name + ": '" + leaf->name + "' is not defined where it is used");
            return it->second;
        };
        if (leaf.kind() == ExprKind::variable) return find(variables);
        if (leaf.kind() == ExprKind::parameter) return find(parameter_slots);
        require(leaf.kind() == ExprKind::extent, "a tile program has no operands of monoids");
        if (!extent_slots.count(leaf->name)) {
            Register value{.integer = extent_value(leaf->name)};
            initial.emplace_back(next, value);
            extent_slots[leaf->name] = next++;
        }
        return extent_slots.at(leaf->name);
    }

    int position_of(const std::string &buffer) const {
        auto it = tensor_of.find(buffer);
        if (it == tensor_of.end()) throw InternalError(program.name + ": buffer " + buffer + " is not there where it is used");
        return it->second;
    }

    // `what`: what they are for, in words.
    std::shared_ptr<Evaluation> prepare(std::vector<Expr> roots, const std::string &what = "") {
        size_t asked = roots.size();
        if (options.follower)
            for (Expr &e : roots) e = options.follower->prepared(e);
        std::vector<ConditionalRead> plan;
        if (checked)
            plan = conditional_reads(roots, [&](const std::string &buffer) { return watched[static_cast<size_t>(position_of(buffer))]; });
        for (const ConditionalRead &r : plan) {
            if (r.condition.defined()) roots.push_back(r.condition);
            roots.insert(roots.end(), r.index.begin(), r.index.end());
        }
        for (const Expr &e : roots)
            walk(e, [&](const Expr &n) {
                if (n->args.empty() && n.kind() != ExprKind::constant && n.kind() != ExprKind::load) slot_of(n);
            });
        auto result = std::make_shared<Evaluation>();
        TapeResolver resolver{[&](const Expr &leaf) { return slot_of(leaf); }, [&](const std::string &name) { return position_of(name); }};
        result->tape = Tape(roots, resolver, next);
        next = result->tape.end();
        size_t root = asked;
        for (const ConditionalRead &r : plan) {
            Read read{position_of(r.buffer), -1, {}};
            if (r.condition.defined()) read.condition = result->tape.result(root++);
            for (size_t i = 0; i < r.index.size(); i++) read.index.push_back(result->tape.result(root++));
            result->reads.push_back(read);
        }
        tapes.push_back(&result->tape);
        if (options.observer) name_sites(*result, asked, what);
        return result;
    }

    // Loads that only the checks of this interpreter make have no site.
    void name_sites(Evaluation &e, size_t asked, const std::string &what) const {
        const std::vector<Tape::Instruction> &code = e.tape.instructions();
        std::set<int> own;
        std::vector<int> open;
        for (size_t i = 0; i < asked; i++) open.push_back(e.tape.result(i));
        std::map<int, std::vector<const Tape::Instruction *>> by_target;
        for (const Tape::Instruction &i : code) by_target[i.target].push_back(&i);
        while (!open.empty()) {
            const int slot = open.back();
            open.pop_back();
            if (!own.insert(slot).second) continue;
            for (const Tape::Instruction *i : by_target[slot]) {
                open.insert(open.end(), {i->a, i->b, i->c});
                if (i->code == code_load)
                    for (int k = 0; k < e.tape.access(*i)[1]; k++) open.push_back(e.tape.access(*i)[2 + k]);
            }
        }
        e.sites.assign(code.size(), -1);
        for (size_t i = 0; i < code.size(); i++)
            if (code[i].code == code_load && own.count(code[i].target))
                e.sites[i] =
                    options.observer->site("reads " + tensors[static_cast<size_t>(e.tape.access(code[i])[0])].name + " for " + what);
    }

    // What the tape has just read.
    void tell_reads(const Evaluation &e) const {
        if (!options.observer) return;
        const std::vector<Tape::Instruction> &code = e.tape.instructions();
        for (size_t at = 0; at < code.size(); at++) {
            const Tape::Instruction &i = code[at];
            if (i.code == code_skip_unless && !frame[static_cast<size_t>(i.a)].integer) at += static_cast<size_t>(i.detail);
            if (i.code != code_load || e.sites[at] < 0) continue;
            const int *access = e.tape.access(i);
            const TensorView &t = tensors[static_cast<size_t>(access[0])];
            int64_t index[8];
            for (int k = 0; k < access[1]; k++) index[k] = frame[static_cast<size_t>(access[2 + k])].integer;
            options.observer->reads(e.sites[at], t, t.address(index));
        }
    }

    std::string index_text(size_t tensor, size_t element) const {
        std::string text;
        const std::vector<int64_t> &extents = tensors[tensor].extents;
        auto rest = static_cast<int64_t>(element);
        for (size_t i = extents.size(); i-- > 0; rest /= extents[i])
            text = std::to_string(rest % extents[i]) + (text.empty() ? "" : ", ") + text;
        return "[" + text + "]";
    }

    size_t element(int tensor, const std::vector<int> &index) const {
        int64_t position = 0;
        const std::vector<int64_t> &extents = tensors[static_cast<size_t>(tensor)].extents;
        for (size_t i = 0; i < index.size(); i++) position = position * extents[i] + frame[static_cast<size_t>(index[i])].integer;
        return static_cast<size_t>(position);
    }

    // The first read of an element that holds nothing, or something made of such an element.
    const Read *run(const Evaluation &e) {
        e.tape.run(frame.data(), tensors.data());
        if (options.follower) options.follower->evaluated(e.tape, frame.data(), tensors.data());
        for (const Read &r : e.reads) {
            if (r.condition >= 0 && !frame[static_cast<size_t>(r.condition)].integer) continue;
            if (written[static_cast<size_t>(r.tensor)][element(r.tensor, r.index)] != defined) [[unlikely]]
                return &r;
        }
        return nullptr;
    }

    [[noreturn]] void refuse(const Read &r) const {
        auto t = static_cast<size_t>(r.tensor);
        size_t at = element(r.tensor, r.index);
        throw InternalError(tensors[t].name + index_text(t, at) +
                            (written[t][at] ? " is made of elements never written" : " is read before it is written"));
    }

    void evaluate(const Evaluation &e) {
        if (const Read *r = run(e)) refuse(*r);
        tell_reads(e);
    }

    // What runs depends on a register that was just evaluated.
    void decide_by(int slot) const {
        if (options.follower) options.follower->depends_on(slot);
    }

    int64_t &integer(int slot) { return frame[static_cast<size_t>(slot)].integer; }

    std::vector<Action> compile(const TileBody &nodes) {
        std::vector<Action> actions;
        for (const auto &node : nodes) actions.push_back(std::visit([&](const auto &n) { return compile(n); }, *node));
        return actions;
    }

    Action compile(const Loop &loop) {
        auto count = prepare({loop.count}, "the count of " + loop.variable);
        auto outside = variables;
        int slot = next++;
        variables[loop.variable] = slot;
        std::vector<Action> inside = compile(loop.body);
        variables = outside;
        return [this, &loop, count, slot, name = loop.variable, inside = std::move(inside)] {
            evaluate(*count);
            decide_by(count->tape.result(0));
            int64_t n = integer(count->tape.result(0));
            if (options.on_loop) options.on_loop(loop, n);
            if (options.observer) options.observer->enters(loop, n);
            active.emplace_back(name, slot);
            const bool backwards = options.backwards && traits_of(loop.kind).at_once;
            for (int64_t i = 0; i < n; i++) {
                integer(slot) = backwards ? n - 1 - i : i;
                if (options.observer) options.observer->iterates(loop, integer(slot));
                for (const Action &action : inside) action();
            }
            active.pop_back();
            if (options.observer) options.observer->leaves(loop);
        };
    }

    static std::string text_of(const std::string &buffer, const std::vector<Expr> &index) {
        std::string text;
        for (const Expr &e : index) text += (text.empty() ? "" : ", ") + brief(e);
        return buffer + "[" + text + "]";
    }

    Action store(const TileStore &node) {
        const auto &[buffer, index, value, guard] = node;
        int tensor = position_of(buffer);
        auto t = static_cast<size_t>(tensor);
        require(writable[t], program.name + " does not store to its input " + buffer);
        require(index.size() == tensors[t].extents.size(), "a store to " + buffer + " has an index for each axis");
        require(value.type() == tensors[t].dtype, "a store to " + buffer + " has the buffer's type");
        std::vector<Expr> roots = index;
        roots.push_back(value);
        if (guard.defined()) roots.push_back(guard);
        const std::string element_text = options.observer ? text_of(buffer, index) : "";
        auto all = prepare(roots, element_text);
        // Where the guard fails, only what it looks at itself is read.
        const std::shared_ptr<Evaluation> guard_alone =
            options.observer && guard.defined() ? prepare({guard}, "whether to store " + element_text) : nullptr;
        const int site = options.observer ? options.observer->site("stores " + element_text) : -1;
        int condition = guard.defined() ? all->tape.result(index.size() + 1) : -1, result = all->tape.result(index.size());
        std::vector<int> places;
        for (size_t i = 0; i < index.size(); i++) places.push_back(all->tape.result(i));
        DType type = value.type();
        bool local = watched[t] && !outputs[t];
        return [this, node, all, guard_alone, site, t, tensor, condition, result, places, type, local] {
            if (current != node.buffer) current = node.buffer;
            if (options.on_store) options.on_store(node);
            const Read *undefined = run(*all);
            if (condition >= 0) decide_by(condition);
            if (condition >= 0 && !integer(condition)) {
                if (guard_alone) evaluate(*guard_alone);
                return;
            }
            tell_reads(*all);
            int64_t at[8];
            for (size_t i = 0; i < places.size(); i++) decide_by(places[i]), at[i] = integer(places[i]);
            if (undefined && !local) refuse(*undefined);
            std::byte *to = tensors[t].address(at);
            store_register(type, to, frame[static_cast<size_t>(result)]);
            if (options.follower) options.follower->stored(to, result);
            if (options.observer) options.observer->stores(site, tensors[t], to);
            if (watched[t]) written[t][element(tensor, places)] = undefined ? spoiled : defined;
        };
    }

    Action compile(const Compute &n) { return store({n.buffer, n.index, n.value, n.guard}); }
    Action compile(const Copy &n) {
        Action copy = store({n.buffer, n.index, n.value, n.guard});
        if (!n.is_asynchronous || !options.observer) return copy;
        return [this, copy = std::move(copy)] {
            options.observer->copies_ahead(true);
            copy();
            options.observer->copies_ahead(false);
        };
    }
    Action compile(const Prefetch &) {
        return [] {};
    }
    Action compile(const Barrier &barrier) {
        return [this, &barrier] {
            if (options.observer) options.observer->waits(barrier);
        };
    }

    // An asynchronous copy is there at once: what reads it too early is told of by the observer.
    Action compile(const Commit &) {
        return [this] {
            if (options.observer) options.observer->commits();
        };
    }
    Action compile(const Await &await) {
        return [this, &await] {
            if (options.observer) options.observer->awaits(await);
        };
    }

    // What both mean, by ordinary nodes.
    Action compile(const Move &n) {
        Action all = expanded(expand(n, tensors[static_cast<size_t>(position_of(n.to.buffer))].dtype));
        if (!options.observer) return all;
        return [this, &n, all = std::move(all)] {
            options.observer->begins(n);
            all();
            options.observer->ends(n);
        };
    }
    Action compile(const Fragment &n) {
        Action all = expanded(expand(n));
        if (!options.follower) return all;
        return [this, family = find_family(n.family), all = std::move(all)] {
            options.follower->steps(family);
            all();
            options.follower->steps(nullptr);
        };
    }
    Action expanded(TileBody nodes) {
        return [actions = compile(expansions.emplace_back(std::move(nodes)))] {
            for (const Action &action : actions) action();
        };
    }

    Action compile(const Guard &guard) {
        auto condition = prepare({guard.condition}, "a condition");
        return [this, &guard, condition, then = compile(guard.then), otherwise = compile(guard.otherwise)] {
            evaluate(*condition);
            decide_by(condition->tape.result(0));
            const bool holds = integer(condition->tape.result(0)) != 0;
            if (options.on_guard) options.on_guard(guard, holds);
            for (const Action &action : holds ? then : otherwise) action();
        };
    }

    Action compile(const Let &let) {
        auto value = prepare({let.value}, let.variable);
        auto outside = variables;
        variables[let.variable] = value->tape.result(0);
        std::vector<Action> inside = compile(let.body);
        variables = outside;
        return [this, value, inside = std::move(inside)] {
            evaluate(*value);
            for (const Action &action : inside) action();
        };
    }

    Action compile(const Alloc &alloc) {
        const Buffer &b = alloc.buffer;
        auto sizes = prepare(b.extents, "the extents of " + b.name);
        auto outside = tensor_of;
        TensorView view{b.name, b.dtype, nullptr, std::vector<int64_t>(b.extents.size()), std::vector<int64_t>(b.extents.size())};
        auto t = static_cast<size_t>(add_tensor(b.name, view, true, checked, false));
        require(b.extents.size() <= 8, "a buffer has at most 8 axes");
        std::vector<Action> inside = compile(alloc.body);
        tensor_of = outside;
        return [this, &b, sizes, t, inside = std::move(inside)] {
            evaluate(*sizes);
            TensorView &v = tensors[t];
            int64_t count = 1;
            for (size_t i = 0; i < v.extents.size(); i++) {
                decide_by(sizes->tape.result(i));
                v.extents[i] = std::max<int64_t>(0, integer(sizes->tape.result(i)));
                count *= v.extents[i];
            }
            v.strides = row_major_strides(v.extents);
            storage[t].assign(static_cast<size_t>(count * size_of(v.dtype)), static_cast<std::byte>(poison));
            v.data = storage[t].data();
            if (options.follower) options.follower->allocated(v);
            if (options.observer) options.observer->allocated(b, v);
            if (watched[t]) written[t].assign(static_cast<size_t>(count), unwritten);
            for (const Action &action : inside) action();
        };
    }

    // A box of a tensor, and where its elements lie among all of the tensor's, row-major.
    struct Box {
        TensorView view;
        int64_t first = 0;
        std::vector<int64_t> steps;
    };

    // Calls `visit` with the position of each element, row-major in the box.
    static void each_element(const Box &box, const std::function<void(size_t)> &visit) {
        std::function<void(size_t, int64_t)> over = [&](size_t axis, int64_t position) {
            if (axis == box.steps.size()) return visit(static_cast<size_t>(position));
            for (int64_t i = 0; i < box.view.extents[axis]; i++) over(axis + 1, position + i * box.steps[axis]);
        };
        over(0, box.first);
    }

    // What an Invoke passes for an argument: registers of where it begins and of its steps.
    struct Passed {
        size_t tensor;
        bool is_whole;
        std::vector<int> first;
        std::vector<size_t> of;
        std::vector<int> steps;
    };

    Box box_of(const Passed &passed, const std::vector<int64_t> &extents, const std::string &what) {
        const TensorView &whole = tensors[passed.tensor];
        const std::vector<int64_t> all = row_major_strides(whole.extents);
        Box box{whole, 0, {}};
        std::vector<int64_t> last(whole.extents.size(), 0), at(whole.extents.size(), 0);
        for (size_t i = 0; i < passed.first.size(); i++) last[i] = at[i] = integer(passed.first[i]);
        box.view.extents = extents, box.view.strides.resize(extents.size());
        bool is_empty = false;
        for (size_t a = 0; a < extents.size(); a++) {
            const size_t of = passed.is_whole ? a : passed.of[a];
            const int64_t step = passed.is_whole ? 1 : integer(passed.steps[a]);
            box.view.strides[a] = step * whole.strides[of];
            box.steps.push_back(step * all[of]);
            last[of] += step * (extents[a] - 1);
            is_empty |= extents[a] == 0;
        }
        for (size_t i = 0; i < at.size() && !is_empty; i++)
            require(0 <= at[i] && last[i] < whole.extents[i], what + " lies inside of " + whole.name);
        if (!is_empty) box.view.data = whole.address(at.data());
        for (size_t i = 0; i < at.size(); i++) box.first += at[i] * all[i];
        return box;
    }

    Action compile(const Invoke &invoke) {
        auto found = std::find_if(programs.begin(), programs.end(), [&](const TileProgram &p) { return p.name == invoke.program; });
        require(found != programs.end(), program.name + " invokes " + invoke.program + ", which is there");
        const TileProgram &callee = *found;
        require(invoke.arguments.size() == callee.arguments.size(), invoke.program + " is invoked with a buffer for each argument");
        std::vector<Expr> values;
        std::vector<std::string> dims;
        for (auto &[name, e] : invoke.extents) dims.push_back(name), values.push_back(e);
        for (const Parameter &p : callee.parameters) values.push_back(invoke.parameters.at(p.name));
        const size_t bound = values.size();
        for (const BufferView &view : invoke.arguments) {
            values.insert(values.end(), view.first.begin(), view.first.end());
            for (const BufferView::Axis &moved : view.axes) values.push_back(moved.step);
        }
        auto all = prepare(values);
        size_t next_value = bound;
        std::vector<Passed> passed;
        for (const BufferView &view : invoke.arguments) {
            Passed &p = passed.emplace_back(Passed{static_cast<size_t>(position_of(view.buffer)), view.is_whole(), {}, {}, {}});
            for (size_t i = 0; i < view.first.size(); i++) p.first.push_back(all->tape.result(next_value++));
            for (const BufferView::Axis &moved : view.axes) p.of.push_back(moved.of), p.steps.push_back(all->tape.result(next_value++));
        }
        return [this, &callee, all, dims, passed, bound, last_value = values.size()] {
            evaluate(*all);
            for (size_t i = 0; i < last_value; i++)
                if (i < dims.size() || i >= bound) decide_by(all->tape.result(i));
            Extents extents;
            for (size_t i = 0; i < dims.size(); i++) extents[dims[i]] = integer(all->tape.result(i));
            std::map<std::string, Scalar> parameters;
            for (size_t i = 0; i < callee.parameters.size(); i++) {
                DType type = callee.parameters[i].dtype;
                parameters[callee.parameters[i].name] = to_scalar(type, frame[static_cast<size_t>(all->tape.result(dims.size() + i))]);
            }
            std::map<std::string, TensorView> views;
            std::vector<Box> boxes;
            Shadows shadows;
            for (size_t i = 0; i < passed.size(); i++) {
                const Tensor &tensor = callee.arguments[i].tensor;
                std::vector<int64_t> sizes;
                if (callee.arguments[i].packed) {
                    const std::vector<int64_t> &whole = tensors[passed[i].tensor].extents;
                    for (size_t a = 0; a < tensor.dims.size(); a++) sizes.push_back(whole[passed[i].is_whole ? a : passed[i].of[a]]);
                } else {
                    for (const std::string &d : tensor.dims) sizes.push_back(extents.at(d));
                }
                boxes.push_back(box_of(passed[i], sizes, invoke_text(callee, tensor)));
                const Shadow &shadow = written[passed[i].tensor];
                if (watched[passed[i].tensor] && callee.arguments[i].read)
                    each_element(boxes[i], [&](size_t at) { shadows[tensor.name].push_back(shadow[at]); });
                views[tensor.name] = boxes[i].view;
            }
            Interpreter inner(callee, views, extents, parameters, options, programs, shadows);
            for (size_t i = 0; i < callee.parameters.size(); i++)
                inner.passed_registers.emplace_back(all->tape.result(dims.size() + i), inner.parameter_slots.at(callee.parameters[i].name));
            inner.run();
            for (size_t i = 0; i < passed.size(); i++)
                if (watched[passed[i].tensor] && callee.arguments[i].written)
                    each_element(boxes[i], [&](size_t at) { written[passed[i].tensor][at] = defined; });
        };
    }

    std::string invoke_text(const TileProgram &callee, const Tensor &tensor) const {
        return program.name + ": argument " + tensor.name + " of " + callee.name;
    }
};

}  // namespace

void interpret(const TileProgram &program, const std::map<std::string, TensorView> &arguments, const Extents &extents,
               const std::map<std::string, Scalar> &parameters, const InterpretOptions &options) {
    Interpreter(program, arguments, extents, parameters, options, program.programs).run();
}

}  // namespace tessera
