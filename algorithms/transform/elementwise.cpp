#include "algorithms/transform/elementwise.h"

#include <algorithm>
#include <ranges>

#include "algorithms/ir/rows.h"
#include "algorithms/transform/inline_calls.h"
#include "support/text/error.h"

namespace tessera {

namespace {

std::string bracketed(const std::vector<std::string> &words) { return "[" + join(words) + "]"; }

size_t rank_of(const Expr &load) { return load->args.size() - (load->guarded ? 2 : 0); }

std::vector<std::string> index_text(const Expr &load) {
    std::vector<std::string> text;
    for (size_t i = 0; i < rank_of(load); i++) text.push_back(to_string(load->args[i]));
    return text;
}

bool is_table(const Algorithm &a, const std::string &tensor) {
    const Tensor *t = a.find_tensor(tensor);
    return t != nullptr && t->role == Role::constant;
}

// Checks one expression of a stage. The index of a tensor that is no table is looked at as a whole, everything else node by node.
class Check {
public:
    Check(const Algorithm &algorithm, const Stage &stage) : algorithm_(algorithm), stage_(stage) {}

    void operator()(const Expr &e) {
        if (!seen_.insert(e.get())) return;
        if (e.kind() == ExprKind::variable || e.kind() == ExprKind::extent)
            refuse("elementwise.position", std::string("it uses the ") + (e.kind() == ExprKind::variable ? "position along" : "extent of") +
                                               " the dim " + e->name + ", which arrays of any shape do not have");
        size_t first = 0;
        if (e.kind() == ExprKind::load && !is_table(algorithm_, e->name)) check_index(e), first = rank_of(e);
        for (size_t i = first; i < e->args.size(); i++) (*this)(e->args[i]);
    }

    [[noreturn]] void refuse(const char *id, const std::string &why) const {
        UserError error(id, algorithm_.name + "." + stage_.name + ": " + why +
                                ". A function that is to be a ufunc is element-wise: each element "
                                "of a result takes the elements of the inputs at its own position");
        throw error.about(stage_.name, stage_.span);
    }

private:
    const Algorithm &algorithm_;
    const Stage &stage_;
    AddressSet seen_;

    void check_index(const Expr &load) const {
        const size_t rank = rank_of(load), skipped = stage_.dims.size() - std::min(rank, stage_.dims.size());
        const std::vector<std::string> own(stage_.dims.begin() + static_cast<std::ptrdiff_t>(skipped), stage_.dims.end());
        bool is_own = own.size() == rank;
        for (size_t i = 0; is_own && i < rank; i++) is_own = load->args[i].kind() == ExprKind::variable && load->args[i]->name == own[i];
        if (!is_own)
            refuse("elementwise.reading", "it reads " + load->name + bracketed(index_text(load)) + ", and its own dims are " +
                                              bracketed(stage_.dims) + ": expected " +
                                              (rank > stage_.dims.size() ? "no more dims than these" : load->name + bracketed(own)));
    }
};

const char *kind_of(const Stage &stage) { return std::holds_alternative<Scan>(stage.body) ? "it scans along " : "it folds over "; }

}  // namespace

void check_elementwise(const Algorithm &given) {
    const auto fail = [&](const char *id, const std::string &words) { throw UserError(id, given.name + ": " + words); };
    for (const Call &call : given.calls())
        if (call.repeat) fail("elementwise.stage", "the call " + call.scope + " is repeated, and a ufunc is element-wise: leave it out");
    if (given.updates_state) fail("elementwise.state", "it updates a state, and a ufunc gives results alone: return the new values");
    if (given.draws) fail("elementwise.state", "it draws random numbers, which go by position: a ufunc is element-wise");
    const Algorithm a = inline_calls(given);
    for (const Tensor &t : a.tensors)
        if (t.role != Role::constant && is_in_half_bytes(t.dtype))
            fail("elementwise.type", "'" + t.name + "' is " + name_of(t.dtype) + ", and NumPy has no arrays of half bytes");
    size_t rank = 0;
    if (std::ranges::none_of(a.tensors, [](const Tensor &t) { return t.role == Role::input; }))
        fail("elementwise.result", "it has no input, whose shape its results would have");
    for (const Tensor &t : a.tensors)
        if (t.role != Role::constant) rank = std::max(rank, t.dims.size());
    for (const Stage &stage : a.stages()) {
        Check check(a, stage);
        if (is_fold(stage)) check.refuse("elementwise.stage", kind_of(stage) + join(folded_dims(stage)));
        for (const std::string &d : stage.dims)
            if (a.dim(d).kind == DimKind::derived)
                check.refuse("elementwise.stage", "its dim " + d + " is derived, as " + to_string(a.dim(d).size));
        for (const Expr &e : expressions_of(stage)) check(e);
        rank = std::max(rank, stage.dims.size());
    }
    for (const std::string &output : a.outputs)
        if (const Stage *stage = defining_stage(a, output); stage->dims.size() < rank)
            Check(a, *stage).refuse("elementwise.result", "the result '" + output + "' has the dims " + bracketed(stage->dims) +
                                                              ", and others have " + std::to_string(rank) + " dims");
}

Algorithm elementwise_over_rows(const Algorithm &given, const std::set<std::string> &repeated) {
    check_elementwise(given);
    refuse_rows(given, "a kernel over rows and columns");
    Algorithm a = inline_calls(given);
    std::set<std::string> taken;
    std::vector<Dim> kept;  // those of tables
    for (const Tensor &t : a.tensors)
        if (t.role == Role::constant) taken.insert(t.dims.begin(), t.dims.end());
    for (const Dim &d : a.dims)
        if (taken.count(d.name)) kept.push_back(d);
    for (const Tensor &t : a.tensors) taken.insert(t.name);
    for (const Stage &s : a.stages()) taken.insert(s.name);
    for (const Parameter &p : a.parameters) taken.insert(p.name);
    const auto fresh = [&](std::string name) {
        while (taken.count(name)) name += "_";
        return name;
    };
    const std::string rows = fresh("rows"), columns = fresh("columns"), one = fresh("one");
    a.dims = {symbolic_dim(rows), symbolic_dim(columns)};
    if (!repeated.empty()) a.dims.push_back(fixed_dim(one, 1));
    a.dims.insert(a.dims.end(), kept.begin(), kept.end());
    for (Tensor &t : a.tensors)
        if (t.role != Role::constant) t.dims = {rows, repeated.count(t.name) ? one : columns};
    for (Stage &stage : a.stages()) {
        stage.dims = {rows, columns};
        stage = map_expressions(std::move(stage), [&](const Expr &e) {
            return replace_loads(e, [&](const Expr &n) -> Expr {
                if (is_table(a, n->name)) return {};
                const Operands at = {variable(rows), repeated.count(n->name) ? Expr(0) : variable(columns)};
                const size_t rank = rank_of(n);
                return n->guarded ? load_or(n->name, n.type(), at, n->args[rank], n->args[rank + 1]) : load(n->name, n.type(), at);
            });
        });
    }
    return a;
}

}  // namespace tessera
