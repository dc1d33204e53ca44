#include "compiler/rewrite/join.h"

#include <algorithm>

#include "algorithms/index/prove.h"
#include "algorithms/transform/given_extents.h"
#include "compiler/rewrite/accesses.h"
#include "compiler/rewrite/order.h"
#include "schedules/knobs/notation.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

bool is_beside(const KnobsByStage &stages, const std::string &name) {
    auto it = stages.find(name);
    return it != stages.end() && it->second.place && it->second.place->kind == Place::Kind::beside && it->second.place->loop.empty();
}

// In one loop of another stage.
const Place *loop_beside(const KnobsByStage &stages, const std::string &name) {
    auto it = stages.find(name);
    const bool is_it = it != stages.end() && it->second.place && it->second.place->kind == Place::Kind::beside;
    return is_it && !it->second.place->loop.empty() ? &*it->second.place : nullptr;
}

[[noreturn]] void refuse(const std::string &stage, const std::string &host, const std::string &why) {
    throw UserError("schedule.join", stage + ": it cannot share the loops of '" + host + "': " + why);
}

// Whether two lists of dims are as long, and the dims at each place are equal.
bool are_equal(const Algorithm &algorithm, const std::vector<std::string> &a, const std::vector<std::string> &b) {
    auto root = [&](const std::string &d) { return d.empty() ? d : root_of(algorithm, algorithm.dim(d)).name; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const std::string &one, const std::string &other) { return one == other || root(one) == root(other); });
}

// A guest's expressions in the host's dims.
Stage with_dims_of(const Stage &host, Stage guest, const Algorithm &algorithm) {
    std::map<std::string, Expr> renamed;
    auto same = [&](const std::vector<std::string> &own, const std::vector<std::string> &hosts, const char *what) {
        const bool all = are_equal(algorithm, own, hosts);
        for (size_t i = 0; all && i < own.size(); i++)
            if (own[i] != hosts[i]) renamed[own[i]] = variable(hosts[i]);
        if (!all)
            refuse(guest.name, host.name,
                   std::string("its ") + what + " are " + (own.empty() ? "none" : join(own)) + ", and the other's are " +
                       (hosts.empty() ? "none" : join(hosts)) + ". Place it at root.");
    };
    same(guest.dims, host.dims, "dims");
    same(reduced_dims(guest), reduced_dims(host), "folded dims");
    same({scanned_dim(guest)}, {scanned_dim(host)}, "scanned dims");
    guest = map_expressions(std::move(guest), [&](const Expr &e) { return substitute(e, renamed); });
    return guest;
}

struct OwnDim {
    std::string stage, part, dim;
};

// A part's dim of its own that one of the stages goes over, if any.
std::optional<OwnDim> own_dim_met(const std::vector<Stage> &stages) {
    std::set<std::string> points;
    for (const Stage &s : stages)
        for (const auto &dims : {s.dims, folded_dims(s)}) points.insert(dims.begin(), dims.end());
    for (const Stage &s : stages) {
        if (!is_fold(s)) continue;
        for (const Part &part : monoid_of(s).parts)
            for (const std::string &d : part.dims)
                if (points.count(d)) return OwnDim{s.name, part.name, d};
    }
    return std::nullopt;
}

// A part's own dims are apart from those that the joined stage goes over; under another name of an equal dim they might not be.
void check_own_dims(const Stage &host, const std::vector<Stage> &members) {
    if (const auto met = own_dim_met(members))
        refuse(met->stage, host.name,
               "its part '" + met->part + "' has the dim '" + met->dim + "' of its own, which one of them goes over. Place it at root.");
}

void check_rows(const Stage &member, const Stage &host) {
    for (const Stage *stage : {&member, &host})
        if (!stage->rows.empty()) refuse(member.name, host.name, "'" + stage->name + "' keeps rows of segments. Place it at root.");
}

// ---- Maps

class JoinedMap {
public:
    JoinedMap(const Algorithm &algorithm, const Stage &host) : algorithm_(algorithm), host_(host) {}

