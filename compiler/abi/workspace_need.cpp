#include "compiler/abi/workspace_need.h"

#include <algorithm>

#include "compiler/abi/memory_plan.h"
#include "compiler/abi/workspace.h"
#include "schedules/knobs/condition.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class Needs {
public:
    Needs(const TileProgram &program, const std::vector<TileProgram> &invoked, const std::map<std::string, int64_t> &extents)
        : program_(program), invoked_(invoked), extents_(extents) {}

    WorkspaceNeed run() {
        const MemoryPlan plan = plan_memory(program_);
        if (!plan.shares) {
            add(program_.body, {}, false);
            return most_;
        }
        const MemoryLayout layout = layout_of(plan, program_, extents_);
        most_.shared = layout.total;
        for (size_t part = 0; part < plan.parts.size(); part++) {
            WorkspaceNeed held;
            for (const size_t b : plan.live_in(part)) held.shared = std::max(held.shared, layout.begins[b] + aligned(layout.bytes[b]));
            add({plan.parts[part]}, held, false);
        }
        return most_;
    }

private:
    const TileProgram &program_;
    const std::vector<TileProgram> &invoked_;
    const std::map<std::string, int64_t> &extents_;
    WorkspaceNeed most_;

    void reach(const WorkspaceNeed &held) {
        most_.shared = std::max(most_.shared, held.shared);
        most_.worker = std::max(most_.worker, held.worker);
    }

    void add(const TileBody &body, const WorkspaceNeed &held, bool in_task) {
        for (const auto &node : body) {
            WorkspaceNeed inside = held;
            if (const auto *alloc = std::get_if<Alloc>(node.get()); alloc && alloc->buffer.space == Space::workspace)
                (in_task ? inside.worker : inside.shared) += aligned(extent_value(workspace_bytes(alloc->buffer), program_, extents_));
            if (const auto *invoke = std::get_if<Invoke>(node.get())) {
                const WorkspaceNeed callee = need_of(*invoke);
                if (in_task) inside.worker += callee.shared + callee.worker;
                else inside.shared += callee.shared, inside.worker += callee.worker;
            }
            reach(inside);
            const auto *loop = std::get_if<Loop>(node.get());
            for (const TileBody *inner : bodies_of(*node)) add(*inner, inside, in_task || (loop && loop->kind == LoopKind::parallel));
        }
    }

    WorkspaceNeed need_of(const Invoke &invoke) const {
        std::map<std::string, int64_t> extents;
        for (const auto &[dim, e] : invoke.extents) extents[dim] = extent_value(e, program_, extents_);
        const auto callee = std::find_if(invoked_.begin(), invoked_.end(), [&](const TileProgram &p) { return p.name == invoke.program; });
        require(callee != invoked_.end(), "what is invoked is there");
        return workspace_need(*callee, invoked_, extents);
    }
};

}  // namespace

WorkspaceNeed workspace_need(const TileProgram &program, const std::vector<TileProgram> &invoked,
                             const std::map<std::string, int64_t> &extents) {
    return Needs(program, invoked, extents).run();
}

WorkspaceNeed workspace_need(const Kernel &kernel, const std::map<std::string, int64_t> &extents) {
    for (const KernelVariant &variant : kernel.variants) {
        const bool runs = std::all_of(variant.when.begin(), variant.when.end(), [&](const Condition &c) {
            return c.dim.empty() || holds(c, extent_value(extent(c.dim), variant.program, extents));
        });
        if (runs) return workspace_need(variant.program, variant.program.programs, extents);
    }
    throw InternalError("the last variant has no condition");
}

}  // namespace tessera
