#include "compiler/check/verify_tiles.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/check/awaits.h"
#include "compiler/check/barriers.h"
#include "compiler/check/never_reached.h"
#include "compiler/check/streamed_loops.h"
#include "compiler/check/verify_races.h"
#include "compiler/tile/fragments.h"
#include "compiler/tile/kinds.h"
#include "schedules/target/target.h"
#include "support/text/error.h"

namespace tessera {

namespace {

bool is_given(const Buffer &b) { return traits_of(b.space).given; }
bool of_gpu(LoopKind kind) { return !traits_of(kind).on_cpu; }

constexpr size_t own_facts_limit = 24;

// Nothing is stored to it, and where it is read a guard or an empty loop keeps the read from happening.
bool has_no_element(const Buffer &b) {
    return std::any_of(b.extents.begin(), b.extents.end(), [](const Expr &e) { return e.is_constant(0); });
}

class TileVerifier {
public:
    TileVerifier(const TileProgram &p, const std::vector<TileProgram> &all, std::optional<int64_t> max_steps)
        : program(p), programs(all), dim_facts(facts_of(p)) {
        if (max_steps) dim_facts.limit(*max_steps);
        facts = dim_facts;
        gpu = names_gpu(p.target);
        for (const Dim &d : p.dims) dims.insert(d.name);
        for (const Parameter &q : p.parameters) parameters[q.name] = q.dtype;
        for (const Argument &a : p.arguments) {
            declare(tensor_buffer(a.tensor, Space::argument));
            if (a.written) writable.insert(a.tensor.name);
            if (a.written && a.read) states.insert(a.tensor.name);
            if (a.read || !a.written) stored.insert(a.tensor.name);
        }
        for (const Tensor &t : p.constants) declare(tensor_buffer(t, Space::constant)), stored.insert(t.name);
        visit(p.body);
        if (std::string missing = gpu ? missing_barrier(p.body, p.dims) : ""; !missing.empty()) fail(missing);
        if (std::string wrong = gpu ? wrong_await(p.body) : ""; !wrong.empty()) fail(wrong);
    }

    std::vector<std::string> assumed;

private:
    const TileProgram &program;
    const std::vector<TileProgram> &programs;  // that may be invoked
    bool gpu = false;
    Bounds dim_facts;  // of dims and parameters alone
    Bounds facts;
    std::set<std::string> dims, writable, states, stored;
    std::string thread;  // the variable of the loop over threads or warps that is open
    Expr threads;        // its count
    LoopKind step_kind = LoopKind::thread;
    std::map<std::string, DType> parameters;
    struct Declared {
        Buffer buffer;
        size_t depth;  // loops around it
        bool in_thread;
    };
    std::map<std::string, Declared> buffers;
    std::set<std::string> variables;
    EnclosingScope scope;
    std::vector<LoopKind> loops;
    std::vector<TileAccess> accesses;
    int64_t stack_bytes = 0;
    int64_t shared_bytes = 0;  // of the block
    int fragments = 0;         // that are alive

    [[noreturn]] void fail(const std::string &what) const { throw InternalError(program.name + ": " + what); }

    [[noreturn]] void refuse(const std::string &what) const {
        throw UserError(
            "schedule.unproved",
            program.name + ": " + what + ", so the schedule is refused; use tiles that divide one another, or fewer levels of them.");
    }

    Buffer tensor_buffer(const Tensor &t, Space space) const {
        Buffer b{t.name, t.dtype, {}, space};
        for (const std::string &d : t.dims) b.extents.push_back(extent(d));
        return b;
    }

    void declare(const Buffer &b) {
        if (!buffers.emplace(b.name, Declared{b, loops.size(), !thread.empty()}).second)
            fail("there are two buffers " + b.name + " in one place");
        if (!gpu && b.space == Space::shared)
            fail(b.name + " is in " + name_of(b.space) + " memory, which " + program.target + " does not have");
    }

    const Buffer &find(const std::string &name) const {
        auto it = buffers.find(name);
        if (it == buffers.end()) fail("buffer " + name + " is not there where it is used");
        return it->second.buffer;
    }

    std::string at(const std::string &name, const std::vector<Expr> &index) const {
        std::vector<std::string> text;
        for (const Expr &e : index) text.push_back(brief(e));
        return name + "[" + join(text) + "]";
    }

    bool never_runs(const EnclosingScope &where) const { return is_never_reached(where, dim_facts); }
    // The same where a failure would be a bug of ours: it does not depend on how many steps are left.
    bool surely_never_runs(const EnclosingScope &where) const { return is_never_reached(where, Bounds(program.dims)); }

