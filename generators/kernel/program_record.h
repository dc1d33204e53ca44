// A prepared kernel as provenance: which programs it has, what they are made of, and what a cost model says of them. `tune` writes
// it into artifacts, and `check` compares what they say with what they resolve to.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "costmodel/model/cost_model.h"
#include "generators/kernel/prepare.h"
#include "schedules/artifact/provenance.h"

namespace tessera {

// The cost model of each target, loaded when it is first asked for.
class Judge {
public:
    // `choice` as model_for takes it (model_choice.h): "" for the models that ship. The registry outlives it.
    explicit Judge(const Registry &registry, std::string choice = "") : registry_(registry), choice_(std::move(choice)) {}
    Prediction predict(const Featured &features, const Target &target);

private:
    struct Known {
        std::unique_ptr<CostModel> model;
        std::string hash;
    };
    const Registry &registry_;
    std::string choice_;
    std::map<std::string, Known> models_;  // by target
};

// What is tuned for, as the artifact says it.
KernelTask task_of(const KernelRequest &request, const Extents &extents, int64_t threads);

// Where a symbolic dim has no extent, 128 stands for it; where the dims' constraints forbid that, nothing is predicted.
Provenance provenance_of(const PreparedKernel &prepared, const Extents &extents, int64_t threads, Judge &judge);

}  // namespace tessera