    void add(const Stage &member) {
        check_rows(member, host_);
        const std::vector<std::string> names = names_of_results(member);
        const std::vector<Value> &values = std::get<Map>(member.body).values;
        const size_t offset = values_.size();
        for (size_t i = 0; i < values.size(); i++) {
            Value v = values[i];
            v.value = forwarded(member, v.value, offset);
            if (v.to)
                for (Expr &e : v.to->index) e = forwarded(member, e, offset);
            values_.push_back(std::move(v)), names_.push_back(names[i]), owners_.push_back(member.name);
            if (!names[i].empty()) of_tensor_[names[i]] = values_.size() - 1;
        }
        for (size_t i = offset; i < values_.size(); i++)
            if (values_[i].to) note_write(member, i);
        if (values_.size() > max_values) refuse(member.name, host_.name, "together they have more than 32 values. Place it at root.");
    }

    // Without names for what nobody else reads.
    Stage stage(const std::set<std::string> &read_elsewhere) const {
        Map map;
        map.values = values_;
        Stage joined{host_.name, host_.dims, std::move(map), names_};
        for (std::string &name : joined.results)
            if (!read_elsewhere.count(name)) name.clear();
        return joined;
    }

private:
    const Algorithm &algorithm_;
    const Stage &host_;
    std::vector<Value> values_;
    std::vector<std::string> names_;
    std::map<std::string, size_t> of_tensor_, of_state_;
    std::vector<std::string> owners_;  // by value: the member that it is of
    std::vector<Expr> reads_;          // of states, by members so far

    bool is_own_point(const Expr &load) const {
        if (load->guarded || load->args.size() != host_.dims.size()) return false;
        for (size_t i = 0; i < host_.dims.size(); i++)
            if (load->args[i].kind() != ExprKind::variable || load->args[i]->name != host_.dims[i]) return false;
        return true;
    }
    static bool is_element(const Expr &load, const std::vector<Expr> &index) { return !load->guarded && reads_element(load, index); }
    Expr value(size_t number) const { return left(static_cast<int>(number), values_[number].value.type()); }

    // With the values of the point in place of loads of what earlier members make or write, and of what they compute already.
    Expr forwarded(const Stage &member, const Expr &root, size_t offset) {
        return rewrite(root, [&](const Expr &e) -> Expr {
            if (e.kind() == ExprKind::left) return left(e->number + static_cast<int>(offset), e.type());
            if (e.kind() == ExprKind::load) return forwarded_load(member, e);
            for (size_t i = 0; !e->args.empty() && i < offset; i++)
                if (equal(values_[i].value, e)) return value(i);
            return {};
        });
    }

    Expr forwarded_load(const Stage &member, const Expr &e) {
        if (auto made = of_tensor_.find(e->name); made != of_tensor_.end()) {
            if (is_own_point(e)) return value(made->second);
            refuse(member.name, owners_[made->second], "it reads " + brief(e) + ", which is of another point. Place it at root.");
        }
        if (auto written = of_state_.find(e->name); written != of_state_.end()) {
            if (is_element(e, values_[written->second].to->index)) return value(written->second);
            refuse(member.name, owners_[written->second],
                   "it reads " + brief(e) + " after '" + e->name + "' was written, which is another element. Place it at root.");
        }
        if (const Tensor *t = algorithm_.find_tensor(e->name); t && t->role == Role::state) reads_.push_back(e);
        return {};
    }

    // What was read before must be the very element that is now written, for other points' were written in between.
    void note_write(const Stage &member, size_t number) {
        const Write &to = *values_[number].to;
        for (const Expr &read : reads_)
            if (read->name == to.state && !is_element(read, to.index))
                refuse(member.name, host_.name,
                       "it writes '" + to.state + "' while " + brief(read) + " of it is read, as it was before. Place it at root.");
        auto written = of_state_.find(to.state);
        if (written != of_state_.end() && owners_[written->second] != member.name)
            refuse(member.name, owners_[written->second], "both write '" + to.state + "'. Place it at root.");
        of_state_[to.state] = number;
    }
};

// ---- folds

Expr shifted(const Expr &root, int parts, const std::vector<int> &inputs) {
    return rewrite(root, [&](const Expr &e) -> Expr {
        if (e.kind() == ExprKind::left) return left(e->number + parts, e.type());
        if (e.kind() == ExprKind::right) return right(e->number + parts, e.type());
        return e.kind() == ExprKind::input ? input(inputs[static_cast<size_t>(e->number)], e.type()) : Expr();
    });
}

