#include "compiler/emit/c/statements.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "compiler/abi/memory_plan.h"
#include "compiler/abi/workspace.h"
#include "compiler/emit/c/storage.h"
#include "compiler/emit/c/writer.h"
#include "compiler/emit/emit_library.h"
#include "compiler/emit/spec.h"
#include "compiler/tile/fragments.h"
#include "compiler/tile/kinds.h"
#include "runtime/abi/kernel.h"
#include "support/containers/alternatives.h"
#include "support/containers/contains.h"
#include "support/text/error.h"

namespace tessera::emit_c {

namespace {

constexpr int64_t max_statements = 1 << 14;  // of one run of straight-line code
constexpr int64_t max_named = 256;           // variables for one buffer
constexpr size_t comment_width = 360;

using Known = std::map<std::string, Expr>;  // unrolled variables

Expr at(const Expr &e, const Known &known) { return known.empty() ? e : substitute(e, known); }

// Straight-line code that is being gathered.
struct Pending {
    std::unique_ptr<Run> run;
    int64_t statements = 0;
    std::set<std::pair<std::string, size_t>> said;  // comments, which may be cut, and what is stored
};

// The loops written out around a statement.
struct Around {
    Known known;
    std::optional<Lanes> lanes;
    std::string text;
};

class Program {
public:
    // The programs that may be invoked, by name, and what their functions' names begin with.
    struct Callee {
        const TileProgram *program;
        std::string stem;
    };
    using Callees = std::map<std::string, Callee>;

    Program(const TileProgram &p, const std::string &stem, Operations &operations, const Callees &callees)
        : program_(p), stem_(stem), operations_(operations), callees_(callees), writer_(p, stem, operations), memory_(plan_memory(p)) {
        walk(p.body, [&](const TileNode &node) {
            auto *step = std::get_if<Fragment>(&node);
            if (step && !find_family(step->family)->fragments) by_registers_ = false;
        });
    }

    std::string text() {
        const std::string body = this->body("");
        const std::string before = constants() + layout();
        return before + plan() + tasks_ + parts_ + body;
    }

    // As one that is invoked. After inlining, the names of the callee and of its caller for one buffer would be taken for two buffers.
    std::string text_of_callee() {
        is_callee_ = true;
        const std::string body = this->body("__attribute__((noinline)) ");
        const std::string before = constants() + layout();
        return before + tasks_ + parts_ + body;
    }

private:
    const TileProgram &program_;
    const std::string stem_;
    Operations &operations_;
    const Callees &callees_;
    bool is_callee_ = false;
    Writer writer_;
    bool in_streaming_ = false;                // inside an outermost loop that streams
    bool by_registers_ = true;                 // all families of fragments say how they are computed in registers
    bool has_registers_ = false;               // inside of what they are set up for
    std::vector<std::string> fragments_ = {};  // those that are alive; the number of each is its register
    const MemoryPlan memory_;
    struct Planned {
        std::string begin, end;  // fields
    };
    std::vector<Planned> planned_;  // where buffers share: in the plan's order
    std::string tasks_, parts_;
    int task_count_ = 0;
    struct Allocated {
        std::string field;
        bool of_worker;
        Expr bytes;
    };
    std::vector<std::pair<const Invoke *, bool>> invoked_;  // and whether in a task
    std::map<const Alloc *, std::string> fields_;
    std::vector<Allocated> allocated_;
    Identifiers field_names_;

    std::string body(const std::string &attribute) {
        if (memory_.shares) write_parts();
        writer_.begin();
        if (memory_.shares) call_parts();
        else emit(program_.body, {}, true);
        return writer_.finish("static " + attribute + "TESS_MACHINE int32_t " + stem_ + "_body(void *call, int64_t *frame)").text;
    }

    std::string part_name(size_t part) const { return fmt::format("{}_part{}", stem_, part); }

