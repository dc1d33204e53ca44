#include "compiler/rewrite/order.h"

#include <algorithm>

#include "algorithms/index/prove.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

struct StateWrite {
    std::string state, what;
    size_t position = 0;  // among the steps
};

std::string name_of_writer(const Step &step) {
    return std::visit(Overloaded{[](const Stage &stage) { return "the update '" + stage.name + "'"; },
                                 [](const Call &call) { return "the call '" + call.scope + "'"; }},
                      step);
}

class Order {
public:
    Order(const Algorithm &algorithm, const KnobsByStage &stages) : algorithm_(algorithm), steps_(algorithm.steps), knobs_(stages) {
        for (size_t i = 0; i < steps_.size(); i++)
            for (const std::string &state : states_written(steps_[i])) writes_.push_back({state, name_of_writer(steps_[i]), i});
    }

    void check() const {
        if (writes_.empty()) return;
        for (size_t i = 0; i < steps_.size(); i++) {
            const auto *stage = std::get_if<Stage>(&steps_[i]);
            const Place *place = stage ? place_of(stage->name) : nullptr;
            // What stands beside a stage runs with it; lower/place/beside.h checks what the two do to states.
            if (!place || place->kind == Place::Kind::root || place->kind == Place::Kind::beside) continue;
            const std::set<std::string> read = tensors_read(*stage, algorithm_);
            for (const StateWrite &write : writes_) {
                if (write.position < i || !read.count(write.state)) continue;
                for (size_t at : runs_at(i))
                    if (write.position < at)
                        throw UserError("schedule.order",
                                        stage->name + ": it reads the state '" + write.state + "' as it is before " + write.what +
                                            ", and " +
                                            (place->kind == Place::Kind::inlined ? "inlined" : "at " + place->stage + "." + place->loop) +
                                            " it would run in '" + std::get<Stage>(steps_[at]).name +
                                            "', after it. Place it at root, or at a stage that runs before " + write.what + ".");
            }
        }
    }

private:
    const Algorithm &algorithm_;
    const std::vector<Step> &steps_;
    const KnobsByStage &knobs_;
    std::vector<StateWrite> writes_;

    const Place *place_of(const std::string &stage) const {
        auto it = knobs_.find(stage);
        return it == knobs_.end() || !it->second.place ? nullptr : &*it->second.place;
    }

    size_t index_of(const std::string &stage) const {
        auto it = std::find_if(steps_.begin(), steps_.end(), [&](const Step &s) {
            const auto *found = std::get_if<Stage>(&s);
            return found && found->name == stage;
        });
        return static_cast<size_t>(it - steps_.begin());
    }

    // The stages at root in whose loops it runs. A call takes only what is stored before it.
    std::set<size_t> runs_at(size_t step) const {
        const auto *stage = step < steps_.size() ? std::get_if<Stage>(&steps_[step]) : nullptr;
        if (!stage) return {};
        const Place *place = place_of(stage->name);
        if (!place || place->kind == Place::Kind::root) return {step};
        if (place->kind == Place::Kind::at || place->kind == Place::Kind::beside) return runs_at(index_of(place->stage));
        std::set<size_t> all;
        const std::vector<Tensor> results = results_of(*stage);
        for (size_t consumer = step + 1; consumer < steps_.size(); consumer++) {
            const std::set<std::string> loaded = tensors_read(steps_[consumer], algorithm_);
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

static std::vector<std::string> dims_of(const Stage &stage) {
    std::vector<std::string> dims = stage.dims;
    for (const std::string &d : reduced_dims(stage)) dims.push_back(d);
    if (is_fold(stage))
        for (const Part &part : monoid_of(stage).parts) dims.insert(dims.end(), part.dims.begin(), part.dims.end());
    return dims;
}

std::set<std::string> tensors_read(const Step &step, const Algorithm &algorithm) {
    std::set<std::string> read;
    std::vector<std::string> dims;
    std::visit(Overloaded{
                   [&](const Stage &stage) {
                       for (const Expr &root : expressions_of(stage)) add_loads(root, read);
                       dims = dims_of(stage);
                   },
                   [&](const Call &call) {
                       for (const auto &[own, view] : call.tensors) {
                           read.insert(view.tensor);
                           for (const Expr &e : view.index) add_loads(e, read);
                       }
                       for (const auto &[own, value] : call.parameters) add_loads(value, read);
                       for (const auto &[own, dim] : call.dims) dims.push_back(dim);
                       if (call.repeat) dims.push_back(call.repeat->dim);
                   },
               },
               step);
    for (const std::string &d : dims)
        if (const Dim *dim = algorithm.find_dim(d); dim && dim->size.defined()) add_loads(dim->size, read);
    return read;
}

std::set<std::string> states_written(const Step &step) {
    std::set<std::string> states;
    std::visit(Overloaded{
                   [&](const Stage &stage) {
                       for (const Write *write : writes_of(stage)) states.insert(write->state);
                   },
                   [&](const Call &call) {
                       for (const auto &[own, view] : call.tensors)
                           if (const Tensor *t = call.callee->find_tensor(own); t && t->role == Role::state) states.insert(view.tensor);
                   },
               },
               step);
    return states;
}

std::set<std::string> tensors_read(const Algorithm &algorithm) {
    std::set<std::string> read(algorithm.outputs.begin(), algorithm.outputs.end());
    map_expressions(algorithm, [&](const Expr &root) {
        add_loads(root, read);
        return root;
    });
    for (const Call &call : algorithm.calls())
        for (const auto &[argument, view] : call.tensors) read.insert(view.tensor);
    return read;
}

void check_order(const Algorithm &algorithm, const KnobsByStage &stages) { Order(algorithm, stages).check(); }

void check_updates(const Algorithm &algorithm) {
    for (const Stage &stage : algorithm.stages())
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
