#include "compiler/lower/rounds.h"

#include <algorithm>
#include <functional>

#include "algorithms/functions/conversions.h"
#include "algorithms/index/affine.h"
#include "algorithms/index/prove.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/tile/arguments.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class Rounds {
public:
    Rounds(const Callee &callee, const std::string &name, const TileProgram &program, const Lowering &lowering, const Scope &scope,
           Names &names)
        : callee_(callee), name_(name), program_(program), lowering_(lowering), scope_(scope), names_(names) {}

    TileBody body() {
        if (!callee_.repeat) return {invoke(Expr(), {})};
        rounds_ = extent_of(lowering_, scope_, callee_.repeat->dim);
        if (lowering_.mapping->is_led_by_host() && is_data(rounds_)) {
            most_ = extent_limit(lowering_, scope_, callee_.repeat->dim);
            if (!most_.defined())
                refuse("how often it repeats is data without a bound (" + brief(rounds_) + "); declare '" + callee_.repeat->dim +
                       "' by counted_dim, which has one.");
        }
        for (const auto &[input, output] : callee_.repeat->carried)
            if (!callee_.repeat->stacked.count(output)) carried_.insert(output);
        if (carried_.empty() && callee_.repeat->until.empty()) return in_place();
        return callee_.repeat->until.empty() && !most_.defined() ? alternating() : kept_at_last();
    }

