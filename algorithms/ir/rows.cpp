// Points of stages and elements of their results, where rows of several parents lie one behind another.
#include "algorithms/ir/rows.h"

#include <algorithm>

#include "algorithms/expr/match.h"
#include "support/text/error.h"

namespace tessera {

const Rows *rows_of(const Stage &stage, const std::string &dim) {
    const auto it = std::find_if(stage.rows.begin(), stage.rows.end(), [&](const Rows &r) { return r.dim == dim; });
    return it == stage.rows.end() ? nullptr : &*it;
}

std::set<std::string> parents_of(const Stage &stage) {
    std::set<std::string> parents;
    for (const Rows &rows : stage.rows) parents.merge(variables_in(rows.first));
    return parents;
}

std::vector<std::string> point_dims(const Stage &stage, const Tensor &result) {
    if (stage.rows.empty()) return result.dims;
    std::vector<std::string> dims = stage.dims;
    const size_t axes = stage.dims.size() - parents_of(stage).size();
    dims.insert(dims.end(), result.dims.begin() + static_cast<std::ptrdiff_t>(axes), result.dims.end());
    return dims;
}

std::vector<Expr> element_of(const Stage &stage, const std::vector<Expr> &point) {
    if (stage.rows.empty()) return point;
    require(point.size() >= stage.dims.size(), "a point has an index for each dim of " + stage.name);
    std::map<std::string, Expr> at;
    for (size_t i = 0; i < stage.dims.size(); i++) at[stage.dims[i]] = point[i];
    const std::set<std::string> parents = parents_of(stage);
    std::vector<Expr> index;
    for (size_t i = 0; i < point.size(); i++) {
        if (i < stage.dims.size() && parents.count(stage.dims[i])) continue;
        const Rows *rows = i < stage.dims.size() ? rows_of(stage, stage.dims[i]) : nullptr;
        index.push_back(rows ? substitute(rows->first, at) + point[i] : point[i]);
    }
    return index;
}

static void add_addends(const Expr &e, bool negative, std::vector<std::pair<Expr, bool>> &addends) {
    if (!e.is_operation(Op::add) && !e.is_operation(Op::sub)) return addends.emplace_back(e, negative), void();
    add_addends(e->args[0], negative, addends);
    add_addends(e->args[1], negative != e.is_operation(Op::sub), addends);
}

// What is left of the index without the addend that is an instance of `first`, of one that `matcher` allows. Nothing where there is none,
// or several are.
static std::optional<Expr> without_first(const Expr &index, const Expr &first, Matcher &matcher) {
    std::vector<std::pair<Expr, bool>> addends;
    add_addends(index, false, addends);
    std::optional<Matcher> found;
    size_t which = 0;
    for (size_t i = 0; i < addends.size(); i++) {
        Matcher tried = matcher;
        if (addends[i].second || !tried.match(first, addends[i].first)) continue;
        if (found) return std::nullopt;
        found = std::move(tried), which = i;
    }
    if (!found) return std::nullopt;
    matcher = std::move(*found);
    Expr rest;
    for (size_t i = 0; i < addends.size(); i++) {
        const auto &[e, negative] = addends[i];
        if (i == which) continue;
        if (!rest.defined()) rest = negative ? Expr(0) - e : e;
        else rest = negative ? rest - e : rest + e;
    }
    return rest.defined() ? rest : Expr(0);
}

std::optional<std::vector<Expr>> point_of(const Stage &stage, const std::vector<Expr> &index) {
    if (stage.rows.empty()) return index;
    const std::set<std::string> parents = parents_of(stage);
    std::map<std::string, Expr> operands;
    for (const std::string &p : parents) operands[p] = input(static_cast<int>(operands.size()), DType::index);
    std::map<std::string, Expr> firsts;  // the matcher knows patterns by their nodes, so all live as long as it does
    for (const Rows &rows : stage.rows) firsts[rows.dim] = substitute(rows.first, operands);
    Matcher matcher;
    std::map<std::string, Expr> at;
    size_t axis = 0;
    for (const std::string &d : stage.dims) {
        if (parents.count(d)) continue;
        const Expr &e = index.at(axis++);
        const Rows *rows = rows_of(stage, d);
        if (!rows || rows->first.is_constant(0)) {
            at[d] = e;
            continue;
        }
        const std::optional<Expr> row = without_first(e, firsts.at(d), matcher);
        if (!row) return std::nullopt;
        at[d] = *row;
    }
    std::vector<Expr> point;
    for (const std::string &d : stage.dims) {
        if (parents.count(d)) at[d] = matcher.inputs.at(operands.at(d)->number);
        point.push_back(at.at(d));
    }
    point.insert(point.end(), index.begin() + static_cast<std::ptrdiff_t>(axis), index.end());
    return point;
}

bool keeps_rows(const Algorithm &algorithm) {
    return std::ranges::any_of(algorithm.stages(), [](const Stage &stage) { return !stage.rows.empty(); }) ||
           std::ranges::any_of(algorithm.calls(), [](const Call &call) { return call.callee && keeps_rows(*call.callee); });
}

void refuse_rows(const Algorithm &algorithm, const std::string &what) {
    if (!keeps_rows(algorithm)) return;
    std::string which;
    for (const Stage &stage : algorithm.stages())
        if (!stage.rows.empty() && which.empty())
            which = "its stage '" + stage.name + "' keeps the rows '" + stage.rows[0].dim + "' of segments";
    throw UserError("algorithm.rows", what + " of " + algorithm.name + ": " +
                                          (which.empty() ? "a stage of a call keeps rows of segments" : which) +
                                          ", which it does not know; expected stages whose results have no ragged dim.");
}

bool begins_rows(const Algorithm &algorithm, const Stage &stage) {
    const std::vector<Tensor> results = results_of(stage);
    bool found = false;
    for (const Stage &s : algorithm.stages())
        for (const Rows &rows : s.rows)
            walk(rows.first, [&](const Expr &e) {
                found |= e.kind() == ExprKind::load &&
                         std::any_of(results.begin(), results.end(), [&](const Tensor &t) { return t.name == e->name; });
            });
    return found;
}

}  // namespace tessera
