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
            // What stands beside a stage runs with it; lower/place/beside.h checks what the two do to states.
            if (!place || place->kind == Place::Kind::root || place->kind == Place::Kind::beside) continue;
            const std::set<std::string> read = tensors_read(stage, algorithm_);
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

    size_t index_of(const std::string &stage) const {
        auto it = std::find_if(algorithm_.stages.begin(), algorithm_.stages.end(), [&](const Stage &s) { return s.name == stage; });
        return static_cast<size_t>(it - algorithm_.stages.begin());
    }

    // The stages at root in whose loops it runs.
    std::set<size_t> runs_at(size_t stage) const {
        if (stage >= algorithm_.stages.size()) return {};
        const Place *place = place_of(algorithm_.stages[stage].name);
        if (!place || place->kind == Place::Kind::root) return {stage};
        if (place->kind == Place::Kind::at || place->kind == Place::Kind::beside) return runs_at(index_of(place->stage));
        std::set<size_t> all;
        const std::vector<Tensor> results = results_of(algorithm_.stages[stage]);
        for (size_t consumer = stage + 1; consumer < algorithm_.stages.size(); consumer++) {
            const std::set<std::string> loaded = tensors_read(algorithm_.stages[consumer], algorithm_);
            if (std::any_of(results.begin(), results.end(), [&](const Tensor &t) { return loaded.count(t.name) > 0; }))
                all.merge(runs_at(consumer));
        }
        return all;
    }
};

}  // namespace

static void add_loads(const Expr &root, std::set<std::string> &names) {
    walk(root, [&](const Expr &e) {
        if (e.kind() == ExprKind::load) names.insert(e->name);
    });
}

std::set<std::string> tensors_read(const Stage &stage, const Algorithm &algorithm) {
    std::set<std::string> read;
    for (const Expr &root : expressions_of(stage)) add_loads(root, read);
    std::vector<std::string> dims = stage.dims;
    for (const std::string &d : reduced_dims(stage)) dims.push_back(d);
    if (is_fold(stage))
        for (const Part &part : monoid_of(stage).parts) dims.insert(dims.end(), part.dims.begin(), part.dims.end());
    for (const std::string &d : dims)
        if (const Dim *dim = algorithm.find_dim(d); dim && dim->size.defined()) add_loads(dim->size, read);
    return read;
}

std::set<std::string> tensors_read(const Algorithm &algorithm) {
    std::set<std::string> read(algorithm.outputs.begin(), algorithm.outputs.end());
    map_expressions(algorithm, [&](const Expr &root) {
        add_loads(root, read);
        return root;
    });
    for (const Call &call : algorithm.calls)
        for (const auto &[argument, tensor] : call.tensors) read.insert(tensor);
    return read;
}

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
                    if (e.kind() == ExprKind::load && e->name == update->state && !reads_element(e, update->index))
                        throw UserError("schedule.order", stage.name + ": what is inlined into it reads " + brief(e) +
                                                              " while it writes other elements of '" + update->state +
                                                              "'. Place that stage at root.");
                });
}

}  // namespace tessera
