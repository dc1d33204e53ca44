// A monoid's definition: one lift, combine and step for each part, over the right operands.
#include <algorithm>

#include "algorithms/verify/verify_scope.h"
#include "support/text/error.h"

namespace tessera {

namespace {

struct Definition {
    const char *name;
    const std::vector<Expr> &exprs;
    bool left, right, input;
};

void verify_operand(const VerifyScope &scope, const std::string &subject, const Monoid &m, const Part &part, const Definition &d,
                    const Expr &e) {
    std::string where = std::string(d.name) + " of part '" + part.name + "' of the monoid '" + m.name + "' ";
    bool is_left = e.kind() == ExprKind::left, is_right = e.kind() == ExprKind::right, is_input = e.kind() == ExprKind::input;
    bool allowed = is_left ? d.left : is_right ? d.right : is_input ? d.input : e->args.size() || e.kind() == ExprKind::constant;
    if (e.kind() == ExprKind::load || !allowed)
        scope.fail("monoid", subject,
                   where + "uses " + brief(e) + "; it may use" + (d.left ? " left(p)" : "") + (d.right ? " right(p)" : "") +
                       (d.input ? " input(i)" : "") + " and constants.");
    if (!is_left && !is_right && !is_input) return;
    size_t n = static_cast<size_t>(e->number), count = is_input ? m.inputs.size() : m.parts.size();
    if (e->number < 0 || n >= count)
        scope.fail("monoid", subject,
                   where + "uses " + brief(e) + ", but there are only " + std::to_string(count) + (is_input ? " inputs." : " parts."));
    DType type = is_input ? m.inputs[n] : m.parts[n].identity.type;
    if (e.type() != type)
        scope.fail("monoid", subject, where + "uses " + brief(e) + " as " + name_of(e.type()) + ", but it is " + name_of(type) + ".");
    if (!is_input && !m.parts[n].dims.empty() && m.parts[n].dims != part.dims)
        scope.fail("monoid", subject,
                   where + "uses part '" + m.parts[n].name + "', which has the extra dims " + join(m.parts[n].dims) +
                       "; a part may use parts of its own extra dims, " + join(part.dims) + ", and those without.");
}

void verify_definition(const VerifyScope &scope, const std::string &subject, const Monoid &m, const Definition &d) {
    if (d.exprs.size() != m.parts.size())
        scope.fail("monoid", subject,
                   "the monoid '" + m.name + "' has " + std::to_string(m.parts.size()) + " parts and " + std::to_string(d.exprs.size()) +
                       " expressions in " + d.name + "; give one for each part.");
    for (size_t p = 0; p < m.parts.size(); p++) {
        if (!d.exprs[p].defined() || d.exprs[p].type() != m.parts[p].identity.type)
            scope.fail("monoid", subject,
                       std::string(d.name) + " of part '" + m.parts[p].name + "' of the monoid '" + m.name + "' is " +
                           (d.exprs[p].defined() ? name_of(d.exprs[p].type()) : "missing") + ", but its identity is " +
                           name_of(m.parts[p].identity.type) + "; make them agree.");
        walk(d.exprs[p], [&](const Expr &e) { verify_operand(scope, subject, m, m.parts[p], d, e); });
    }
}

void verify_derivative(const VerifyScope &scope, const std::string &subject, const Monoid &m) {
    const std::string where = "the derivative of the monoid '" + m.name + "' ";
    const auto part_of = [&](int p) -> const Part & {
        if (p < 0 || static_cast<size_t>(p) >= m.parts.size())
            scope.fail("monoid", subject, where + "is of part " + std::to_string(p) + "; it has " + std::to_string(m.parts.size()) + ".");
        const Part &part = m.parts[static_cast<size_t>(p)];
        if (!is_float(part.identity.type))
            scope.fail("monoid", subject,
                       where + "is of part '" + part.name + "', which is " + name_of(part.identity.type) +
                           "; only floats change by little. Leave it out.");
        return part;
    };
    const auto verify_value = [&](const Part &part, const Expr &value, bool has_input) {
        if (!value.defined() || value.type() != part.identity.type)
            scope.fail("monoid", subject,
                       where + "of part '" + part.name + "' is " + (value.defined() ? name_of(value.type()) : "missing") + "; expected " +
                           name_of(part.identity.type) + ", as the part is.");
        const std::vector<Expr> all = {value};
        walk(value, [&](const Expr &e) { verify_operand(scope, subject, m, part, {"derivative", all, false, true, has_input}, e); });
    };
    for (const ElementDerivative::Entry &e : m.derivative->entries) {
        const Part &part = part_of(e.part);
        if (e.input < 0 || static_cast<size_t>(e.input) >= m.inputs.size() || !is_float(m.inputs[static_cast<size_t>(e.input)]))
            scope.fail("monoid", subject,
                       where + "is by input " + std::to_string(e.input) + "; expected one of its inputs that is a float.");
        verify_value(part, e.value, true);
    }
    for (const ElementDerivative::Follow &f : m.derivative->follows) {
        const Part &part = part_of(f.part), &leader = part_of(f.leader);
        if (!leader.dims.empty())
            scope.fail("monoid", subject,
                       where + "says that '" + part.name + "' follows '" + leader.name + "', which has extra dims; a leader has none.");
        for (const ElementDerivative::Follow &other : m.derivative->follows)
            if (other.part == f.leader)
                scope.fail("monoid", subject,
                           where + "says that '" + part.name + "' follows '" + leader.name +
                               "', which follows another part; a leader follows none.");
        verify_value(part, f.value, false);
    }
}

void verify_pass(const VerifyScope &scope, const std::string &subject, const Monoid &m, size_t position) {
    const BatchPass &pass = m.batch[position];
    const std::string where = "pass '" + pass.name + "' of the batch form of the monoid '" + m.name + "' ";
    std::vector<std::string> folds;
    for (const StandardMonoid &standard : standard_monoids)
        if (find_pass_monoid(standard.name)) folds.push_back(standard.name);
    const bool maps = pass.monoid.empty() || pass.monoid == "each";
    if (!maps && !find_pass_monoid(pass.monoid))
        scope.fail("monoid", subject,
                   where + "folds by '" + pass.monoid + "'; expected one of " + join(folds) +
                       ", \"\" for a value for each element, or each." + did_you_mean(pass.monoid, folds));
    const size_t wanted = pass.monoid == "dot" ? 2 : 1;
    if (pass.values.size() != wanted)
        scope.fail("monoid", subject,
                   where + "has " + std::to_string(pass.values.size()) + " values; expected " + std::to_string(wanted) + ".");
    for (const Expr &value : pass.values) {
        if (!value.defined()) scope.fail("monoid", subject, where + "has a value that is missing.");
        walk(value, [&](const Expr &e) {
            const bool is_input = e.kind() == ExprKind::input, is_right = e.kind() == ExprKind::right;
            const size_t count = is_input ? m.inputs.size() : position;
            if (is_input || is_right ? e->number < 0 || static_cast<size_t>(e->number) >= count
                                     : e.kind() == ExprKind::load || (e->args.empty() && e.kind() != ExprKind::constant))
                scope.fail("monoid", subject,
                           where + "uses " + brief(e) + "; it may use input(i), right(k) of passes before it and constants.");
            const DType type = is_input   ? m.inputs[static_cast<size_t>(e->number)]
                               : is_right ? m.batch[static_cast<size_t>(e->number)].values[0].type()
                                          : e.type();
            if (e.type() != type)
                scope.fail("monoid", subject,
                           where + "uses " + brief(e) + " as " + name_of(e.type()) + ", but it is " + name_of(type) + ".");
        });
    }
}

}  // namespace

void verify_monoid(const VerifyScope &scope, const std::string &subject, const Monoid &m) {
    if (m.parts.empty()) scope.fail("monoid", subject, "the monoid '" + m.name + "' has no parts; give at least one.");
    std::set<std::string> names;
    for (const Part &p : m.parts) {
        verify_name(scope, "the part of the monoid '" + m.name + "'", p.name);
        if (!names.insert(p.name).second)
            scope.fail("monoid", subject, "the monoid '" + m.name + "' has two parts named '" + p.name + "'; rename one.");
        if (!is_arithmetic(p.identity.type) || p.identity.type == DType::index)
            scope.fail("monoid", subject,
                       "part '" + p.name + "' of the monoid '" + m.name + "' is " + name_of(p.identity.type) +
                           "; accumulate in f32, f64, i32, i64 or bool.");
        for (const std::string &d : p.dims)
            if (scope.ragged(scope.dim(d, subject)))
                scope.fail("ragged", subject, "part '" + p.name + "' has the ragged dim '" + d + "'; parts need dims of one extent.");
    }
    verify_definition(scope, subject, m, {"lift", m.lift, false, false, true});
    verify_definition(scope, subject, m, {"combine", m.combine, true, true, false});
    verify_definition(scope, subject, m, {"step", m.step, true, false, true});
    if (m.derivative) verify_derivative(scope, subject, m);
    if (m.batch.empty()) return;
    bool total = m.batch_parts.size() == m.parts.size();
    for (int pass : m.batch_parts) total &= pass >= 0 && static_cast<size_t>(pass) < m.batch.size();
    if (!total)
        scope.fail("monoid", subject,
                   "the batch form of the monoid '" + m.name + "' must name one of its " + std::to_string(m.batch.size()) +
                       " passes for each of the " + std::to_string(m.parts.size()) + " parts in batch_parts.");
    for (size_t i = 0; i < m.batch.size(); i++) verify_pass(scope, subject, m, i);
}

}  // namespace tessera