    // Where buffers share bytes, the parts that touch them are functions that are not inlined: in one function, two of these buffers' names
    // would be taken for two memories.
    void write_parts() {
        for (const PlannedBuffer &b : memory_.buffers)
            planned_.push_back({field_names_.take(b.buffer.name), field_names_.take(b.buffer.name + "_end")});
        for (size_t part = 0; part < memory_.parts.size(); part++) {
            if (!touches_memory(*memory_.parts[part])) continue;
            writer_.begin();
            {
                const Writer::Block block(writer_);
                declare_planned(buffers_used({memory_.parts[part]}));
                emit(TileBody{memory_.parts[part]}, {}, true);
            }
            parts_ +=
                writer_.finish("static __attribute__((noinline)) TESS_MACHINE int32_t " + part_name(part) + "(void *call, int64_t *frame)")
                    .text;
        }
    }

    void call_parts() {
        std::set<std::string> used;
        for (const auto &part : memory_.parts)
            if (!touches_memory(*part)) used.merge(buffers_used({part}));
        declare_planned(used);
        const std::string status = writer_.take("part_status");
        writer_.use_call();
        writer_.line(fmt::format("int32_t {} = 0;", status));
        for (size_t part = 0; part < memory_.parts.size(); part++) {
            if (!touches_memory(*memory_.parts[part])) {
                emit(TileBody{memory_.parts[part]}, {}, false);
                continue;
            }
            writer_.line(fmt::format("{} = {}(call, frame);", status, part_name(part)));
            writer_.line(fmt::format("if ({0}) return {0};", status));
        }
    }

    void declare_planned(const std::set<std::string> &used) {
        for (size_t b = 0; b < memory_.buffers.size(); b++)
            if (used.count(memory_.buffers[b].buffer.name)) declare_in_workspace(memory_.buffers[b].buffer, false, planned_[b].begin);
    }

    // Where each begins: behind those with which it may not share.
    std::string planned_layout(std::string &fields) {
        std::string lines;
        for (size_t b = 0; b < memory_.buffers.size(); b++) {
            const auto &[begin, end] = planned_[b];
            auto at_least = [&](const std::string &field, const std::string &least) {
                lines += fmt::format("    if (layout.{1} > layout.{0}) layout.{0} = layout.{1};\n", field, least);
            };
            for (size_t other : memory_.buffers[b].behind) at_least(begin, planned_[other].end);
            lines += fmt::format("    layout.{} = layout.{} + {}({});\n", end, begin, operations_.round_up(),
                                 writer_.scalar(workspace_bytes(memory_.buffers[b].buffer)));
            at_least("shared_bytes", end);
            fields += fmt::format("    int64_t {}, {};\n", begin, end);
        }
        return lines;
    }

    bool has_layout() const { return is_callee_ || memory_.shares || !allocated_.empty() || !invoked_.empty(); }

    std::string constants() {
        std::string text;
        for (const Tensor &t : program_.constants) text += constant_table(t);
        return text;
    }

    std::string constant_table(const Tensor &t) {
        if (t.values.empty())
            throw UserError("emit.constant", program_.name + ": the constant '" + t.name + "' has no values; pass it as an input.");
        std::string values;
        for (size_t i = 0; i < t.values.size(); i++) values += (i == 0 ? "" : i % 8 ? ", " : ",\n    ") + literal(t.values[i]);
        return fmt::format("static const {} {}[] = {{\n    {}}};\n\n", operations_.stored_type(t.dtype), constant_name(stem_, t.name),
                           values);
    }

