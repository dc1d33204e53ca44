// Derivatives of random programs, and what the inner-product law says of twelve errors that are planted in gradients: each is caught by
// the first hundred programs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "algorithms/text/print.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"
#include "tests/algorithms/derivative_laws.h"
#include "tests/algorithms/random_programs.h"

namespace tessera::test_planted_errors {

using namespace tessera::test;

namespace {

// What an error is planted in: a gradient, or the callee of a call in it, and the sites where it may be.
class Planter {
public:
    Planter(const Algorithm &gradient, std::mt19937 &random) : made_(gradient), random_(random) {}

    // Changes one of the stages of the backward part, in callees too, for which `change` gives another one.
    std::optional<Algorithm> stage(const std::function<std::optional<Stage>(const Stage &, const Algorithm &)> &change) {
        return planted([&](const Algorithm &a, const Step &step) -> std::optional<Step> {
            const auto *s = std::get_if<Stage>(&step);
            if (!s || s->name.find(".grad") == std::string::npos) return std::nullopt;
            const std::optional<Stage> changed = change(*s, a);
            return changed ? std::optional<Step>(*changed) : std::nullopt;
        });
    }
    // Changes one of the calls that run backward.
    std::optional<Algorithm> call(const std::function<std::optional<Call>(const Call &, const Algorithm &)> &change) {
        return planted([&](const Algorithm &a, const Step &step) -> std::optional<Step> {
            const auto *c = std::get_if<Call>(&step);
            if (!c || c->scope.find(".grad") == std::string::npos) return std::nullopt;
            const std::optional<Call> changed = change(*c, a);
            return changed ? std::optional<Step>(*changed) : std::nullopt;
        });
    }

private:
    Algorithm made_;
    std::mt19937 &random_;

