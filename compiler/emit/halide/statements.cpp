#include "compiler/emit/halide/statements.h"

#include <algorithm>
#include <set>

#include "compiler/abi/workspace.h"
#include "compiler/emit/emit_library.h"
#include "compiler/emit/halide/sharing.h"
#include "compiler/emit/halide/store_run.h"
#include "compiler/emit/halide/vector_loops.h"
#include "compiler/emit/spec.h"
#include "compiler/rewrite/prepack.h"
#include "compiler/tile/arguments.h"
#include "compiler/tile/fragments.h"
#include "compiler/tile/kinds.h"
#include "runtime/abi/kernel.h"
#include "support/text/error.h"

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

static constexpr int alignment = TESS_WORKSPACE_ALIGNMENT;

static HExpr load_word(const std::string &array, H::Type type, const HExpr &index) {
    return Load::make(type, array, index, H::Buffer<>(), Halide::Parameter(), const_true(), ModulusRemainder());
}

HExpr frame_word(int64_t index) { return load_word("frame", H::Int(64), make_const(H::Int(32), index)); }

static HExpr rounded(const HExpr &bytes) {
    return (bytes + make_const(H::Int(64), alignment - 1)) / make_const(H::Int(64), alignment) * make_const(H::Int(64), alignment);
}

// Where a planned buffer begins in the workspace.
static std::string begin_name(const Buffer &buffer) { return "begin." + buffer.name; }

static HExpr pointer(const HExpr &word) { return H::reinterpret(H::Handle(), Cast::make(H::UInt(64), word)); }

// Halide gives what it shares a name of a letter and a number, such as t2, and does not look whether we have one of that name.
static void keep_from_halide(const std::string &name) {
    constexpr size_t max_digits = 6;  // Halide never counts further
    const bool is_like = name.size() >= 2 && name.size() <= 1 + max_digits &&
                         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_like) return;
    const int number = std::stoi(name.substr(1));
    while (std::stoi(Halide::Internal::unique_name(name[0]).substr(1)) < number) {}
}

static void keep_names_from_halide(const TileProgram &program) {
    for (const Argument &a : program.arguments) keep_from_halide(a.tensor.name);
    for (const Tensor &t : program.constants) keep_from_halide(t.name);
    walk(program.body, [](const TileNode &node) {
        if (auto *loop = std::get_if<Loop>(&node)) keep_from_halide(loop->variable);
        if (auto *let = std::get_if<Let>(&node)) keep_from_halide(let->variable);
        if (auto *alloc = std::get_if<Alloc>(&node)) keep_from_halide(alloc->buffer.name);
    });
}

class Statements {
public:
    Statements(const TileProgram &p, const Surroundings &s)
        : program(p),
          around(s),
          spec(spec_of(p)),
          values(addresses, std::count(p.features.begin(), p.features.end(), "f16c") > 0),
          by_registers(has_tiles_only(p)) {
        for (const Argument &a : p.arguments) {
            Buffer b{a.tensor.name, a.tensor.dtype, {}, Space::argument};
            if (a.packed) {
                b.extents = packed_extents(*a.packed, p.dims);
                for (Expr &e : b.extents) e = in_spec_dims(e, p);
                dense[b.name] = b;
            }
            addresses.declare(b, a.large);
            if (a.written) written.insert(b.name);
        }
        for (const Tensor &t : p.constants) {
            Buffer b{t.name, t.dtype, {}, Space::constant};
            for (const std::string &d : t.dims) b.extents.push_back(extent(d));
            addresses.declare(b);
            dense[b.name] = b;
        }
    }

    EmittedBody run() {
        keep_names_from_halide(program);
        values.look_at(program, program.body);
        return bound(emit(program.body));
    }

