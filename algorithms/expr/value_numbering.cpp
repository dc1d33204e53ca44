#include "algorithms/expr/value_numbering.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

static std::string bits_of(const Scalar &s) {
    if (!is_float(s.type)) return std::to_string(s.integer);
    return std::isnan(s.real) ? "nan" : std::to_string(std::bit_cast<uint64_t>(s.real));
}

// The name comes last, so that no character in it can imitate another field.
static std::string key_of(const Expr::Node &node, int function, const std::vector<int> &operands) {
    std::string key;
    auto field = [&](int value) { key += std::to_string(value) + ","; };
    field(static_cast<int>(node.kind)), field(static_cast<int>(node.type)), field(static_cast<int>(node.op));
    field(static_cast<int>(node.rounding)), field(node.saturate), field(node.guarded), field(node.number);
    field(function);
    field(static_cast<int>(node.value.type));
    key += bits_of(node.value) + ";";
    for (int operand : operands) field(operand);
    return key + ";" + node.name;
}

int ValueNumbering::number_of(const FunctionRef &function) {
    auto same = [&](const FunctionRef &known) {
        return known == function ||
               (known->name == function->name && equal(known->in_f32, function->in_f32) && equal(known->in_f64, function->in_f64));
    };
    auto it = std::find_if(functions_.begin(), functions_.end(), same);
    if (it == functions_.end()) it = functions_.insert(it, function);
    return static_cast<int>(it - functions_.begin());
}

int ValueNumbering::number(const Expr &e) {
    require(e.defined(), "an undefined expression has no number");
    if (auto it = seen_.find(e.get()); it != seen_.end()) return it->second;
    std::vector<int> operands;
    int height = 1;
    for (const Expr &arg : e->args) {
        operands.push_back(number(arg));
        height = std::max(height, this->height(operands.back()) + 1);
    }
    auto [it, fresh] = numbers_.emplace(key_of(*e.get(), e->function ? number_of(e->function) : 0, operands), size());
    if (fresh) rows_.push_back({e, std::move(operands), height});
    kept_.push_back(e);
    return seen_[e.get()] = it->second;
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
