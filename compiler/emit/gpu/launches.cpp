#include "compiler/emit/gpu/launches.h"

#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera::emit_gpu {

namespace {

class Planner {
public:
    Planner(const TileProgram &program, const Callees &callees) : program_(program), callees_(callees) {}

    LaunchPlan run() {
        plan_.steps = steps(program_.body);
        plan_.buffers.insert(plan_.buffers.end(), own_.begin(), own_.end());
        return std::move(plan_);
    }

private:
    const TileProgram &program_;
    const Callees &callees_;
    LaunchPlan plan_;
    std::vector<Buffer> own_;

    static bool is_data(const Expr &e) {
        bool found = false;
        walk(e, [&](const Expr &n) { found |= n.kind() == ExprKind::load || n.kind() == ExprKind::parameter; });
        return found;
    }

    void check_known(const Expr &e, const std::string &what) const {
        if (is_data(e))
            throw UserError("emit.gpu", program_.name + ": " + what + " is data (" + brief(e) + "); expected what the host of " +
                                            program_.target + " knows when it launches kernels, extents and its own loops.");
    }

    HostSteps steps(const TileBody &body) {
        HostSteps all;
        for (const auto &node : body)
            std::visit(Overloaded{
                           [&](const Loop &n) { all.push_back(loop(n)); },
                           [&](const Guard &n) { all.push_back(guard(n)); },
                           [&](const Let &n) {
                               check_known(n.value, "the number '" + n.variable + "' around kernels");
                               plan_.variables[n.variable];
                               all.push_back(HostLet{n.variable, n.value, steps(n.body)});
                           },
                           [&](const Alloc &n) {
                               require(n.buffer.space == Space::workspace, "outside of blocks storage is in the workspace");
                               plan_.buffers.push_back(n.buffer);
                               for (HostStep &step : steps(n.body)) all.push_back(std::move(step));
                           },
                           [&](const Invoke &n) { all.push_back(call(n)); },
                           [](const LeafNode auto &) { throw InternalError("outside of blocks there are only calls and storage"); },
                       },
                       *node);
        return all;
    }

    HostStep loop(const Loop &n) {
        if (n.kind == LoopKind::block) return Launch{kernel({n})};
        if (n.kind != LoopKind::serial)
            throw UserError("emit.gpu", program_.name + ": " + name_of(n.kind) + " loops around kernels are not for " + program_.target +
                                            "; expected serial ones.");
        check_known(n.count, "how often '" + n.variable + "' runs kernels");
        plan_.variables[n.variable] = n.count;
        return HostLoop{n.variable, n.count, steps(n.body)};
    }

    HostStep guard(const Guard &n) {
        if (!is_data(n.condition)) return HostChoice{n.condition, steps(n.then), steps(n.otherwise)};
        const Buffer flags = own("choice ", DType::i32, 2);
        const Expr launched = Expr(0) < variable(launched_variable), no = constant_int(DType::i32, 0);
        TileBody writes;
        for (int64_t i = 0; i < 2; i++)
            writes.push_back(
                tile_node(Compute{flags.name, {Expr(i)}, select(launched, cast(DType::i32, i ? !n.condition : n.condition), no), {}}));
        const size_t decides = kernel({one_thread(flags.name, writes), true});
        return DeviceChoice{decides, flags.name, steps(n.then), steps(n.otherwise)};
    }

    HostStep call(const Invoke &n) {
        for (const auto &[dim, e] : n.extents) check_known(e, "the extent of '" + dim + "' of " + n.program);
        for (const BufferView &view : n.arguments) {
            for (const Expr &e : view.first) check_known(e, "where what " + n.program + " takes of '" + view.buffer + "' begins");
            for (const BufferView::Axis &moved : view.axes)
                check_known(moved.step, "the step of what " + n.program + " takes of '" + view.buffer + "'");
        }
        const std::vector<Parameter> &parameters = callees_.of(program_, n.program).program->parameters;
        if (parameters.empty()) return HostCall{n, {}, ""};
        const Buffer given = own("parameters ", DType::i64, static_cast<int64_t>(parameters.size()));
        TileBody writes;
        for (size_t i = 0; i < parameters.size(); i++) {
            Expr value = n.parameters.at(parameters[i].name);
            if (parameters[i].dtype == DType::f32) value = bitcast(DType::i32, value);
            if (parameters[i].dtype == DType::f64) value = bitcast(DType::i64, value);
            writes.push_back(tile_node(Compute{given.name, {Expr(static_cast<int64_t>(i))}, cast(DType::i64, value), {}}));
        }
        return HostCall{n, kernel({one_thread(given.name, writes)}), given.name};
    }

    size_t kernel(PlannedKernel made) {
        plan_.kernels.push_back(std::move(made));
        return plan_.kernels.size() - 1;
    }

    // No tensor has such a name.
    Buffer own(const std::string &kind, DType type, int64_t count) {
        own_.push_back({kind + std::to_string(own_.size()), type, {Expr(count)}, Space::workspace});
        return own_.back();
    }

    static Loop one_thread(const std::string &name, const TileBody &body) {
        return {name + ".block", Expr(1), LoopKind::block, {tile_node(Loop{name + ".thread", Expr(1), LoopKind::thread, body})}};
    }
};

}  // namespace

LaunchPlan launches_of(const TileProgram &program, const Callees &callees) { return Planner(program, callees).run(); }

}  // namespace tessera::emit_gpu