    void check_index(const std::string &name, const std::vector<Expr> &index, const Bounds &known, const EnclosingScope &where) {
        const Buffer &b = find(name);
        std::optional<Bounds> less, more;
        auto holds = [&](const Expr &condition) {
            // Few facts first: a proof that fails among many takes long.
            if (!less) add_facts(less.emplace(dim_facts), where, nullptr, Facts::ranges);
            if (prove(condition, *less)) return true;
            bool own = !is_given(b);
            if ((!own || known.facts().size() <= own_facts_limit) && prove(condition, known)) return true;
            if (!more) add_facts(more.emplace(dim_facts), where, nullptr, Facts::counts);
            return prove(condition, *more);
        };
        auto any = [](const Expr &e, const std::function<bool(const Expr &)> &rule) { return rule(e->args[0]) || rule(e->args[1]); };
        auto both = [](const Expr &e, const std::function<bool(const Expr &)> &rule) { return rule(e->args[0]) && rule(e->args[1]); };
        std::function<bool(const Expr &)> not_below = [&](const Expr &e) {
            return holds(Expr(0) <= e) || (e.is_operation(Op::min) && both(e, not_below)) || (e.is_operation(Op::max) && any(e, not_below));
        };
        if (index.size() != b.extents.size())
            fail(at(name, index) + " has " + std::to_string(index.size()) + " indices for " + std::to_string(b.extents.size()) + " axes");
        for (size_t i = 0; i < index.size(); i++) {
            if (index[i].type() != DType::index) fail(at(name, index) + ": an index is a position");
            std::function<bool(const Expr &)> below_end = [&](const Expr &e) {
                return holds(e < b.extents[i]) || (e.is_operation(Op::min) && any(e, below_end)) ||
                       (e.is_operation(Op::max) && both(e, below_end));
            };
            bool low = not_below(index[i]);
            if (low && below_end(index[i])) continue;
            if (never_runs(where)) return;
            std::string what = "index " + std::to_string(i) + " of " + at(name, index) + " cannot be shown to be " +
                               (low ? "below " + brief(b.extents[i]) : "at least 0");
            if (is_given(b)) refuse(what);
            assumed.push_back(what);
        }
    }

    // Names, ranks and ranges of everything that is evaluated under `known`, in `where`.
    void check(const Expr &e, const Bounds &known, const EnclosingScope &where, std::set<const Expr::Node *> &seen) {
        if (!seen.insert(e.get()).second) return;
        size_t plain = e->args.size();
        switch (e.kind()) {
        case ExprKind::variable:
            if (!variables.count(e->name)) fail("variable " + e->name + " is not bound where it is used");
            break;
        case ExprKind::extent:
            if (!dims.count(e->name)) fail("there is no dim " + e->name);
            break;
        case ExprKind::parameter:
            if (!parameters.count(e->name) || parameters.at(e->name) != e.type()) fail("there is no parameter " + e->name + " of its type");
            break;
        case ExprKind::load: {
            const Buffer &b = find(e->name);
            if (b.dtype != e.type()) fail("a load of " + b.name + " has another type than the buffer");
            if (!stored.count(b.name) && !has_no_element(b) && !surely_never_runs(where))
                fail(b.name + " is read before anything is stored to it");
            if (b.space == Space::fragment) fail(b.name + " is in a fragment and is loaded from");
            size_t rank = plain - (e->guarded ? 2 : 0);
            std::vector<Expr> index(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank));
            EnclosingScope inner = where;
            Bounds under = known;
            std::set<const Expr::Node *> seen_under;
            if (e->guarded) {
                for (size_t i = rank; i < e->args.size(); i++) check(e->args[i], known, where, seen);
                under.assume(e->args[rank]);
                inner = std::make_shared<TileScope>(TileScope{where, "", {}, {}, {}, e->args[rank]});
            }
            for (const Expr &i : index) check(i, under, inner, e->guarded ? seen_under : seen);
            check_thread(e->name, index);
            check_index(e->name, index, under, inner);
            accesses.push_back({e->name, index, false, inner});
            return;
        }
        case ExprKind::left:
        case ExprKind::right:
        case ExprKind::input: fail("an operand of a monoid is left over");
        case ExprKind::function:  // by name (FunctionForm::named)
        case ExprKind::constant:
        case ExprKind::bounded:
        case ExprKind::operation:
        case ExprKind::bitcast:
        case ExprKind::cast: break;
        }
        for (const Expr &arg : e->args) check(arg, known, where, seen);
    }

    void check(const Expr &e) {
        std::set<const Expr::Node *> seen;
        check(e, facts, scope, seen);
    }

    void visit(const TileBody &body) {
        for (const auto &node : body) std::visit([&](const auto &n) { visit(n); }, *node);
    }

