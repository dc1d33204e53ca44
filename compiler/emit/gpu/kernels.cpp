#include "compiler/emit/gpu/kernels.h"

#include <fmt/format.h>

#include "algorithms/index/linear.h"
#include "algorithms/index/prove.h"
#include "compiler/abi/workspace.h"
#include "compiler/emit/spec.h"
#include "compiler/tile/chunks.h"
#include "compiler/tile/fragments.h"
#include "compiler/tile/kinds.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera::emit_gpu {

namespace {

// Shared memory that a block has without its launch asking for it.
constexpr int64_t static_shared_bytes = 48 << 10;

class Kernels {
public:
    Kernels(const TileProgram &p, const std::string &stem, const Constants &constants, const Callees &callees, Called called, bool cuda)
        : program_(p),
          stem_(stem),
          constants_(constants),
          is_callee_(called == Called::by_program),
          cuda_(cuda),
          facts_(p.dims),
          expressions_(names_, names_) {
        result_.plan = launches_of(p, callees);
        expressions_.widths.look_at(p, p.body);
        result_.in_calls = is_callee_ || !p.programs.empty();
        for (const char *own : {"thread_id", "constants", "block_parts", "block_bytes", "shared_bytes"}) names_.take(own);
        if (result_.in_calls)
            for (const char *own : {"choice_at", "parameters_at"}) names_.take(own);
        for (const Argument &a : p.arguments) {
            declare({a.tensor.name, a.tensor.dtype, {}, Space::argument}, a.tensor.dims.size());
            names_.bind("memory", a.tensor.name + ".memory");
            names_.bind("first", a.tensor.name + ".first");
        }
        for (const Tensor &t : p.constants) declare(buffer_of(t), t.dims.size());
        for (const Dim &d : spec_dims(p)) pass("extent", d.name);
        for (const Parameter &q : p.parameters) pass("parameter", q.name);
        expressions_.element = [this](const std::string &buffer, const std::vector<std::string> &index) { return element(buffer, index); };
        expressions_.not_negative = [this](const Expr &e) { return prove(Expr(0) <= e, facts_); };
        for (const auto &[variable, count] : result_.plan.variables) {
            pass("variable", variable);
            if (count.defined()) facts_.set(variable, Expr(0), count - 1);
        }
        for (const Buffer &b : result_.plan.buffers) declare(b, b.extents.size()), add_room(b, false);
        for (const PlannedKernel &kernel : result_.plan.kernels)
            walk(kernel.blocks.body, [&](const TileNode &n) {
                if (const auto *alloc = std::get_if<Alloc>(&n); alloc && alloc->buffer.space == Space::workspace)
                    add_room(alloc->buffer, true);
            });
        for (const PlannedKernel &kernel : result_.plan.kernels) function(kernel);
        result_.uses_double = expressions_.uses_double || uses_double();
    }

    KernelProgram result() { return std::move(result_); }

private:
    struct Declared {
        Buffer buffer;
        size_t rank = 0;
        bool per_thread = false;  // the first axis is the thread
    };
    const TileProgram &program_;
    std::string stem_;
    const Constants &constants_;
    bool is_callee_, cuda_;
    Bounds facts_;
    Names names_;
    Expressions expressions_;
    KernelProgram result_;
    std::map<std::string, Declared> buffers_;
    std::string body_;
    int depth_ = 1;
    bool in_thread_ = false;
    int64_t threads_ = 1;
    // What fragments are to their family, by their buffers.
    struct FragmentPart {
        const Instruction *family;
        FragmentRole role;
    };
    std::map<std::string, FragmentPart> held_;
    bool parted_ = false;  // threads may have gone different ways since the last barrier

    bool uses_double() const {
        bool found = false;
        for (auto &[name, d] : buffers_) found |= d.buffer.dtype == DType::f64;
        for (const Parameter &q : program_.parameters) found |= q.dtype == DType::f64;
        return found;
    }

    void declare(const Buffer &buffer, size_t rank) {
        names_.bind("buffer", buffer.name);
        for (size_t axis = 0; buffer.space == Space::argument && axis + 1 < rank; axis++) pass("stride", stride(buffer.name, axis));
        buffers_[buffer.name] = {buffer, rank, buffer.space == Space::registers && !in_thread_};
    }

