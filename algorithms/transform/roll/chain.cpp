#include "algorithms/transform/roll/chain.h"

#include <algorithm>
#include <map>

#include "support/containers/alternatives.h"

namespace tessera {

namespace {

// Where a tensor is made: by which step of the algorithm, as which of its results.
struct Origin {
    size_t step = 0, result = 0;
};

class Finder {
public:
    Finder(const Algorithm &algorithm, const Stretch &stretch, const std::set<std::string> &stackable)
        : algorithm_(algorithm), stretch_(stretch), stackable_(stackable) {
        for (size_t i = 0; i < algorithm.steps.size(); i++) {
            const std::vector<std::string> made = makes_of(algorithm.steps[i]);
            for (size_t r = 0; r < made.size(); r++) made_[made[r]] = {i, r};
        }
    }

    std::optional<Chain> find() {
        for (size_t at = 0; at < stretch_.period; at++) {
            std::vector<std::vector<std::string>> reads;  // by round
            for (size_t round = 0; round < stretch_.rounds; round++) reads.push_back(reads_of(step(at, round)));
            for (size_t i = 0; i < reads[0].size(); i++) {
                std::vector<std::string> names;
                for (const auto &of : reads) names.push_back(of.at(i));
                if (!takes(names)) return std::nullopt;
            }
            takes_numbers(at);
        }
        if (!gives()) return std::nullopt;
        return std::move(chain_);
    }

private:
    const Algorithm &algorithm_;
    const Stretch &stretch_;
    const std::set<std::string> &stackable_;
    std::map<std::string, Origin> made_;
    Chain chain_;

    const Step &step(size_t at, size_t round) const { return algorithm_.steps[stretch_.begin + round * stretch_.period + at]; }

    // The place of a tensor within its round, where it is made in that one.
    std::optional<Origin> inside(const std::string &name, size_t round) const {
        const auto it = made_.find(name);
        const size_t begin = stretch_.begin + round * stretch_.period;
        if (it == made_.end() || it->second.step < begin || it->second.step >= begin + stretch_.period) return std::nullopt;
        return Origin{it->second.step - begin, it->second.result};
    }
    bool is_before(const std::string &name) const {
        const auto it = made_.find(name);
        return it == made_.end() || it->second.step < stretch_.begin;
    }
    std::string made_at(const Origin &place, size_t round) const { return makes_of(step(place.step, round))[place.result]; }

    // The type and dims of a tensor.
    std::optional<Tensor> tensor(const std::string &name) const {
        if (const Tensor *own = algorithm_.find_tensor(name)) return *own;
        const auto it = made_.find(name);
        if (it == made_.end()) return std::nullopt;
        for (const Tensor &t : std::visit([](const auto &s) { return results_of(s); }, algorithm_.steps[it->second.step]))
            if (t.name == name) return t;
        return std::nullopt;
    }
    bool are_alike(const std::string &a, const std::string &b) const {
        const std::optional<Tensor> one = tensor(a), other = tensor(b);
        return one && other && one->dtype == other->dtype && one->dims == other->dims && one->role != Role::state &&
               other->role != Role::state;
    }

    // What the rounds read at one place of theirs.
    bool takes(const std::vector<std::string> &names) {
        if (std::all_of(names.begin(), names.end(), [&](const std::string &n) { return n == names[0]; }) && is_before(names[0]))
            return takes_shared(names[0]);
        if (inside(names[0], 0)) return takes_inside(names);
        if (inside(names[1], 0)) return takes_carried(names);
        return takes_stacked(names);
    }
    bool takes_shared(const std::string &name) {
        const Tensor *own = algorithm_.find_tensor(name);
        if (own && own->role == Role::state) return false;
        if (std::find(chain_.shared.begin(), chain_.shared.end(), name) == chain_.shared.end()) chain_.shared.push_back(name);
        return true;
    }
    bool takes_inside(const std::vector<std::string> &names) const {
        const Origin place = *inside(names[0], 0);
        for (size_t round = 1; round < names.size(); round++)
            if (names[round] != made_at(place, round)) return false;
        return true;
    }
    bool takes_carried(const std::vector<std::string> &names) {
        const Origin place = *inside(names[1], 0);
        for (size_t round = 1; round < names.size(); round++)
            if (names[round] != made_at(place, round - 1)) return false;
        if (!is_before(names[0]) || !are_alike(names[0], names[1])) return false;
        for (const Chain::Carried &c : chain_.carried)
            if (c.result == names[1] || c.first == names[0]) return c.result == names[1] && c.first == names[0];
        chain_.carried.push_back({names[0], names[1]});
        return true;
    }
    bool takes_stacked(const std::vector<std::string> &names) {
        for (size_t round = 0; round < names.size(); round++)
            if (!stackable_.count(names[round]) || !are_alike(names[0], names[round])) return false;
        for (const Chain::Stack &s : chain_.stacks)
            if (s.first == names[0]) return s.members == names;
        chain_.stacks.push_back({names[0], names});
        return true;
    }

