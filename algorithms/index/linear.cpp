#include "algorithms/index/linear.h"

#include <algorithm>
#include <numeric>

namespace tessera {

static constexpr size_t max_terms = 96;

static int64_t add_checked(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) throw LinearOverflow{};
    return sum;
}

static int64_t multiply_checked(int64_t a, int64_t b) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) throw LinearOverflow{};
    return product;
}

using Factors = Linear::Factors;

static int order(const Factors &a, const Factors &b) {
    for (size_t i = 0; i < a.size() && i < b.size(); i++)
        if (int c = compare(a[i], b[i])) return c;
    return a.size() < b.size() ? -1 : a.size() > b.size();
}

Linear Linear::atom(const Expr &e) {
    if (e.is_constant()) return Linear(e->value.integer);
    Linear a;
    a.terms.push_back({{e}, 1});
    return a;
}

// One merge of two sorted lists.
Linear combine(const Linear &a, const Linear &b, int64_t factor) {
    Linear sum;
    sum.constant = add_checked(a.constant, multiply_checked(b.constant, factor));
    sum.terms.reserve(a.terms.size() + b.terms.size());
    size_t i = 0, j = 0;
    while (i < a.terms.size() || j < b.terms.size()) {
        int c = i == a.terms.size() ? 1 : j == b.terms.size() ? -1 : order(a.terms[i].factors, b.terms[j].factors);
        if (c < 0) {
            sum.terms.push_back(a.terms[i++]);
        } else if (c > 0) {
            int64_t k = multiply_checked(b.terms[j].coefficient, factor);
            if (k) sum.terms.push_back({b.terms[j].factors, k});
            j++;
        } else {
            int64_t k = add_checked(a.terms[i].coefficient, multiply_checked(b.terms[j].coefficient, factor));
            if (k) sum.terms.push_back({a.terms[i].factors, k});
            i++, j++;
        }
    }
    if (sum.terms.size() > max_terms) throw LinearOverflow{};
    return sum;
}

Linear operator+(const Linear &a, const Linear &b) { return combine(a, b, 1); }
Linear operator-(const Linear &a, const Linear &b) { return combine(a, b, -1); }
Linear operator*(const Linear &a, int64_t factor) { return factor == 1 ? a : combine(Linear(), a, factor); }

static Linear single(Factors factors, int64_t coefficient) {
    Linear a;
    if (factors.empty()) a.constant = coefficient;
    else a.terms.push_back({std::move(factors), coefficient});
    return a;
}

Linear operator*(const Linear &a, const Linear &b) {
    if (a.is_constant()) return b * a.constant;
    if (b.is_constant()) return a * b.constant;
    Linear product = combine(a * b.constant, b, a.constant);
    product.constant = multiply_checked(a.constant, b.constant);
    for (const Linear::Term &s : a.terms)
        for (const Linear::Term &t : b.terms) {
            Factors factors = s.factors;
            factors.append(t.factors.begin(), t.factors.end());
            std::sort(factors.begin(), factors.end(), [](const Expr &x, const Expr &y) { return compare(x, y) < 0; });
            product = product + single(std::move(factors), multiply_checked(s.coefficient, t.coefficient));
        }
    return product;
}

bool same(const Linear &a, const Linear &b) {
    if (a.constant != b.constant || a.terms.size() != b.terms.size()) return false;
    for (size_t i = 0; i < a.terms.size(); i++)
        if (a.terms[i].coefficient != b.terms[i].coefficient || order(a.terms[i].factors, b.terms[i].factors)) return false;
    return true;
}

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

int64_t coefficient_gcd(const Linear &a) {
    int64_t g = 0;
    for (const Linear::Term &t : a.terms) g = std::gcd(g, t.coefficient);
    return g;
}

bool split_by(const Linear &a, const Expr &factor, Linear &inside, Linear &outside) {
    inside = Linear();
    outside = Linear(a.constant);
    for (const Linear::Term &t : a.terms) {
        Linear::Term rest{{}, t.coefficient};
        for (const Expr &f : t.factors)
            if (!equal(f, factor)) rest.factors.push_back(f);
        size_t removed = t.factors.size() - rest.factors.size();
        if (removed > 1) return false;
        Linear &side = removed ? inside : outside;
        side = side + single(std::move(rest.factors), rest.coefficient);
    }
    return true;
}

Expr to_expr(const Linear &a) {
    SmallVector<const Linear::Term *, 8> terms;
    for (const Linear::Term &t : a.terms) terms.push_back(&t);
    std::stable_sort(terms.begin(), terms.end(), [](auto *x, auto *y) { return x->coefficient > y->coefficient; });
    Expr sum;
    bool constant_first = !terms.empty() && terms[0]->coefficient < 0 && a.constant > 0;
    if (constant_first || terms.empty()) sum = Expr(a.constant);
    for (const Linear::Term *t : terms) {
        Expr product = t->factors[0];
        for (size_t i = 1; i < t->factors.size(); i++) product = product * t->factors[i];
        const int64_t k = t->coefficient;
        auto times = [&](int64_t factor) { return factor == 1 ? product : product * Expr(factor); };
        if (!sum.defined()) sum = times(k);
        else if (k > 0) sum = sum + times(k);
        else if (k == INT64_MIN) throw LinearOverflow{};
        else sum = sum - times(-k);
    }
    if (constant_first || terms.empty() || a.constant == 0) return sum;
    if (a.constant == INT64_MIN) throw LinearOverflow{};
    return a.constant > 0 ? sum + Expr(a.constant) : sum - Expr(-a.constant);
}

}  // namespace tessera