    Buffer buffer_of(const Tensor &table) const {
        Buffer buffer{table.name, table.dtype, {}, Space::constant};
        for (const std::string &name : table.dims) {
            auto dim = std::find_if(program_.dims.begin(), program_.dims.end(), [&](const Dim &d) { return d.name == name; });
            require(dim != program_.dims.end() && dim->kind == DimKind::fixed, "the dims of a constant are fixed");
            buffer.extents.emplace_back(dim->value);
        }
        return buffer;
    }

    // A number has two names: the argument's of 64 bits, and what the function calls it.
    void pass(const std::string &kind, const std::string &name) {
        names_.bind(kind, name);
        names_.bind("passed " + kind, name + "_argument");
    }
    const std::string &passed(const std::string &kind, const std::string &name) const {
        return names_.of("passed " + kind, name + "_argument");
    }

    static std::string stride(const std::string &buffer, size_t axis) { return buffer + ".stride" + std::to_string(axis); }

    void line(const std::string &text) { body_ += std::string(static_cast<size_t>(4 * depth_), ' ') + text + "\n"; }
    void lines(const std::vector<std::string> &all) {
        for (const std::string &text : all) line(text);
    }

    std::string text(const Expr &e) {
        std::vector<std::string> before;
        std::string result = expressions_.text(e, before);
        lines(before);
        return result;
    }

    std::string element(const std::string &name, const std::vector<std::string> &index) {
        const Declared &d = buffers_.at(name);
        const std::string &c = names_.of("buffer", name);
        if (d.buffer.space == Space::registers) {
            std::string text = c;
            for (size_t i = d.per_thread ? 1 : 0; i < index.size(); i++) text += "[" + index[i] + "]";
            return text;
        }
        auto product = [](const std::string &a, const std::string &b) { return a == "0" ? std::string("0") : b == "1" ? a : a + "*" + b; };
        auto total = [](const std::string &a, const std::string &term) {
            const std::string b = term.find('?') == std::string::npos ? term : "(" + term + ")";
            return a == "0" || a.empty() ? b : b == "0" ? a : a + " + " + b;
        };
        std::string position;
        for (size_t i = 0; i < index.size(); i++) {
            auto grouped = [](const std::string &t) { return t.find(' ') == std::string::npos ? t : "(" + t + ")"; };
            if (d.buffer.space == Space::argument) {
                position =
                    total(position, i + 1 < index.size() ? product(grouped(index[i]), names_.of("stride", stride(name, i))) : index[i]);
                continue;
            }
            std::vector<std::string> none;
            Expressions plain(names_, names_);
            std::string extent = plain.text(d.buffer.extents[i], none);
            bool simple = extent.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos;
            position = total(i ? product(grouped(position), simple ? extent : "(" + extent + ")") : "", index[i]);
        }
        if (const std::optional<Swizzle> &s = d.buffer.swizzle) position = swizzled(d.buffer, *s, position);
        return c + "[" + (position.empty() ? "0" : position) + "]";
    }

    static std::string swizzled(const Buffer &b, const Swizzle &s, const std::string &position) {
        return fmt::format("swizzled({}, {}, {}, {}, {})", position, b.extents.back()->value.integer, s.chunk, s.rows, s.phase);
    }

    void add_room(const Buffer &b, bool per_block) {
        result_.rooms.push_back({b.name, workspace_bytes(b), per_block});
        names_.bind("room", b.name + ".at");
    }

    std::string space(bool constant) const { return std::string(cuda_ ? "" : "__global ") + (constant ? "const " : ""); }

    std::string parameters() {
        std::string text;
        for (const Argument &a : program_.arguments)
            text += fmt::format("{}{} *{} {},\n    ", space(!a.written), stored_type(a.tensor.dtype), cuda_ ? "__restrict__" : "restrict",
                                names_.of("memory", a.tensor.name + ".memory"));
        text += space(false) + "uchar *workspace";
        if (!constants_.empty()) text += ", " + space(true) + "uchar *constants";
        auto number = [&](const std::string &name) { text += ", const long " + name; };
        for (const Dim &d : spec_dims(program_)) number(passed("extent", d.name));
        for (const Argument &a : program_.arguments)
            for (size_t axis = 0; axis + 1 < a.tensor.dims.size(); axis++) number(passed("stride", stride(a.tensor.name, axis)));
        for (const Argument &a : program_.arguments) number(names_.of("first", a.tensor.name + ".first"));
        for (const Parameter &q : program_.parameters)
            if (!is_callee_) number(passed("parameter", q.name));
        for (const Room &r : result_.rooms) number(names_.of("room", r.buffer + ".at"));
        number("block_parts"), number("block_bytes");
        if (result_.in_calls) number("choice_at"), number("parameters_at");
        for (const auto &[variable, count] : result_.plan.variables) number(passed("variable", variable));
        return text;
    }