    // Runs `inside` where more holds.
    template <typename F>
    void within(TileScope more, F inside) {
        Bounds outside = facts;
        EnclosingScope before = scope;
        more.outer = scope;
        scope = std::make_shared<TileScope>(std::move(more));
        bool fresh = scope->variable.empty() || variables.insert(scope->variable).second;
        if (!fresh) fail("variable " + scope->variable + " is bound twice");
        add_facts(facts, scope, before, Facts::conditions);
        inside();
        if (!scope->variable.empty()) variables.erase(scope->variable);
        scope = before;
        facts = std::move(outside);
    }

    void within_all(const std::vector<Expr> &conditions, size_t from, const std::function<void()> &inside) {
        if (from == conditions.size()) return inside();
        within({nullptr, "", {}, {}, {}, conditions[from]}, [&] { within_all(conditions, from + 1, inside); });
    }

    // The Lets directly inside that take an index apart by the same divisor: both together tell iterations apart.
    struct Digits {
        const Let *quotient, *remainder;
    };
    static std::optional<Digits> digits_of(const std::string &index, const TileBody &body) {
        const Let *quotient = nullptr, *remainder = nullptr;
        for (const Let *let = only<Let>(body); let; let = only<Let>(let->body)) {
            bool ours = let->value.kind() == ExprKind::operation && let->value->args.size() == 2 &&
                        let->value->args[0].kind() == ExprKind::variable && let->value->args[0]->name == index;
            if (ours && let->value->op == Op::div) quotient = let;
            if (ours && let->value->op == Op::mod) remainder = let;
        }
        if (!quotient || !remainder || !equal(quotient->value->args[1], remainder->value->args[1])) return std::nullopt;
        return Digits{quotient, remainder};
    }

    void digits_within(const std::string &index, const TileBody &body, std::vector<std::string> &names) const {
        auto digits = digits_of(index, body);
        if (!digits) return names.push_back(index);
        digits_within(digits->quotient->variable, digits->quotient->body, names);
        digits_within(digits->remainder->variable, digits->remainder->body, names);
    }

    std::map<std::string, Expr> ranges;  // of digits: their count

    void note_ranges(const std::string &index, const Expr &count, const TileBody &body) {
        auto digits = digits_of(index, body);
        if (!digits) return;
        Expr divisor = digits->quotient->value->args[1];
        Expr quotients = simplify((count + divisor - 1) / divisor, facts);
        if (count.is_operation(Op::mul) && equal(count->args[1], divisor)) quotients = count->args[0];
        ranges[digits->quotient->variable] = quotients;
        ranges[digits->remainder->variable] = divisor;
        note_ranges(digits->quotient->variable, quotients, digits->quotient->body);
        note_ranges(digits->remainder->variable, divisor, digits->remainder->body);
    }

    void visit(const Loop &loop) {
        check(loop.count);
        if (!gpu && of_gpu(loop.kind)) fail(std::string(name_of(loop.kind)) + " loops are not for " + program.target);
        const bool is_step = traits_of(loop.kind).threads > 0;
        for (LoopKind outer : loops)
            if (is_step && traits_of(outer).threads > 0)
                fail(std::string("a ") + name_of(loop.kind) + " loop is inside a " + name_of(outer) + " loop");
        for (LoopKind outer : loops)
            if (of_gpu(loop.kind) && of_gpu(outer) && outer >= loop.kind)
                fail(std::string("a ") + name_of(loop.kind) + " loop is inside a " + name_of(outer) + " loop");
        if (loop.kind == LoopKind::parallel && std::count(loops.begin(), loops.end(), LoopKind::parallel))
            fail("a parallel loop is inside a parallel loop");
        if (loop.kind == LoopKind::parallel && fragments > 0) fail("a parallel loop is where fragments are alive");
        if (loop.kind == LoopKind::vector && std::count(loops.begin(), loops.end(), LoopKind::vector))
            fail("a vector loop is inside a vector loop");
        if (traits_of(loop.kind).written_out && !loop.count.is_constant())
            fail(loop.variable + " is " + name_of(loop.kind) + " and has no constant count");
        if (loop.kind == LoopKind::streamed && (gpu || !copies_row(loop)))
            fail("the streamed loop " + loop.variable + " is more than a copy of elements side by side");
        size_t first = accesses.size(), depth = loops.size();
        loops.push_back(loop.kind);
        if (is_step) thread = loop.variable, threads = loop.count, step_kind = loop.kind;
        if (is_step && (!loop.count.is_constant() || !std::count(loops.begin(), loops.end(), LoopKind::block)))
            fail("the " + std::string(name_of(loop.kind)) + " loop " + loop.variable + " has no constant count or is in no block");
        if (loop.kind == LoopKind::block) shared_bytes = 0;
        note_ranges(loop.variable, loop.count, loop.body);
        // An earlier iteration may have stored what a later one reads.
        walk(loop.body, [&](const TileNode &n) {
            if (auto *c = std::get_if<Compute>(&n); c && buffers.count(c->buffer)) stored.insert(c->buffer);
            if (auto *m = std::get_if<Move>(&n); m && buffers.count(m->to.buffer)) stored.insert(m->to.buffer);
        });
        EnclosingScope inside;
        within({nullptr, loop.variable, Expr(0), loop.count - 1, loop.count, {}}, [&] {
            inside = scope;
            visit(loop.body);
        });
        if (is_step) thread.clear();
        loops.pop_back();
        if (traits_of(loop.kind).at_once && !loop.count.is_constant(1)) check_races(loop, inside, first, depth);
        // What is inside the loop's own buffers is of no interest outside.
        accesses.erase(std::remove_if(accesses.begin() + static_cast<std::ptrdiff_t>(first), accesses.end(),
                                      [&](const TileAccess &a) { return !outlives(a.buffer, depth); }),
                       accesses.end());
    }