    // Where each buffer begins, in the order of the program.
    std::string layout() {
        if (!has_layout()) return "";
        std::string fields, lines;
        writer_.begin();
        if (memory_.shares) lines += planned_layout(fields);
        for (const Allocated &a : allocated_) {
            const char *sum = a.of_worker ? "worker" : "shared";
            lines += fmt::format("    layout.{0} = layout.{1}_bytes, layout.{1}_bytes += {2}({3});\n", a.field, sum, operations_.round_up(),
                                 writer_.scalar(a.bytes));
            fields += fmt::format("    int64_t {};\n", a.field);
        }
        if (!invoked_.empty())
            fields += "    int64_t callees, worker_callees; /* of the programs that are invoked, in turn */\n", lines += rooms();
        const std::string bound = writer_.bound();
        std::string needed = writer_.finish("").text;  // the lines that sizes need come first
        needed = needed.substr(needed.find('\n') + 1);
        needed.resize(needed.rfind("    return 0;"));
        if (bound.empty()) needed = "    (void)frame;\n";
        return fmt::format(
            "/* Where each buffer begins in the workspace that all share, or in that of each worker. */\n"
            "typedef struct {0}_layout {{\n    int64_t shared_bytes, worker_bytes;\n{1}}} {0}_layout;\n\n"
            "static inline {0}_layout {0}_layout_of(const int64_t *frame) {{\n{2}    {0}_layout layout = {{0}};\n{3}    return "
            "layout;\n}}\n\n",
            stem_, fields, needed, lines);
    }

    // What the invoked programs need: the most of any, since one runs at a time.
    std::string rooms() {
        std::string lines = "    layout.callees = layout.shared_bytes, layout.worker_callees = layout.worker_bytes;\n";
        for (const auto &[invoke, in_task] : invoked_) {
            const Callee &callee = callees_.at(invoke->program);
            lines += fmt::format("    {{\n        int64_t callee[{}];\n", tess_frame_size(spec_of(*callee.program).data()));
            int64_t slot = 0;
            for (const Dim &d : spec_dims(*callee.program))
                lines += fmt::format("        callee[{}] = {};\n", slot++, writer_.scalar(invoke->extents.at(d.name)));
            lines += fmt::format("        const {0}_layout room = {0}_layout_of(callee);\n", callee.stem);
            const std::string shared = in_task ? "0" : "room.shared_bytes",
                              worker = in_task ? "room.shared_bytes + room.worker_bytes" : "room.worker_bytes";
            for (const auto &[sum, bytes] : {std::pair{"shared", shared}, {"worker", worker}})
                lines +=
                    fmt::format("        if (layout.{2}callees + {1} > layout.{0}_bytes) layout.{0}_bytes = layout.{2}callees + {1};\n",
                                sum, bytes, sum[0] == 'w' ? "worker_" : "");
            lines += "    }\n";
        }
        return lines;
    }

    std::string plan() {
        writer_.begin();
        const int64_t *spec = writer_.spec().data();
        for (const Dim &d : spec_dims(program_)) {
            if (d.kind != DimKind::derived) continue;
            int argument = -1, axis = -1;
            for (size_t a = 0; a < program_.arguments.size() && argument < 0; a++)
                for (size_t x = 0; x < carried_dims(program_.arguments[a]).size() && argument < 0; x++)
                    if (carried_dims(program_.arguments[a])[x] == d.name) argument = static_cast<int>(a), axis = static_cast<int>(x);
            const std::string size = writer_.scalar(max(d.size, Expr(0)));
            writer_.line(fmt::format("frame[{}] = {}, frame[{}] = {};", tess_frame_dimension(spec), axis, tess_frame_expected(spec), size));
            writer_.line(
                fmt::format("if ({} != {}) return tess_abi2_status(TESS_EXTENT_FIXED, {});", writer_.extent(d.name), size, argument));
        }
        if (has_layout()) writer_.line(fmt::format("const {0}_layout layout = {0}_layout_of(frame);", stem_));
        writer_.line(fmt::format("frame[{}] = {};", tess_frame_shared_bytes(spec), has_layout() ? "layout.shared_bytes" : "0"));
        writer_.line(fmt::format("frame[{}] = {};", tess_frame_worker_bytes(spec), has_layout() ? "layout.worker_bytes" : "0"));
        return writer_.finish("static int32_t " + stem_ + "_plan(int64_t *frame)").text;
    }

