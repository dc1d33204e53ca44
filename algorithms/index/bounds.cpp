#include "algorithms/index/bounds.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "algorithms/index/simplify.h"
#include "support/text/error.h"

namespace tessera {

static constexpr int64_t unbounded = Interval::unbounded;

static int64_t clamp(__int128 v) { return v > unbounded ? unbounded : v < -unbounded ? -unbounded : static_cast<int64_t>(v); }

static Interval add(Interval a, Interval b) {
    bool no_lo = a.lo <= -unbounded || b.lo <= -unbounded, no_hi = a.hi >= unbounded || b.hi >= unbounded;
    return {no_lo ? -unbounded : clamp(static_cast<__int128>(a.lo) + b.lo), no_hi ? unbounded : clamp(static_cast<__int128>(a.hi) + b.hi)};
}

static Interval multiply(Interval a, Interval b) {
    int64_t ends[4];
    int n = 0;
    for (int64_t x : {a.lo, a.hi})
        for (int64_t y : {b.lo, b.hi}) ends[n++] = clamp(static_cast<__int128>(x) * y);
    return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

static Interval meet(Interval a, Interval b) {
    Interval both{std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
    return both.lo <= both.hi ? both : a;
}
static Interval join(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Bounds::Bounds() : known_(std::make_shared<Known>()), memo_(std::make_shared<Memo>()) {}

Bounds::Bounds(const std::vector<Dim> &dims) : Bounds() {
    for (const Dim &dim : dims) set_dim(dim);
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

void Bounds::set(const std::string &variable, Expr lo, Expr hi) {
    Range range;
    for (auto [end, form, from] : {std::tuple(&range.lo, &range.lo_form, &lo), std::tuple(&range.hi, &range.hi_form, &hi)}) {
        if (!from->defined()) continue;
        require(!uses_variable(*from, variable), "the range of " + variable + " uses itself");
        try {
            *form = linear_form(*from, *this);
            *end = to_expr(*form);
        } catch (LinearOverflow) { continue; }
        for (const std::string &name : variables_in(*end))
            if (const Range *other = find(name)) range.rank = std::max(range.rank, other->rank + 1);
    }
    const uint64_t bit = Expr::Node::bit_of(variable);
    const uint64_t names = variables_ ? variables_->names : 0, used = variables_ ? variables_->used : 0;
    const bool met = ((names | used | known_->variables) & bit) != 0;
    auto mentioned = [](const Expr &e) { return e.defined() ? e->variables : 0; };
    variables_ = std::make_shared<const Variable>(
        Variable{variable, range, variables_, names | bit, used | mentioned(range.lo) | mentioned(range.hi)});
    std::shared_ptr<Memo> memo = std::make_shared<Memo>();
    if (!met) memo->outer = memo_, memo->own = bit;
    memo_ = std::move(memo);
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

void Bounds::assume_nonnegative(const Linear &form, const Bounds &before) {
    if (form.is_constant()) return;
    // A minimum is above what both its operands' bound says, and so on: what elimination would have to guess.
    for (const Linear::Term &t : form.terms) {
        const Expr &f = t.factors[0];
        bool both =
            t.factors.size() == 1 && ((f.is_operation(Op::min) && t.coefficient > 0) || (f.is_operation(Op::max) && t.coefficient < 0));
        if (!both) continue;
        Linear inside, outside;
        if (!split_by(form, f, inside, outside)) continue;
        for (const Expr &arg : f->args) assume_nonnegative(inside * linear_form(arg, before) + outside, before);
        return;
    }
    // Where a minimum is surely not the one operand, it is the other.
    for (const Linear::Term &t : form.terms) {
        const Expr &f = t.factors[0];
        bool either =
            t.factors.size() == 1 && ((f.is_operation(Op::min) && t.coefficient < 0) || (f.is_operation(Op::max) && t.coefficient > 0));
        Linear inside, outside;
        if (!either || !split_by(form, f, inside, outside)) continue;
        for (size_t i = 0; i < 2; i++)
            if (range_of(inside * linear_form(f->args[i], before) + outside, before).hi < 0)
                assume_nonnegative(inside * linear_form(f->args[1 - i], before) + outside, before);
    }
    Known &known = change();
    known.facts.push_back(form);
    for (const Linear::Term &t : form.terms)
        for (const Expr &f : t.factors) known.variables |= f->variables;
    if (form.terms.size() == 1 && form.terms[0].factors.size() == 1) {
        int64_t k = form.terms[0].coefficient;
        Interval i;
        if (k > 0) i.lo = -floor_quotient(form.constant, k);
        else i.hi = floor_quotient(form.constant, -k);
        known.atoms.push_back({form.terms[0].factors[0], i});
    }
    // k*(x/c) <= k*x/c for k > 0.
    for (const Linear::Term &t : form.terms) {
        const Expr &f = t.factors[0];
        if (t.factors.size() != 1 || t.coefficient < 0 || !f.is_operation(Op::div) || !f->args[1].is_constant()) continue;
        Linear inside, outside;
        if (split_by(form, f, inside, outside))
            known.facts.push_back(inside * linear_form(f->args[0], before) + outside * f->args[1]->value.integer);
    }
}

// remainder == 0 where it is atom % c.
void Bounds::assume_multiple(const Expr &remainder, const Bounds &before) {
    if (!remainder.is_operation(Op::mod) || !remainder->args[1].is_constant() || remainder->args[1]->value.integer < 1) return;
    Linear x = linear_form(remainder->args[0], before);
    bool atom = x.terms.size() == 1 && x.terms[0].factors.size() == 1 && x.terms[0].coefficient == 1 && x.constant == 0;
    if (!atom) return;
    Known &known = change();
    known.multiples.push_back({x.terms[0].factors[0], remainder->args[1]->value.integer});
    known.variables |= remainder->variables | x.terms[0].factors[0]->variables;
}

void Bounds::assume(const Expr &condition) {
    Expr c = simplify(condition, *this);
    if (c.is_operation(Op::bit_and) && c.type() == DType::boolean) {
        assume(c->args[0]);
        assume(c->args[1]);
        return;
    }
    const Bounds before = *this;
    auto difference = [&](int64_t minus) { return linear_form(c->args[1], before) - linear_form(c->args[0], before) - Linear(minus); };
    bool on_index = c.kind() == ExprKind::operation && c->args[0].type() == DType::index;
    Known &known = change();
    if (!c.is_constant()) known.opaque.push_back(c), known.variables |= c->variables;
    try {
        if (on_index && c.is_operation(Op::lt)) assume_nonnegative(difference(1), before);
        if (on_index && (c.is_operation(Op::le) || c.is_operation(Op::eq))) assume_nonnegative(difference(0), before);
        if (on_index && c.is_operation(Op::eq)) {
            assume_nonnegative(difference(0) * -1, before);
            for (size_t i : {0, 1})
                if (c->args[1 - i].is_constant(0)) assume_multiple(c->args[i], before);
        }
    } catch (LinearOverflow) {}
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

static Interval range_of_expr(const Expr &e, const Bounds &b) { return range_of(linear_form(e, b), b); }

static Interval range_of_variable(const std::string &name, const Bounds &b) {
    auto &memo = b.answers(Expr::Node::bit_of(name)).variables;
    if (auto it = memo.find(name); it != memo.end()) return it->second;
    const Bounds::Range *r = b.find(name);
    if (!r) return {};
    memo[name] = {};
    Interval i;
    if (r->lo.defined()) i.lo = range_of(r->lo_form, b).lo;
    if (r->hi.defined()) i.hi = range_of(r->hi_form, b).hi;
    return memo[name] = i;
}

static Interval range_of_quotient(Interval x, Interval d) {
    int64_t most = std::max(x.hi, -x.lo);
    if (d.lo < 0) return {-std::max<int64_t>(most, 1), std::max<int64_t>(most, 1)};
    Interval q;
    int64_t least = std::max<int64_t>(d.lo, 1), largest = std::max<int64_t>(d.hi, 1);
    q.lo = x.lo <= -unbounded ? -unbounded : floor_quotient(x.lo, x.lo < 0 ? least : largest);
    q.hi = x.hi >= unbounded ? unbounded : floor_quotient(x.hi, x.hi < 0 ? largest : least);
    if (d.lo == 0) q = join(q, {0, 0});
    return q;
}

static Interval range_of_remainder(const Expr &atom, Interval x, Interval d, const Bounds &b) {
    if (d.lo < 0) return {std::min<int64_t>(d.lo + 1, 0), std::max<int64_t>(d.hi - 1, 0)};
    Interval r{0, std::max<int64_t>(d.hi == unbounded ? unbounded : d.hi - 1, 0)};
    if (x.lo >= 0) r.hi = std::min(r.hi, x.hi);
    if (d.lo == d.hi && d.lo > 0) {
        int64_t g = std::gcd(multiple_of(linear_form(atom->args[0], b), b), d.lo);
        r.hi = std::min(r.hi, d.lo - g);
    }
    return r;
}

static Interval range_of_operation(const Expr &e, const Bounds &b) {
    auto arg = [&](size_t i) { return range_of_expr(e->args[i], b); };
    switch (e->op) {
    case Op::div: return range_of_quotient(arg(0), arg(1));
    case Op::mod: return range_of_remainder(e, arg(0), arg(1), b);
    case Op::select: return join(arg(1), arg(2));
    case Op::min: {
        Interval x = arg(0), y = arg(1);
        return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    }
    case Op::max: {
        Interval x = arg(0), y = arg(1);
        return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    }
    case Op::abs: {
        Interval x = arg(0);
        return {x.lo > 0 ? x.lo : x.hi < 0 ? -x.hi : 0, std::max(x.hi, -x.lo)};
    }
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: {
        Interval x = arg(0), y = arg(1);
        if (x.lo < 0 || y.lo < 0 || !x.finite() || !y.finite()) return {};
        auto ones = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(x.hi, y.hi)) + 1)) - 1;
        return {0, e->op == Op::bit_and ? std::min(x.hi, y.hi) : ones};
    }
    default: return {};
    }
}

static Interval range_of_type(DType type) {
    switch (type) {
    case DType::boolean: return {0, 1};
    case DType::u8: return {0, 255};
    case DType::i8: return {-128, 127};
    case DType::i32: return {INT32_MIN, INT32_MAX};
    default: return {};
    }
}

Interval range_of_atom(const Expr &e, const Bounds &b) {
    Interval i;
    switch (e.kind()) {
    case ExprKind::variable: i = range_of_variable(e->name, b); break;
    case ExprKind::extent: {
        const Bounds::Extent &x = b.find_extent(e->name);
        i = {x.min, x.max};
        if (x.size.defined()) {
            Interval size = range_of_expr(x.size, b);
            i = meet(i, {std::max<int64_t>(size.lo, 0), std::max<int64_t>(size.hi, 0)});
        }
        break;
    }
    case ExprKind::cast: i = range_of_type(e->args[0].type()); break;
    case ExprKind::bounded: {
        Interval lo = range_of_expr(e->args[1], b), last = add(range_of_expr(e->args[2], b), {-1, -1});
        // An empty range clamps to either end.
        bool some = last.lo >= lo.hi || range_of(linear_form(e->args[2], b) - linear_form(e->args[1], b), b).lo >= 1;
        i = {some ? lo.lo : std::min(lo.lo, last.lo), some ? last.hi : std::max(lo.hi, last.hi)};
        break;
    }
    case ExprKind::operation: i = range_of_operation(e, b); break;
    default: break;
    }
    return meet(i, b.known(e));
}

Interval range_of(const Linear &form, const Bounds &b) {
    Interval sum{form.constant, form.constant};
    for (const Linear::Term &t : form.terms) {
        Interval product{t.coefficient, t.coefficient};
        for (const Expr &f : t.factors) product = multiply(product, range_of_atom(f, b));
        sum = add(sum, product);
    }
    return sum;
}

int sign_of(const Linear &form, const Bounds &b) {
    Interval i = range_of(form, b);
    return i.lo >= 0 ? 1 : i.hi <= 0 ? -1 : 0;
}

static int64_t declared_multiple(const Expr &e, const Bounds &b) {
    auto arg = [&](size_t i) { return multiple_of(linear_form(e->args[i], b), b); };
    if (e.kind() == ExprKind::extent) return b.find_extent(e->name).multiple_of;
    if (e.is_operation(Op::min) || e.is_operation(Op::max) || e.is_operation(Op::mod)) return std::gcd(arg(0), arg(1));
    if (e.is_operation(Op::select)) return std::gcd(arg(1), arg(2));
    return 1;
}

static int64_t multiple_of_atom(const Expr &e, const Bounds &b) {
    int64_t declared = declared_multiple(e, b), assumed = b.known_multiple(e);
    bool small = declared > 0 && declared <= INT32_MAX && assumed <= INT32_MAX;
    return small ? std::lcm(declared, assumed) : declared;
}

int64_t multiple_of(const Linear &form, const Bounds &b) {
    int64_t g = form.constant;
    for (const Linear::Term &t : form.terms) {
        __int128 m = t.coefficient;
        for (const Expr &f : t.factors)
            if (m < (__int128{1} << 40) && m > -(__int128{1} << 40)) m *= multiple_of_atom(f, b);
        g = std::gcd(g, m > unbounded || m < -unbounded ? t.coefficient : static_cast<int64_t>(m));
    }
    return g;
}

}  // namespace tessera