    // Registers and fragments that live across steps of a block: their first axis is the thread or the warp.
    bool of_thread(const Declared &d) const {
        return gpu && (d.buffer.space == Space::registers || d.buffer.space == Space::fragment) && !d.in_thread;
    }

    void check_thread(const std::string &name, const std::vector<Expr> &index) const {
        auto it = buffers.find(name);
        if (it == buffers.end() || !of_thread(it->second)) return;
        const Expr &extent = it->second.buffer.extents[0];
        bool own = !index.empty() && index[0].kind() == ExprKind::variable && index[0]->name == thread;
        if (!own || !equal(threads, extent)) fail(at(name, index) + " is in registers of another thread");
    }

    bool outlives(const std::string &buffer, size_t depth) const {
        auto it = buffers.find(buffer);
        return it != buffers.end() && it->second.depth <= depth;
    }

    void check_races(const Loop &loop, const EnclosingScope &inside, size_t first, size_t depth) {
        std::map<std::string, std::vector<const TileAccess *>> by_buffer;
        for (size_t i = first; i < accesses.size(); i++)
            if (outlives(accesses[i].buffer, depth)) by_buffer[accesses[i].buffer].push_back(&accesses[i]);
        std::vector<std::string> digits;
        digits_within(loop.variable, loop.body, digits);
        for (auto &[name, list] : by_buffer) {
            if (std::none_of(list.begin(), list.end(), [](const TileAccess *a) { return a->store; })) continue;
            if (of_thread(buffers.at(name))) continue;  // the first index is the thread
            auto conflict = find_conflict(facts, inside, digits, list);
            if (!conflict || never_runs(inside)) continue;
            auto text = [&](const TileAccess *a) { return (a->store ? "stores to " : "reads ") + at(name, a->index); };
            refuse("two iterations of the " + std::string(name_of(loop.kind)) + " loop " + loop.variable + " may meet: one " +
                   text(conflict->first) + ", another " + text(conflict->second));
        }
    }

    void store(const std::string &name, const std::vector<Expr> &index, const Expr &value, const Expr &guard) {
        const Buffer &b = find(name);
        if (gpu && thread.empty()) fail(at(name, index) + " is stored to by every thread of a block");
        check_thread(name, index);
        if (value.type() != b.dtype) fail("a store to " + name + " has another type than the buffer");
        if (b.space == Space::fragment) fail(name + " is in a fragment and is stored to");
        if (is_given(b) && !writable.count(name)) fail(name + " is an input and is stored to");
        check(value);
        for (const Expr &e : index) check(e);
        if (guard.defined()) check(guard);
        EnclosingScope inner = scope;
        Bounds under = facts;
        if (guard.defined()) {
            under.assume(guard);
            inner = std::make_shared<TileScope>(TileScope{scope, "", {}, {}, {}, guard});
        }
        if (states.count(name))
            walk(value, [&](const Expr &n) {
                if (n.kind() != ExprKind::load || n->name != name) return;
                // Behind a guard it is that element, or none; at the end of a tile it is clamped, and nothing is stored where that matters.
                for (size_t i = 0; i < index.size(); i++)
                    if (!equal(n->args[i], index[i]) && !(prove(n->args[i] <= index[i], under) && prove(index[i] <= n->args[i], under)))
                        fail(at(name, index) + " is stored from another element of the same state, which may have its new value");
            });
        check_index(name, index, under, inner);
        accesses.push_back({name, index, true, inner});
        stored.insert(name);
    }

    void visit(const Compute &n) { store(n.buffer, n.index, n.value, n.guard); }