    void flush(Pending &pending) {
        if (pending.run) writer_.write(*pending.run);
        pending = {};
    }

    // `whole`: nothing follows in the block of C that is open, so it may be declared in.
    void emit(const TileBody &body, const Known &known, bool whole) {
        Pending pending;
        emit(body, Around{known, {}, ""}, whole, pending);
        flush(pending);
    }

    void emit(const TileBody &body, const Around &around, bool whole, Pending &pending) {
        for (size_t i = 0; i < body.size(); i++) emit(*body[i], around, whole && i + 1 == body.size(), pending);
    }

    // The registers of fragments are set up around as much as no call is in.
    void emit(const TileNode &node, const Around &around, bool whole, Pending &pending) {
        const TileBody alone = {std::make_shared<const TileNode>(node)};
        if (has_registers_ || !by_registers_ || !has_fragments(alone) || has_calls(alone)) return emit_node(node, around, whole, pending);
        flush(pending);
        walk(alone, [&](const TileNode &n) {
            if (auto *step = std::get_if<Fragment>(&n)) operations_.fragment_step(*find_family(step->family));
        });
        writer_.line("TESS_FRAGMENTS_BEGIN;");
        has_registers_ = true;
        emit_node(node, around, false, pending);
        flush(pending);
        has_registers_ = false;
        writer_.line("TESS_FRAGMENTS_END;");
    }

    void emit_node(const TileNode &node, const Around &around, bool whole, Pending &pending) {
        std::visit(Overloaded{
                       [&](const StoreNode auto &n) { store(n.buffer, n.index, n.value, n.guard, around, pending); },
                       [&](const Prefetch &n) { prefetch(n, around, pending); },
                       [&](const Loop &n) { loop(n, around, pending); },
                       [&](const Guard &n) { flush(pending), guard(n, around.known); },
                       [&](const Let &n) { flush(pending), declared([&] { let(n, around.known); }, whole); },
                       [&](const Alloc &n) { flush(pending), declared([&] { alloc(n, around.known); }, whole); },
                       [&](const WaitNode auto &) { throw UserError("emit.cpu", program_.name + ": barriers are not for a CPU target."); },
                       [&](const Invoke &n) { flush(pending), invoke(n, around.known); },
                       [&](const FragmentNode auto &n) { flush(pending), fragment(n, around.known); },
                   },
                   node);
    }

    // What a declaration is followed by, in a block of its own unless it is the last of one.
    template <typename Emit>
    void declared(const Emit &emit_all, bool whole) {
        if (whole) return emit_all();
        writer_.open("{");
        {
            const Writer::Block block(writer_);
            emit_all();
        }
        writer_.close();
    }

    // "3, y_sum"
    std::string fragment_text(const std::string &buffer) {
        const auto number = std::find(fragments_.begin(), fragments_.end(), buffer) - fragments_.begin();
        return fmt::format("{}, {}", number, writer_.pointer(buffer));
    }

    void fragment(const Move &n, const Known &known) {
        if (!by_registers_) return emit(expand(n, writer_.dtype(n.to.buffer)), known, false);
        const bool is_load = contains(fragments_, n.to.buffer);
        if (!n.from) return writer_.line(fmt::format("TESS_FRAGMENT_ZERO({});", fragment_text(n.to.buffer)));
        const BufferView &memory = is_load ? *n.from : n.to;
        const BufferView::Axis &rows = memory.axes[0];
        const std::string stride =
            fmt::format("({}) * ({})", writer_.scalar(at(rows.step, known)), writer_.distance(memory.buffer, rows.of));
        writer_.line(fmt::format("TESS_FRAGMENT_{}({}, {}, {});", is_load ? "LOAD" : "STORE",
                                 fragment_text(is_load ? n.to.buffer : n.from->buffer), address(memory.buffer, memory.first, known),
                                 stride));
    }