// The product of monoids: each part steps as its own monoid says.
class JoinedFold {
public:
    void add(const Stage &member, const Expr &where, const Expr &common) {
        const Monoid &m = monoid_of(member);
        const int parts = static_cast<int>(monoid_.parts.size());
        std::vector<int> numbers;
        for (const Expr &e : inputs_of(member)) numbers.push_back(number_of(e));
        // Where a fold has a condition of its own, its parts step under it.
        const bool is_conditional = where.defined() && !(common.defined() && equal(where, common));
        const Expr holds = is_conditional ? input(number_of(where), DType::boolean) : Expr();
        for (size_t p = 0; p < m.parts.size(); p++) {
            Part part = m.parts[p];
            part.name = member.name + "." + part.name;
            std::replace(part.name.begin(), part.name.end(), '.', '_');
            const Expr old = left(parts + static_cast<int>(p), part.identity.type), identity = constant(part.identity);
            const Expr step = shifted(m.step[p], parts, numbers), lift = shifted(m.lift[p], parts, numbers);
            monoid_.parts.push_back(part);
            monoid_.step.push_back(is_conditional ? select(holds, step, old) : step);
            monoid_.lift.push_back(is_conditional ? select(holds, lift, identity) : lift);
            monoid_.combine.push_back(shifted(m.combine[p], parts, {}));
        }
        monoid_.commutative &= m.commutative;
        monoid_.name += (monoid_.name.empty() ? "" : "_") + m.name;
        for (const std::string &name : names_of_results(member)) results_.push_back(name);
    }
    const Monoid &monoid() const { return monoid_; }
    const std::vector<Expr> &inputs() const { return inputs_; }
    const std::vector<std::string> &results() const { return results_; }

private:
    Monoid monoid_;
    std::vector<Expr> inputs_;
    std::vector<std::string> results_;

    int number_of(const Expr &e) {
        auto known = std::find_if(inputs_.begin(), inputs_.end(), [&](const Expr &other) { return equal(other, e); });
        if (known != inputs_.end()) return static_cast<int>(known - inputs_.begin());
        inputs_.push_back(e), monoid_.inputs.push_back(e.type());
        return static_cast<int>(inputs_.size()) - 1;
    }
};

void check_apart(const std::vector<Stage> &members, const std::string &host) {
    std::set<std::string> made;
    for (const Stage &s : members) {
        for (const Expr &root : expressions_of(s))
            walk(root, [&](const Expr &e) {
                if (e.kind() == ExprKind::load && made.count(e->name))
                    refuse(s.name, host, "it folds '" + e->name + "', which is there only when that fold has ended. Place it at root.");
            });
        for (const Tensor &t : results_of(s)) made.insert(t.name);
    }
}

Stage joined_reduces(const Stage &host, const std::vector<Stage> &members) {
    check_apart(members, host.name);
    for (const Stage &s : members) check_rows(s, host);
    const auto &first = std::get<Reduce>(members[0].body);
    Expr common = first.where;
    for (const Stage &s : members) {
        const auto &r = std::get<Reduce>(s.body);
        if (scatters(s)) refuse(s.name, host.name, "it folds to a computed destination. Place it at root.");
        if (!r.where.defined() || !common.defined() || !equal(r.where, common)) common = {};
    }
    JoinedFold fold;
    for (const Stage &s : members) fold.add(s, std::get<Reduce>(s.body).where, common);
    return {host.name, host.dims, Reduce{fold.monoid(), first.dims, fold.inputs(), common, {}}, fold.results()};
}

Stage joined_scans(const Stage &host, const std::vector<Stage> &members) {
    check_apart(members, host.name);
    for (const Stage &s : members) check_rows(s, host);
    const auto &first = std::get<Scan>(members[0].body);
    JoinedFold fold;
    for (const Stage &s : members) {
        const auto &scan = std::get<Scan>(s.body);
        const bool same_segments =
            scan.segments.defined() == first.segments.defined() && (!scan.segments.defined() || equal(scan.segments, first.segments));
        if (scan.inclusive != first.inclusive || scan.direction != first.direction || !same_segments)
            refuse(s.name, host.name, "one scans in another way than the other (direction, inclusive, segments). Place it at root.");
        fold.add(s, {}, {});
    }
    return {host.name, host.dims, Scan{fold.monoid(), first.dim, first.inclusive, fold.inputs(), first.direction, first.segments},
            fold.results()};
}