    void visit(const Copy &n) {
        if (n.value.kind() != ExprKind::load) fail("a copy to " + n.buffer + " copies something that is no load");
        if (n.is_asynchronous && (!gpu || find(n.buffer).space != Space::shared))
            fail(n.buffer + " is copied to asynchronously and is no shared memory");
        store(n.buffer, n.index, n.value, n.guard);
    }

    void visit(const Prefetch &n) {
        const Buffer &b = find(n.buffer);
        if (gpu) fail("prefetch is not for " + program.target);
        if (!traits_of(b.space).in_memory) fail(at(n.buffer, n.index) + " is prefetched and is no memory");
        for (const Expr &e : n.index) {
            walk(e, [&](const Expr &part) {
                if (part.kind() == ExprKind::load) fail(at(n.buffer, n.index) + " is prefetched at a position that is loaded");
            });
            check(e);
        }
    }

    void visit(const WaitNode auto &) {
        if (!gpu) fail("barriers are not for " + program.target);
        if (!thread.empty()) fail("a barrier is inside the thread loop " + thread + ", where threads do not wait for one another");
    }

    void visit(const Guard &n) {
        check(n.condition);
        std::set<std::string> before = stored;
        // Facts of a branch that never runs contradict each other, and of them nothing is proved: a tile beyond the last point has one.
        if (!prove(!n.condition, facts)) within({nullptr, "", {}, {}, {}, n.condition}, [&] { visit(n.then); });
        std::set<std::string> after = stored;
        stored = before;
        within({nullptr, "", {}, {}, {}, !n.condition}, [&] { visit(n.otherwise); });
        stored.insert(after.begin(), after.end());
    }

    static bool has(const Expr &e, Op op) {
        bool found = false;
        walk(e, [&](const Expr &part) { found |= part.is_operation(op); });
        return found;
    }

    void visit(const Let &n) {
        check(n.value);
        auto digit = ranges.find(n.variable);
        TileScope more{nullptr, n.variable, n.value, n.value, {}, {}};
        std::vector<Expr> helpful;  // a minimum by its sides: the prover need not look at cases then
        if (n.value.is_operation(Op::min)) {
            for (const Expr &e : n.value->args) {
                helpful.push_back(variable(n.variable) <= e);
                if (e.is_constant() || (has_load(more.hi) && !has_load(e))) more.hi = e;
            }
            if (prove(Expr(0) < n.value, facts)) more.lo = Expr(1);
            else if (prove(Expr(0) <= n.value, facts)) more.lo = Expr(0);
        }
        // max(0, min(…)): its ends, and those sides of the minimum that are never negative. The exact value would be put in
        // place of the name, and its cases multiply.
        if (n.value.is_operation(Op::max) && n.value.type() == DType::index) {
            const bool of_minimum =
                std::any_of(n.value->args.begin(), n.value->args.end(), [](const Expr &e) { return e.is_operation(Op::min); });
            if (auto range = of_minimum ? constant_range(n.value, facts) : std::nullopt)
                more.lo = Expr(range->first), more.hi = Expr(range->second);
            std::function<void(const Expr &)> sides = [&](const Expr &e) {
                if (e.is_operation(Op::min)) {
                    for (const Expr &side : e->args) sides(side);
                } else if (!e.is_constant() && prove(Expr(0) <= e, facts)) {
                    helpful.push_back(variable(n.variable) <= e);
                }
            };
            if (n.value->args[0].is_constant(0) || n.value->args[1].is_constant(0))
                for (const Expr &e : n.value->args) sides(e);
            // What is left of a dim after its first points ends with the dim, or with the piece that has a name.
            if (of_minimum && n.value->args[1].is_constant(0) && !helpful.empty()) {
                const auto named = std::find_if(helpful.begin(), helpful.end(),
                                                [](const Expr &fact) { return fact->args[1].kind() == ExprKind::variable; });
                more.lo = Expr(0), more.hi = (named != helpful.end() ? *named : helpful.back())->args[1];
            }
        }
        // Where what is left of a fold begins: estimates of its quotient and of its minima would be added up.
        if (n.value.kind() == ExprKind::operation && has(n.value, Op::div) && has(n.value, Op::max) && helpful.empty() &&
            prove(Expr(0) <= n.value, facts)) {
            helpful.push_back(n.value <= variable(n.variable));
            more.lo = Expr(0);
        }
        if (digit != ranges.end()) more.lo = Expr(0), more.hi = digit->second - 1, more.count = digit->second;
        within(more, [&] { within_all(helpful, 0, [&] { visit(n.body); }); });
    }

