#include "compiler/inline_stages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "algorithms/error.h"

namespace tessera {

static bool is_inlined(const Knobs &knobs) { return knobs.place && knobs.place->kind == Place::Kind::inlined; }

// Of one point, with all that is inlined there: stages that read several points of one another grow to the power of how many they are.
static constexpr int64_t most_inlined = 20000;

// Operations and operands of each point of `stage`, where each load of a name in `inlined` is as many as stand there.
static int64_t size_with(const Stage &stage, const std::map<std::string, int64_t> &inlined) {
    int64_t size = 0, most = 0;
    std::string largest;
    for (const Expr &root : expressions_of(stage))
        walk(root, [&](const Expr &n) {
            auto found = n.kind() == ExprKind::load ? inlined.find(n->name) : inlined.end();
            const int64_t own = found == inlined.end() ? 1 : found->second;
            size += own;
            if (found != inlined.end() && own > most) most = own, largest = n->name;
        });
    if (size > most_inlined && most > 0)
        throw UserError("schedule.inline", fmt::format("{}: with what is inlined into it, each of its points takes {} operations and operands; expected at most {}. Place "
                                                       "'{}' at one of its loops, or at root.",
                                                       stage.name, size, most_inlined, largest));
    return size;
}

Algorithm inline_stages(Algorithm result, const std::map<std::string, Knobs> &stages) {
    if (std::none_of(stages.begin(), stages.end(), [](const auto &s) { return is_inlined(s.second); })) return result;
    const std::vector<Stage> declared = std::exchange(result.stages, {});
    std::map<std::string, Stage> inlined;
    std::map<std::string, int64_t> sizes;  // of those
    auto substitute_loads = [&](const Expr &root) {
        return rewrite(root, [&](const Expr &n) -> Expr {
            if (n.kind() != ExprKind::load || !inlined.count(n->name)) return {};
            const Stage &s = inlined.at(n->name);
            std::map<std::string, Expr> point;
            for (size_t i = 0; i < s.dims.size(); i++) point[s.dims[i]] = n->args[i];
            Expr value = substitute(std::get<Map>(s.body).value, point);
            if (!n->guarded) return value;
            // What the value loads may be outside of its tensors where the guard fails.
            const Expr &guard = n->args[s.dims.size()];
            return select(guard, read_where(value, guard), n->args[s.dims.size() + 1]);
        });
    };
    for (const Stage &stage : declared) {
        const int64_t size = size_with(stage, sizes);
        Stage s = with_expressions(stage, substitute_loads);
        auto it = stages.find(stage.name);
        if (it == stages.end() || !is_inlined(it->second)) {
            result.stages.push_back(std::move(s));
            continue;
        }
        bool is_output = std::find(result.outputs.begin(), result.outputs.end(), stage.name) != result.outputs.end();
        if (!std::holds_alternative<Map>(stage.body) || is_output)
            throw UserError("schedule.inline", stage.name + ": cannot be inlined: " +
                                (is_output ? "it is an output" : "only a map can be substituted into its consumers") +
                                "; place it at a consumer's loop or at root.");
        inlined[stage.name] = s, sizes[stage.name] = size;
    }
    return result;
}

}  // namespace tessera