    void fragment(const Fragment &n, const Known &known) {
        if (!by_registers_) return emit(expand(n), known, false);
        writer_.line(fmt::format("{}({}, {}, {});", operations_.fragment_step(*find_family(n.family)), fragment_text(n.accumulator),
                                 fragment_text(n.a), fragment_text(n.b)));
    }

    void let(const Let &n, const Known &known) {
        const std::string value = writer_.scalar(at(n.value, known)), type = operations_.type({n.value.type(), 0});
        writer_.line(fmt::format("const {} {} = {};", type, writer_.declare_variable(n.variable, type), value));
        emit(n.body, known, true);
    }

    // Before straight-line code, once for each statement of the program.
    void say(const std::string &what, const Around &around) {
        const std::string text = (around.text.empty() ? "" : around.text + ": ") + what;
        std::string cut = text.substr(0, comment_width);
        for (size_t from = 0; (from = cut.find("*/", from)) != std::string::npos;) cut.replace(from, 2, "* /");
        writer_.line("/* " + cut + (cut.size() < text.size() ? " … */" : " */"));
    }

    void store(const std::string &buffer, const std::vector<Expr> &index, const Expr &value, const Expr &guard, const Around &around,
               Pending &pending) {
        if (++pending.statements > max_statements)
            throw UserError("emit.unrolled", fmt::format("{}: it has more than {} unrolled statements in a row around '{}'; expected "
                                                         "fewer, so that a C compiler can be given them. "
                                                         "Choose a smaller 'micro' tile.",
                                                         program_.name, max_statements, buffer));
        if (!pending.run) pending.run = std::make_unique<Run>(writer_.run());
        std::string indices;
        auto text = [](const Expr &e) { return brief(e, comment_width); };
        for (const Expr &e : index) indices += (indices.empty() ? "" : ", ") + text(e);
        const std::string what =
            fmt::format("{}[{}] = {}", buffer, indices, text(value)) + (guard.defined() ? " where " + text(guard) : "");
        if (pending.said.emplace(what, value->hash).second) say(what, around);
        std::vector<Expr> where;
        for (const Expr &e : index) where.push_back(at(e, around.known));
        pending.run->store(buffer, where, at(value, around.known), guard.defined() ? at(guard, around.known) : Expr(), around.lanes);
    }

    void prefetch(const Prefetch &n, const Around &around, Pending &pending) {
        if (!pending.run) pending.run = std::make_unique<Run>(writer_.run());
        std::vector<Expr> where;
        for (const Expr &e : n.index) where.push_back(at(e, around.known));
        pending.run->prefetch(n.buffer, where);
    }

    // Written out, in vectors, or as a loop of C.
    void loop(const Loop &n, const Around &around, Pending &pending) {
        if (n.kind == LoopKind::streamed) return flush(pending), loop(n, around.known);
        Around inner = around;
        inner.text += fmt::format("{}{} {} < {}", around.text.empty() ? "" : ", ", name_of(n.kind), n.variable, to_string(n.count));
        if (auto count = written_out(n)) {
            for (int64_t i = 0; i < *count; i++) {
                inner.known[n.variable] = Expr(i);
                emit(n.body, inner, false, pending);
            }
        } else if (in_vectors(n)) {
            inner.lanes = Lanes{n.variable, static_cast<int>(n.count->value.integer)};
            emit(n.body, inner, false, pending);
        } else {
            flush(pending);
            loop(n, around.known);
        }
    }

    std::string address(const std::string &buffer, const std::vector<Expr> &index, const Known &known) {
        std::string text = writer_.pointer(buffer);
        for (size_t axis = 0; axis < index.size(); axis++)
            if (const Expr position = at(index[axis], known); !position.is_constant(0))
                text += fmt::format(" + ({}) * ({})", writer_.scalar(position), writer_.distance(buffer, axis));
        return text;
    }