    void visit(const Alloc &n) {
        const Buffer &b = n.buffer;
        int64_t bytes = 0;
        if (gpu && b.space == Space::shared) {
            int64_t shared = size_of(b.dtype);
            for (const Expr &e : b.extents) {
                if (!e.is_constant()) fail(b.name + " is in shared memory and has no constant extents");
                shared *= std::max<int64_t>(0, e->value.integer);
            }
            if ((shared_bytes += (shared + 15) / 16 * 16) > target_named(program.target).shared_bytes)
                fail("a block needs more shared memory than " + program.target + " has");
        }
        if (traits_of(b.space).of_thread) {
            bytes = size_of(b.dtype);
            std::vector<Expr> extents = b.extents;
            if (gpu && thread.empty() && !extents.empty()) extents.erase(extents.begin());  // those of one thread
            for (const Expr &e : extents) {
                if (!e.is_constant() || e->value.integer < 0) fail(b.name + " is in " + name_of(b.space) + " and has no constant extents");
                bytes = std::min(bytes * e->value.integer, stack_bytes_limit + 1);
            }
        }
        for (const Expr &e : b.extents) check(e);
        if (const std::optional<Swizzle> &s = b.swizzle) {
            const bool fits = b.space == Space::shared && !b.extents.empty() && b.extents.back().is_constant() && s->chunk > 0 &&
                              s->rows > 0 && (s->rows & (s->rows - 1)) == 0 && s->phase > 0 &&
                              b.extents.back()->value.integer % (s->chunk * s->rows) == 0;
            if (!fits) fail(b.name + " has chunks of rows in another order that its rows do not have");
        }
        stack_bytes += bytes;
        if (stack_bytes > stack_bytes_limit)
            throw UserError("schedule.storage", program.name + ": the tiles that live at once need more than " +
                                                    std::to_string(stack_bytes_limit) + " bytes of registers and stack ('" + b.name +
                                                    "' is one of them); make their micro tiles smaller.");
        declare(b);
        fragments += b.space == Space::fragment;
        visit(n.body);
        fragments -= b.space == Space::fragment;
        stored.erase(b.name);
        buffers.erase(b.name);
        stack_bytes -= bytes;
    }

    // A fragment of those extents, behind the axis of warps where each of these has one.
    bool is_fragment(const Buffer &b, const std::vector<int64_t> &extents) const {
        const size_t own = of_thread(buffers.at(b.name)) ? 1 : 0;
        bool fits = b.space == Space::fragment && b.extents.size() == extents.size() + own;
        for (size_t i = 0; fits && i < extents.size(); i++) fits = b.extents[i + own].is_constant(extents[i]);
        return fits;
    }

    // One side of a Move: a fragment as a whole, or a box of memory, each of whose elements is accessed.
    void move(const BufferView &view, const Move &n, bool is_store) {
        const Buffer &b = find(view.buffer);
        const std::string what = b.name + ", which is moved,";
        if (!is_store && !stored.count(b.name) && !surely_never_runs(scope)) fail(what + " is read before anything is stored to it");
        if (is_store && is_given(b) && !writable.count(b.name)) fail(what + " is an input");
        if (b.space == Space::fragment) {
            if (!is_fragment(b, n.box) || view.is_whole() == of_thread(buffers.at(b.name))) fail(what + " is a fragment of another shape");
            for (size_t i = 0; i < view.axes.size(); i++)
                if (view.axes[i].of != i + 1 || !view.axes[i].step.is_constant(1) || !view.first[i + 1].is_constant(0))
                    fail(what + " is a fragment and not moved whole");
            if (!view.is_whole()) check_thread(b.name, view.first);
            return;
        }
        if (view.first.size() != b.extents.size() || view.axes.size() != n.box.size()) fail(what + " has another rank than its box");
        for (const BufferView::Axis &moved : view.axes)
            if (moved.of >= b.extents.size()) fail(what + " has no axis " + std::to_string(moved.of));
        for (const Expr &e : view.first) check(e);
        for (const BufferView::Axis &moved : view.axes) check(moved.step);
        const std::vector<Expr> extents(n.box.begin(), n.box.end());
        within_box(b.name, extents, 0, [&] {
            std::vector<Expr> point;
            for (size_t i = 0; i < extents.size(); i++) point.push_back(variable(index_of(b.name, i)));
            const std::vector<Expr> index = element_of(view, point);
            check_index(b.name, index, facts, scope);
            accesses.push_back({b.name, index, is_store, scope});
        });
    }

    // On a GPU those of a family of warps alone, in a step that warps take.
    void check_step_of_warps() const {
        if (!gpu) return;
        if (target_named(program.target).arch != Arch::cuda) fail("fragments are not for " + program.target);
        if (thread.empty() || step_kind != LoopKind::warp) fail("a fragment is used outside of steps of warps");
    }