    // The part in the place that the plan gives its buffers. Its bytes are over begin_name(buffer) too.
    EmittedBody run_part(const MemoryPlan &plan, size_t part) {
        keep_names_from_halide(program);
        for (const PlannedBuffer &b : plan.buffers) addresses.declare(b.buffer), dense[b.buffer.name] = b.buffer;
        for (size_t live : plan.live_in(part)) shared.begin_behind(end_of(plan.buffers[live].buffer));
        const TileBody own = {plan.parts[part]};
        values.look_at(program, own);
        Stmt body = emit(own);
        const HExpr workspace = frame_word(tess_frame_workspace(spec.data()));
        for (const PlannedBuffer &b : plan.buffers) body = LetStmt::make(b.buffer.name, pointer(workspace + begin_of(b.buffer)), body);
        const std::vector<HExpr> begins = begins_of(plan);
        for (size_t b = begins.size(); b-- > 0;) body = LetStmt::make(begin_name(plan.buffers[b].buffer), begins[b], body);
        return bound(body);
    }

    HExpr whole_bytes(const MemoryPlan &plan, HExpr most) {
        for (const PlannedBuffer &b : plan.buffers) most = H::max(most, end_of(b.buffer));
        const std::vector<HExpr> begins = begins_of(plan);
        for (size_t b = begins.size(); b-- > 0;) most = Halide::Internal::Let::make(begin_name(plan.buffers[b].buffer), begins[b], most);
        return most;
    }

private:
    const TileProgram &program;
    const Surroundings &around;
    std::vector<int64_t> spec;
    Addresses addresses;
    Values values;
    std::map<std::string, Buffer> dense;  // all but arguments that are not packed
    std::set<std::string> written;        // arguments
    const bool by_registers;              // all families of fragments are computed in registers of their own
    bool in_task = false;
    bool in_streaming = false;  // inside an outermost loop that streams
    // Bytes of the workspace: what this program holds at this place, and the most that it and its callees hold at any time.
    struct Room {
        HExpr held = make_const(H::Int(64), 0), most = make_const(H::Int(64), 0);

        void hold(const HExpr &bytes) {
            held = held + bytes;
            most = was_less ? H::max(most, held) : held;
        }
        // Holds `bytes` more for a while.
        void reach(const HExpr &bytes) {
            const HExpr before = held;
            hold(bytes);
            back_to(before);
        }
        void back_to(const HExpr &before) { held = before, was_less = true; }
        // Before anything is held.
        void begin_behind(const HExpr &end) { held = most = H::max(held, end); }

    private:
        bool was_less = false;  // than the most, since something was let go
    };
    Room shared, of_worker;

    EmittedBody bound(Stmt body) const {
        for (const Tensor &t : program.constants)
            if (auto data = around.constants.find(t.name); data != around.constants.end())
                body = LetStmt::make(t.name, module_data(data->second), body);
        return {bind_frame(program, body, false), shared.most, of_worker.most};
    }

    static HExpr begin_of(const Buffer &buffer) { return Variable::make(H::Int(64), begin_name(buffer)); }
    HExpr end_of(const Buffer &buffer) { return begin_of(buffer) + rounded(values.size(workspace_bytes(buffer))); }
    // In the plan's order, each over those before it.
    std::vector<HExpr> begins_of(const MemoryPlan &plan) {
        std::vector<HExpr> begins;
        for (const PlannedBuffer &b : plan.buffers) {
            HExpr begin = make_const(H::Int(64), 0);
            for (size_t other : b.behind) begin = H::max(begin, end_of(plan.buffers[other].buffer));
            begins.push_back(begin);
        }
        return begins;
    }

    Stmt emit(const TileBody &body) {
        std::vector<Stmt> all;
        for (size_t i = 0; i < body.size();) {
            StoreRun run = store_run(body, i, addresses, values);
            all.push_back(run.count ? run.statement : emit_node(*body[i]));
            i += std::max<size_t>(run.count, 1);
        }
        if (all.empty()) return Evaluate::make(0);
        return Block::make(all);
    }

    Stmt emit_node(const TileNode &node) {
        return std::visit([&](const auto &n) { return emit(n); }, node);
    }

