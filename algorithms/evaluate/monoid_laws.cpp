#include "algorithms/evaluate/monoid_laws.h"

#include <algorithm>
#include <cmath>

#include "algorithms/evaluate/tape.h"
#include "algorithms/expr/op_classes.h"
#include "algorithms/transform/inline_calls.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Element = std::vector<Scalar>;  // of a monoid: a value for each part; of its inputs: one for each

// Expressions of a monoid's definition as one tape: left, right and input stand in its first registers.
class Definition {
public:
    Definition(const std::vector<Expr> &values, size_t lefts, size_t rights, size_t inputs)
        : values_(values.size()), rights_(lefts), inputs_(lefts + rights) {
        TapeResolver resolver;
        resolver.slot = [this](const Expr &leaf) {
            const int first = leaf.kind() == ExprKind::left ? 0 : static_cast<int>(leaf.kind() == ExprKind::right ? rights_ : inputs_);
            return first + leaf->number;
        };
        resolver.tensor = [](const std::string &) -> int { throw InternalError("a monoid's definition has a load"); };
        tape_ = Tape(values, resolver, static_cast<int>(inputs_ + inputs));
        frame_.resize(static_cast<size_t>(tape_.end()));
        tape_.prepare(frame_.data());
    }

    Element operator()(const Element &left, const Element &right, const Element &input) {
        auto put = [&](const Element &all, size_t first) {
            for (size_t i = 0; i < all.size(); i++) frame_[first + i] = to_register(all[i]);
        };
        put(left, 0), put(right, rights_), put(input, inputs_);
        tape_.run(frame_.data(), nullptr);
        Element result;
        for (size_t i = 0; i < values_; i++) result.push_back(tape_.value(frame_.data(), i));
        return result;
    }

private:
    size_t values_, rights_, inputs_;
    Tape tape_;
    std::vector<Register> frame_;
};

bool only_chooses(const Monoid &m) {
    bool all = true;
    map_expressions(m, [&](const Expr &e) {
        walk(e, [&](const Expr &n) { all &= n.kind() == ExprKind::operation ? classes_of(n->op).only_chooses : n->args.empty(); });
        return e;
    });
    return all;
}

std::string text_of(const Scalar &value) {
    if (is_float(value.type) && std::isnan(value.real)) return "nan";
    if (is_float(value.type) && std::isinf(value.real)) return value.real < 0 ? "-inf" : "inf";
    return to_string(constant(value));
}

class Laws {
public:
    explicit Laws(const Monoid &monoid)
        : m_(monoid),
          lift_(m_.lift, 0, 0, m_.inputs.size()),
          combine_(m_.combine, m_.parts.size(), m_.parts.size(), 0),
          step_(m_.step, m_.parts.size(), 0, m_.inputs.size()),
          is_exact_(only_chooses(monoid)) {
        for (const Part &p : m_.parts) identity_.push_back(p.identity);
    }

    std::optional<std::string> broken() {
        make_elements();
        for (const Element &a : elements_) {
            const Element after = combine(identity_, a), before = combine(a, identity_);
            for (const Element *side : {&after, &before})
                if (!agree(*side, a, {&a}))
                    return says("the identity changes an element", {{"a", a}},
                                side == &after ? "combine(identity, a)" : "combine(a, identity)", *side, "a", a,
                                "Correct its identity, or how combine treats it");
        }
        for (const Element &a : elements_)
            for (const Element &x : inputs_) {
                const Element stepped = step(a, x), lifted = lift(x), combined = combine(a, lifted);
                if (!agree(stepped, combined, {&a, &x, &lifted}))
                    return says("step is not combine after lift", {{"a", a}, {"x", x}}, "step(a, x)", stepped, "combine(a, lift(x))",
                                combined, "Correct the one that is wrong; a fold in pieces uses both");
            }
        for (const Element &a : elements_)
            for (const Element &b : elements_)
                for (const Element &c : elements_) {
                    const Element ab = combine(a, b), bc = combine(b, c), first = combine(ab, c), last = combine(a, bc);
                    if (!agree(first, last, {&a, &b, &c, &ab, &bc}))
                        return says("combine is not associative", {{"a", a}, {"b", b}, {"c", c}}, "combine(combine(a, b), c)", first,
                                    "combine(a, combine(b, c))", last, "Correct combine");
                }
        if (m_.commutative)
            for (const Element &a : elements_)
                for (const Element &b : elements_) {
                    const Element ab = combine(a, b), ba = combine(b, a);
                    if (!agree(ab, ba, {&a, &b}))
                        return says("combine is not commutative, as the monoid is declared", {{"a", a}, {"b", b}}, "combine(a, b)", ab,
                                    "combine(b, a)", ba, "Set commutative to false, or let combine choose between equals by their values");
                }
        return m_.batch.empty() ? std::nullopt : broken_batch();
    }

