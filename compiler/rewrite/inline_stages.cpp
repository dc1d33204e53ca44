#include "compiler/rewrite/inline_stages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "algorithms/functions/conversions.h"
#include "algorithms/index/own_point.h"
#include "support/text/error.h"

namespace tessera {

static bool is_inlined(const Knobs &knobs) { return knobs.place && knobs.place->kind == Place::Kind::inlined; }

static int64_t size_of_loads(const Stage &stage, const Extents &sizes, int64_t each_other_node) {
    int64_t size = 0;
    for (const Expr &root : expressions_of(stage))
        walk(in_operations(root), [&](const Expr &n) {
            auto found = n.kind() == ExprKind::load ? sizes.find(n->name) : sizes.end();
            if (found != sizes.end()) size += found->second;
            else if (n.kind() != ExprKind::constant) size += each_other_node;  // equal constants may be one object or several
        });
    return size;
}

int64_t inlined_size(const Stage &stage, const Extents &sizes) { return size_of_loads(stage, sizes, 0); }
int64_t whole_size(const Stage &stage, const Extents &sizes) { return size_of_loads(stage, sizes, 1); }

static void check_inlined(const Stage &stage, const Extents &sizes) {
    const int64_t size = inlined_size(stage, sizes);
    if (size <= max_inlined) return;
    std::string largest;
    for (const Expr &root : expressions_of(stage))
        walk(root, [&](const Expr &n) {
            if (n.kind() == ExprKind::load && sizes.count(n->name) && (largest.empty() || sizes.at(n->name) > sizes.at(largest)))
                largest = n->name;
        });
    throw UserError(
        "schedule.inline",
        fmt::format(
            "{}: what is inlined into it makes {} operations and operands of each of its points; expected at most {}. Place '{}' at one of "
            "its loops, or at root.",
            stage.name, size, max_inlined, largest));
}

static std::vector<Expr> index_of_load(const Expr &load) { return {load->args.begin(), load->args.end() - (load->guarded ? 2 : 0)}; }

Algorithm inline_stages(Algorithm result, const KnobsByStage &stages) {
    if (std::none_of(stages.begin(), stages.end(), [](const auto &s) { return is_inlined(s.second); })) return result;
    const std::vector<Step> declared = std::exchange(result.steps, {});
    std::map<std::string, Stage> inlined;
    Extents sizes;  // of those
    auto substitute_loads = [&](const Expr &root) {
        return rewrite(root, [&](const Expr &n) -> Expr {
            if (n.kind() != ExprKind::load || !inlined.count(n->name)) return {};
            const Stage &s = inlined.at(n->name);
            const std::vector<Expr> index = index_of_load(n), own = own_point(result, s, index);
            if (own.empty() && !s.dims.empty())
                throw UserError("schedule.inline",
                                s.name +
                                    ": cannot be inlined: what loads it reads rows of its flat axis, which may be of any "
                                    "segment or of none. Place it at root.");
            std::map<std::string, Expr> point;
            for (size_t i = 0; i < s.dims.size(); i++) point[s.dims[i]] = own[i];
            Expr value = substitute(*only_value(s), point);
            if (!n->guarded) return value;
            // What the value loads may be outside of its tensors where the guard fails.
            const Expr &guard = n->args[index.size()];
            return select(guard, read_where(value, guard), n->args[index.size() + 1]);
        });
    };
    for (const Step &step : declared) {
        if (std::holds_alternative<Call>(step)) {
            result.steps.push_back(step);
            continue;
        }
        const auto &stage = std::get<Stage>(step);
        check_inlined(stage, sizes);
        Stage s = map_expressions(stage, substitute_loads);
        auto it = stages.find(stage.name);
        if (it == stages.end() || !is_inlined(it->second)) {
            result.steps.emplace_back(std::move(s));
            continue;
        }
        const std::string tensor = only_value(stage) ? results_of(stage)[0].name : "";
        const bool is_output = std::find(result.outputs.begin(), result.outputs.end(), tensor) != result.outputs.end();
        if (!only_value(stage) || is_output)
            throw UserError("schedule.inline",
                            stage.name + ": cannot be inlined: " +
                                (is_output ? "it is an output" : "only a map of one value can be substituted into its consumers") +
                                "; place it at a consumer's loop or at root.");
        inlined[tensor] = s, sizes[tensor] = whole_size(stage, sizes);
    }
    return result;
}

}  // namespace tessera