    using Change = std::function<std::optional<Step>(const Algorithm &, const Step &)>;
    static void add_sites(const Algorithm &a, const Change &change, const std::function<Algorithm(Algorithm)> &whole,
                          std::vector<Algorithm> &sites) {
        for (size_t i = 0; i < a.steps.size(); i++) {
            const auto with = [&, i](Step step) {
                Algorithm other = a;
                other.steps[i] = std::move(step);
                return whole(std::move(other));
            };
            if (const auto changed = change(a, a.steps[i])) sites.push_back(with(*changed));
            const auto *call = std::get_if<Call>(&a.steps[i]);
            if (!call || call->scope.find(".grad") == std::string::npos) continue;
            add_sites(
                *call->callee, change,
                [&](Algorithm inner) {
                    Call other = *call;
                    other.callee = std::make_shared<const Algorithm>(std::move(inner));
                    return with(other);
                },
                sites);
        }
    }
    std::optional<Algorithm> planted(const Change &change) {
        std::vector<Algorithm> sites;
        add_sites(
            made_, change, [](Algorithm a) { return a; }, sites);
        std::shuffle(sites.begin(), sites.end(), random_);
        for (const Algorithm &site : sites) try {
                verify(site);
                return site;
            } catch (const UserError &) {}  // what is no program is caught already
        return std::nullopt;
    }
};

std::optional<Stage> with_value(const Stage &s, const std::function<std::optional<Expr>(const Expr &)> &change) {
    Stage changed = s;
    if (auto *map = std::get_if<Map>(&changed.body)) {
        const std::optional<Expr> value = change(map->values[0].value);
        if (map->values.size() > 1 || !value) return std::nullopt;
        map->values[0].value = *value;
        return changed;
    }
    auto *reduce = std::get_if<Reduce>(&changed.body);
    const std::optional<Expr> value = reduce ? change(reduce->inputs[0]) : std::nullopt;
    if (!value) return std::nullopt;
    reduce->inputs[0] = *value;
    return changed;
}

// The stage with one load of it, the first that `change` has another one for, changed.
std::optional<Stage> with_load(const Stage &s, const std::function<Expr(const Expr &)> &change) {
    bool is_done = false;
    const Stage changed = map_expressions(s, [&](const Expr &e) {
        return e.defined() ? rewrite(e,
                                     [&](const Expr &n) -> Expr {
                                         if (is_done || n.kind() != ExprKind::load) return {};
                                         const Expr other = change(n);
                                         is_done |= other.defined();
                                         return other;
                                     })
                           : e;
    });
    return is_done ? std::optional(changed) : std::nullopt;
}

std::vector<Expr> index_of(const Expr &e) {
    return {e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(e->args.size() - (e->guarded ? 2 : 0))};
}

// Where the index is outside there is 0.
Expr load_inside(const Tensor &t, const std::vector<Expr> &index) {
    Expr inside;
    for (size_t i = 0; i < index.size(); i++) {
        const Expr here = Expr(0) <= index[i] && index[i] < extent(t.dims[i]);
        inside = inside.defined() ? inside && here : here;
    }
    return load_or(t.name, t.dtype, Operands(index.begin(), index.end()), inside, constant(t.dtype, 0));
}

std::vector<Tensor> tensors_of(const Algorithm &a) {
    std::vector<Tensor> all = a.tensors;
    for (const Step &step : a.steps) {
        const std::vector<Tensor> results = std::visit([](const auto &s) { return results_of(s); }, step);
        all.insert(all.end(), results.begin(), results.end());
    }
    return all;
}

// Another tensor of the same shape that is made before the stage, among those that are gradients or among those that are not.
std::optional<Tensor> other_tensor(const Algorithm &a, const std::string &name, const Stage &reader, bool is_gradient) {
    const std::vector<Tensor> all = tensors_of(a);
    const auto own = std::find_if(all.begin(), all.end(), [&](const Tensor &t) { return t.name == name; });
    const auto is_one = [](const std::string &n) { return n.find(".grad") != std::string::npos; };
    if (own == all.end() || own->dims.empty() || is_one(name) != is_gradient) return std::nullopt;
    for (const Tensor &t : all) {
        if (t.name == reader.name) break;
        if (t.name != name && t.dtype == own->dtype && t.dims == own->dims && is_one(t.name) == is_gradient) return t;
    }
    return std::nullopt;
}

const Scan *scan_by(const Stage &s, const std::string &monoid) {
    const auto *scan = std::get_if<Scan>(&s.body);
    return scan && (monoid.empty() || scan->monoid.name == monoid) ? scan : nullptr;
}

// Positions along the scan moved by one, back to where they were in the primal.
Expr unshifted(const Scan &scan, const Expr &e) {
    const Expr i = variable(scan.dim);
    return substitute(e, {{scan.dim, scan.direction == ScanDirection::backward ? i - 1 : i + 1}});
}

struct Planted {
    const char *name;
    std::function<std::optional<Algorithm>(Planter &)> plant;
};

std::optional<Algorithm> plant_in_scan(Planter &p, const std::string &monoid, const std::function<bool(Scan &)> &change) {
    return p.stage([&](const Stage &s, const Algorithm &) -> std::optional<Stage> {
        if (!scan_by(s, monoid)) return std::nullopt;
        Stage changed = s;
        if (!change(std::get<Scan>(changed.body))) return std::nullopt;
        return changed;
    });
}

std::vector<Planted> errors() {
    const auto in_value = [](const std::function<std::optional<Expr>(const Expr &)> &change) {
        return [change](Planter &p) { return p.stage([&](const Stage &s, const Algorithm &) { return with_value(s, change); }); };
    };
    const auto other_load = [](bool is_gradient) {
        return [is_gradient](Planter &p) {
            return p.stage([&](const Stage &s, const Algorithm &a) {
                return with_load(s, [&](const Expr &e) -> Expr {
                    const auto other = other_tensor(a, e->name, s, is_gradient);
                    return other ? load_of(other->name, e) : Expr();
                });
            });
        };
    };
    return {
        {"sign", in_value([](const Expr &e) { return std::optional(-e); })},
        {"factor", in_value([](const Expr &e) { return std::optional(e * constant(e.type(), 2)); })},
        {"lost contribution", in_value([](const Expr &e) { return e.is_operation(Op::add) ? std::optional(e->args[0]) : std::nullopt; })},
        {"inclusive for exclusive",
         [](Planter &p) { return plant_in_scan(p, "", [](Scan &s) { return s.inclusive = !s.inclusive, true; }); }},
        {"unshifted recurrence",
         [](Planter &p) {
             return plant_in_scan(p, "recurrence", [](Scan &s) { return s.inputs[0] = unshifted(s, s.inputs[0]), s.inclusive; });
         }},
        {"wrong segment end",
         [](Planter &p) {
             return plant_in_scan(p, "", [](Scan &s) {
                 if (!s.segments.defined()) return false;
                 s.segments = unshifted(s, s.segments);
                 return true;
             });
         }},
        {"lost where",
         [](Planter &p) {
             return p.stage([](const Stage &s, const Algorithm &) -> std::optional<Stage> {
                 Stage changed = s;
                 auto *reduce = std::get_if<Reduce>(&changed.body);
                 if (!reduce || !reduce->where.defined()) return std::nullopt;
                 reduce->where = {};
                 return changed;
             });
         }},
        {"unscaled window",
         [](Planter &p) {
             return p.stage([](const Stage &s, const Algorithm &a) {
                 const std::vector<Tensor> all = tensors_of(a);
                 return with_load(s, [&](const Expr &e) -> Expr {
                     std::vector<Expr> index = index_of(e);
                     bool is_scaled = false;
                     for (Expr &i : index) {
                         if (!i.is_operation(Op::div) && !i.is_operation(Op::add)) continue;
                         const Expr plain = rewrite(
                             i, [](const Expr &n) { return n.is_operation(Op::div) || n.is_operation(Op::mul) ? n->args[0] : Expr(); });
                         is_scaled |= !equal(plain, i), i = plain;
                     }
                     const auto t = std::find_if(all.begin(), all.end(), [&](const Tensor &x) { return x.name == e->name; });
                     return is_scaled && t != all.end() ? load_inside(*t, index) : Expr();
                 });
             });
         }},
        {"swapped roles",
         [](Planter &p) {
             return p.stage([](const Stage &s, const Algorithm &a) {
                 const std::vector<Tensor> all = tensors_of(a);
                 return with_load(s, [&](const Expr &e) -> Expr {
                     std::vector<Expr> index = index_of(e);
                     if (index.size() < 2) return {};
                     std::swap(index[0], index[1]);
                     const auto t = std::find_if(all.begin(), all.end(), [&](const Tensor &x) { return x.name == e->name; });
                     return t != all.end() ? load_inside(*t, index) : Expr();
                 });
             });
         }},
        {"overwritten residual", other_load(false)},
        {"stale subexpression", other_load(true)},
        {"wrong carry",
         [](Planter &p) {
             return p.call([](const Call &c, const Algorithm &) -> std::optional<Call> {
                 if (!c.repeat || c.repeat->carried.empty()) return std::nullopt;
                 Call changed = c;  // the rounds in the order of the forward pass
                 for (auto &[name, view] : changed.tensors)
                     for (Expr &e : view.index)
                         if (uses_variable(e, c.repeat->dim))
                             e = substitute(e, {{c.repeat->dim, extent(c.repeat->dim) - 1 - variable(c.repeat->dim)}});
                 return changed;
             });
         }},
    };
}

}  // namespace

TEST_CASE("planted errors: a hundred programs keep the laws, and show each of twelve errors") {
    const std::vector<Planted> all = errors();
    REQUIRE(all.size() == 12);
    std::map<std::string, int> caught, planted;
    int judged = 0;
    for (unsigned number = 0; number < 100; number++) {
        std::mt19937 random(number);
        const Algorithm f = random_program(random);
        Extents extents = random_extents(random);
        if (f.find_dim("L")) extents["L"] = static_cast<int64_t>(random() % 4);
        const Given given = random_given(f, extents, random);
        const Algorithm gradient = vjp(f);
        INFO("program " << number << "\n" << to_text(f) << "\n" << to_text(gradient));
        const std::optional<double> forward = error_of_jvp(f, {}, given, random);
        judged += forward.has_value();
        if (forward) CHECK(*forward < 1e-6);
        CHECK(error_of_vjp(f, {}, given, random, gradient) < 1e-12);
        for (const Planted &error : all) {
            Planter planter(gradient, random);
            const std::optional<Algorithm> wrong = error.plant(planter);
            if (!wrong) continue;
            planted[error.name]++;
            caught[error.name] += error_of_vjp(f, {}, given, random, wrong) > 1e-9;
        }
    }
    CHECK(judged >= 90);
    for (const Planted &error : all) {
        INFO(error.name << ": planted in " << planted[error.name] << " programs, caught in " << caught[error.name]);
        CHECK(planted[error.name] > 0);
        CHECK(caught[error.name] > 0);
    }
}

}  // namespace tessera::test_planted_errors