    Stmt emit(const Compute &n) { return store(n.buffer, n.index, n.value, n.guard); }
    Stmt emit(const Copy &n) { return store(n.buffer, n.index, n.value, n.guard); }
    Stmt emit(const WaitNode auto &) { throw UserError("emit.cpu", program.name + ": barriers are not for a CPU target."); }

    Stmt emit(const Guard &guard) {
        return IfThenElse::make(name_shared(values.emit(guard.condition)), emit(guard.then),
                                guard.otherwise.empty() ? Stmt() : emit(guard.otherwise));
    }

    Stmt emit(const Let &let) {
        HExpr value = name_shared(values.emit(let.value));
        values.bind(let.variable, let.value);
        return LetStmt::make(let.variable, value, emit(let.body));
    }

    Stmt emit(const Loop &loop) {
        if (in_streaming || !streams(TileNode{loop})) return emit_loop(loop);
        in_streaming = true;
        const Stmt all = emit_loop(loop);
        in_streaming = false;
        return Block::make(all, Evaluate::make(Call::make(H::Int(32), "tess_abi2_end_stream", {}, Call::Extern)));
    }

    Stmt emit_streamed(const Loop &loop) {
        const Copy &copy = *only<Copy>(loop.body);
        const std::map<std::string, Expr> first = {{loop.variable, Expr(0)}};
        auto begin = [&](const std::string &buffer, std::vector<Expr> index) {
            for (Expr &e : index) e = substitute(e, first);
            return address(buffer, index);
        };
        const HExpr bytes = in_64_bits(values.count(loop.count)) * make_const(H::Int(64), size_of(addresses.dtype(copy.buffer)));
        return Evaluate::make(Call::make(H::Int(32), "tess_abi2_stream",
                                         {begin(copy.buffer, copy.index), begin(copy.value->name, index_of(copy.value)), bytes,
                                          make_const(H::Int(32), stream_vector_bytes(program))},
                                         Call::Extern));
    }

    Stmt emit_loop(const Loop &loop) {
        auto make = [&](ForType type, Stmt body) {
            return For::make(loop.variable, 0, name_shared(values.count(loop.count)), type, Partition::Never, DeviceAPI::None, body);
        };
        switch (loop.kind) {
        case LoopKind::serial: return make(ForType::Serial, emit(loop.body));
        case LoopKind::unrolled: {
            Stmt one = interleaved_copy(loop, addresses, values);
            return one.defined() ? one : make(ForType::Unrolled, emit(loop.body));
        }
        case LoopKind::vector: {
            if (Stmt one = vector_instruction(loop, program.features, addresses, values); one.defined()) return one;
            values.enter_lanes(loop.variable, loop.count->value.integer);
            Stmt body = emit(loop.body);
            values.leave_lanes();
            return make(ForType::Vectorized, body);
        }
        case LoopKind::streamed: return emit_streamed(loop);
        case LoopKind::parallel: {
            const bool outer = in_task;
            const HExpr held = of_worker.held;
            const bool streaming = in_streaming;
            in_task = true, in_streaming = false;
            Stmt body = emit(loop.body);
            in_task = outer, in_streaming = streaming;
            // The memory of workers is free again after the loop: no other function has its names.
            if (!outer) of_worker.back_to(held);
            // Not the variable: a task would capture the one of the function that starts it.
            HExpr context = Call::make(H::Handle(), Call::get_user_context, {}, Call::Intrinsic);
            HExpr worker = Call::make(H::Int(32), "tess_abi2_worker", {context}, Call::Extern);
            return make(ForType::Parallel, LetStmt::make("worker", worker, body));
        }
        case LoopKind::block:
        case LoopKind::warp:
        case LoopKind::thread: break;
        }
        throw UserError("emit.cpu", program.name + ": " + name_of(loop.kind) + " loops are not for a CPU target.");
    }

