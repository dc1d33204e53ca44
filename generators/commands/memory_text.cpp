#include "generators/commands/memory_text.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "compiler/abi/memory_plan.h"
#include "compiler/abi/workspace.h"
#include "compiler/abi/workspace_need.h"
#include "support/text/error.h"

namespace tessera {

namespace {

struct Calls {
    std::vector<std::string> made;
    std::vector<const Invoke *> invokes;
};

// What a part stores that it does not allocate itself, and what it calls.
Calls work_of(const TileNode &part) {
    Calls work;
    std::set<std::string> own, seen;
    auto say = [&](const std::string &what) {
        if (!own.count(what) && seen.insert(what).second) work.made.push_back(what);
    };
    walk({std::make_shared<const TileNode>(part)}, [&](const TileNode &node) {
        if (auto *alloc = std::get_if<Alloc>(&node)) own.insert(alloc->buffer.name);
        if (auto store = store_of(node)) say(store->buffer);
        if (auto *move = std::get_if<Move>(&node)) say(move->to.buffer);
        if (auto *invoke = std::get_if<Invoke>(&node)) say("call of " + invoke->program), work.invokes.push_back(invoke);
    });
    return work;
}

// What a part holds beside the program's buffers: in one place, and in each worker's.
struct Scratch {
    int64_t shared = 0, worker = 0;
};

class Memory {
public:
    Memory(const TileProgram &program, const TileProgram &top, const Extents &extents)
        : program_(program), top_(top), extents_(extents), plan_(plan_memory(program)), layout_(layout_of(plan_, program, extents)) {}

    std::string text() const {
        std::string text =
            fmt::format("{}: {} bytes of workspace", program_.name, workspace_need(program_, top_.programs, extents_).shared);
        int64_t apart = 0;
        for (int64_t bytes : layout_.bytes) apart += bytes;
        if (plan_.shares) text += fmt::format(" for buffers of {} bytes; {} at most live at a time", apart, layout_.largest_live);
        text += "\n" + buffers() + parts();
        return text;
    }

private:
    const TileProgram &program_, &top_;
    const Extents extents_;
    const MemoryPlan plan_;
    const MemoryLayout layout_;

    Scratch scratch(size_t part) const {
        Scratch all;
        add(plan_.parts[part], false, all);
        return all;
    }
    void add(const std::shared_ptr<const TileNode> &node, bool in_task, Scratch &all) const {
        if (auto *alloc = std::get_if<Alloc>(node.get()); alloc && alloc->buffer.space == Space::workspace)
            (in_task ? all.worker : all.shared) += extent_value(workspace_bytes(alloc->buffer), program_, extents_);
        if (auto *invoke = std::get_if<Invoke>(node.get())) {
            Extents extents;
            for (const auto &[dim, e] : invoke->extents) extents[dim] = extent_value(e, program_, extents_);
            const auto callee =
                std::find_if(top_.programs.begin(), top_.programs.end(), [&](const TileProgram &p) { return p.name == invoke->program; });
            require(callee != top_.programs.end(), "what is invoked is there");
            int64_t &most = in_task ? all.worker : all.shared;
            most = std::max(most, workspace_need(*callee, top_.programs, extents).shared);
        }
        const auto *loop = std::get_if<Loop>(node.get());
        for (const TileBody *body : bodies_of(*node))
            for (const auto &inner : *body) add(inner, in_task || (loop && loop->kind == LoopKind::parallel), all);
    }

    std::string buffers() const {
        std::string text = plan_.buffers.empty() ? "" : "  begins at       bytes  parts    buffer\n";
        for (size_t b = 0; b < plan_.buffers.size(); b++) {
            const PlannedBuffer &planned = plan_.buffers[b];
            std::string shape;
            for (const Expr &e : planned.buffer.extents) shape += (shape.empty() ? "" : ", ") + to_string(e);
            text +=
                fmt::format("{:>11} {:>11}  {:<7}  {}[{}]: {}\n", layout_.begins[b], layout_.bytes[b],
                            fmt::format("{}..{}", planned.first, planned.last), planned.buffer.name, shape, name_of(planned.buffer.dtype));
        }
        return text;
    }

    std::string parts() const {
        std::string text = "  part   live bytes  makes\n";
        for (size_t part = 0; part < plan_.parts.size(); part++) {
            int64_t live = 0;
            for (size_t b : plan_.live_in(part)) live += layout_.bytes[b];
            const Scratch own = scratch(part);
            text += fmt::format("{:>6} {:>12}  {}", part, live + own.shared, join(work_of(*plan_.parts[part]).made));
            if (own.worker) text += fmt::format(" (and {} bytes for each worker)", own.worker);
            text += live && live == layout_.largest_live ? "  <- peak\n" : "\n";
        }
        return text;
    }
};

// At the extents of the first call of each, from the program inwards.
std::string text_of(const TileProgram &program, const Extents &extents) {
    std::map<std::string, Extents> called;
    auto note = [&](const TileProgram &caller, const Extents &at) {
        walk(caller.body, [&](const TileNode &node) {
            const auto *invoke = std::get_if<Invoke>(&node);
            if (!invoke || called.count(invoke->program)) return;
            for (const auto &[dim, e] : invoke->extents) called[invoke->program][dim] = extent_value(e, caller, at);
        });
    };
    std::string text = Memory(program, program, extents).text();
    note(program, extents);
    for (auto callee = program.programs.rbegin(); callee != program.programs.rend(); ++callee) {
        text += "\ncallee " + Memory(*callee, program, called[callee->name]).text();
        note(*callee, called[callee->name]);
    }
    return text;
}

}  // namespace

std::string memory_text(const PreparedKernel &prepared, const Extents &extents) {
    std::string at;
    for (const Dim &d : prepared.compiled.kernel.general().dims) {
        if (d.kind == DimKind::derived) continue;
        at += fmt::format(" {}={}", d.name, extent_value(extent(d.name), prepared.compiled.kernel.general(), extents));
    }
    std::string text = "at" + at + "\n";
    for (const KernelVariant &variant : prepared.compiled.kernel.variants) {
        if (prepared.compiled.kernel.variants.size() > 1) text += "# " + condition_text(variant.when) + "\n";
        text += text_of(variant.program, extents);
    }
    return text;
}

}  // namespace tessera