    // One row, past the caches.
    void stream(const Loop &n, const Known &known) {
        const Copy &copy = *only<Copy>(n.body);
        Known first = known;
        first[n.variable] = Expr(0);
        writer_.line(fmt::format("tess_abi2_stream({}, {}, (int64_t)({}) * {}, {});", address(copy.buffer, copy.index, first),
                                 address(copy.value->name, index_of(copy.value), first), writer_.scalar(at(n.count, known)),
                                 size_of(copy.value.type()), stream_vector_bytes(program_)));
    }

    // What an outermost loop has streamed is there when it ends.
    void loop(const Loop &n, const Known &known) {
        const bool ends_stream = !in_streaming_ && streams(TileNode{n});
        in_streaming_ |= ends_stream;
        plain_loop(n, known);
        if (!ends_stream) return;
        in_streaming_ = false;
        writer_.line("tess_abi2_end_stream();");
    }

    void plain_loop(const Loop &n, const Known &known) {
        if (!traits_of(n.kind).on_cpu)
            throw UserError("emit.cpu", program_.name + ": " + name_of(n.kind) + " loops are not for a CPU target.");
        if (n.kind == LoopKind::streamed) return stream(n, known);
        const std::string count = writer_.scalar(at(n.count, known));
        if (n.kind == LoopKind::parallel) return task(n, known, count);
        const Writer::Block block(writer_);
        const std::string v = writer_.declare_variable(n.variable, "int64_t");
        if (n.kind != LoopKind::serial) writer_.line(fmt::format("/* {} */", name_of(n.kind)));
        writer_.open(fmt::format("for (int64_t {0} = 0; {0} < {1}; {0}++) {{", v, count));
        emit(n.body, known, true);
        writer_.close();
    }

    void guard(const Guard &n, const Known &known) {
        writer_.open("if (" + writer_.scalar(at(n.condition, known)) + ") {");
        {
            const Writer::Block block(writer_);
            emit(n.then, known, true);
        }
        if (!n.otherwise.empty()) {
            writer_.close("} else {"), writer_.indent();
            const Writer::Block block(writer_);
            emit(n.otherwise, known, true);
        }
        writer_.close();
    }

    // A call with a frame of its own, on the stack. In a task all memory that the callee needs is the worker's, and its loops run in order.
    void invoke(const Invoke &n, const Known &known) {
        const Callee &callee = callees_.at(n.program);
        const std::vector<int64_t> own = spec_of(*callee.program);
        const bool in_task = writer_.in_task();
        invoked_.emplace_back(&n, in_task);
        writer_.open("{");
        {
            const Writer::Block block(writer_);
            const std::string frame = writer_.take("callee_frame"), room = writer_.take("room"), status = writer_.take("status");
            auto write = [&](int64_t slot, const std::string &value) { writer_.line(fmt::format("{}[{}] = {};", frame, slot, value)); };
            auto scalar = [&](const Expr &e) { return writer_.scalar(at(e, known)); };
            writer_.line(fmt::format("int64_t {}[{}];", frame, tess_frame_size(own.data())));
            int64_t slot = 0;
            for (const Dim &d : spec_dims(*callee.program)) write(slot++, scalar(n.extents.at(d.name)));
            for (size_t i = 0; i < n.arguments.size(); i++)
                pass(n.arguments[i], callee.program->arguments[i], static_cast<int64_t>(i), own, known, write);
            for (size_t p = 0; p < callee.program->parameters.size(); p++) {
                const Parameter &q = callee.program->parameters[p];
                std::string word = scalar(n.parameters.at(q.name));
                if (q.dtype == DType::f32) word = fmt::format("{}({})", operations_.bitcast(DType::i32, {DType::f32, 0}), word);
                if (q.dtype == DType::f64) word = fmt::format("{}({})", operations_.bitcast(DType::i64, {DType::f64, 0}), word);
                write(tess_frame_parameter(own.data(), static_cast<int64_t>(p)), fmt::format("(int64_t)({})", word));
            }
            writer_.use_call(), writer_.use_workspace(in_task);
            if (in_task) {
                writer_.line(fmt::format("const {0}_layout {1} = {0}_layout_of({2});", callee.stem, room, frame));
                write(tess_frame_workspace(own.data()), "(int64_t)(worker_memory + (uintptr_t)layout.worker_callees)");
                write(tess_frame_shared_bytes(own.data()), room + ".shared_bytes");
                write(tess_frame_worker_bytes(own.data()), "0");
            } else {
                write(tess_frame_workspace(own.data()), "(int64_t)(shared_memory + (uintptr_t)layout.callees)");
                write(tess_frame_shared_bytes(own.data()), "layout.shared_bytes - layout.callees + layout.worker_callees");
                write(tess_frame_worker_bytes(own.data()), "layout.worker_bytes");
            }
            write(tess_frame_workers(own.data()), fmt::format("frame[{}]", tess_frame_workers(writer_.spec().data())));
            writer_.line(fmt::format("const int32_t {} = {}_body(call, {});", status, callee.stem, frame));
            writer_.line(fmt::format("if ({0}) return {0};", status));
        }
        writer_.close();
    }