    bool has_exact_identity() {
        make_elements();
        auto same_bits = [](const Element &a, const Element &b) {
            return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Scalar &x, const Scalar &y) {
                if (!is_float(x.type)) return x == y;
                return std::isnan(x.real) ? std::isnan(y.real) : x.real == y.real && std::signbit(x.real) == std::signbit(y.real);
            });
        };
        auto stays = [&](const Element &a) { return same_bits(combine(identity_, a), a) && same_bits(combine(a, identity_), a); };
        return stays(identity_) && std::all_of(inputs_.begin(), inputs_.end(), [&](const Element &x) {
                   const Element one = step(identity_, x);
                   return stays(one) && std::all_of(inputs_.begin(), inputs_.end(), [&](const Element &y) { return stays(step(one, y)); });
               });
    }

private:
    const Monoid &m_;
    Definition lift_, combine_, step_;
    bool is_exact_;
    Element identity_;
    std::vector<Element> elements_, inputs_;

    Element lift(const Element &x) { return lift_({}, {}, x); }
    Element combine(const Element &a, const Element &b) { return combine_(a, b, {}); }
    Element step(const Element &a, const Element &x) { return step_(a, {}, x); }

    // Few distinct ones, so that equal values meet.
    static Scalar number(DType type, size_t which) {
        static constexpr double reals[] = {0.75, -1.3, 2.1, 0, 0.75, -0.4, 1.6};
        static constexpr int64_t integers[] = {1, 3, 0, 2, 3, -2, 5};
        const size_t at = which % std::size(reals);
        if (type == DType::boolean) return Scalar::of_integer(type, integers[at] == 3);
        return is_float(type) ? Scalar::of_real(type, reals[at]) : Scalar::of_integer(type, integers[at]);
    }

    static double least_subnormal(DType type) { return std::ldexp(1, 1 - traits_of(type).bias - traits_of(type).mantissa); }
    static double least_normal(DType type) { return std::ldexp(1, 1 - traits_of(type).bias); }

    static Scalar end_of_range(DType type, bool above) {
        if (is_float(type)) return Scalar::of_real(type, above ? INFINITY : -INFINITY);
        return Scalar::of_integer(type, above ? traits_of(type).highest : traits_of(type).lowest);
    }

    void make_elements() {
        constexpr size_t numbers = 8, lifted = 6, folds = 6;
        for (size_t i = 0; i < numbers; i++) {
            Element x;
            for (size_t n = 0; n < m_.inputs.size(); n++) x.push_back(number(m_.inputs[n], i + 2 * n));
            inputs_.push_back(x);
        }
        elements_.push_back(identity_);
        for (size_t i = 0; i < lifted; i++) elements_.push_back(lift(inputs_[i]));
        for (size_t end = 0; is_exact_ && end < 2; end++) {
            Element x;
            for (DType type : m_.inputs) x.push_back(end_of_range(type, end == 1));
            inputs_.push_back(x);
        }
        const size_t ordinary = inputs_.size();
        for (const double special :
             {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY), -0.0, 0x1p-1074})
            for (size_t n = 0; n < m_.inputs.size(); n++) {
                if (!is_float(m_.inputs[n])) continue;
                Element x = inputs_[n];
                x[n] = Scalar::of_real(m_.inputs[n], special == 0x1p-1074 ? least_subnormal(m_.inputs[n]) : special);
                inputs_.push_back(x);
            }
        for (size_t i = ordinary; i < inputs_.size(); i++) elements_.push_back(step(identity_, inputs_[i]));
        for (size_t i = 0; i < folds; i++) {
            Element e = identity_;
            for (size_t n = 0; n < 2 + i % 3; n++) e = step(e, inputs_[(3 * i + n) % inputs_.size()]);
            elements_.push_back(e);
        }
    }

    static bool all_finite(const Element &e) {
        return std::all_of(e.begin(), e.end(), [](const Scalar &s) { return !is_float(s.type) || std::isfinite(s.real); });
    }

    // `around` are the elements of which both sides are made.
    bool agree(const Element &a, const Element &b, const std::vector<const Element *> &around) const {
        double largest = 0;
        auto widen = [&](const Element &all) {
            for (const Scalar &s : all)
                if (is_float(s.type) && std::isfinite(s.real)) largest = std::max(largest, std::fabs(s.real));
        };
        widen(a), widen(b);
        for (const Element *one : around) widen(*one);
        // Arithmetic spreads what is not finite from part to part (0 * inf is NaN): the element as a whole has it on both sides.
        if (!is_exact_ && !all_finite(a) && !all_finite(b)) return true;
        for (size_t i = 0; i < a.size(); i++) {
            if (a[i] == b[i]) continue;
            if (!is_float(a[i].type)) return false;
            if (a[i].real == b[i].real) continue;  // zeros of either sign
            const DType type = a[i].type;
            const double rounding = is_exact_ ? 0 : std::max(std::ldexp(largest, -traits_of(type).mantissa / 2), least_normal(type));
            if (!(std::fabs(a[i].real - b[i].real) <= rounding)) return false;
        }
        return true;
    }

    std::string parts_text(const Element &e) const {
        if (e.size() == 1) return text_of(e[0]);
        std::vector<std::string> all;
        for (size_t p = 0; p < e.size(); p++) all.push_back((e.size() == m_.parts.size() ? m_.parts[p].name + " " : "") + text_of(e[p]));
        return "(" + join(all) + ")";
    }

    std::string inputs_text(const Element &x) const {
        std::vector<std::string> all;
        for (const Scalar &s : x) all.push_back(text_of(s));
        return x.size() == 1 ? all[0] : "(" + join(all) + ")";
    }

    std::string says(const std::string &law, const std::vector<std::pair<std::string, Element>> &of, const std::string &left,
                     const Element &got, const std::string &right, const Element &other, const std::string &remedy) const {
        std::vector<std::string> all;
        for (const auto &[name, e] : of) all.push_back(name + " = " + (name == "x" ? inputs_text(e) : parts_text(e)));
        const std::string is = right == "a" ? "" : right + " is " + parts_text(other) + ". ";
        return law + ": for " + join(all) + ", " + left + " is " + parts_text(got) + (is.empty() ? ". " : ", and " + is) + remedy;
    }

    // The batch form of these elements, pass by pass.
    Element batch_of(const std::vector<Element> &chunk) {
        std::vector<std::vector<Scalar>> made;  // of each pass: one for each element where it maps, otherwise one
        auto at = [&](size_t pass, size_t element) { return m_.batch[pass].monoid.empty() ? made[pass].at(element) : made[pass].at(0); };
        for (const BatchPass &pass : m_.batch) {
            Definition values(pass.values, 0, made.size(), m_.inputs.size());
            auto evaluated = [&](size_t element) {
                Element before;
                for (size_t k = 0; k < made.size(); k++) {
                    const bool is_there = !m_.batch[k].monoid.empty() || element < chunk.size();
                    before.push_back(is_there ? at(k, element) : Scalar::of_integer(m_.batch[k].values[0].type(), 0));
                }
                return values({}, before, element < chunk.size() ? chunk[element] : Element());
            };
            std::vector<Scalar> results;
            if (pass.monoid == "each") {
                results.push_back(evaluated(chunk.size())[0]);
            } else if (pass.monoid.empty()) {
                for (size_t e = 0; e < chunk.size(); e++) results.push_back(evaluated(e)[0]);
            } else {
                const Monoid fold = find_pass_monoid(pass.monoid)->make(pass.values[0].type());
                Definition fold_step(fold.step, 1, 0, fold.inputs.size());
                Element all = {fold.parts[0].identity};
                for (size_t e = 0; e < chunk.size(); e++) all = fold_step(all, {}, evaluated(e));
                results.push_back(all[0]);
            }
            made.push_back(results);
        }
        Element parts;
        for (int pass : m_.batch_parts) parts.push_back(made[static_cast<size_t>(pass)].at(0));
        return parts;
    }

    std::optional<std::string> broken_batch() {
        for (size_t begin = 0; begin < inputs_.size(); begin++)
            for (size_t n = 0; n <= 4 && begin + n <= inputs_.size(); n++) {
                const std::vector<Element> chunk(inputs_.begin() + static_cast<ptrdiff_t>(begin),
                                                 inputs_.begin() + static_cast<ptrdiff_t>(begin + n));
                Element folded = identity_;
                std::vector<const Element *> around;
                std::vector<std::string> texts;
                for (const Element &x : chunk) folded = step(folded, x), around.push_back(&x), texts.push_back(inputs_text(x));
                const Element whole = batch_of(chunk);
                if (agree(whole, folded, around)) continue;
                return "the batch form is not the fold: of the elements " + join(texts) + " it gives " + parts_text(whole) +
                       ", and their fold by step is " + parts_text(folded) + ". Correct its passes, or leave the batch form out";
            }
        return std::nullopt;
    }
};