    // A caller writes parameters to the workspace.
    std::string parameter(size_t i) const {
        const Parameter &q = program_.parameters[i];
        const std::string bits = is_callee_ ? fmt::format("((const {}long *)(workspace + parameters_at))[{}]", cuda_ ? "" : "__global ", i)
                                            : passed("parameter", q.name);
        switch (held_as(q.dtype)) {
        case Held::f32: return "as_float((int)" + bits + ")";
        case Held::f64: return "as_double(" + bits + ")";
        case Held::truth: return bits + " != 0";
        case Held::i32:
        case Held::i64: return std::string("(") + value_type(q.dtype) + ")" + bits;
        case Held::half:
        case Held::i8:
        case Held::u8:
        case Held::position: break;
        }
        throw InternalError("a parameter has an arithmetic type");
    }

    // The pointer to the first element of an argument, which negative strides put behind the begin of its memory.
    std::string pointer(const Argument &a) const {
        const std::string &name = a.tensor.name;
        return fmt::format("{}{} *const {} = {} + {};", space(!a.written), stored_type(a.tensor.dtype), names_.of("buffer", name),
                           names_.of("memory", name + ".memory"), names_.of("first", name + ".first"));
    }

    // The pointer to a buffer in the workspace, where the body uses it.
    std::string pointer(const Room &room, const Buffer &buffer) const {
        std::string at = names_.of("room", room.buffer + ".at");
        if (room.per_block) at = fmt::format("block_parts + {}*block_bytes + {}", cuda_ ? "blockIdx.x" : "get_group_id(0)", at);
        std::string type = space(false) + stored_type(buffer.dtype) + " *";
        return fmt::format("{0}const {1} = ({0})(workspace + ({2}));", type, names_.of("buffer", buffer.name), at);
    }

    std::string table(const Tensor &t) const {
        const std::string type = space(true) + stored_type(t.dtype) + " *";
        return fmt::format("{0}const {1} = ({0})(constants + {2});", type, names_.of("buffer", t.name), constants_.at(t));
    }

    // Whether the choices around the kernel let it run: the host puts it into the stream whatever they are.
    void choose(bool decides) {
        const std::string &launched = names_.bind("variable", launched_variable);
        line(fmt::format("const int {} = choice_at < 0 || *(const {}int *)(workspace + choice_at) != 0;", launched,
                         cuda_ ? "" : "__global "));
        if (!decides) line("if (!" + launched + ") return;");
    }