    Stmt store(const std::string &buffer, const std::vector<Expr> &index, const Expr &value, const Expr &guard) {
        values.enter_statement();
        HExpr predicate = guard.defined() ? name_shared(values.emit(guard)) : const_true();
        return Store::make(buffer, name_shared(values.stored(value.type(), values.emit(value))),
                           name_shared(values.position(buffer, index)), addresses.origin(buffer), predicate, ModulusRemainder());
    }

    // Halide's own prefetch is a non-temporal one, to the first cache alone: of what is needed a row later, much is gone by then. LLVM's
    // takes what is coming: 1 for a store, and 3 to keep the line in every cache. Halide finds it declared, by its own.
    Stmt emit(const Prefetch &n) {
        auto word = [](int value) { return make_const(H::Int(32), value); };
        return Evaluate::make(Call::make(H::Int(32), "llvm.prefetch.p0",
                                         {address(n.buffer, n.index), word(written.count(n.buffer)), word(3), word(1)}, Call::Extern));
    }

    HExpr address(const std::string &buffer, const std::vector<Expr> &index) {
        const HExpr base = H::reinterpret(H::Int(64), Variable::make(H::Handle(), buffer));
        return pointer(base + in_64_bits(values.position(buffer, index)) * make_const(H::Int(64), size_of(addresses.dtype(buffer))));
    }

    static HExpr in_64_bits(const HExpr &v) { return v.type() == H::Int(64) ? v : Cast::make(H::Int(64), v); }

    HExpr stride(const std::string &buffer, size_t axis, size_t rank) {
        auto it = dense.find(buffer);
        if (it == dense.end())
            return axis + 1 == rank ? make_const(H::Int(64), 1)
                                    : in_64_bits(Variable::make(addresses.position_type(buffer), stride_name(buffer, axis)));
        HExpr product = make_const(H::Int(64), 1);
        for (size_t inner = axis + 1; inner < rank; inner++)
            product = product * Cast::make(H::Int(64), values.emit(it->second.extents[inner]));
        return product;
    }

    // What is free of the worker's part of the workspace.
    HExpr of_this_worker() const {
        return frame_word(tess_frame_shared_bytes(spec.data())) +
               Cast::make(H::Int(64), Variable::make(H::Int(32), "worker")) * frame_word(tess_frame_worker_bytes(spec.data())) +
               of_worker.held;
    }

    static HExpr parameter_word(const HExpr &v) {
        HExpr bits = v.type().is_float() ? H::reinterpret(H::Int(v.type().bits()), v) : v;
        return Cast::make(H::Int(64), bits);
    }

    // The element of a buffer with which what is passed begins.
    HExpr first_of(const BufferView &view) {
        HExpr base = H::reinterpret(H::Int(64), Variable::make(H::Handle(), view.buffer));
        for (size_t axis = 0; axis < view.first.size(); axis++) {
            if (view.first[axis].is_constant(0)) continue;
            const HExpr at = Cast::make(H::Int(64), values.emit(view.first[axis]));
            base = base + at * stride(view.buffer, axis, view.first.size()) * make_const(H::Int(64), size_of(addresses.dtype(view.buffer)));
        }
        return base;
    }

    // The same in elements from the buffer's first.
    HExpr offset_of(const BufferView &view) {
        HExpr offset = make_zero(H::Int(64));
        for (size_t axis = 0; axis < view.first.size(); axis++)
            if (!view.first[axis].is_constant(0))
                offset = offset + Cast::make(H::Int(64), values.emit(view.first[axis])) * stride(view.buffer, axis, view.first.size());
        return offset;
    }

    HExpr stride_of(const BufferView &view, size_t axis, size_t rank) {
        if (view.is_whole()) return stride(view.buffer, axis, rank);
        const BufferView::Axis &moved = view.axes[axis];
        if (moved.step.is_constant(0)) return make_const(H::Int(64), 0);
        const HExpr whole = stride(view.buffer, moved.of, view.first.size());
        return moved.step.is_constant(1) ? whole : whole * Cast::make(H::Int(64), values.emit(moved.step));
    }

