#include "algorithms/transform/roles.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace tessera {

namespace {

struct Operand {
    std::string tensor;
    std::set<std::string> dims;  // that its index goes over
};

// A fold of products of two tensors, and what each of its dims is for it.
struct Product {
    const Stage *stage = nullptr;
    Operand operands[2];
    // By operand: only the first has them, only the second, both. In the order of results, then of folds.
    std::vector<std::string> of_first, of_second, of_both, folded;

    std::set<std::string> points() const {
        std::set<std::string> all(folded.begin(), folded.end());
        all.insert(stage->dims.begin(), stage->dims.end());
        return all;
    }
};

// The only load of an expression.
const Expr *only_load(const Expr &e, std::vector<Expr> &loads) {
    walk(e, [&](const Expr &n) {
        if (n.kind() == ExprKind::load) loads.push_back(n);
    });
    return loads.size() == 1 ? &loads[0] : nullptr;
}

std::optional<Product> product_of(const Stage &stage) {
    const auto *reduce = std::get_if<Reduce>(&stage.body);
    if (!reduce || reduce->inputs.size() != 2 || reduce->monoid.parts.size() != 1 || scatters(stage)) return std::nullopt;
    if (reduce->monoid.name != "dot") return std::nullopt;
    Product product;
    product.stage = &stage, product.folded = reduce->dims;
    for (size_t i = 0; i < 2; i++) {
        std::vector<Expr> loads;
        const Expr *load = only_load(reduce->inputs[i], loads);
        if (!load) return std::nullopt;
        product.operands[i] = {(*load)->name, variables_in(reduce->inputs[i])};
    }
    // The first operand is the one of the rows: of results' dims that only one of the two has, it has the first.
    for (const std::string &d : stage.dims) {
        const bool first = product.operands[0].dims.count(d) > 0, second = product.operands[1].dims.count(d) > 0;
        if (first == second) continue;
        if (second) std::swap(product.operands[0], product.operands[1]);
        break;
    }
    for (const std::string &d : stage.dims) {
        const bool first = product.operands[0].dims.count(d) > 0, second = product.operands[1].dims.count(d) > 0;
        if (!first && !second) return std::nullopt;
        (first && second ? product.of_both : first ? product.of_first : product.of_second).push_back(d);
    }
    return product;
}

// The map that alone reads a result, at its own element, and has its dims.
const Stage *reader_of(const Algorithm &algorithm, const Stage &product) {
    const Tensor result = results_of(product)[0];
    if (std::count(algorithm.outputs.begin(), algorithm.outputs.end(), result.name)) return nullptr;
    const Stage *only = nullptr;
    for (const Stage &stage : algorithm.stages()) {
        bool reads = false, elsewhere = false;
        for (const Expr &e : expressions_of(stage))
            walk(e, [&](const Expr &n) {
                if (n.kind() != ExprKind::load || n->name != result.name) return;
                reads = true;
                for (size_t a = 0; a < n->args.size() && a < result.dims.size(); a++)
                    elsewhere |= n->args[a].kind() != ExprKind::variable || n->args[a]->name != result.dims[a];
            });
        if (!reads) continue;
        if (only || elsewhere || is_fold(stage) || updates(stage) || stage.dims != product.dims) return nullptr;
        only = &stage;
    }
    return only;
}

// Dims of the one by the order of those of the other; those that both have go to themselves.
bool add_pairs(std::map<std::string, std::string> &dims, std::vector<std::string> there, std::vector<std::string> here) {
    if (there.size() != here.size()) return false;
    if (there.size() > 1)
        for (size_t i = 0; i < there.size();) {
            const auto same = std::find(here.begin(), here.end(), there[i]);
            if (same == here.end()) {
                i++;
                continue;
            }
            dims[there[i]] = there[i];
            here.erase(same), there.erase(there.begin() + static_cast<std::ptrdiff_t>(i));
        }
    for (size_t i = 0; i < there.size(); i++) dims[there[i]] = here[i];
    return true;
}

std::optional<StageRole> role_of(const Product &here, const Product &there) {
    StageRole role{here.stage->name, there.stage->name, "", "", {}, {}};
    if (!add_pairs(role.dims, there.of_first, here.of_first) || !add_pairs(role.dims, there.of_second, here.of_second) ||
        !add_pairs(role.dims, there.folded, here.folded) || !add_pairs(role.dims, there.of_both, here.of_both))
        return std::nullopt;
    for (size_t i = 0; i < 2; i++) role.tensors[there.operands[i].tensor] = here.operands[i].tensor;
    role.tensors[results_of(*there.stage)[0].name] = results_of(*here.stage)[0].name;
    return role;
}

bool share_operand(const Product &a, const Product &b) {
    for (const Operand &one : a.operands)
        for (const Operand &other : b.operands)
            if (one.tensor == other.tensor) return true;
    return false;
}

std::vector<Product> products_of(const Algorithm &algorithm) {
    std::vector<Product> all;
    for (const Stage &stage : algorithm.stages())
        if (const auto product = product_of(stage)) all.push_back(*product);
    return all;
}

}  // namespace

std::vector<StageRole> roles_in(const Algorithm &algorithm, const Algorithm &other) {
    const std::vector<Product> all = products_of(other);
    std::vector<StageRole> roles;
    for (const Product &here : products_of(algorithm)) {
        const auto better = [&](const Product &there) {
            return std::tuple(there.stage->name == here.stage->name, there.points() == here.points(), share_operand(here, there));
        };
        std::optional<StageRole> best;
        std::tuple<bool, bool, bool> how;
        for (const Product &there : all) {
            const auto of_this = better(there);
            if (of_this == std::tuple(false, false, false) || (best && of_this <= how)) continue;
            if (auto role = role_of(here, there)) best = std::move(role), how = of_this;
        }
        if (!best) continue;
        const Stage *reader = reader_of(algorithm, *here.stage), *reader_there = reader_of(other, *other.find_stage(best->of));
        if (reader) best->reader = reader->name;
        if (reader_there) best->reader_of = reader_there->name;
        if (reader && reader_there) best->tensors[results_of(*reader_there)[0].name] = results_of(*reader)[0].name;
        roles.push_back(*best);
    }
    return roles;
}

}  // namespace tessera