// ---- the program

class Joiner {
public:
    Joiner(Algorithm &algorithm, KnobsByStage &stages) : a_(algorithm), knobs_(stages) {}

    void run() {
        for (std::optional<std::string> host = next_host(); host; host = next_host()) join(*host);
        std::map<std::string, std::string> guests;  // one of each host
        for (const Stage &s : a_.stages())
            if (const Place *place = loop_beside(knobs_, s.name)) guests.emplace(place->stage, s.name);
        for (const auto &[host, guest] : guests) gather(host, guest);
    }

private:
    Algorithm &a_;
    KnobsByStage &knobs_;

    std::optional<std::string> next_host() const {
        for (const Stage &s : a_.stages())
            if (is_beside(knobs_, s.name)) return host_of(s.name);
        return std::nullopt;
    }

    std::string host_of(const std::string &stage) const {
        std::string host = stage;
        for (size_t steps = 0; is_beside(knobs_, host); steps++) {
            if (steps > a_.steps.size()) refuse(stage, host, "they are beside each other in a circle. Give one of them loops of its own.");
            host = knobs_.at(host).place->stage;
            if (!a_.find_stage(host)) refuse(stage, host, "there is no such stage. The schedule's stages are those of its algorithm.");
        }
        return host;
    }

    struct Parted {
        std::vector<Step> before;
        std::vector<Stage> members;
        std::vector<Step> after;
    };

    // Steps between the members that need one of them run after all of these, and then no member may need those. `goes_along`: what has no
    // place of its own stays among them.
    Parted parted(
        const std::string &host_name, const std::function<bool(const Stage &)> &is_among,
        const std::function<bool(const Stage &)> &goes_along = [](const Stage &) { return false; }) const {
        Parted p;
        auto &[before, members, after] = p;
        std::vector<Accesses> of_members, of_after;
        auto follows = [](const Accesses &later, const std::vector<Accesses> &earlier) {
            return std::any_of(earlier.begin(), earlier.end(), [&](const Accesses &e) { return later.must_follow(e); });
        };
        for (const Step &step : a_.steps) {
            Accesses own(step, a_);
            const auto *stage = std::get_if<Stage>(&step);
            const bool is_member = stage && is_among(*stage);
            if (is_member && follows(own, of_after))
                refuse(stage->name, stage->name == host_name ? members.front().name : host_name,
                       "it needs '" + name_of(after[static_cast<size_t>(needed(own, of_after))]) +
                           "', which needs one of the two and would run after both. Place it at root.");
            const bool moves_along = stage && !is_member && follows(own, of_members) && !follows(own, of_after) && goes_along(*stage);
            if (is_member || moves_along) members.push_back(*stage), of_members.push_back(std::move(own));
            else if (follows(own, of_members) || follows(own, of_after)) after.push_back(step), of_after.push_back(std::move(own));
            else before.push_back(step);
        }
        return p;
    }

    static std::string name_of(const Step &step) {
        return std::visit(Overloaded{[](const Stage &stage) { return stage.name; }, [](const Call &call) { return call.scope; }}, step);
    }

    // Whether it is the host, or is computed in loops of what is.
    bool runs_with(const std::string &given, const std::string &host) const {
        std::string stage = given;
        for (size_t places = 0; places <= knobs_.size(); places++) {
            if (stage == host) return true;
            auto it = knobs_.find(stage);
            if (it == knobs_.end() || !it->second.place) return false;
            const Place &place = *it->second.place;
            if (place.kind != Place::Kind::at && place.kind != Place::Kind::beside) return false;
            stage = place.stage;
        }
        throw UserError("schedule.place", given + ": it is placed in loops of '" + stage +
                                              "', which is placed in loops of stages that lead "
                                              "back to it. Place one of them at root.");
    }

