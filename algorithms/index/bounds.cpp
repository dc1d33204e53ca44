#include "algorithms/index/bounds.h"

#include <algorithm>
#include <numeric>

namespace tessera {

Interval meet(Interval a, Interval b) {
    Interval both{std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
    return both.lo <= both.hi ? both : a;
}

Bounds::Bounds() : known_(std::make_shared<Known>()), memo_(std::make_shared<Memo>()) {}

Bounds::Bounds(const std::vector<Dim> &dims, const std::vector<Parameter> &parameters) : Bounds() {
    for (const Dim &dim : dims) set_dim(dim);
    for (const Parameter &p : parameters) set_parameter(p);
}

// What is known, to be changed: of these bounds alone, and with no answers from before.
Bounds::Known &Bounds::change() {
    if (known_.use_count() > 1) known_ = std::make_shared<Known>(*known_);
    memo_ = std::make_shared<Memo>();
    return *known_;
}

Bounds::Answers &Bounds::answers(uint64_t variables) const {
    Memo *memo = memo_.get();
    while (memo->outer && !(memo->own & variables)) memo = memo->outer.get();
    if (!memo->answers) memo->answers = std::make_unique<Answers>();
    return *memo->answers;
}

void Bounds::set_dim(const Dim &dim) {
    Extent e;
    e.fixed = dim.kind == DimKind::fixed;
    if (e.fixed) e.min = e.max = dim.value, e.multiple_of = std::max<int64_t>(dim.value, 1);
    if (dim.kind == DimKind::symbolic) {
        e.min = std::max<int64_t>(dim.min, 0), e.max = dim.max, e.multiple_of = dim.multiple_of, e.equals = dim.equals;
        e.fixed = e.min == e.max;
    }
    if (dim.kind == DimKind::derived) e.size = dim.size;
    Known &known = change();
    if (e.size.defined()) known.variables |= e.size->variables;
    known.extents[dim.name] = e;
}

void Bounds::set_parameter(const Parameter &parameter) {
    if (is_float(parameter.dtype) || !parameter.range) return;
    const Interval all, declared{parameter.range->least.integer, parameter.range->most.integer};
    change().parameters[parameter.name] = {std::max(all.lo, declared.lo), std::min(all.hi, declared.hi)};
}

void Bounds::set_ascending(const Ascending &tensor) { change().ascending[tensor.tensor] = tensor; }

const Ascending *Bounds::ascending(const Expr &atom) const {
    if (known_->ascending.empty() || atom.kind() != ExprKind::cast || atom.type() != DType::index) return nullptr;
    const Expr &element = atom->args[0];
    if (element.kind() != ExprKind::load || element->guarded || element->args.size() != 1) return nullptr;
    const auto it = known_->ascending.find(element->name);
    return it == known_->ascending.end() ? nullptr : &it->second;
}

Interval Bounds::known_parameter(const std::string &name) const {
    const auto it = known_->parameters.find(name);
    return it == known_->parameters.end() ? Interval{} : it->second;
}

const Bounds::Range *Bounds::find(const std::string &variable) const {
    if (!variables_ || !(variables_->names & Expr::Node::bit_of(variable))) return nullptr;
    for (const Variable *v = variables_.get(); v; v = v->outer.get())
        if (v->name == variable) return &v->range;
    return nullptr;
}

const Bounds::Extent &Bounds::find_extent(const std::string &dim) const {
    static const Extent any;
    auto it = known_->extents.find(dim);
    return it == known_->extents.end() ? any : it->second;
}

std::string Bounds::representative(const std::string &dim) const {
    std::string name = dim;
    for (size_t steps = 0; steps <= known_->extents.size(); steps++) {
        const std::string &next = find_extent(name).equals;
        if (next.empty()) break;
        name = next;
    }
    return name;
}

bool Bounds::assumed(const Expr &condition) const {
    return std::any_of(known_->opaque.begin(), known_->opaque.end(), [&](const Expr &e) { return equal(e, condition); });
}

Interval Bounds::known(const Expr &atom) const {
    Interval i;
    for (const auto &[other, interval] : known_->atoms)
        if (equal(other, atom)) i = meet(i, interval);
    return i;
}

int64_t Bounds::known_multiple(const Expr &atom) const {
    int64_t m = 1;
    for (const auto &[other, c] : known_->multiples)
        if (c <= INT32_MAX && m <= INT32_MAX && equal(other, atom)) m = std::lcm(m, c);
    return m;
}

}  // namespace tessera
