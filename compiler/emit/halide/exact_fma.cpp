#include "compiler/emit/halide/exact_fma.h"

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace {

class ExactFma : public IRMutator {
public:
    explicit ExactFma(const H::Target &target) : in_pairs(target.arch == H::Target::WebAssembly) {}

private:
    bool in_pairs;
    using IRMutator::visit;

    HExpr visit(const Call *op) override {
        if (op->name != "llvm.fma.f32") return IRMutator::visit(op);
        std::vector<std::string> names;
        std::vector<HExpr> values, narrow, wide;
        for (const HExpr &arg : op->args) {
            names.push_back(unique_name("fma")), values.push_back(mutate(arg));
            narrow.push_back(Variable::make(arg.type(), names.back()));
            wide.push_back(Cast::make(H::Float(64, op->type.lanes()), narrow.back()));
        }
        HExpr result = with_nan_of(strict(Call::strict_mul, narrow[0], narrow[1]), fma(op->type, wide[0], wide[1], wide[2]));
        for (size_t i = names.size(); i-- > 0;) result = Halide::Internal::Let::make(names[i], values[i], result);
        return result;
    }

    // LLVM takes what Halide widened for a number, and makes a zero times it a zero: that of a NaN or an infinity is asked of the product
    // in f32.
    static HExpr with_nan_of(const HExpr &product, const HExpr &result) {
        const H::Type bits = H::UInt(32, result.type().lanes());
        const std::string name = unique_name("fma");
        const HExpr p = Variable::make(product.type(), name);
        const HExpr number = Call::make(H::Bool(bits.lanes()), Call::strict_eq, {p, p}, Call::PureIntrinsic);
        const HExpr nan = Select::make(number, make_zero(bits), make_const(bits, 0xffffffffu));
        return Halide::Internal::Let::make(name, product, H::reinterpret(result.type(), H::reinterpret(bits, result) | nan));
    }

    static HExpr strict(Call::IntrinsicOp op, const HExpr &a, const HExpr &b) {
        return Call::make(a.type(), op, {a, b}, Call::PureIntrinsic);
    }

    // WebAssembly narrows two f64 into four f32, of which two are zeros; LLVM has no other use of that instruction.
    HExpr narrowed(H::Type narrow, const HExpr &x) const {
        if (!in_pairs || narrow.lanes() % 2) return Cast::make(narrow, x);
        std::vector<HExpr> pairs;
        for (int i = 0; i < narrow.lanes(); i += 2) {
            const HExpr four = Shuffle::make_concat({Shuffle::make_slice(x, i, 1, 2), make_zero(H::Float(64, 2))});
            pairs.push_back(Shuffle::make_slice(Cast::make(H::Float(32, 4), four), 0, 1, 2));
        }
        return Shuffle::make_concat(pairs);
    }

    HExpr fma(H::Type narrow, const HExpr &a, const HExpr &b, const HExpr &c) {
        const H::Type wide = a.type(), bits = H::UInt(64, wide.lanes());
        std::vector<std::pair<std::string, HExpr>> lets;
        auto let = [&](const HExpr &value) {
            lets.emplace_back(unique_name("fma"), value);
            return Variable::make(value.type(), lets.back().first);
        };
        auto k = [&](uint64_t v) { return make_const(bits, v); };
        const HExpr addend = let(c), product = let(strict(Call::strict_mul, a, b)), sum = let(strict(Call::strict_add, product, addend));
        // What the sum leaves out, exactly (Knuth); NaN where it is infinite.
        const HExpr part = let(strict(Call::strict_sub, sum, product));
        const HExpr of_product = strict(Call::strict_sub, product, strict(Call::strict_sub, sum, part));
        const HExpr error = strict(Call::strict_add, of_product, strict(Call::strict_sub, addend, part));
        const HExpr error_bits = let(H::reinterpret(bits, error)), sum_bits = let(H::reinterpret(bits, sum));
        const HExpr magnitude = H::reinterpret(wide, error_bits & k(~(uint64_t{1} << 63)));
        const HExpr inexact = Call::make(H::Bool(wide.lanes()), Call::strict_lt, {make_zero(wide), magnitude}, Call::PureIntrinsic);
        const HExpr too_large = (error_bits ^ sum_bits) >> k(63);
        const HExpr odd = Select::make(inexact, (sum_bits - too_large) | k(1), sum_bits);
        HExpr result = narrowed(narrow, H::reinterpret(wide, odd));
        for (size_t i = lets.size(); i-- > 0;) result = Halide::Internal::Let::make(lets[i].first, lets[i].second, result);
        return result;
    }
};

}  // namespace

bool has_fma(const H::Target &target) { return target.arch == H::Target::ARM || target.has_feature(H::Target::FMA); }

Stmt with_exact_fma(const Stmt &s, const H::Target &target) { return ExactFma(target).mutate(s); }

}  // namespace tessera::emit