    // Halide has AMX as calls of tile_zero, tile_load, tile_matmul and tile_store, on vectors in an allocation of a kind of its own. LLVM
    // makes registers and their configuration of them: one for a function, if all tiles have one shape.
    static constexpr int tile_rows = 16, tile_bytes = 64;

    static H::Type tile_type(DType type) {
        switch (type) {
        case DType::f32: return H::Float(32, tile_rows * tile_bytes / 4);
        case DType::bf16: return H::BFloat(16, tile_rows * tile_bytes / 2);
        case DType::i8: return H::Int(8, tile_rows * tile_bytes);
        case DType::u8: return H::UInt(8, tile_rows * tile_bytes);
        default: return H::Int(32, tile_rows * tile_bytes / 4);
        }
    }

    static HExpr tile_call(const char *function, H::Type result, std::vector<HExpr> more = {}) {
        std::vector<HExpr> args = {make_const(H::Int(16), tile_rows), make_const(H::Int(16), tile_bytes)};
        args.insert(args.end(), more.begin(), more.end());
        return Call::make(result, function, args, Call::Intrinsic);
    }

    HExpr tile(const std::string &buffer) {
        const H::Type type = tile_type(addresses.dtype(buffer));
        return Load::make(type, buffer, tile_index(type), H::Buffer<>(), Halide::Parameter(), const_true(type.lanes()), ModulusRemainder());
    }
    Stmt set_tile(const std::string &buffer, const HExpr &value) {
        const H::Type type = value.type();
        return Store::make(buffer, value, tile_index(type), Halide::Parameter(), const_true(type.lanes()), ModulusRemainder());
    }
    static HExpr tile_index(H::Type type) { return Ramp::make(make_zero(H::Int(32)), make_one(H::Int(32)), type.lanes()); }

    Stmt emit(const Move &n) {
        if (!by_registers) return emit(expand(n, addresses.dtype(n.to.buffer)));
        const bool is_load = is_tile(n.to.buffer);
        if (!n.from) return set_tile(n.to.buffer, tile_call("tile_zero", tile_type(addresses.dtype(n.to.buffer))));
        const BufferView &memory = is_load ? *n.from : n.to;
        const HExpr bytes = make_const(H::Int(64), size_of(addresses.dtype(memory.buffer)));
        const HExpr base = Variable::make(H::Handle(), memory.buffer), offset = offset_of(memory) * bytes;
        const HExpr stride = stride_of(memory, 0, n.box.size()) * bytes;
        if (!is_load) return Evaluate::make(tile_call("tile_store", H::Int(32), {base, offset, stride, tile(n.from->buffer)}));
        // Halide loads elements of operands; accumulators are their bits.
        const H::Type type = tile_type(addresses.dtype(n.to.buffer));
        const H::Type loaded = type.bits() == 32 ? tile_type(DType::bf16) : type;
        const HExpr value = tile_call("tile_load", loaded, {base, offset, stride});
        return set_tile(n.to.buffer, loaded == type ? value : H::reinterpret(type, value));
    }

    Stmt emit(const Fragment &n) {
        if (!by_registers) return emit(expand(n));
        const HExpr sum = tile(n.accumulator);
        return set_tile(n.accumulator,
                        tile_call("tile_matmul", sum.type(), {make_const(H::Int(16), tile_bytes), sum, tile(n.a), tile(n.b)}));
    }

    bool is_tile(const std::string &buffer) const {
        const auto it = dense.find(buffer);
        return it != dense.end() && it->second.space == Space::fragment;
    }