    // Those that stand in loops of the host run with it, as what is placed in their loops does; they stay stages.
    void gather(const std::string &host, const std::string &guest) {
        if (!a_.find_stage(host))
            refuse(guest, host,
                   "it has no loops of its own: either there is no such stage, or it is itself placed beside another. Name the stage whose "
                   "loops it shares.");
        auto knobs = knobs_.find(host);
        if (knobs != knobs_.end() && knobs->second.place && knobs->second.place->kind != Place::Kind::root)
            refuse(host, host,
                   "only a stage at root has loops that another stands beside, and it is placed at '" + to_string(*knobs->second.place) +
                       "'.");
        auto [before, members, after] = parted(
            host, [&](const Stage &s) { return runs_with(s.name, host); },
            [&](const Stage &s) {
                auto it = knobs_.find(s.name);
                return it != knobs_.end() && it->second.place && it->second.place->kind == Place::Kind::inlined;
            });
        a_.steps = std::move(before);
        a_.steps.insert(a_.steps.end(), members.begin(), members.end());
        a_.steps.insert(a_.steps.end(), after.begin(), after.end());
    }

    void join(const std::string &host_name) {
        auto [before, members, after] = parted(host_name, [&](const Stage &s) { return host_of(s.name) == host_name; });
        const Stage &host = *std::find_if(members.begin(), members.end(), [&](const Stage &s) { return s.name == host_name; });
        Stage joined = joined_stage(Stage(host), members, before, after);
        for (const Stage &s : members)
            if (s.name != host_name) knobs_.erase(s.name);
        a_.steps = std::move(before);
        a_.steps.emplace_back(std::move(joined));
        a_.steps.insert(a_.steps.end(), after.begin(), after.end());
    }

    static ptrdiff_t needed(const Accesses &own, const std::vector<Accesses> &after) {
        return std::find_if(after.begin(), after.end(), [&](const Accesses &a) { return own.must_follow(a); }) - after.begin();
    }

    Stage joined_stage(const Stage &host, std::vector<Stage> members, const std::vector<Step> &before,
                       const std::vector<Step> &after) const {
        for (Stage &s : members) {
            if (s.body.index() != host.body.index())
                refuse(s.name, host.name, "one of them is a fold and the other is not, or they fold differently. Place it at root.");
        }
        check_own_dims(host, members);
        for (Stage &s : members) s = with_dims_of(host, std::move(s), a_);
        return std::visit(Overloaded{
                              [&](const Map &) {
                                  JoinedMap map(a_, host);
                                  for (const Stage &s : members) map.add(s);
                                  return map.stage(read_by_others(before, after));
                              },
                              [&](const Reduce &) { return joined_reduces(host, members); },
                              [&](const Scan &) { return joined_scans(host, members); },
                          },
                          host.body);
    }

    std::set<std::string> read_by_others(const std::vector<Step> &before, const std::vector<Step> &after) const {
        Algorithm others = a_;
        others.steps = before;
        others.steps.insert(others.steps.end(), after.begin(), after.end());
        return tensors_read(others);
    }
};

}  // namespace

bool KeptApart::operator()(const Stage &guest, const Stage &host) {
    const bool same = guest.body.index() == host.body.index() && are_equal(algorithm_, guest.dims, host.dims) &&
                      are_equal(algorithm_, reduced_dims(guest), reduced_dims(host)) &&
                      are_equal(algorithm_, {scanned_dim(guest)}, {scanned_dim(host)});
    if (!same || scatters(guest) || scatters(host) || own_dim_met({guest, host})) return true;
    if (steps_.empty())
        for (const Step &step : algorithm_.steps) {
            if (const auto *stage = std::get_if<Stage>(&step)) positions_[stage->name] = steps_.size();
            steps_.emplace_back(step, algorithm_);
        }
    const size_t earlier = positions_.at(guest.name), later = positions_.at(host.name);
    require(earlier < later, "the guest is the earlier stage");
    if (is_fold(host) && steps_[later].must_follow(steps_[earlier])) return true;  // a fold's result is there when it has ended
    return needs_by_way_of_others(steps_, later, earlier);
}

Algorithm join_stages(Algorithm algorithm, KnobsByStage &stages) {
    Joiner(algorithm, stages).run();
    return algorithm;
}

}  // namespace tessera
