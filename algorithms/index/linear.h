// Integer polynomials over atoms: the canonical form of index arithmetic. An atom is any index expression that is not
// itself a sum or product: a variable, an extent, a load, a quotient. The prover (prove.h) computes with these; a sum
// prints with large coefficients first, as addresses are read: `jb*48 + j - 1`.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/expr/expr.h"
#include "support/containers/small_vector.h"

namespace tessera {

struct Linear {
    using Factors = SmallVector<Expr, 1>;
    struct Term {
        Factors factors;      // at least one, in compare() order
        int64_t coefficient;  // never 0
    };
    SmallVector<Term, 2> terms;  // in the order of their factors, each product once
    int64_t constant = 0;

    Linear() = default;
    Linear(int64_t value) : constant(value) {}
    static Linear atom(const Expr &e);  // a constant is its value
    bool is_constant() const { return terms.empty(); }
};

// A coefficient left 64 bits or a product has too many terms: the caller keeps the expression as it was.
struct LinearOverflow {};

// All throw LinearOverflow.
Linear operator+(const Linear &a, const Linear &b);
Linear operator-(const Linear &a, const Linear &b);
Linear operator*(const Linear &a, const Linear &b);
Linear operator*(const Linear &a, int64_t factor);
Linear combine(const Linear &a, const Linear &b, int64_t factor);  // a + b * factor
bool same(const Linear &a, const Linear &b);

int64_t floor_quotient(int64_t a, int64_t b);  // b > 0
int64_t coefficient_gcd(const Linear &a);      // of the terms, not the constant; 0 without terms
// a = factor * inside + outside with `factor` in neither; false when a has a square of it.
bool split_by(const Linear &a, const Expr &factor, Linear &inside, Linear &outside);
Expr to_expr(const Linear &a);

}  // namespace tessera