    // A call with a frame of its own, on the stack. What the callee needs of the workspace is a part of this program's behind what this one
    // holds: of the shared memory, and of each worker's part. It is free again after the call: callees are in objects of their own. In a
    // parallel loop all that it needs is of the worker's part, whose loops run in order then.
    Stmt emit(const Invoke &invoke) {
        const Surroundings::Invoked &callee = around.programs.at(invoke.program);
        std::vector<int64_t> own = spec_of(*callee.program);
        std::string frame = unique_name("callee_frame");
        std::vector<Stmt> body;
        auto write = [&](int64_t slot, const HExpr &value) {
            body.push_back(Store::make(frame, value, make_const(H::Int(32), slot), Halide::Parameter(), const_true(), ModulusRemainder()));
        };
        std::map<std::string, HExpr> extents;
        int64_t slot = 0;
        for (const Dim &d : spec_dims(*callee.program)) {
            const HExpr value = values.count(invoke.extents.at(d.name));
            extents[extent_name(d.name)] = value;
            write(tess_frame_dim(slot++), Cast::make(H::Int(64), value));
        }
        for (size_t i = 0; i < invoke.arguments.size(); i++) {
            auto n = static_cast<int64_t>(i);
            const size_t rank = callee.program->arguments[i].tensor.dims.size();
            write(tess_frame_data(own.data(), n), first_of(invoke.arguments[i]));
            for (size_t axis = 0; axis < rank && !callee.program->arguments[i].packed; axis++)
                write(tess_frame_stride(own.data(), n, static_cast<int64_t>(axis)), stride_of(invoke.arguments[i], axis, rank));
        }
        for (size_t p = 0; p < callee.program->parameters.size(); p++)
            write(tess_frame_parameter(own.data(), static_cast<int64_t>(p)),
                  parameter_word(values.emit(invoke.parameters.at(callee.program->parameters[p].name))));
        const HExpr callees_shared = Halide::Internal::substitute(extents, callee.shared_bytes),
                    callees_worker = Halide::Internal::substitute(extents, callee.worker_bytes);
        if (in_task) {
            write(tess_frame_workspace(own.data()), frame_word(tess_frame_workspace(spec.data())) + of_this_worker());
            write(tess_frame_shared_bytes(own.data()), callees_shared);
            write(tess_frame_worker_bytes(own.data()), make_const(H::Int(64), 0));
            of_worker.reach(callees_shared + callees_worker);
        } else {
            write(tess_frame_workspace(own.data()), frame_word(tess_frame_workspace(spec.data())) + shared.held);
            write(tess_frame_shared_bytes(own.data()), frame_word(tess_frame_shared_bytes(spec.data())) - shared.held + of_worker.held);
            write(tess_frame_worker_bytes(own.data()), frame_word(tess_frame_worker_bytes(spec.data())));
            shared.reach(callees_shared);
            of_worker.reach(callees_worker);
        }
        write(tess_frame_workers(own.data()), frame_word(tess_frame_workers(spec.data())));
        // Not the variable, in a task: it would capture the one of the function that starts it.
        const HExpr context =
            in_task ? Call::make(H::Handle(), Call::get_user_context, {}, Call::Intrinsic) : Variable::make(H::Handle(), "__user_context");
        HExpr call = Call::make(H::Int(32), callee.symbol, {context, Variable::make(H::Handle(), frame)}, Call::Extern);
        body.push_back(returning(call));
        return Allocate::make(frame, H::Int(64), MemoryType::Stack, {make_const(H::Int(32), tess_frame_size(own.data()))}, const_true(),
                              Block::make(body));
    }

    // Two buffers of one function never share workspace, even of different lifetimes: LLVM is told that buffers of different names do not
    // alias. Those that share are of different functions (memory_plan.h).
    Stmt emit(const Alloc &alloc) {
        const Buffer &b = alloc.buffer;
        addresses.declare(b);
        dense[b.name] = b;
        if (b.space == Space::fragment && by_registers)
            return Allocate::make(b.name, tile_type(b.dtype), MemoryType::AMXTile, {make_const(H::Int(32), 1)}, const_true(),
                                  emit(alloc.body));
        if (traits_of(b.space).of_thread) {
            int64_t count = 1;
            for (const Expr &e : b.extents) {
                require(e.is_constant(), "stack storage has constant extents");
                count *= e->value.integer;
            }
            count = std::max<int64_t>(count, 1);  // Halide would put storage of no elements on its heap
            return Allocate::make(b.name, stored_type(b.dtype), MemoryType::Stack, {make_const(H::Int(32), count)}, const_true(),
                                  emit(alloc.body));
        }
        if (b.space != Space::workspace)
            throw UserError("emit.cpu", program.name + ": " + name_of(b.space) + " memory is not for a CPU target.");
        const HExpr bytes = rounded(values.size(workspace_bytes(b)));
        HExpr base = frame_word(tess_frame_workspace(spec.data()));
        HExpr offset;
        if (in_task) {
            offset = of_this_worker();
            of_worker.hold(bytes);
        } else {
            offset = shared.held;
            shared.hold(bytes);
        }
        return LetStmt::make(b.name, pointer(base + offset), emit(alloc.body));
    }
};

