#include "generators/residuals/residual_choices.h"

#include <algorithm>

#include "algorithms/transform/one_stage.h"
#include "bench/measure/work.h"
#include "costmodel/features/roofline.h"

namespace tessera {

namespace {

constexpr int64_t extent_by_data = 64;

// The rounds around a part.
struct Rounds {
    double kept = 1;  // of the innermost call that repeats
    double all = 1;   // that run
    int depth = 0;
};

class Choices {
public:
    explicit Choices(const Target &target) : target_(target) {}

    void add(const ForwardPart &part, const Extents &symbolic, const Rounds &rounds) {
        Extents extents = all_extents(part.algorithm, symbolic);
        for (const Dim &d : part.algorithm.dims) extents.try_emplace(d.name, extent_by_data);
        const size_t first = made.graph.size();
        for (const ForwardStage &s : part.stages) {
            ResidualNode node{
                s.name, bytes_of(s.stage, extents) * rounds.kept, seconds_of(part.algorithm, s.stage, extents), {}, s.is_read, s.is_kept};
            node.seconds *= rounds.all;
            made.seconds_before += node.seconds * std::max(0, rounds.depth - 1);
            for (const size_t read : s.reads) node.reads.push_back(first + read);
            made.graph.push_back(std::move(node));
        }
        for (const ForwardPart &inner : part.within) {
            Extents within;
            for (const auto &[own, dim] : inner.call.dims)
                if (const auto extent = extents.find(dim); extent != extents.end()) within[own] = extent->second;
            std::erase_if(within, [&](const auto &e) {
                const Dim *d = inner.algorithm.find_dim(e.first);
                return !d || d->kind != DimKind::symbolic;
            });
            const auto number = static_cast<double>(extents.at(inner.call.repeat->dim));
            add(inner, within, {number, rounds.all * number, rounds.depth + 1});
        }
    }

    ResidualChoices made;

private:
    const Target &target_;

    static double bytes_of(const Stage &stage, const Extents &extents) {
        double all = 0;
        for (const Tensor &t : results_of(stage)) {
            double bytes = size_of(t.dtype);
            for (const std::string &d : t.dims) bytes *= static_cast<double>(extents.at(d));
            all += bytes;
        }
        return all;
    }

    double seconds_of(const Algorithm &algorithm, const Stage &stage, const Extents &extents) const {
        const Algorithm alone = one_stage(algorithm, stage);
        TileProgram program;  // its arguments alone
        program.dims = alone.dims;
        for (const Tensor &t : alone.tensors) program.arguments.push_back({t, false, true});
        for (const Tensor &t : results_of(stage)) program.arguments.push_back({t, true, false});
        Work work = work_of(alone, program, extents);
        if (!work.operations) work.operations = 0;
        return bound_seconds(work, target_, 1);
    }
};

}  // namespace

ResidualChoices residual_choices(const ForwardPart &part, const Extents &extents, const Target &target) {
    Choices choices(target);
    choices.add(part, extents, {});
    return std::move(choices.made);
}

}  // namespace tessera
