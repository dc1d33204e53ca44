// The rules of program.h.
#include <algorithm>
#include <set>

#include "algorithms/mesh/program.h"
#include "algorithms/verify/verify.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class ProgramVerifier {
public:
    explicit ProgramVerifier(const MeshProgram &program) : p_(program) {}

    void run() {
        check(p_.mesh);
        check_tensors();
        for (const MeshStep &step : p_.steps)
            std::visit(Overloaded{[&](const Algorithm &part) { check_part(part); }, [&](const Collective &c) { check_collective(c); }},
                       step);
        for (const MeshTensor &t : p_.tensors)
            if (!made_.count(t.name)) fail("order", t.name, "no step makes it.");
        if (p_.outputs.empty() && std::none_of(p_.tensors.begin(), p_.tensors.end(), is_state))
            fail("output", "", "it has no output and no state.");
        std::set<std::string> seen;
        for (const auto &[name, tensor] : p_.outputs) {
            const MeshTensor &t = made(tensor, "the output " + name);
            if (!seen.insert(name).second) fail("output", name, "it is an output twice.");
            for (const auto &[axis, on] : t.placement)
                if (on.kind == PlacementKind::partial)
                    fail("placement", name,
                         "an output is " + to_string(t.placement, axis) + " along " + axis +
                             "; fold it by an all_reduce or a reduce_scatter first.");
        }
    }

