#include "algorithms/expr/value_numbering.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "support/text/error.h"

namespace tessera {

static bool is_same(const FunctionRef &a, const FunctionRef &b) {
    if (a == b) return true;
    return a && b && a->name == b->name && equal(a->in_f32, b->in_f32) && equal(a->in_f64, b->in_f64);
}

bool ValueNumbering::is_of(const Row &row, const Expr::Node &node, const std::vector<int> &operands) {
    auto key = [](const Expr::Node &n) { return std::tie(n.kind, n.type, n.op, n.rounding, n.saturate, n.guarded, n.number, n.name); };
    const Expr::Node &known = *row.expr.get();
    return row.operands == operands && key(known) == key(node) && known.value == node.value && is_same(known.function, node.function);
}

int ValueNumbering::number(const Expr &e) {
    require(e.defined(), "an undefined expression has no number");
    if (auto it = seen_.find(e.get()); it != seen_.end()) return it->second;
    std::vector<int> operands;
    int height = 1;
    bool is_over_rows = true;
    for (const Expr &arg : e->args) {
        operands.push_back(number(arg));
        height = std::max(height, this->height(operands.back()) + 1);
        is_over_rows &= expr(operands.back()).get() == arg.get();
    }
    kept_.push_back(e);
    const auto [first, last] = numbers_.equal_range(e->hash);
    for (auto it = first; it != last; ++it)
        if (is_of(rows_[index(it->second)], *e.get(), operands)) return seen_[e.get()] = it->second;
    const int fresh = size();
    if (is_over_rows) {
        rows_.push_back({e, std::move(operands), height});
    } else {
        Expr::Node node = *e.get();
        for (size_t i = 0; i < operands.size(); i++) node.args[i] = expr(operands[i]);
        rows_.push_back({Expr(std::move(node)), std::move(operands), height});
        seen_[rows_.back().expr.get()] = fresh;
    }
    numbers_.emplace(e->hash, fresh);
    return seen_[e.get()] = fresh;
}

std::vector<int> worth_naming(const ValueNumbering &table, const std::vector<int> &roots, int depth, int few) {
    std::map<int, int> uses;
    std::vector<int> pending;
    auto use = [&](int n) {
        if (uses[n]++ == 0) pending.push_back(n);
    };
    for (int root : roots) use(root);
    while (!pending.empty()) {
        int n = pending.back();
        pending.pop_back();
        for (int operand : table.operands(n)) use(operand);
    }
    struct Written {
        int64_t nodes = 1;
        int levels = 1;
    };
    std::map<int, Written> written;
    std::vector<int> named;
    for (auto [n, count] : uses) {
        Written w;
        for (int operand : table.operands(n)) {
            w.nodes += written[operand].nodes;
            w.levels = std::max(w.levels, written[operand].levels + 1);
        }
        bool repeated = count > 1 && w.nodes > few;
        if (repeated || w.levels >= depth) named.push_back(n), w = {};
        written[n] = w;
    }
    return named;
}

}  // namespace tessera