    void function(const PlannedKernel &kernel) {
        const Loop &blocks = kernel.blocks;
        KernelFunction f{stem_ + "_" + std::to_string(result_.functions.size()), blocks.count, 1, false};
        std::vector<Buffer> shared;
        std::map<std::string, Buffer> own;
        std::set<std::string> used;
        walk(blocks.count, [&](const Expr &x) {
            if (x.kind() == ExprKind::load) used.insert(x->name);
        });
        walk(blocks.body, [&](const TileNode &n) {
            std::visit(Overloaded{
                           [&](const Loop &l) {
                               if (const int each = traits_of(l.kind).threads)
                                   f.threads = std::max(f.threads, l.count->value.integer * each);
                           },
                           [&](const Alloc &a) {
                               if (a.buffer.space == Space::shared) shared.push_back(a.buffer);
                               if (a.buffer.space == Space::workspace) own[a.buffer.name] = a.buffer, f.in_turns = true;
                           },
                           [&](const StoreNode auto &s) { used.insert(s.buffer); },
                           [&](const Move &m) {
                               for (const std::string &buffer : buffers_of(m)) used.insert(buffer);
                           },
                           [](const Guard &) {},
                           [](const Let &) {},
                           [](const LeafNode auto &) {},
                       },
                       n);
            for (const Expr &e : expressions_of(n))
                walk(e, [&](const Expr &x) {
                    if (x.kind() == ExprKind::load) used.insert(x->name);
                });
        });
        threads_ = f.threads;
        parted_ = false;
        held_.clear();
        walk(blocks.body, [&](const TileNode &n) {
            const auto *step = std::get_if<Fragment>(&n);
            if (!step) return;
            const Instruction *family = find_family(step->family);
            held_[step->accumulator] = {family, FragmentRole::accumulator};
            held_[step->a] = {family, FragmentRole::a}, held_[step->b] = {family, FragmentRole::b};
        });
        body_.clear();
        depth_ = 1;
        if (result_.in_calls) choose(kernel.decides);
        for (const Dim &d : spec_dims(program_))
            line(fmt::format("const int {} = (int){};", names_.of("extent", d.name), passed("extent", d.name)));
        for (const auto &[variable, count] : result_.plan.variables)
            line(fmt::format("const int {} = (int){};", names_.of("variable", variable), passed("variable", variable)));
        for (const Argument &a : program_.arguments)
            for (size_t axis = 0; axis + 1 < a.tensor.dims.size(); axis++)
                line(fmt::format("const {} {} = {}{};", a.large ? "long" : "int", names_.of("stride", stride(a.tensor.name, axis)),
                                 a.large ? "" : "(int)", passed("stride", stride(a.tensor.name, axis))));
        for (size_t i = 0; i < program_.parameters.size(); i++) {
            const Parameter &q = program_.parameters[i];
            line(fmt::format("const {} {} = {};", value_type(q.dtype), names_.of("parameter", q.name), parameter(i)));
        }
        for (const Argument &a : program_.arguments)
            if (used.count(a.tensor.name)) line(pointer(a));
        share(shared, f);
        for (const Room &room : result_.rooms) {
            if (own.count(room.buffer)) declare(own.at(room.buffer), own.at(room.buffer).extents.size());
            if (used.count(room.buffer)) line(pointer(room, buffers_.at(room.buffer).buffer));
        }
        for (const std::string &name : copied_ahead(blocks.body)) line(in_chunks(name));
        for (const Tensor &t : program_.constants)
            if (used.count(t.name)) line(table(t));
        const std::string thread = cuda_ ? "(int)threadIdx.x" : "(int)get_local_id(0)",
                          block = cuda_ ? "(int)blockIdx.x" : "(int)get_group_id(0)";
        const std::string step = cuda_ ? "(int)gridDim.x" : "(int)get_num_groups(0)";
        line("const int thread_id = " + thread + ";");
        const Bounds outside = facts_;
        facts_.set(blocks.variable, Expr(0), blocks.count - 1);
        if (f.in_turns) {
            const std::string count = text(blocks.count), v = names_.bind("variable", blocks.variable);
            line(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3}) {{", v, block, count, step));
            depth_++;
            emit(blocks.body);
            emit(Barrier{});
            depth_--;
            line("}");
        } else {
            line(fmt::format("const int {} = {};", names_.bind("variable", blocks.variable), block));
            emit(blocks.body);
        }
        facts_ = outside;
        const std::string head = cuda_
                                     ? fmt::format("extern \"C\" __global__ __launch_bounds__({}) void {}(", f.threads, f.name)
                                     : fmt::format("__kernel __attribute__((reqd_work_group_size({}, 1, 1))) void {}(", f.threads, f.name);
        result_.text += "\n" + head + "\n    " + parameters() + ") {\n" + body_ + "}\n";
        result_.functions.push_back(f);
    }

    // What the threads of a block share, each buffer at a multiple of 16 bytes: rows of fragments are loaded by as many.
    void share(const std::vector<Buffer> &shared, KernelFunction &f) {
        const auto count_of = [](const Buffer &b) {
            int64_t count = 1;
            for (const Expr &e : b.extents) count *= e->value.integer;
            return std::max<int64_t>(1, count);
        };
        const auto bytes_of = [&](const Buffer &b) { return (count_of(b) * size_of(b.dtype) + 15) / 16 * 16; };
        int64_t all = 0, at = 0;
        for (const Buffer &b : shared) all += bytes_of(b);
        const bool is_asked_for = cuda_ && all > static_shared_bytes;
        if (is_asked_for) {
            f.shared_bytes = all;
            line("extern __shared__ __align__(16) uchar shared_bytes[];");
        }
        for (const Buffer &b : shared) {
            declare(b, b.extents.size());
            const std::string type = stored_type(b.dtype), &name = names_.of("buffer", b.name);
            const char *where = cuda_ ? "__shared__ __align__(16)" : "__local";
            if (is_asked_for) line(fmt::format("{0} *const {1} = ({0} *)(shared_bytes + {2});", type, name, at));
            else line(fmt::format("{} {} {}[{}];", where, type, name, count_of(b)));
            at += bytes_of(b);
        }
    }

    // What is copied asynchronously.
    std::set<std::string> copied_ahead(const TileBody &body) const {
        std::set<std::string> names;
        walk(body, [&](const TileNode &n) {
            const auto *copy = std::get_if<Copy>(&n);
            if (!cuda_ || !copy || !copy->is_asynchronous || copy->value.kind() != ExprKind::load) return;
            const Space space = buffers_.at(copy->value->name).buffer.space;
            if (space == Space::argument || space == Space::workspace) names.insert(copy->value->name);
        });
        return names;
    }

    // Whether all rows of the buffer begin at multiples of 16 bytes.
    std::string in_chunks(const std::string &name) {
        const Declared &d = buffers_.at(name);
        std::string all = fmt::format("((ulong){} & {}) == 0", names_.of("buffer", name), chunk_bytes - 1);
        for (size_t axis = 0; axis + 1 < d.rank; axis++)
            if (d.buffer.space == Space::argument || axis + 2 == d.rank)
                all +=
                    fmt::format(" && ({}) % {} == 0",
                                d.buffer.space == Space::argument ? names_.of("stride", stride(name, axis)) : text(d.buffer.extents.back()),
                                chunk_bytes / size_of(d.buffer.dtype));
        return fmt::format("const int {} = {};", names_.bind("chunks", name + "_in_chunks"), all);
    }

    // Begins the elements of a loop as one asynchronous copy, where the rows of what it copies lie so, and otherwise the loop. Whether
    // there is such a copy.
    bool copy_chunk(const Loop &n) {
        const Copy *copy = only<Copy>(n.body);
        if (!cuda_ || !copy || !copy->is_asynchronous || copy->value.kind() != ExprKind::load) return false;
        const std::optional<Chunk> chunk = chunk_of(n, buffers_.at(copy->buffer).buffer, buffers_.at(copy->value->name).buffer, facts_);
        require(chunk.has_value(), "an asynchronous copy is a chunk");
        line("if (" + names_.of("chunks", chunk->buffer + "_in_chunks") + ") {");
        depth_++;
        std::vector<Expr> roots = chunk->to;
        roots.insert(roots.end(), chunk->from.begin(), chunk->from.end());
        roots.push_back(chunk->bytes);
        std::vector<std::string> before, all = expressions_.texts(roots, before);
        lines(before);
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(chunk->to.size());
        line(fmt::format(
            "asm volatile(\"cp.async.cg.shared.global [%0], [%1], {}, %2;\" : : \"r\"((uint)__cvta_generic_to_shared(&{})), "
            "\"l\"(__cvta_generic_to_global(&{})), \"r\"((int)({})) : \"memory\");",
            chunk_bytes, element(copy->buffer, {all.begin(), middle}), element(chunk->buffer, {middle, all.end() - 1}), all.back()));
        depth_--;
        line("} else {");
        depth_++;
        return true;
    }

    bool has_barrier(const TileBody &body) const {
        bool found = false;
        walk(body, [&](const TileNode &n) { found |= threads_ > 1 && std::holds_alternative<Barrier>(n); });
        return found;
    }

    std::string barrier() const { return cuda_ ? "__syncthreads();" : "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"; }

    // Whether threads may take different branches in there.
    bool may_part(const Loop &thread_loop) const {
        bool found = thread_loop.count->value.integer * traits_of(thread_loop.kind).threads < threads_;
        walk(thread_loop.body, [&](const TileNode &n) {
            found |= std::holds_alternative<Guard>(n);
            if (auto store = store_of(n)) found |= store->guard.defined();
            for (const Expr &e : expressions_of(n))
                walk(e, [&](const Expr &x) { found |= (x.kind() == ExprKind::load && x->guarded) || x.is_operation(Op::select); });
        });
        return found;
    }

    // Before what all threads do together, with barriers inside. Compilers join a branch that some threads take with the next one on
    // the same condition, and copy what stands between into both, as loops' own branches are; a barrier they leave alone. Without it,
    // PoCL's compiler then lost all that such a kernel stored.
    void meet() {
        if (parted_ && !cuda_) emit(Barrier{});
    }

    void emit(const TileBody &body) {
        for (const auto &node : body) std::visit([&](const auto &n) { emit(n); }, *node);
    }

    void emit(const Loop &n) {
        const Bounds outside = facts_;
        if (const int each = traits_of(n.kind).threads) {
            facts_.set(n.variable, Expr(0), n.count - 1);
            const int64_t threads = n.count->value.integer * each;
            line(threads < threads_ ? fmt::format("if (thread_id < {}) {{", threads) : "{");
            depth_++;
            line(fmt::format("const int {} = thread_id{};", names_.bind("variable", n.variable),
                             each > 1 ? fmt::format(" / {}", each) : ""));
            if (each > 1) {
                facts_.set(lane_variable, Expr(0), Expr(each - 1));
                line(fmt::format("const int {} = thread_id % {};", names_.bind("variable", lane_variable), each));
            }
            in_thread_ = true;
            emit(n.body);
            in_thread_ = false;
            parted_ |= may_part(n);
        } else {
            if (!traits_of(n.kind).on_gpu)
                throw UserError("emit.gpu", program_.name + ": " + name_of(n.kind) + " loops are not for " + program_.target + ".");
            const bool is_chunk = copy_chunk(n);
            std::string count = text(n.count);
            if (expressions_.widths.is_wide(n.count)) count = "clamp_i64(" + count + ", 0, 2147483646)";
            const std::string v = names_.bind("variable", n.variable);
            facts_.set(n.variable, Expr(0), n.count - 1);
            const bool unrolled = traits_of(n.kind).written_out;
            const bool meets = has_barrier(n.body);
            // PoCL's compiler loses stores of an iteration when barriers are repeated by unrolling.
            if (unrolled && (cuda_ || !meets)) line("#pragma unroll");
            if (meets) meet();
            if (meets || cuda_) {
                line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", v, count));
                depth_++;
            } else {
                counted_from_one(v, count);
            }
            emit(n.body);
            if (meets) meet();
            if (is_chunk) depth_--, line("}");
        }
        depth_--;
        line("}");
        facts_ = outside;
    }

    // PoCL takes a loop that counts from 0 for one that the threads of a block may run in step, puts barriers of its own into it where
    // the kernel has any, and then aborts or loses stores where such a loop is a part of several.
    void counted_from_one(const std::string &v, const std::string &count) {
        const std::string next = names_.take(v + "_next");
        line(fmt::format("for (int {0} = 1; {0} <= {1}; ++{0}) {{", next, count));
        depth_++;
        line(fmt::format("const int {} = {} - 1;", v, next));
    }

    void emit(const Let &n) {
        const Bounds outside = facts_;
        const std::string value = text(n.value);
        line(fmt::format("const {} {} = {};", expressions_.widths.is_wide(n.value) ? "long" : "int", names_.bind("variable", n.variable),
                         value));
        expressions_.widths.bind(n.variable, n.value);
        auto range = constant_range(n.value, facts_);
        if (range) facts_.set(n.variable, Expr(range->first), Expr(range->second));
        else facts_.set(n.variable, n.value, n.value);
        emit(n.body);
        facts_ = outside;
    }

    void emit(const Guard &n) {
        const bool meets = !in_thread_ && (has_barrier(n.then) || has_barrier(n.otherwise));
        if (meets) meet();
        auto branch = [&](const TileBody &body) {
            depth_++;
            emit(body);
            if (meets) meet();
            depth_--;
        };
        line("if (" + text(n.condition) + ") {");
        branch(n.then);
        if (!n.otherwise.empty()) {
            line("} else {");
            branch(n.otherwise);
        }
        line("}");
    }

    void emit(const Alloc &n) {
        const Buffer &b = n.buffer;
        if (const auto held = held_.find(b.name); held != held_.end()) {
            const auto [family, role] = held->second;
            require(cuda_ && family->warp.has_value(), "fragments of a GPU are those of warps");
            names_.bind("buffer", b.name);
            line(fmt::format("{} {}[{}];", role == FragmentRole::accumulator ? value_type(b.dtype) : "uint", names_.of("buffer", b.name),
                             words_of(held->second)));
        } else if (traits_of(b.space).of_thread) {
            Buffer registers = b;
            registers.space = Space::registers;
            declare(registers, b.extents.size());
            std::string axes;
            for (size_t i = in_thread_ ? 0 : 1; i < b.extents.size(); i++) axes += "[" + std::to_string(b.extents[i]->value.integer) + "]";
            line(fmt::format("{} {}{};", value_type(b.dtype), names_.of("buffer", b.name), axes));
        } else if (b.space != Space::shared && b.space != Space::workspace) {
            throw UserError("emit.gpu", program_.name + ": " + name_of(b.space) + " memory is not for " + program_.target + ".");
        }
        emit(n.body);
    }

    static constexpr const char *lane_variable = "%lane";

    // Registers of 32 bits that a thread holds of a fragment.
    static int64_t words_of(const FragmentPart &held) {
        const int64_t bytes = size_of(fragment_type(*held.family, held.role));
        return elements_of_thread(*held.family, held.role) * bytes / 4;
    }

    // The point of the fragment that is the thread's i-th element.
    static std::vector<Expr> point_of(const FragmentPart &held, int64_t i) {
        const WarpForm &form = *held.family->warp;
        const WarpForm::Held &at = held.role == FragmentRole::a ? form.a : held.role == FragmentRole::b ? form.b : form.accumulator;
        const std::map<std::string, Expr> names = {{"lane", variable(lane_variable)}, {"i", Expr(i)}};
        return {substitute(at.first, names), substitute(at.second, names)};
    }

    std::string element_text(const BufferView &view, const std::vector<Expr> &at) {
        std::vector<Expr> index;
        for (const Expr &e : element_of(view, at)) index.push_back(simplify(e, facts_));
        std::vector<std::string> before, all = expressions_.texts(index, before);
        lines(before);
        return element(view.buffer, all);
    }

    // Whether rows of 16 bytes along that axis of the view begin at multiples of 16 bytes in shared memory.
    bool has_aligned_rows(const BufferView &view, size_t along, int64_t row) const {
        const Buffer &b = buffers_.at(view.buffer).buffer;
        if (b.space != Space::shared || view.axes.size() != 2 || view.axes[along].of + 1 != b.extents.size() ||
            !view.axes[along].step.is_constant(1) || (b.swizzle && b.swizzle->chunk % row))
            return false;
        Expr position = 0;
        std::vector<Expr> first = {variable("%row"), variable("%row")};
        first[along] = 0;
        const std::vector<Expr> index = element_of(view, first);
        for (size_t i = 0; i < index.size(); i++) position = position * b.extents[i] + index[i];
        try {
            const Linear all = linear_form(position, facts_);
            return all.constant % row == 0 && coefficient_gcd(all) % row == 0;
        } catch (const LinearOverflow &) { return false; }
    }

    void emit(const Move &n) {
        require(cuda_, "fragments are moved by CUDA");
        const auto to = held_.find(n.to.buffer);
        if (to == held_.end()) {
            const FragmentPart &held = held_.at(n.from->buffer);
            for (int64_t i = 0; i < elements_of_thread(*held.family, held.role); i++)
                line(fmt::format("{} = {}[{}];", element_text(n.to, point_of(held, i)), names_.of("buffer", n.from->buffer), i));
            return;
        }
        const FragmentPart &held = to->second;
        const std::string &name = names_.of("buffer", n.to.buffer);
        if (!n.from) {
            for (int64_t i = 0; i < words_of(held); i++) line(fmt::format("{}[{}] = 0;", name, i));
            return;
        }
        const DType type = fragment_type(*held.family, held.role);
        const int64_t group = 4 / size_of(type);
        const bool has_rows = group > 1 && held.family->warp->has_ldmatrix;
        if (has_rows && has_aligned_rows(*n.from, 1, 16 / size_of(type))) return load_rows(n, held, false);
        // Rows of elements of 16 bits may lie along the other axis.
        if (has_rows && group == 2 && has_aligned_rows(*n.from, 0, 16 / size_of(type))) return load_rows(n, held, true);
        for (int64_t word = 0; word < words_of(held); word++) {
            std::string value;
            for (int64_t i = 0; i < group; i++) {
                const std::string text = element_text(*n.from, point_of(held, word * group + i));
                if (group == 1) value = text;
                else
                    value += fmt::format("{}(uint)({}){}{}", i ? " | " : "", size_of(type) == 1 ? "uchar" : "ushort", text,
                                         i ? fmt::format(" << {}", 32 / group * i) : "");
            }
            line(fmt::format("{}[{}] = {};", name, word, value));
        }
    }

    // Matrices of 8 rows of 16 bytes, of which each lane names a row: of a those of the upper and the lower rows, then the same of the
    // later products; of b the earlier and the later products. `is_transposed`: a row has 8 rows or columns of one product.
    void load_rows(const Move &n, const FragmentPart &held, bool is_transposed) {
        const Expr lane = variable(lane_variable);
        const int64_t row = 16 / size_of(fragment_type(*held.family, held.role));
        const bool is_a = held.role == FragmentRole::a;
        const Expr own = is_a ? lane / 8 % 2 * 8 : Expr(0), product = is_a ? lane / 16 * 8 + lane % 8 : lane % 16;
        const std::vector<Expr> at = is_transposed ? std::vector<Expr>{own, product}
                                     : is_a        ? std::vector<Expr>{lane % 16, lane / 16 * Expr(row)}
                                                   : std::vector<Expr>{lane % 8, lane / 8 % 2 * Expr(row)};
        const std::string from = element_text(*n.from, at), &name = names_.of("buffer", n.to.buffer);
        line(
            fmt::format("asm volatile(\"ldmatrix.sync.aligned.m8n8.{}{}.shared.b16 {}, [%{}];\" : {} : "
                        "\"r\"((uint)__cvta_generic_to_shared(&{})) : \"memory\");",
                        is_a ? "x4" : "x2", is_transposed ? ".trans" : "", places(0, words_of(held)), words_of(held),
                        operands("=r", name, words_of(held)), from));
    }

    // "{%0, %1}"
    static std::string places(int64_t first, int64_t count) {
        std::string text;
        for (int64_t i = 0; i < count; i++) text += (i ? ", %" : "%") + std::to_string(first + i);
        return "{" + text + "}";
    }
    // "\"=r\"(a[0]), \"=r\"(a[1])"
    static std::string operands(const std::string &constraint, const std::string &name, int64_t count) {
        std::string text;
        for (int64_t i = 0; i < count; i++) text += fmt::format("{}\"{}\"({}[{}])", i ? ", " : "", constraint, name, i);
        return text;
    }

    void emit(const Fragment &n) {
        const Instruction &family = *find_family(n.family);
        require(cuda_ && family.warp.has_value(), "fragments of a GPU are those of warps");
        const int64_t sums = words_of({&family, FragmentRole::accumulator}), a = words_of({&family, FragmentRole::a}),
                      b = words_of({&family, FragmentRole::b});
        line(fmt::format("asm volatile(\"{} {}, {}, {}, {};\" : {} : {}, {});", family.warp->instruction, places(0, sums), places(sums, a),
                         places(sums + a, b), places(0, sums),
                         operands(is_float(family.accumulator) ? "+f" : "+r", names_.of("buffer", n.accumulator), sums),
                         operands("r", names_.of("buffer", n.a), a), operands("r", names_.of("buffer", n.b), b)));
    }

    void emit(const Prefetch &) { throw UserError("emit.gpu", program_.name + ": prefetches are for CPU targets."); }
    // One thread waits for nobody; PoCL's compiler aborts on some loops whose barrier comes after an inner loop then.
    void emit(const Barrier &) {
        if (threads_ > 1) line(barrier());
        parted_ = false;
    }
    // By elements the copies are there at once, and elsewhere all of them are.
    void emit(const Commit &) {
        if (cuda_) line("asm volatile(\"cp.async.commit_group;\" : : : \"memory\");");
    }
    void emit(const Await &n) {
        if (cuda_) line(fmt::format("asm volatile(\"cp.async.wait_group {};\" : : : \"memory\");", n.pending));
    }
    void emit(const Compute &n) { store(n.buffer, n.index, n.value, n.guard); }
    void emit(const Copy &n) { store(n.buffer, n.index, n.value, n.guard); }
    void emit(const Invoke &) {
        throw UserError("emit.gpu", program_.name + ": calls inside of blocks are not for " + program_.target +
                                        "; expected them around kernels, where the host makes them.");
    }

    void store(const std::string &buffer, const std::vector<Expr> &index, const Expr &value, const Expr &guard) {
        if (guard.defined()) {
            line("if (" + text(guard) + ") {");
            depth_++;
        }
        std::vector<Expr> roots = index;
        roots.push_back(value);
        std::vector<std::string> before, all = expressions_.texts(roots, before);
        std::string v = all.back();
        all.pop_back();
        bool scoped = !before.empty() && !guard.defined();
        if (scoped) line("{"), depth_++;
        lines(before);
        line(element(buffer, all) + " = " + (value.type() == DType::boolean ? "(" + v + ") ? 1 : 0" : v) + ";");
        if (scoped || guard.defined()) depth_--, line("}");
    }
};

}  // namespace

KernelProgram kernels_of(const TileProgram &program, const std::string &stem, const Constants &constants, const Callees &callees,
                         Called called, bool cuda) {
    return Kernels(program, stem, constants, callees, called, cuda).result();
}

}  // namespace tessera::emit_gpu
