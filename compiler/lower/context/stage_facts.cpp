#include "compiler/lower/context/stage_facts.h"

#include <algorithm>
#include <functional>
#include <set>

namespace tessera {

bool is_spatial(const Stage &stage, const std::string &dim) {
    return std::find(stage.dims.begin(), stage.dims.end(), dim) != stage.dims.end();
}

bool folds_over(const Stage &stage, const std::string &dim) {
    const std::vector<std::string> folded = reduced_dims(stage);
    return std::find(folded.begin(), folded.end(), dim) != folded.end();
}

bool runs_backward(const Stage &stage, const std::string &dim) {
    auto *scan = std::get_if<Scan>(&stage.body);
    return scan && scan->dim == dim && scan->direction == ScanDirection::backward;
}

bool writes_apart(const Stage &stage, const std::string &dim) {
    const std::vector<const Write *> writes = writes_of(stage);
    return std::all_of(writes.begin(), writes.end(), [&](const Write *write) {
        return std::any_of(write->index.begin(), write->index.end(),
                           [&](const Expr &e) { return e.kind() == ExprKind::variable && e->name == dim; });
    });
}

// For each part, those whose old values its step uses.
using PartReads = std::vector<std::set<size_t>>;

static PartReads part_reads(const Monoid &m) {
    PartReads reads(m.parts.size());
    for (size_t p = 0; p < m.parts.size(); p++)
        walk(m.step[p], [&](const Expr &n) {
            if (n.kind() == ExprKind::left) reads[p].insert(static_cast<size_t>(n->number));
        });
    return reads;
}

// A slice of a reduction goes on from results, so all that step are stored there.
static LiveParts live_parts(const Stage &stage, const std::vector<Tensor> &results, const std::set<std::string> &read,
                            const PartReads &reads) {
    LiveParts live;
    for (const Tensor &t : results) live.stored.push_back(read.count(t.name) > 0);
    if (std::none_of(live.stored.begin(), live.stored.end(), [](bool s) { return s; })) live.stored.assign(results.size(), true);
    std::vector<bool> steps = live.stored;
    auto spread = [&] {
        bool more = false;
        for (size_t p = 0; p < steps.size(); p++)
            for (size_t q : reads[p])
                if (steps[p] && !steps[q]) steps[q] = more = true;
        return more;
    };
    while (spread()) {}
    if (!std::holds_alternative<Scan>(stage.body)) live.stored = steps;
    for (size_t p = 0; p < steps.size(); p++)
        if (steps[p]) live.stepped.push_back(p);
    return live;
}

static FoldOrder fold_order(const Monoid &m, const std::vector<size_t> &parts, const PartReads &reads) {
    FoldOrder order;
    order.together = parts;
    while (true) {
        auto next = std::find_if(order.together.begin(), order.together.end(), [&](size_t p) {
            return std::none_of(order.together.begin(), order.together.end(), [&](size_t q) { return q != p && reads[q].count(p); });
        });
        if (next == order.together.end()) break;
        order.alone.push_back(*next);
        order.together.erase(next);
    }
    for (size_t p : order.together) order.by_point &= m.parts[p].dims.empty();
    return order;
}

static std::vector<Expr> invariants_of(const Monoid &m, size_t part, const std::vector<Expr> &inputs) {
    const std::vector<std::string> &extra = m.parts[part].dims;
    auto varies = [&](const Expr &root) {
        bool result = false;
        walk(root, [&](const Expr &n) {
            if (n.kind() == ExprKind::left) result |= !m.parts[n->number].dims.empty();
            if (n.kind() == ExprKind::input)
                for (const std::string &d : extra) result |= uses_variable(inputs[n->number], d);
        });
        return result;
    };
    std::vector<Expr> found;
    AddressSet met;
    std::function<void(const Expr &)> search = [&](const Expr &e) {
        if (!met.insert(e.get())) return;
        if (e.kind() == ExprKind::operation && !varies(e)) {
            bool known = std::any_of(found.begin(), found.end(), [&](const Expr &f) { return equal(e, f); });
            if (!known && !e.is_constant()) found.push_back(e);
            return;
        }
        for (const Expr &arg : e->args) search(arg);
    };
    if (!extra.empty()) search(m.step[part]);
    return found;
}

StageFacts facts_of(const Stage &stage, const std::set<std::string> &read) {
    StageFacts facts;
    facts.results = results_of(stage);
    for (Tensor &t : facts.results) t.dims = point_dims(stage, t);
    for (const Expr &e : expressions_of(stage))
        walk(e, [&](const Expr &n) {
            if (n.kind() == ExprKind::load) facts.loads.push_back(n);
        });
    if (!is_fold(stage)) return facts;
    const Monoid &monoid = monoid_of(stage);
    const PartReads reads = part_reads(monoid);
    facts.live = live_parts(stage, facts.results, read, reads);
    facts.order = fold_order(monoid, facts.live.stepped, reads);
    for (size_t part = 0; part < monoid.parts.size(); part++) facts.invariants.push_back(invariants_of(monoid, part, inputs_of(stage)));
    return facts;
}

}  // namespace tessera