    void visit(const Move &n) {
        check_step_of_warps();
        const Buffer &to = find(n.to.buffer);
        const bool from_fragment = n.from && find(n.from->buffer).space == Space::fragment;
        if (from_fragment == (to.space == Space::fragment)) fail(to.name + " is moved to, and not between a fragment and memory");
        if (n.from && find(n.from->buffer).dtype != to.dtype) fail(to.name + " has another type than what is moved to it");
        if (n.from) move(*n.from, n, false);
        move(n.to, n, true);
        stored.insert(to.name);
    }

    void visit(const Fragment &n) {
        const Instruction *family = find_family(n.family);
        if (!family || !has_fragments(*family)) fail("there is no family " + n.family + " that has fragments");
        check_step_of_warps();
        if (gpu != (family->scope == ExecutionScope::warp) || !is_on(*family, program.features))
            fail(program.target + " has no instruction of " + n.family);
        auto check_role = [&](const std::string &name, FragmentRole role) {
            const Buffer &b = find(name);
            const std::vector<int64_t> extents = fragment_extents(*family, role);
            const bool is_of_warp = of_thread(buffers.at(name));
            if (!is_fragment(b, extents) || b.dtype != fragment_type(*family, role) ||
                is_of_warp != (role == FragmentRole::accumulator && n.warp.defined()))
                fail(name + " is no fragment of " + n.family + " in its place");
            if (!stored.count(name) && !surely_never_runs(scope)) fail(name + " is read before anything is stored to it");
        };
        if (n.warp.defined()) check(n.warp), check_thread(n.accumulator, {n.warp});
        check_role(n.accumulator, FragmentRole::accumulator), check_role(n.a, FragmentRole::a), check_role(n.b, FragmentRole::b);
        if (fragments > family->registers)
            fail(std::to_string(fragments) + " fragments are alive, and " + n.family + " has " + std::to_string(family->registers) +
                 " registers");
    }

    void visit(const Invoke &n) {
        if (fragments > 0) fail(n.program + " is invoked where fragments are alive");
        auto found = std::find_if(programs.begin(), programs.end(), [&](const TileProgram &p) { return p.name == n.program; });
        if (found == programs.end() || found->name == program.name) fail("there is no program " + n.program + " to invoke");
        for (LoopKind kind : loops)
            if (!traits_of(kind).may_call) fail(n.program + " is invoked inside a " + name_of(kind) + " loop");
        if (n.arguments.size() != found->arguments.size())
            fail(n.program + " is invoked with " + std::to_string(n.arguments.size()) + " buffers and has " +
                 std::to_string(found->arguments.size()) + " arguments");
        for (const Parameter &q : found->parameters) {
            auto value = n.parameters.find(q.name);
            if (value == n.parameters.end() || value->second.type() != q.dtype)
                fail(n.program + " is invoked without its parameter " + q.name);
        }
        for (auto &[name, e] : n.extents) check(e);
        for (auto &[name, e] : n.parameters) check(e);
        check_extents(n, *found);
        for (size_t i = 0; i < n.arguments.size(); i++) pass(n, *found, i);
        for (size_t i = 0; i < n.arguments.size(); i++)
            if (found->arguments[i].written) stored.insert(n.arguments[i].buffer);
    }

    // What the invoked program takes for granted about its dims.
    void check_extents(const Invoke &n, const TileProgram &callee) const {
        auto holds = [&](const Expr &condition) {
            if (!prove(condition, facts) && !surely_never_runs(scope))
                fail(n.program + " is invoked where " + brief(condition) + " is not known");
        };
        for (const Dim &d : callee.dims) {
            auto given = n.extents.find(d.name);
            if (given == n.extents.end()) {
                if (d.kind != DimKind::derived) fail(n.program + " is invoked without the extent of its dim " + d.name);
                continue;
            }
            const Expr &e = given->second;
            if (d.kind == DimKind::fixed) holds(e == Expr(d.value));
            if (d.kind != DimKind::symbolic) continue;
            if (d.multiple_of > 1) holds(e % Expr(d.multiple_of) == Expr(0));
            if (d.min > 0) holds(Expr(d.min) <= e);
            if (d.max < INT32_MAX) holds(e <= Expr(d.max));
            if (!d.equals.empty()) holds(e == n.extents.at(d.equals));
        }
    }

    // The extent of a dim of the invoked program, over what it is given.
    static Expr extent_of(const std::string &dim, const Invoke &n, const TileProgram &callee) {
        if (auto given = n.extents.find(dim); given != n.extents.end()) return given->second;
        auto d = std::find_if(callee.dims.begin(), callee.dims.end(), [&](const Dim &known) { return known.name == dim; });
        if (d == callee.dims.end()) throw InternalError(callee.name + " has no dim " + dim);
        if (d->kind == DimKind::fixed) return Expr(d->value);
        return replace_extents(d->size, [&](const Expr &e) { return extent_of(e->name, n, callee); });
    }

