#include "compiler/rewrite/order.h"

#include <algorithm>

#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera {

namespace {

struct StateWrite {
    std::string state, what;
    size_t position = 0;
};

// Where a stage stands among stages and calls.
size_t position_of(size_t stage) { return 2 * stage + 1; }
size_t position_before(size_t stage) { return 2 * stage; }

class Order {
public:
    Order(const Algorithm &algorithm, const Algorithm &declared, const KnobsByStage &stages, const std::vector<WritingCall> &calls)
        : algorithm_(algorithm), knobs_(stages) {
        for (size_t i = 0; i < algorithm.stages.size(); i++)
            for (const Write *write : writes_of(algorithm.stages[i]))
                writes_.push_back({write->state, "the update '" + algorithm.stages[i].name + "'", position_of(i)});
        for (const WritingCall &call : calls) {
            size_t next = 0;
            while (next < algorithm.stages.size() && comes_of(algorithm.stages[next].name, call.before, declared.stages)) next++;
            for (const std::string &state : call.states) writes_.push_back({state, "the call '" + call.scope + "'", position_before(next)});
        }
    }

    void check() const {
        if (writes_.empty()) return;
        for (size_t i = 0; i < algorithm_.stages.size(); i++) {
            const Stage &stage = algorithm_.stages[i];
            const Place *place = place_of(stage.name);
            if (!place || place->kind == Place::Kind::root) continue;
            const std::set<std::string> read = loads_of(stage);
            for (const StateWrite &write : writes_) {
                if (write.position < position_of(i) || !read.count(write.state)) continue;
                for (size_t at : runs_at(i))
                    if (write.position < position_of(at))
                        throw UserError("schedule.order",
                                        stage.name + ": it reads the state '" + write.state + "' as it is before " + write.what + ", and " +
                                            (place->kind == Place::Kind::inlined ? "inlined" : "at " + place->stage + "." + place->loop) +
                                            " it would run in '" + algorithm_.stages[at].name +
                                            "', after it. Place it at root, or at a stage that runs before " + write.what + ".");
            }
        }
    }

private:
    const Algorithm &algorithm_;
    const KnobsByStage &knobs_;
    std::vector<StateWrite> writes_;

    const Place *place_of(const std::string &stage) const {
        auto it = knobs_.find(stage);
        return it == knobs_.end() || !it->second.place ? nullptr : &*it->second.place;
    }

    std::set<std::string> loads_of(const Stage &stage) const {
        std::set<std::string> names;
        auto collect = [&](const Expr &root) {
            walk(root, [&](const Expr &e) {
                if (e.kind() == ExprKind::load) names.insert(e->name);
            });
        };
        for (const Expr &root : expressions_of(stage)) collect(root);
        std::vector<std::string> dims = stage.dims;
        for (const std::string &d : reduced_dims(stage)) dims.push_back(d);
        for (const std::string &d : dims)
            if (const Dim *dim = algorithm_.find_dim(d); dim && dim->size.defined()) collect(dim->size);
        return names;
    }

    size_t index_of(const std::string &stage) const {
        auto it = std::find_if(algorithm_.stages.begin(), algorithm_.stages.end(), [&](const Stage &s) { return s.name == stage; });
        return static_cast<size_t>(it - algorithm_.stages.begin());
    }

    // The stages at root in whose loops it runs.
    std::set<size_t> runs_at(size_t stage) const {
        if (stage >= algorithm_.stages.size()) return {};
        const Place *place = place_of(algorithm_.stages[stage].name);
        if (!place || place->kind == Place::Kind::root) return {stage};
        if (place->kind == Place::Kind::at) return runs_at(index_of(place->stage));
        std::set<size_t> all;
        const std::vector<Tensor> results = results_of(algorithm_.stages[stage]);
        for (size_t consumer = stage + 1; consumer < algorithm_.stages.size(); consumer++) {
            const std::set<std::string> loaded = loads_of(algorithm_.stages[consumer]);
            if (std::any_of(results.begin(), results.end(), [&](const Tensor &t) { return loaded.count(t.name) > 0; }))
                all.merge(runs_at(consumer));
        }
        return all;
    }
};

}  // namespace

bool comes_of(const std::string &name, const std::set<std::string> &stages, const std::vector<Stage> &all) {
    std::string origin;
    for (const Stage &s : all)
        if ((name == s.name || name.starts_with(s.name + ".")) && s.name.size() >= origin.size()) origin = s.name;
    return stages.count(origin) > 0;
}

void check_order(const Algorithm &algorithm, const Algorithm &declared, const KnobsByStage &stages, const std::vector<WritingCall> &calls) {
    Order(algorithm, declared, stages, calls).check();
}

void check_updates(const Algorithm &algorithm) {
    for (const Stage &stage : algorithm.stages)
        for (const Write *update : writes_of(stage))
            for (const Expr &root : expressions_of(stage))
                walk(root, [&](const Expr &e) {
                    if (e.kind() != ExprKind::load || e->name != update->state) return;
                    for (size_t i = 0; i < update->index.size(); i++)
                        if (!equal(simplify(e->args[i], {}), simplify(update->index[i], {})))
                            throw UserError("schedule.order", stage.name + ": what is inlined into it reads " + brief(e) +
                                                                  " while it writes other elements of '" + update->state +
                                                                  "'. Place that stage at root.");
                });
}

}  // namespace tessera