private:
    static bool is_state(const MeshTensor &t) { return t.role == Role::state; }

    [[noreturn]] void fail(const std::string &rule, const std::string &subject, const std::string &words) const {
        throw UserError("mesh." + rule, p_.name + (subject.empty() ? "" : "." + subject) + ": " + words);
    }

    const Dim &dim(const std::string &name, const std::string &subject) const {
        if (const Dim *d = p_.find_dim(name)) return *d;
        fail("tensor", subject, "there is no dim '" + name + "'; the dims are " + join(names_of(p_.dims)) + ".");
    }

    const MeshTensor &made(const std::string &name, const std::string &by) const {
        std::vector<std::string> all(made_.begin(), made_.end());
        if (!made_.count(name))
            fail("order", name, by + " reads it before anything makes it; what is there: " + join(all) + "." + did_you_mean(name, all));
        return p_.tensor(name);
    }

    void make(const std::string &name, const std::string &by) {
        if (!p_.find_tensor(name)) fail("tensor", name, by + " makes it, and it is not declared.");
        if (!made_.insert(name).second) fail("order", name, by + " makes it, and it is there already; each tensor is made once.");
    }

    void check_tensors() {
        std::set<std::string> names;
        for (const MeshTensor &t : p_.tensors) {
            if (!names.insert(t.name).second) fail("tensor", t.name, "it is declared twice.");
            if (t.role == Role::constant) fail("tensor", t.name, "constants are those of parts.");
            for (const std::string &d : t.dims) dim(d, t.name);
            check_placement(t);
            if (t.role) made_.insert(t.name);
        }
    }

    void check_placement(const MeshTensor &t) const {
        std::map<std::string, std::string> axis_of;
        for (const auto &[axis, on] : t.placement) {
            if (!p_.mesh.has(axis)) fail("axis", t.name, "it is placed along '" + axis + "'; the mesh is " + to_string(p_.mesh) + ".");
            const std::string words = to_string(t.placement, axis);
            if (std::count(t.dims.begin(), t.dims.end(), on.dim) != 1)
                fail("placement", t.name, "it is " + words + " along " + axis + "; expected one of its dims " + join(t.dims) + ", once.");
            if (const auto [other, fresh] = axis_of.emplace(on.dim, axis); !fresh)
                fail("placement", t.name,
                     "the dim '" + on.dim + "' is cut along " + other->second + " and " + axis + "; expected one axis.");
            if (dim(on.dim, t.name).kind != DimKind::fixed)
                fail("placement", t.name, "it is " + words + " along " + axis + "; expected a dim of fixed extent.");
            if (on.kind == PlacementKind::partial && t.role)
                fail("placement", t.name, "an input or state is " + words + " along " + axis + "; expected shard or replicate.");
        }
    }

    // What a part makes depends on the tensors and ranks that its stages read, one through the other.
    void check_part(const Algorithm &part) {
        verify(part);
        std::map<std::string, std::set<std::string>> varies;  // tensor -> axes along which ranks have different ones
        for (const Tensor &t : part.tensors) {
            if (t.role == Role::constant) continue;
            const MeshTensor &given = made(t.name, "the part " + part.name);
            check_same(part, t, given);
            if ((t.role == Role::state) != is_state(given))
                fail("part", part.name, "'" + t.name + "' is a state of one and not of the other; expected the same role.");
            for (const auto &[axis, on] : given.placement) {
                if (on.kind == PlacementKind::partial)
                    fail("placement", t.name,
                         "the part " + part.name + " reads it, which is " + to_string(given.placement, axis) + " along " + axis +
                             "; fold it by an all_reduce or a reduce_scatter first.");
                varies[t.name].insert(axis);
            }
        }
        for (const Parameter &parameter : part.parameters) check_parameter(part, parameter);
        if (!part.calls().empty()) fail("part", part.name, "it has calls; expected stages alone. Inline them (inline_calls).");
        for (const Stage &stage : part.stages()) {
            std::set<std::string> axes;
            const auto add = [&](const Expr &e) {
                walk(e, [&](const Expr &n) {
                    if (n.kind() == ExprKind::load) axes.insert(varies[n->name].begin(), varies[n->name].end());
                    if (n.kind() != ExprKind::parameter) return;
                    for (const MeshAxis &axis : p_.mesh.axes)
                        if (n->name == rank_parameter(axis.name)) axes.insert(axis.name);
                });
            };
            for (const Expr &e : expressions_of(stage)) add(e);
            for (const Tensor &t : results_of(stage)) varies[t.name] = axes;
            for (const Write *write : writes_of(stage)) {
                const MeshTensor &state = p_.tensor(write->state);
                for (const std::string &axis : axes)
                    if (!state.placement.count(axis)) refuse_replicated(stage.name + " writes it", state, axis);
            }
        }
        for (const std::string &output : part.outputs) {
            make(output, "the part " + part.name);
            const MeshTensor &declared = p_.tensor(output);
            for (const Stage &stage : part.stages())
                for (const Tensor &t : results_of(stage))
                    if (t.name == output) check_same(part, t, declared);
            for (const std::string &axis : varies[output])
                if (!declared.placement.count(axis)) refuse_replicated("the part " + part.name + " makes it", declared, axis);
        }
    }

    [[noreturn]] void refuse_replicated(const std::string &by, const MeshTensor &t, const std::string &axis) const {
        fail("placement", t.name,
             by + " of what differs along " + axis +
                 ", and it is declared replicate there; expected shard or partial, or a "
                 "collective before.");
    }

    void check_same(const Algorithm &part, const Tensor &own, const MeshTensor &declared) const {
        if (own.dtype != declared.dtype || own.dims != declared.dims)
            fail("part", part.name,
                 "'" + own.name + "' is " + name_of(own.dtype) + "[" + join(own.dims) + "] in it, and " + name_of(declared.dtype) + "[" +
                     join(declared.dims) + "] in the program; expected the same.");
        for (const std::string &name : own.dims) {
            const Dim &inside = part.dim(name), &outside = dim(name, own.name);
            if (inside.kind != outside.kind || inside.value != outside.value)
                fail("part", part.name, "its dim '" + name + "' is another than the program's.");
        }
    }

    void check_parameter(const Algorithm &part, const Parameter &parameter) const {
        for (const MeshAxis &axis : p_.mesh.axes) {
            if (parameter.name != rank_parameter(axis.name)) continue;
            const bool is_it = parameter.dtype == DType::i32 && parameter.range && parameter.range->least.integer == 0 &&
                               parameter.range->most.integer == axis.ranks - 1;
            if (!is_it)
                fail("part", part.name,
                     "its parameter '" + parameter.name + "' is a coordinate; expected i32 from 0 to " + std::to_string(axis.ranks - 1) +
                         ", got " + to_string(parameter) + ".");
            return;
        }
        if (std::find(p_.parameters.begin(), p_.parameters.end(), parameter) == p_.parameters.end())
            fail("part", part.name, "its parameter '" + parameter.name + "' is none of the program's.");
    }

    void check_collective(const Collective &c) {
        const std::string subject = std::string(name_of(c.kind)) + " of " + c.tensor;
        if (!p_.mesh.has(c.axis)) fail("axis", c.tensor, subject + " is along '" + c.axis + "'; the mesh is " + to_string(p_.mesh) + ".");
        const MeshTensor given = made(c.tensor, subject);
        make(c.result, subject);
        const MeshTensor &result = p_.tensor(c.result);
        const auto refuse = [&](const std::string &expected) {
            fail("collective", c.tensor,
                 subject + " along " + c.axis + " takes " + to_string(given.placement, c.axis) + " of [" + join(given.dims) +
                     "] and gives " + to_string(result.placement, c.axis) + " of [" + join(result.dims) + "]; expected " + expected + ".");
        };
        if (c.kind == CollectiveKind::all_to_all) return check_exchange(c, given, result, refuse);
        if (given.dims.empty() || (c.kind != CollectiveKind::all_reduce && result.dims.empty())) refuse("an outermost dim that moves");
        const auto has = given.placement.find(c.axis), gets = result.placement.find(c.axis);
        const AxisPlacement wanted = {folds(c) ? PlacementKind::partial : PlacementKind::shard, given.dims[0],
                                      folds(c) ? c.monoid : MeshMonoid::sum};
        if (has == given.placement.end() || has->second != wanted) refuse(to_string({{c.axis, wanted}}, c.axis) + " of its tensor");
        if (c.kind == CollectiveKind::reduce_scatter) {
            if (gets == result.placement.end() || gets->second != AxisPlacement{PlacementKind::shard, result.dims[0]})
                refuse("shard(" + result.dims[0] + ") of its result");
        } else if (gets != result.placement.end()) refuse("replicate of its result");
        if (given.dtype != result.dtype) refuse("one type of both");
        if (folds(c) && (!is_arithmetic(given.dtype) || given.dtype == DType::boolean || given.dtype == DType::index))
            refuse("numbers of f32, f64, i32 or i64");
        check_others(c, given, result, refuse);
        // The dims that stay, behind the one that moves.
        const auto n = p_.mesh.ranks_on(c.axis);
        std::vector<std::string> from(given.dims.begin() + 1, given.dims.end()), to = result.dims;
        int64_t moved = 1, gathered = 1;
        if (c.kind == CollectiveKind::all_gather) {
            moved = dim(given.dims[0], c.tensor).value * n, gathered = dim(to[0], c.result).value;
            to.erase(to.begin());
        } else if (c.kind == CollectiveKind::reduce_scatter) {
            if (from.empty()) refuse("a dim that is scattered");
            moved = dim(from[0], c.tensor).value, gathered = dim(to[0], c.result).value * n;
            from.erase(from.begin()), to.erase(to.begin());
        }
        if (from != to || moved != gathered) refuse("the same other dims, and " + std::to_string(n) + " parts of one extent");
    }

    template <typename Refuse>
    void check_others(const Collective &c, const MeshTensor &given, const MeshTensor &result, const Refuse &refuse) const {
        for (const MeshAxis &axis : p_.mesh.axes)
            if (axis.name != c.axis && to_string(given.placement, axis.name) != to_string(result.placement, axis.name))
                refuse("the same placement along " + axis.name);
    }

    template <typename Refuse>
    void check_exchange(const Collective &c, const MeshTensor &given, const MeshTensor &result, const Refuse &refuse) const {
        if (given.dims.size() < 2 || result.dims.size() != given.dims.size() + 1) refuse("two dims that are exchanged, and one of ranks");
        const auto has = given.placement.find(c.axis), gets = result.placement.find(c.axis);
        if (has == given.placement.end() || has->second != AxisPlacement{PlacementKind::shard, given.dims[1]})
            refuse("shard(" + given.dims[1] + ") of its tensor");
        if (gets == result.placement.end() || gets->second != AxisPlacement{PlacementKind::shard, result.dims[1]})
            refuse("shard(" + result.dims[1] + ") of its result");
        if (given.dtype != result.dtype) refuse("one type of both");
        check_others(c, given, result, refuse);
        const int64_t n = p_.mesh.ranks_on(c.axis);
        const bool is_parts = dim(result.dims[0], c.result).value == n &&
                              dim(given.dims[0], c.tensor).value == n * dim(result.dims[1], c.result).value &&
                              std::equal(given.dims.begin() + 1, given.dims.end(), result.dims.begin() + 2);
        if (!is_parts) refuse("the same other dims, and " + std::to_string(n) + " parts of one extent");
    }

    const MeshProgram &p_;
    std::set<std::string> made_;
};

}  // namespace

void verify(const MeshProgram &program) { ProgramVerifier(program).run(); }

}  // namespace tessera