    // Where an argument begins, and its strides.
    void pass(const BufferView &view, const Argument &argument, int64_t number, const std::vector<int64_t> &spec, const Known &known,
              const std::function<void(int64_t, const std::string &)> &write) {
        write(tess_frame_data(spec.data(), number), fmt::format("(int64_t)(uintptr_t)({})", address(view.buffer, view.first, known)));
        for (size_t axis = 0; axis < argument.tensor.dims.size() && !argument.packed; axis++) {
            const std::string whole = view.is_whole() ? writer_.distance(view.buffer, axis)
                                      : view.axes[axis].step.is_constant(0)
                                          ? "0"
                                          : fmt::format("({}) * ({})", writer_.scalar(at(view.axes[axis].step, known)),
                                                        writer_.distance(view.buffer, view.axes[axis].of));
            write(tess_frame_stride(spec.data(), number, static_cast<int64_t>(axis)), whole);
        }
    }

    void alloc(const Alloc &n, const Known &known) {
        Buffer b = n.buffer;
        for (Expr &e : b.extents) e = at(e, known);
        const std::string element = operations_.stored_type(b.dtype);
        if (b.space == Space::fragment && by_registers_) {
            int64_t count = 1;
            for (const Expr &e : b.extents) count *= e->value.integer;
            writer_.line(fmt::format("TESS_FRAGMENT({}, {}, {});", element, writer_.declare_pointer(b), count));
            fragments_.push_back(b.name);
            emit(n.body, known, true);
            fragments_.pop_back();
            return;
        }
        if (traits_of(b.space).of_thread) {
            int64_t count = 1;
            for (const Expr &e : b.extents) {
                require(e.is_constant(), "stack storage has constant extents");
                count *= e->value.integer;
            }
            const int lanes = named_lanes(b, n.body, known).value_or(-1);
            if (lanes >= 0 && count / std::max(1, lanes) <= max_named) named(b, lanes);
            else
                writer_.line(fmt::format("{} {}[{}] __attribute__((aligned(64)));", element, writer_.declare_pointer(b),
                                         std::max<int64_t>(1, count)));
        } else if (b.space == Space::workspace) {
            const bool of_worker = writer_.in_task();
            if (!fields_.count(&n)) {
                fields_[&n] = field_names_.take(b.name);
                allocated_.push_back({fields_[&n], of_worker, workspace_bytes(b)});
            }
            declare_in_workspace(b, of_worker, fields_[&n]);
        } else {
            throw UserError("emit.cpu", program_.name + ": " + name_of(b.space) + " memory is not for a CPU target.");
        }
        emit(n.body, known, true);
    }