private:
    using Views = std::map<std::string, BufferView>;  // of the callee's tensors, where they are not what they are bound to
    enum class Carried : uint8_t { given, kept };     // what a round reads: what the call is given, or what the one before left

    const Callee &callee_;
    const std::string &name_;
    const TileProgram &program_;
    const Lowering &lowering_;
    const Scope &scope_;
    Names &names_;
    Expr rounds_;
    Expr most_;                      // of them, where their number is data that the host which starts them does not see; else undefined
    std::set<std::string> carried_;  // outputs that are not stacked

    [[noreturn]] void refuse(const std::string &what) const {
        throw UserError("schedule.call", callee_.scope + ": the call is emitted once, and " + what);
    }
    std::string remedy() const { return callee_.repeat ? "." : ", or inline the call."; }

    Expr at_round(const Expr &e, const Expr &round) const {
        const Expr expanded = in_operations(e);
        return round.defined() ? resolve_at(lowering_, scope_, expanded, {{callee_.repeat->dim, round}})
                               : resolve(lowering_, scope_, expanded);
    }

    // A view of a tensor as one of the buffer in which it is stored.
    BufferView view(const View &of, size_t rank, const Expr &round) const {
        const Stored *where = scope_.find(of.tensor);
        if (!where || where->depth > 0)
            refuse("takes '" + of.tensor + "', which is not stored in full before it; place it at root" + remedy());
        if (!where->layout.empty()) refuse("takes '" + of.tensor + "', which has a layout; delete the layout (null)" + remedy());
        if (of.index.empty()) return {where->buffer.name};
        auto known = [&](const Expr &e) {
            if (lowering_.mapping->is_led_by_host() && is_data(e))
                refuse("takes a view of '" + of.tensor + "' that lies where data says (" + brief(e) +
                       "), which the host that launches kernels does not see; make a stage of it" + remedy());
            return e;
        };
        BufferView result(where->buffer.name, {}, std::vector<BufferView::Axis>(rank, {0, Expr(0)}));
        for (size_t i = 0; i < of.index.size(); i++) {
            const auto parts = affine(of.index[i], rank);
            require(parts.has_value(), "a view is affine");
            result.first.push_back(known(at_round(parts->first, round)));
            for (size_t a = 0; a < rank; a++) {
                if (parts->steps[a].is_constant(0)) continue;
                if (!result.axes[a].step.is_constant(0))
                    refuse("takes a view of '" + of.tensor + "' whose axis " + std::to_string(a) +
                           " moves two of its axes; make a stage of it" + remedy());
                result.axes[a] = {i, known(at_round(parts->steps[a], round))};
            }
        }
        result.first = locate(*where, index_along(*where, result.first), scope_.facts);
        if (rank > 0 && !(result.axes.back().of + 1 == result.first.size() && result.axes.back().step.is_constant(1)))
            refuse("takes a view of '" + of.tensor +
                   "' along which adjacent elements are not adjacent in memory, and kernels want them so; make a stage of it" + remedy());
        return result;
    }

    std::shared_ptr<const TileNode> invoke(const Expr &round, const Views &others) const {
        Invoke node{name_, {}, {}, {}};
        for (const auto &[parameter, value] : callee_.parameters) node.parameters[parameter] = at_round(value, round);
        for (const Argument &a : program_.arguments) {
            const auto other = others.find(a.tensor.name);
            node.arguments.push_back(other != others.end() ? other->second
                                                           : view(callee_.tensors.at(a.tensor.name), a.tensor.dims.size(), round));
        }
        for (const Dim &d : spec_dims(program_)) {
            const Expr e = d.kind == DimKind::fixed ? Expr(d.value) : extent_of(lowering_, scope_, callee_.dims.at(d.name));
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load)
                    refuse("the extent of its dim '" + d.name + "' is data (" + brief(e) + "); declare it by a dim" + remedy());
            });
            node.extents[d.name] = e;
        }
        return tile_node(std::move(node));
    }

    const Tensor &argument(const std::string &name) const {
        for (const Argument &a : program_.arguments)
            if (a.tensor.name == name) return a.tensor;
        throw InternalError(name_ + " has no argument " + name);
    }

    Expr extent_in_caller(const std::string &callees) const { return extent_of(lowering_, scope_, callee_.dims.at(callees)); }

    // One of the two places of what is carried.
    static std::string carry_name(const Callee &callee, const std::string &output) { return callee.tensors.at(output).tensor + ".carry"; }
    BufferView carry(const std::string &output, const Expr &place) const {
        BufferView result(carry_name(callee_, output), {place}, {});
        for (size_t i = 0; i < argument(output).dims.size(); i++) result.first.emplace_back(0), result.axes.push_back({i + 1, Expr(1)});
        return result;
    }
    std::vector<Buffer> carries() const {
        std::vector<Buffer> all;
        for (const std::string &output : carried_) {
            Buffer b{carry_name(callee_, output), argument(output).dtype, {Expr(2)}, Space::workspace};
            for (const std::string &d : argument(output).dims) b.extents.push_back(extent_in_caller(d));
            all.push_back(std::move(b));
        }
        return all;
    }

    // What a round that is not the first reads of the one before, of which the carried lie at `place`.
    void read_before(Views &views, const Expr &place, const Expr &round) const {
        for (const auto &[input, output] : callee_.repeat->carried)
            if (carried_.count(output)) views[input] = carry(output, place);
            else views[input] = stacked(output, round - 1);
    }
    void write_to(Views &views, const Expr &place) const {
        for (const std::string &output : carried_) views[output] = carry(output, place);
    }
    BufferView stacked(const std::string &output, const Expr &round) const {
        const Stored &where = scope_.at(callee_.tensors.at(output).tensor);
        BufferView result(where.buffer.name, {round}, {});
        for (size_t i = 0; i < argument(output).dims.size(); i++) result.first.emplace_back(0), result.axes.push_back({i + 1, Expr(1)});
        return result;
    }
    std::shared_ptr<const TileNode> round(const Expr &number, Carried reads, const Expr &from, const Expr &to) const {
        Views views;
        if (reads == Carried::kept) read_before(views, from, number);
        if (to.defined()) write_to(views, to);
        for (const std::string &output : callee_.repeat->stacked) views[output] = stacked(output, number);
        return invoke(number, views);
    }

    std::shared_ptr<const TileNode> loop(const Expr &count, LoopKind kind, const std::function<TileBody(const Expr &index)> &inside) {
        const std::string variable = names_.unique(callee_.scope + "." + callee_.repeat->dim);
        return tile_node(Loop{variable, count, kind, inside(tessera::variable(variable))});
    }
    // Over all rounds but the first ones, where also `more` holds, if anything is given; a host that does not see how many there are goes
    // over as many as there may be.
    std::shared_ptr<const TileNode> loop_after(int64_t first, LoopKind kind, const Expr &more,
                                               const std::function<TileBody(const Expr &index)> &inside) {
        return loop((most_.defined() ? most_ : rounds_) - first, kind, [&](const Expr &l) -> TileBody {
            Expr condition = more;
            if (most_.defined()) condition = more.defined() ? l + first < rounds_ && more : l + first < rounds_;
            if (!condition.defined()) return inside(l);
            return {tile_node(Guard{condition, inside(l), {}})};
        });
    }

    bool holds(const Expr &condition) const { return prove(condition, scope_.facts); }
    // The first where `condition` holds; it is not tested where that is known.
    TileBody either(const Expr &condition, const std::function<TileBody()> &then, const std::function<TileBody()> &otherwise) {
        if (holds(condition)) return then();
        if (holds(!condition)) return otherwise();
        TileBody no = otherwise();
        return {tile_node(Guard{condition, then(), std::move(no)})};
    }
    static TileBody nothing() { return {}; }

    // Every round reads and writes what it is bound to, and what earlier ones stacked.
    TileBody in_place() {
        if (callee_.repeat->carried.empty())
            return {loop_after(0, callee_.in_parallel ? LoopKind::parallel : LoopKind::serial, {},
                               [&](const Expr &l) -> TileBody { return {round(l, Carried::given, {}, {})}; })};
        return either(
            Expr(1) <= rounds_,
            [&]() -> TileBody {
                return {round(Expr(0), Carried::given, {}, {}), loop_after(1, LoopKind::serial, {}, [&](const Expr &l) -> TileBody {
                            return {round(l + 1, Carried::kept, {}, {})};
                        })};
            },
            nothing);
    }

    TileBody alternating() {
        const Expr last = rounds_ - 1;
        auto several = [&]() -> TileBody {
            return {round(Expr(0), Carried::given, {}, Expr(0)),
                    loop(rounds_ - 2, LoopKind::serial,
                         [&](const Expr &l) -> TileBody { return {round(l + 1, Carried::kept, l % Expr(2), Expr(1) - l % Expr(2))}; }),
                    round(last, Carried::kept, simplify((rounds_ - 2) % Expr(2), scope_.facts), {})};
        };
        auto one = [&]() -> TileBody { return {round(Expr(0), Carried::given, {}, {})}; };
        return in_allocs(carries(), either(Expr(2) <= rounds_, several,
                                           [&] { return either(Expr(1) <= rounds_, one, [&] { return copies_of_given(); }); }));
    }

    // Where data tells which round is the last: `last` keeps where it left what is carried.
    TileBody kept_at_last() {
        const Buffer last{names_.unique(callee_.scope + ".last"), DType::i32, {Expr(1)}, lowering_.mapping->space_between_calls()};
        const std::vector<Expr> only = {Expr(0)};
        auto store = [&](const TileNode &node) { return lowering_.mapping->over_box({}, node); };
        auto left = [&](const Expr &place) { return store(Compute{last.name, only, cast(DType::i32, place), {}}); };
        std::string flag;
        if (!callee_.repeat->until.empty()) flag = scope_.at(callee_.tensors.at(callee_.repeat->until).tensor).buffer.name;
        const Expr goes_on = flag.empty() ? Expr() : !load(flag, DType::boolean, {});
        auto some = [&] {
            TileBody body = left(Expr(0));
            body.push_back(round(Expr(0), Carried::given, {}, Expr(0)));
            body.push_back(loop_after(1, LoopKind::serial, goes_on, [&](const Expr &l) {
                const Expr next = Expr(1) - l % Expr(2);
                TileBody one = {round(l + 1, Carried::kept, l % Expr(2), next)};
                append(one, left(next));
                return one;
            }));
            const Expr place = bounded(load(last.name, DType::i32, only), Expr(0), Expr(2));
            for (const std::string &output : carried_) append(body, copy(carry(output, place), output));
            return body;
        };
        return in_allocs(carries(), in_allocs({last}, either(Expr(1) <= rounds_, some, [&] {
                                                  TileBody body = copies_of_given();
                                                  if (!flag.empty())
                                                      append(body, store(Compute{flag, {}, constant_int(DType::boolean, 0), {}}));
                                                  return body;
                                              })));
    }

    // The results where there are no rounds.
    TileBody copies_of_given() {
        TileBody body;
        for (const auto &[input, output] : callee_.repeat->carried) {
            BufferView from = view(callee_.tensors.at(input), argument(input).dims.size(), {});
            if (from.is_whole() && !argument(input).dims.empty())
                for (size_t i = 0; i < argument(input).dims.size(); i++) from.first.emplace_back(0), from.axes.push_back({i, Expr(1)});
            if (carried_.count(output)) append(body, copy(from, output));
        }
        return body;
    }

    // The result of a carried output from where it lies.
    TileBody copy(const BufferView &from, const std::string &output) {
        const Tensor &t = argument(output);
        std::vector<Expr> index = from.first, to;
        std::vector<std::pair<std::string, Expr>> box;
        for (size_t i = 0; i < t.dims.size(); i++) {
            box.emplace_back(names_.unique(callee_.scope + "." + t.dims[i]), extent_in_caller(t.dims[i]));
            to.push_back(variable(box.back().first));
            Expr &moved = index[from.axes[i].of];
            moved = moved + from.axes[i].step * to.back();
        }
        return lowering_.mapping->over_box(box, Copy{callee_.tensors.at(output).tensor, to, load(from.buffer, t.dtype, index), {}});
    }
};

}  // namespace

TileBody rounds_of(const Callee &callee, const std::string &name, const TileProgram &program, const Lowering &lowering, const Scope &scope,
                   Names &names) {
    return Rounds(callee, name, program, lowering, scope, names).body();
}

}  // namespace tessera