    void takes_numbers(size_t at) {
        const auto *call = std::get_if<Call>(&step(at, 0));
        if (!call) return;
        for (const auto &[name, first] : call->parameters) {
            if (!may_differ(*call, name)) continue;
            Chain::Number number{at, name, {}};
            bool differs = false;
            for (size_t round = 0; round < stretch_.rounds; round++) {
                const Expr &own = std::get<Call>(step(at, round)).parameters.at(name);
                number.values.push_back(own->value);
                differs |= !equal(own, first);
            }
            if (differs) chain_.numbers.push_back(std::move(number));
        }
    }

    // What is used behind the chain is the last round's; what is stacked, and what the first round is given, only the rounds use.
    bool gives() {
        std::set<std::string> behind(algorithm_.outputs.begin(), algorithm_.outputs.end()), elsewhere = behind;
        for (size_t i = 0; i < algorithm_.steps.size(); i++) {
            if (i >= stretch_.begin && i < stretch_.end()) continue;
            for (const std::string &name : reads_of(algorithm_.steps[i])) {
                elsewhere.insert(name);
                if (i >= stretch_.end()) behind.insert(name);
            }
        }
        std::set<std::string> members;
        for (const Chain::Stack &s : chain_.stacks)
            for (const std::string &name : s.members)
                if (elsewhere.count(name) || !members.insert(name).second) return false;
        for (const std::string &name : chain_.shared)
            if (members.count(name)) return false;
        for (size_t at = 0; at < stretch_.period; at++)
            for (size_t round = 0; round < stretch_.rounds; round++) {
                const std::vector<std::string> made = makes_of(step(at, round));
                for (size_t r = 0; r < made.size(); r++) {
                    if (!behind.count(made[r])) continue;
                    if (round + 1 < stretch_.rounds) return false;
                    chain_.results.push_back({made_at({at, r}, 0), made[r]});
                }
            }
        return !chain_.results.empty();
    }
};

}  // namespace

bool may_differ(const Call &call, const std::string &parameter) {
    if (!call.parameters.at(parameter).is_constant()) return false;
    for (const Parameter &p : call.callee->parameters)
        if (p.name == parameter) return !p.range;  // of what is in a table no range is known
    return false;
}

std::vector<std::string> reads_of(const Step &step) {
    std::vector<std::string> names;
    auto add = [&](const std::string &name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    auto add_loads = [&](const Expr &e) {
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::load) add(n->name);
        });
    };
    std::visit(Overloaded{
                   [&](const Stage &stage) {
                       for (const Expr &e : expressions_of(stage)) add_loads(e);
                       for (const Write *w : writes_of(stage)) add(w->state);
                   },
                   [&](const Call &call) {
                       for (const auto &[own, view] : call.tensors) {
                           add(view.tensor);
                           for (const Expr &e : view.index) add_loads(e);
                       }
                       for (const auto &[own, value] : call.parameters) add_loads(value);
                   },
               },
               step);
    return names;
}

std::vector<std::string> makes_of(const Step &step) {
    return std::visit(Overloaded{
                          [](const Stage &stage) { return names_of_results(stage); },
                          [](const Call &call) {
                              std::vector<std::string> names;
                              for (const std::string &output : call.callee->outputs) names.push_back(name_of_result(call, output));
                              return names;
                          },
                      },
                      step);
}

Step with_names(Step step, const std::map<std::string, std::string> &of) {
    auto name = [&](const std::string &old) {
        const auto it = of.find(old);
        return it == of.end() ? old : it->second;
    };
    auto renamed_loads = [&](const Expr &e) {
        return replace_loads(e, [&](const Expr &n) { return of.count(n->name) ? load_of(of.at(n->name), n) : Expr(); });
    };
    std::visit(Overloaded{
                   [&](Stage &stage) {
                       std::vector<std::string> results = names_of_results(stage);
                       stage = map_expressions(std::move(stage), renamed_loads);
                       for (std::string &r : results)
                           if (!r.empty()) r = name(r);
                       stage.results = std::move(results);
                       if (auto *map = std::get_if<Map>(&stage.body))
                           for (Value &v : map->values)
                               if (v.to) v.to->state = name(v.to->state);
                   },
                   [&](Call &call) {
                       for (auto &[own, view] : call.tensors) {
                           view.tensor = name(view.tensor);
                           for (Expr &e : view.index) e = renamed_loads(e);
                       }
                       for (auto &[own, value] : call.parameters) value = renamed_loads(value);
                       for (const std::string &output : call.callee->outputs) call.results[output] = name(name_of_result(call, output));
                   },
               },
               step);
    return step;
}

std::optional<Chain> chain_of(const Algorithm &algorithm, const Stretch &stretch, const std::set<std::string> &stackable) {
    return Finder(algorithm, stretch, stackable).find();
}

}  // namespace tessera