    // How many elements each axis of an argument has.
    static std::vector<Expr> extents_of(const Argument &a, const Invoke &n, const TileProgram &callee) {
        std::vector<Expr> extents;
        for (const std::string &d : a.tensor.dims) extents.push_back(extent_of(d, n, callee));
        return extents;
    }

    // Argument `i` of the invoked program: an access of each of its elements.
    void pass(const Invoke &n, const TileProgram &callee, size_t i) {
        const Argument &a = callee.arguments[i];
        const BufferView &view = n.arguments[i];
        const Buffer &b = find(view.buffer);
        const std::string what = b.name + ", as " + a.tensor.name + " of " + n.program + ",";
        const std::vector<Expr> extents = extents_of(a, n, callee);
        if (b.space != Space::workspace && !is_given(b)) fail(what + " is in " + name_of(b.space));
        const bool fits = view.is_whole() ? b.extents.size() == extents.size()
                                          : view.first.size() == b.extents.size() && view.axes.size() == extents.size();
        if (b.dtype != a.tensor.dtype || !fits) fail(what + " has another type or rank");
        if (a.read && !stored.count(b.name) && !has_no_element(b) && !surely_never_runs(scope))
            fail(what + " is read before anything is stored to it");
        if (a.written && is_given(b) && !writable.count(b.name)) fail(what + " is an input and is stored to");
        for (size_t j = 0; j < n.arguments.size(); j++)
            if (j != i && a.written && n.arguments[j].buffer == b.name && !apart(n, callee, i, j))
                fail(what + " is stored to and passed twice");
        for (const BufferView::Axis &moved : view.axes)
            if (moved.of >= b.extents.size()) fail(what + " moves an axis that it does not have");
        for (const Expr &e : view.first) check(e);
        for (const BufferView::Axis &moved : view.axes) check(moved.step);
        within_box(a.tensor.name, extents, 0, [&] {
            std::vector<Expr> point;
            for (size_t axis = 0; axis < extents.size(); axis++) point.push_back(variable(index_of(a.tensor.name, axis)));
            const std::vector<Expr> index = element_of(view, point);
            check_index(b.name, index, facts, scope);
            accesses.push_back({b.name, index, a.written, scope});
        });
    }

    static std::string index_of(const std::string &argument, size_t axis) { return "%" + std::to_string(axis) + " of " + argument; }

    void within_box(const std::string &argument, const std::vector<Expr> &extents, size_t from, const std::function<void()> &inside) {
        if (from == extents.size()) return inside();
        within({nullptr, index_of(argument, from), Expr(0), extents[from] - 1, extents[from], {}},
               [&] { within_box(argument, extents, from + 1, inside); });
    }

    // Whether two views of one buffer have no element in common: along some axis all of the one lies before all of the other, or they are
    // points that differ.
    bool apart(const Invoke &n, const TileProgram &callee, size_t i, size_t j) const {
        auto range = [&](size_t argument, size_t axis) {
            const BufferView &view = n.arguments[argument];
            const std::vector<Expr> extents = extents_of(callee.arguments[argument], n, callee);
            if (view.is_whole()) return std::pair(Expr(0), extents[axis] - 1);
            Expr last = view.first[axis];
            for (size_t a = 0; a < view.axes.size(); a++)
                if (view.axes[a].of == axis) last = last + view.axes[a].step * (extents[a] - 1);
            return std::pair(view.first[axis], last);
        };
        const size_t rank = find(n.arguments[i].buffer).extents.size();
        for (size_t axis = 0; axis < rank; axis++) {
            const auto [first, last] = range(i, axis);
            const auto [other_first, other_last] = range(j, axis);
            if (prove(last < other_first, facts) || prove(other_last < first, facts)) return true;
            if (equal(first, last) && equal(other_first, other_last) && prove(first != other_first, facts)) return true;
        }
        return false;
    }
};

}  // namespace

static std::vector<std::string> assumed_of(const TileProgram &program, std::optional<int64_t> max_steps) {
    std::vector<std::string> assumed;
    std::vector<TileProgram> before;  // a program invokes earlier ones only
    auto check = [&](const TileProgram &p) {
        std::vector<std::string> more = TileVerifier(p, before, max_steps).assumed;
        assumed.insert(assumed.end(), more.begin(), more.end());
    };
    for (const TileProgram &p : program.programs) check(p), before.push_back(p);
    check(program);
    return assumed;
}

std::vector<std::string> verify(const TileProgram &program) { return assumed_of(program, std::nullopt); }

bool is_proved(const TileProgram &program, std::optional<int64_t> max_steps) {
    try {
        return assumed_of(program, max_steps).empty();
    } catch (const UserError &) { return false; }
}

}  // namespace tessera