bool has_tiles_only(const TileProgram &program) {
    bool all = true;
    walk(program.body, [&](const TileNode &node) {
        auto *step = std::get_if<Fragment>(&node);
        if (!step) return;
        const std::optional<FragmentForm> &form = find_family(step->family)->fragments;
        all &= form && form->held == FragmentForm::Held::tile;
    });
    return all;
}

EmittedBody emit_body(const TileProgram &program, const Surroundings &around) { return Statements(program, around).run(); }

EmittedBody emit_part(const TileProgram &program, const Surroundings &around, const MemoryPlan &plan, size_t part) {
    return Statements(program, around).run_part(plan, part);
}

HExpr whole_bytes(const TileProgram &program, const MemoryPlan &plan, const HExpr &most_of_parts) {
    return Statements(program, {}).whole_bytes(plan, most_of_parts);
}

Stmt returning(const HExpr &status) {
    std::string name = unique_name("status");
    HExpr value = Variable::make(H::Int(32), name);
    return LetStmt::make(name, status, AssertStmt::make(value == 0, value));
}

HExpr module_data(const std::string &buffer) {
    HExpr object = Variable::make(type_of<halide_buffer_t *>(), buffer + ".buffer");
    return Call::make(H::Handle(), Call::buffer_get_host, {object}, Call::Extern);
}

static HExpr parameter_value(DType type, const HExpr &word) {
    if (type == DType::f64) return H::reinterpret(H::Float(64), word);
    if (type == DType::f32) return H::reinterpret(H::Float(32), Cast::make(H::Int(32), word));
    if (type == DType::boolean) return word != make_const(H::Int(64), 0);
    return Cast::make(value_type(type), word);
}

Stmt bind_frame(const TileProgram &program, const Stmt &inside, bool extents_only) {
    std::vector<int64_t> spec = spec_of(program);
    Stmt body = inside;
    if (!extents_only) {
        for (size_t t = program.arguments.size(); t-- > 0;) {
            const Tensor &tensor = program.arguments[t].tensor;
            int64_t n = static_cast<int64_t>(t);
            for (size_t axis = program.arguments[t].packed ? 0 : tensor.dims.size(); axis-- > 0;) {
                const HExpr word = frame_word(tess_frame_stride(spec.data(), n, static_cast<int64_t>(axis)));
                body =
                    LetStmt::make(stride_name(tensor.name, axis), program.arguments[t].large ? word : Cast::make(H::Int(32), word), body);
            }
            body = LetStmt::make(tensor.name, pointer(frame_word(tess_frame_data(spec.data(), n))), body);
        }
        for (size_t p = program.parameters.size(); p-- > 0;)
            body = LetStmt::make(
                parameter_name(program.parameters[p].name),
                parameter_value(program.parameters[p].dtype, frame_word(tess_frame_parameter(spec.data(), static_cast<int64_t>(p)))), body);
    }
    int64_t slot = 0;
    for (const Dim &d : spec_dims(program)) {
        HExpr value = d.kind == DimKind::fixed ? make_const(H::Int(32), d.value) : Cast::make(H::Int(32), frame_word(tess_frame_dim(slot)));
        body = LetStmt::make(extent_name(d.name), value, body);
        slot++;
    }
    return body;
}

}  // namespace tessera::emit