    void declare_in_workspace(const Buffer &b, bool of_worker, const std::string &field) {
        writer_.use_workspace(of_worker);
        writer_.line(fmt::format("{0} *const restrict {1} = ({0} *)({2}_memory + (uintptr_t)layout.{3});", operations_.stored_type(b.dtype),
                                 writer_.declare_pointer(b), of_worker ? "worker" : "shared", field));
    }

    // One variable for each vector or element, numbered by its indices: y_acc_2_1.
    void named(const Buffer &b, int lanes) {
        std::vector<int64_t> extents;
        int64_t slots = 1;
        for (const Expr &e : b.extents) extents.push_back(e->value.integer), slots *= e->value.integer;
        slots /= std::max(1, lanes);
        const bool by_axis = !extents.empty() && (lanes == 0 || extents.back() % lanes == 0);
        if (by_axis && lanes) extents.back() /= lanes;
        const int64_t width = std::max<int64_t>(1, by_axis ? std::min<int64_t>(8, extents.back()) : 8);
        std::vector<std::string> names;
        std::string row;
        for (int64_t s = 0; s < slots; s++) {
            std::string suffix = by_axis ? "" : "_" + std::to_string(s);
            int64_t rest = s;
            if (by_axis)
                for (size_t i = extents.size(); i-- > 0; rest /= extents[i])
                    if (extents[i] > 1) suffix = "_" + std::to_string(rest % extents[i]) + suffix;
            names.push_back(writer_.take(b.name + suffix));
            row += (row.empty() ? operations_.type({b.dtype, lanes}) + " " : ", ") + names.back() + (lanes ? " = {0}" : " = 0");
            if (s + 1 == slots || (s + 1) % width == 0) writer_.line(row + ";"), row.clear();
        }
        writer_.declare_named(b, lanes, std::move(names));
    }

    // A parallel loop: its body is a function that the runtime calls for each index, with what it uses from here.
    void task(const Loop &n, const Known &known, const std::string &count) {
        const std::string number = std::to_string(task_count_++), name = stem_ + "_task" + number;
        writer_.begin_task();
        const bool streaming = std::exchange(in_streaming_, false);
        {
            const Writer::Block block(writer_);
            writer_.line(fmt::format("const int64_t {} = index;", writer_.declare_variable(n.variable, "int64_t")));
            emit(n.body, known, true);
        }
        in_streaming_ = streaming;
        const Writer::Finished task =
            writer_.finish(fmt::format("static TESS_MACHINE int32_t {}(void *call, int32_t index, uint8_t *closure)", name), name);
        std::string fields, values;
        for (const auto &[id, type] : task.captured)
            fields += fmt::format("    {}{}{};\n", type, type.back() == '*' ? "" : " ", id), values += ", " + id;
        tasks_ += fmt::format("typedef struct {0}_closure {{\n    int64_t *frame;\n{1}}} {0}_closure;\n\n/* parallel {2} < {3} */\n{4}",
                              name, fields, n.variable, to_string(n.count), task.text);
        writer_.use_call();
        const std::string closure = writer_.take("task" + number + "_closure"), status = writer_.take("task" + number + "_status");
        writer_.line(fmt::format("{}_closure {} = {{frame{}}};", name, closure, values));
        writer_.line(fmt::format("const int32_t {} = tess_abi2_do_par_for(call, {}, 0, (int32_t)({}), (uint8_t *)&{});", status, name,
                                 count, closure));
        writer_.line(fmt::format("if ({0}) return {0};", status));
    }
};

}  // namespace

std::string functions_of(const TileProgram &program, const std::string &stem, Operations &operations) {
    Program::Callees callees;
    std::string text;
    for (const TileProgram &p : program.programs) {  // each after those that it invokes itself
        const std::string own = stem + "_callee" + std::to_string(callees.size());
        text += Program(p, own, operations, callees).text_of_callee();
        callees.emplace(p.name, Program::Callee{&p, own});
    }
    return text + Program(program, stem, operations, callees).text();
}

}  // namespace tessera::emit_c