bool same(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return equal(x, y); });
}

bool same(const Monoid &a, const Monoid &b) {
    auto same_part = [](const Part &x, const Part &y) { return x.identity == y.identity; };
    auto same_pass = [](const BatchPass &x, const BatchPass &y) { return x.monoid == y.monoid && same(x.values, y.values); };
    return a.inputs == b.inputs && a.commutative == b.commutative && a.batch_parts == b.batch_parts && same(a.lift, b.lift) &&
           same(a.combine, b.combine) && same(a.step, b.step) &&
           std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part) &&
           std::equal(a.batch.begin(), a.batch.end(), b.batch.begin(), b.batch.end(), same_pass);
}

}  // namespace

std::optional<std::string> broken_law(const Monoid &monoid) { return Laws(monoid).broken(); }

bool has_exact_identity(const Monoid &monoid) { return Laws(monoid).has_exact_identity(); }

void check_monoid_laws(const Algorithm &algorithm) {
    const Algorithm flat = inline_calls(algorithm);
    std::vector<const Monoid *> checked;
    for (const Stage &stage : flat.stages()) {
        if (!is_fold(stage)) continue;
        const Monoid &m = monoid_of(stage);
        if (std::any_of(checked.begin(), checked.end(), [&](const Monoid *other) { return same(m, *other); })) continue;
        checked.push_back(&m);
        if (const auto law = broken_law(m))
            throw UserError("algorithm.monoid-law",
                            algorithm.name + "." + stage.name + ": the monoid '" + m.name + "': " + *law +
                                ". Elements that never are such may be kept out by lift and step, as in max(x, 0).");
    }
}

}  // namespace tessera
