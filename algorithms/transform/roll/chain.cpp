#include "algorithms/transform/roll/chain.h"

#include <algorithm>

#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class Finder {
public:
    Finder(const StepTable &steps, const Stretch &stretch, const std::set<std::string> &stackable)
        : steps_(steps), stretch_(stretch), stackable_(stackable) {}

    std::optional<Chain> find() {
        for (size_t at = 0; at < stretch_.period; at++) {
            for (size_t i = 0; i < steps_.reads[number_of(at, 0)].size(); i++) {
                std::vector<std::string> names;  // by round
                for (size_t round = 0; round < stretch_.rounds; round++) names.push_back(steps_.reads[number_of(at, round)].at(i));
                if (!takes(names)) return std::nullopt;
            }
            takes_numbers(at);
        }
        if (!gives()) return std::nullopt;
        return std::move(chain_);
    }

private:
    using Origin = StepTable::Origin;
    const StepTable &steps_;
    const Stretch &stretch_;
    const std::set<std::string> &stackable_;
    Chain chain_;

    // The number in the algorithm that a step of a round has.
    size_t number_of(size_t at, size_t round) const { return stretch_.begin + round * stretch_.period + at; }
    const Step &step(size_t at, size_t round) const { return steps_.algorithm.steps[number_of(at, round)]; }

    // The place of a tensor within its round, where it is made in that one.
    std::optional<Origin> inside(const std::string &name, size_t round) const {
        const auto it = steps_.origins.find(name);
        const size_t begin = number_of(0, round);
        if (it == steps_.origins.end() || it->second.step < begin || it->second.step >= begin + stretch_.period) return std::nullopt;
        return Origin{it->second.step - begin, it->second.result};
    }
    bool is_before(const std::string &name) const {
        const auto it = steps_.origins.find(name);
        return it == steps_.origins.end() || it->second.step < stretch_.begin;
    }
    const std::string &made_at(const Origin &place, size_t round) const { return steps_.makes[number_of(place.step, round)][place.result]; }

    bool are_alike(const std::string &a, const std::string &b) const {
        const Tensor one = steps_.tensor(a), other = steps_.tensor(b);
        return one.dtype == other.dtype && one.dims == other.dims && one.role != Role::state && other.role != Role::state;
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
        const Tensor *own = steps_.algorithm.find_tensor(name);
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

    bool is_read_behind(const std::string &name) const {
        const auto readers = steps_.readers.find(name);
        return steps_.outputs.count(name) || (readers != steps_.readers.end() && readers->second.last >= stretch_.end());
    }
    bool is_read_elsewhere(const std::string &name) const {
        const auto readers = steps_.readers.find(name);
        return is_read_behind(name) || (readers != steps_.readers.end() && readers->second.first < stretch_.begin);
    }

    // What is used behind the chain is the last round's; what is stacked, and what the first round is given, only the rounds use.
    bool gives() {
        std::set<std::string> members;
        for (const Chain::Stack &s : chain_.stacks)
            for (const std::string &name : s.members)
                if (is_read_elsewhere(name) || !members.insert(name).second) return false;
        for (const std::string &name : chain_.shared)
            if (members.count(name)) return false;
        for (size_t at = 0; at < stretch_.period; at++)
            for (size_t round = 0; round < stretch_.rounds; round++) {
                const std::vector<std::string> &made = steps_.makes[number_of(at, round)];
                for (size_t r = 0; r < made.size(); r++) {
                    if (!is_read_behind(made[r])) continue;
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

std::vector<Expr> expressions_of(const Step &step) {
    if (const auto *stage = std::get_if<Stage>(&step)) return expressions_of(*stage);
    std::vector<Expr> all;
    const Call &call = std::get<Call>(step);
    for (const auto &[own, view] : call.tensors) all.insert(all.end(), view.index.begin(), view.index.end());
    for (const auto &[own, value] : call.parameters) all.push_back(value);
    return all;
}

std::vector<std::string> reads_of(const Step &step) {
    std::vector<std::string> names;
    auto add = [&](const std::string &name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    if (const auto *call = std::get_if<Call>(&step))
        for (const auto &[own, view] : call->tensors) add(view.tensor);
    for (const Expr &e : expressions_of(step))
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::load) add(n->name);
        });
    if (const auto *stage = std::get_if<Stage>(&step))
        for (const Write *w : writes_of(*stage)) add(w->state);
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

StepTable::StepTable(const Algorithm &of) : algorithm(of), outputs(of.outputs.begin(), of.outputs.end()) {
    for (const Step &step : of.steps) {
        reads.push_back(reads_of(step)), makes.push_back(makes_of(step));
        const size_t number = makes.size() - 1;
        for (const std::string &name : reads.back()) readers.emplace(name, Readers{number, number}).first->second.last = number;
        for (size_t r = 0; r < makes.back().size(); r++) origins[makes.back()[r]] = {makes.size() - 1, r};
    }
}

Tensor StepTable::tensor(const std::string &name) const {
    if (const Tensor *own = algorithm.find_tensor(name)) return *own;
    if (const auto it = origins.find(name); it != origins.end())
        for (Tensor &t : std::visit([](const auto &s) { return results_of(s); }, algorithm.steps[it->second.step]))
            if (t.name == name) return std::move(t);
    broken("a chain reads a tensor that nothing makes");
}

std::optional<Chain> chain_of(const StepTable &steps, const Stretch &stretch, const std::set<std::string> &stackable) {
    return Finder(steps, stretch, stackable).find();
}

}  // namespace tessera
