#include "compiler/emit/gpu/host.h"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "compiler/abi/memory_plan.h"
#include "compiler/emit/spec.h"
#include "runtime/gpu/gpu.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera::emit_gpu {

namespace {

std::string round_up(const std::string &bytes) { return fmt::format("(({}) + 63) / 64 * 64", bytes); }

std::string words_of(const std::vector<int64_t> &spec) {
    std::string words;
    for (int64_t word : spec) words += (words.empty() ? "" : ", ") + (word == INT64_MIN ? "INT64_MIN" : fmt::format("INT64_C({})", word));
    return words;
}

// A caller writes parameters to the workspace, and not to a frame.
std::vector<int64_t> spec_of_callee(TileProgram program, const Target &target) {
    program.parameters.clear();
    return spec_of(program, target);
}

// One function, which has the frame: extents by name, and expressions over them.
class Function {
public:
    explicit Function(const TileProgram &p) : program_(p), expressions_(names_, names_) {
        expressions_.position_type = "int64_t";
        for (const char *own : {"frame", "rooms", "at", "part", "call", "status", "run", "most", "caller", "choice", "parameters", "callee",
                                "callee_rooms", "furthest"})
            names_.take(own);
        if (spec_dims(p).empty()) line("(void)frame;");
        size_t slot = 0;
        for (const Dim &d : spec_dims(p)) line(fmt::format("const int64_t {} = frame[{}];", names_.bind("extent", d.name), slot++));
        for (const Dim &d : spec_dims(p)) line(fmt::format("(void){};", names_.of("extent", d.name)));
    }

    void line(const std::string &text) { text_ += std::string(static_cast<size_t>(4 * depth_), ' ') + text + "\n"; }
    void open(const std::string &text) { line(text), depth_++; }
    void close() { depth_--, line("}"); }
    void otherwise() { depth_--, open("} else {"); }
    // Definitions of what it uses come before the line that is written next.
    std::string text(const Expr &e) {
        std::vector<std::string> before;
        std::string result = expressions_.text(e, before);
        for (const std::string &definition : before) line(definition);
        return result;
    }
    const std::string &bind(const std::string &variable) { return names_.bind("variable", variable); }
    std::string finish(const std::string &head) { return head + " {\n" + text_ + "}\n\n"; }
    const TileProgram &program() const { return program_; }

private:
    const TileProgram &program_;
    Names names_;
    Expressions expressions_;
    std::string text_;
    int depth_ = 1;
};

// The functions of one program.
class Program {
public:
    Program(const TileProgram &p, const KernelProgram &k, const std::string &stem, const Target &target, const Constants &constants,
            const Callees &callees, Called called)
        : p_(p),
          k_(k),
          stem_(stem),
          target_(target),
          constants_(constants),
          callees_(callees),
          spec_(called == Called::by_program ? spec_of_callee(p, target) : spec_of(p, target)),
          calls_(has_call(k.plan.steps)) {}

    // As many as "<stem>_rooms" writes, or a launch hands over.
    size_t numbers() const { return launched() + (calls_ ? 1 : 0); }

    // Where each room is in the workspace from `at` on, where the parts of blocks begin and the bytes of one, and last, where there are
    // callees, what is left for them; its end.
    std::string rooms() const {
        Function f(p_);
        f.line("int64_t part = 0;");
        const std::set<size_t> shared = rooms_that_share(f);
        for (size_t i = 0; i < k_.rooms.size(); i++) {
            if (shared.count(i)) continue;
            const char *counter = k_.rooms[i].per_block ? "part" : "at";
            const std::string bytes = round_up(f.text(k_.rooms[i].bytes));
            f.line(fmt::format("rooms[{}] = {}; /* {} */", i, counter, k_.rooms[i].buffer));
            f.line(fmt::format("{} += {};", counter, bytes));
        }
        f.line(fmt::format("rooms[{}] = at;", k_.rooms.size()));
        f.line(fmt::format("rooms[{}] = part;", k_.rooms.size() + 1));
        if (!calls_) {
            f.line(fmt::format("return at + {} * part;", resident_blocks));
        } else {
            f.line(fmt::format("at += {} * part;", resident_blocks));
            f.line(fmt::format("rooms[{}] = at;", room_of_callees()));
            f.line("int64_t most = at;");
            rooms_of_callees(f, k_.plan.steps);
            f.line("return most;");
        }
        return f.finish(fmt::format("static int64_t {}_rooms(const int64_t *frame, int64_t at, int64_t *rooms)", stem_));
    }

    std::string plan() const {
        Function f(p_);
        f.line(fmt::format("int64_t rooms[{}];", numbers()));
        const std::vector<Dim> dims = spec_dims(p_);
        for (size_t d = 0; d < dims.size(); d++) {
            if (dims[d].kind != DimKind::derived) continue;
            int argument = -1, axis = -1;
            for (size_t a = 0; a < p_.arguments.size() && argument < 0; a++)
                for (size_t x = 0; x < p_.arguments[a].tensor.dims.size() && argument < 0; x++)
                    if (p_.arguments[a].tensor.dims[x] == dims[d].name) argument = static_cast<int>(a), axis = static_cast<int>(x);
            const std::string size = f.text(dims[d].size);
            f.line(fmt::format("frame[{}] = {}, frame[{}] = {};", tess_frame_dimension(spec_.data()), axis,
                               tess_frame_expected(spec_.data()), size));
            f.line(fmt::format("if (frame[{}] != {}) return tess_abi2_status(TESS_EXTENT_FIXED, {});", d, size, argument));
        }
        f.line(fmt::format("frame[{}] = {}_rooms(frame, 0, rooms);", tess_frame_shared_bytes(spec_.data()), stem_));
        f.line("return TESS_OK;");
        return f.finish(fmt::format("static int32_t {}_plan(int64_t *frame)", stem_));
    }

    std::string body(const std::string &kernel) const {
        Function f(p_);
        f.line(fmt::format("int64_t rooms[{}];", numbers()));
        f.line("TessGpuRun run;");
        f.line(fmt::format("int32_t status = tess_{}2_begin(&run, &program, {}_spec, frame, call);", device(), kernel));
        f.line(fmt::format("{}_rooms(frame, 0, rooms);", stem_));
        begin(f, "-1", "0");
        steps(f, k_.plan.steps, "-1");
        f.line(fmt::format("return tess_{}2_end(&run, status);", device()));
        return f.finish(fmt::format("static int32_t {}_body(void *call, int64_t *frame)", stem_));
    }

    // `at`: what is left of the workspace; `choice` and `parameters`: where the caller has written them.
    std::string run() const {
        Function f(p_);
        f.line(fmt::format("int64_t rooms[{}];", numbers()));
        f.line("TessGpuRun run = *caller;");
        f.line("int32_t status = TESS_OK;");
        f.line(fmt::format("run.spec = {}_spec;", stem_));
        f.line("run.frame = frame;");
        f.line(fmt::format("{}_rooms(frame, at, rooms);", stem_));
        begin(f, "choice", "parameters");
        steps(f, k_.plan.steps, "choice");
        f.line("return status;");
        return fmt::format("static const int64_t {}_spec[] = {{{}}};\n\n", stem_, words_of(spec_)) +
               f.finish(fmt::format("static int32_t {}_run(const TessGpuRun *caller, const int64_t *frame, int64_t at, int64_t choice, "
                                    "int64_t parameters)",
                                    stem_));
    }

private:
    const TileProgram &p_;
    const KernelProgram &k_;
    const std::string &stem_;
    const Target &target_;
    const Constants &constants_;
    const Callees &callees_;
    std::vector<int64_t> spec_;
    bool calls_;

    const char *device() const { return target_.arch == Arch::cuda ? "cuda" : "opencl"; }
    // What a launch hands over, and what is left of the workspace for callees.
    size_t launched() const { return k_.rooms.size() + k_.numbers_after_rooms(); }
    size_t room_of_callees() const { return launched(); }
    size_t choice() const { return k_.rooms.size() + 2; }
    size_t parameters() const { return k_.rooms.size() + 3; }
    size_t variable(const std::string &name) const {
        return k_.rooms.size() + 4 + static_cast<size_t>(std::distance(k_.plan.variables.begin(), k_.plan.variables.find(name)));
    }
    size_t room(const std::string &buffer) const {
        for (size_t i = 0; i < k_.rooms.size(); i++)
            if (k_.rooms[i].buffer == buffer) return i;
        throw InternalError(buffer + " is not in the workspace");
    }

    static bool has_call(const HostSteps &steps) {
        bool found = false;
        each_call(steps, [&](const HostCall &) { found = true; });
        return found;
    }
    static void each_call(const HostSteps &steps, const std::function<void(const HostCall &)> &visit) {
        for (const HostStep &step : steps)
            std::visit(Overloaded{
                           [](const Launch &) {},
                           [&](const HostCall &n) { visit(n); },
                           [&](const HostLoop &n) { each_call(n.body, visit); },
                           [&](const HostLet &n) { each_call(n.body, visit); },
                           [&](const HostChoice &n) { each_call(n.then, visit), each_call(n.otherwise, visit); },
                           [&](const DeviceChoice &n) { each_call(n.then, visit), each_call(n.otherwise, visit); },
                       },
                       step);
    }

    // A frame of the callee with its extents, as an array named `callee`.
    void frame_of(Function &f, const Invoke &invoke, const TileProgram &callee, const std::vector<int64_t> &spec) const {
        std::vector<std::string> extents;
        for (const Dim &d : spec_dims(callee)) extents.push_back(f.text(invoke.extents.at(d.name)));
        f.line(fmt::format("int64_t callee[{}] = {{0}};", tess_frame_size(spec.data())));
        for (size_t i = 0; i < extents.size(); i++) f.line(fmt::format("callee[{}] = {};", i, extents[i]));
    }

    // The most that any of them needs, since one runs at a time.
    // Those of buffers that share bytes by their lives (memory_plan.h). Kernels run one after another.
    std::set<size_t> rooms_that_share(Function &f) const {
        std::set<size_t> shared;
        const MemoryPlan plan = plan_memory(p_);
        if (!plan.shares) return shared;
        f.line("int64_t furthest = at;");
        std::vector<std::string> ends;
        for (const PlannedBuffer &b : plan.buffers) {
            const size_t number = room(b.buffer.name);
            std::string begin = "at";
            for (size_t other : b.behind) begin = fmt::format("max_i64({}, {})", begin, ends[other]);
            ends.push_back(fmt::format("rooms[{}] + {}", number, round_up(f.text(k_.rooms[number].bytes))));
            f.line(fmt::format("rooms[{}] = {}; /* {} */", number, begin, b.buffer.name));
            f.line(fmt::format("furthest = max_i64(furthest, {});", ends.back()));
            shared.insert(number);
        }
        f.line("at = furthest;");
        return shared;
    }

    void rooms_of_callees(Function &f, const HostSteps &steps) const {
        std::set<std::string> done;
        each_call(steps, [&](const HostCall &n) {
            const Callees::Callee &callee = callees_.of(p_, n.invoke.program);
            std::string what = callee.stem;
            for (const auto &[dim, e] : n.invoke.extents) what += " " + to_string(e);
            if (!done.insert(what).second) return;
            f.open("{");
            frame_of(f, n.invoke, *callee.program, spec_of_callee(*callee.program, target_));
            f.line(fmt::format("int64_t callee_rooms[{}_numbers];", callee.stem));
            f.line(fmt::format("most = max_i64(most, {}_rooms(callee, at, callee_rooms));", callee.stem));
            f.close();
        });
    }

    void begin(Function &f, const std::string &choice_at, const std::string &parameters_at) const {
        if (!k_.in_calls) return;
        f.line(fmt::format("rooms[{}] = {};", choice(), choice_at));
        f.line(fmt::format("rooms[{}] = {};", parameters(), parameters_at));
        for (const auto &[name, count] : k_.plan.variables) f.line(fmt::format("rooms[{}] = 0;", variable(name)));
    }

    // `chosen`: where the choice around the steps is written.
    void steps(Function &f, const HostSteps &all, const std::string &chosen) const {
        for (const HostStep &step : all) std::visit([&](const auto &n) { emit(f, n, chosen); }, step);
    }

    void launch(Function &f, size_t number) const {
        const KernelFunction &kernel = k_.functions[number];
        std::string blocks = f.text(kernel.blocks);
        if (kernel.in_turns) blocks = fmt::format("min_i64({}, {})", blocks, resident_blocks);
        const std::string more = kernel.shared_bytes > 0 ? std::to_string(kernel.shared_bytes) + ", " : "";
        f.line(fmt::format("if (status == TESS_OK) status = tess_{}2_launch{}(&run, \"{}\", {}, {}, {}rooms, {});", device(),
                           more.empty() ? "" : "_shared", kernel.name, blocks, kernel.threads, more, launched()));
    }

    void emit(Function &f, const Launch &n, const std::string &) const { launch(f, n.kernel); }

    void emit(Function &f, const HostLoop &n, const std::string &chosen) const {
        const std::string count = f.text(n.count), v = f.bind(n.variable);
        f.open(fmt::format("for (int64_t {0} = 0; {0} < {1} && status == TESS_OK; {0}++) {{", v, count));
        f.line(fmt::format("rooms[{}] = {};", variable(n.variable), v));
        steps(f, n.body, chosen);
        f.close();
    }

    void emit(Function &f, const HostLet &n, const std::string &chosen) const {
        f.open("{");
        const std::string value = f.text(n.value), v = f.bind(n.variable);
        f.line(fmt::format("const int64_t {} = {};", v, value));
        f.line(fmt::format("rooms[{}] = {};", variable(n.variable), v));
        steps(f, n.body, chosen);
        f.close();
    }

    void emit(Function &f, const HostChoice &n, const std::string &chosen) const {
        f.open("if (" + f.text(n.condition) + ") {");
        steps(f, n.then, chosen);
        if (!n.otherwise.empty()) {
            f.otherwise();
            steps(f, n.otherwise, chosen);
        }
        f.close();
    }

    void emit(Function &f, const DeviceChoice &n, const std::string &chosen) const {
        launch(f, n.kernel);
        const std::string then = fmt::format("rooms[{}]", room(n.buffer)), otherwise = then + " + 4";
        f.line(fmt::format("rooms[{}] = {};", choice(), then));
        steps(f, n.then, then);
        if (!n.otherwise.empty()) {
            f.line(fmt::format("rooms[{}] = {};", choice(), otherwise));
            steps(f, n.otherwise, otherwise);
        }
        f.line(fmt::format("rooms[{}] = {};", choice(), chosen));
    }

    void emit(Function &f, const HostCall &n, const std::string &) const {
        if (n.kernel) launch(f, *n.kernel);
        const Callees::Callee &callee = callees_.of(p_, n.invoke.program);
        const std::vector<int64_t> spec = spec_of_callee(*callee.program, target_);
        f.open("if (status == TESS_OK) {");
        frame_of(f, n.invoke, *callee.program, spec);
        f.line(fmt::format("callee[{}] = frame[{}];", tess_frame_workspace(spec.data()), tess_frame_workspace(spec_.data())));
        for (size_t i = 0; i < n.invoke.arguments.size(); i++)
            pass(f, n.invoke.arguments[i], callee.program->arguments[i], static_cast<int64_t>(i), spec);
        f.line(fmt::format("status = {}_run(&run, callee, rooms[{}], rooms[{}], {});", callee.stem, room_of_callees(), choice(),
                           n.kernel ? fmt::format("rooms[{}]", room(n.buffer)) : "0"));
        f.close();
    }

    // The memory in which a buffer is, how many bytes after its begin the buffer begins, and how far apart elements are along its axes.
    struct Place {
        std::string memory, bytes;
        std::vector<std::string> strides;
    };
    Place place(Function &f, const std::string &buffer) const {
        for (size_t i = 0; i < p_.arguments.size(); i++) {
            const Tensor &t = p_.arguments[i].tensor;
            if (t.name != buffer) continue;
            const auto number = static_cast<int64_t>(i);
            Place at{fmt::format("frame[{}]", tess_frame_data(spec_.data(), number)), "", {}};
            if (target_.arch == Arch::opencl) at.bytes = fmt::format("frame[{}]", tess_frame_offset(spec_.data(), number));
            for (size_t axis = 0; axis < t.dims.size(); axis++)
                at.strides.push_back(axis + 1 == t.dims.size()
                                         ? "1"
                                         : fmt::format("frame[{}]", tess_frame_stride(spec_.data(), number, static_cast<int64_t>(axis))));
            return at;
        }
        for (const Tensor &t : p_.constants) {
            if (t.name != buffer) continue;
            Place at{"(int64_t)(uintptr_t)run.loaded->constants", std::to_string(constants_.at(t)), {}};
            std::vector<Expr> extents;
            for (const std::string &name : t.dims)
                for (const Dim &d : p_.dims)
                    if (d.name == name) extents.emplace_back(d.value);
            at.strides = dense(f, extents);
            return at;
        }
        for (const Buffer &b : k_.plan.buffers)
            if (b.name == buffer)
                return {fmt::format("frame[{}]", tess_frame_workspace(spec_.data())), fmt::format("rooms[{}]", room(buffer)),
                        dense(f, b.extents)};
        throw InternalError(buffer + " is not there where it is passed on");
    }
    static std::vector<std::string> dense(Function &f, const std::vector<Expr> &extents) {
        std::vector<std::string> strides(extents.size());
        Expr product(1);
        for (size_t i = extents.size(); i-- > 0; product = extents[i] * product) strides[i] = "(" + f.text(product) + ")";
        return strides;
    }

    void pass(Function &f, const BufferView &view, const Argument &argument, int64_t number, const std::vector<int64_t> &spec) const {
        const Place at = place(f, view.buffer);
        std::string bytes = at.bytes;
        for (size_t axis = 0; axis < view.first.size(); axis++)
            if (!view.first[axis].is_constant(0))
                bytes += fmt::format("{}({}) * {} * {}", bytes.empty() ? "" : " + ", f.text(view.first[axis]), at.strides[axis],
                                     size_of(argument.tensor.dtype));
        const bool in_object = target_.arch == Arch::opencl;
        f.line(fmt::format("callee[{}] = {}{};", tess_frame_data(spec.data(), number), at.memory,
                           in_object || bytes.empty() ? "" : " + " + bytes));
        if (in_object && !bytes.empty()) f.line(fmt::format("callee[{}] = {};", tess_frame_offset(spec.data(), number), bytes));
        for (size_t axis = 0; axis < argument.tensor.dims.size(); axis++) {
            const std::string stride = view.is_whole() ? at.strides[axis]
                                       : view.axes[axis].step.is_constant(0)
                                           ? "0"
                                           : fmt::format("({}) * {}", f.text(view.axes[axis].step), at.strides[view.axes[axis].of]);
            f.line(fmt::format("callee[{}] = {};", tess_frame_stride(spec.data(), number, static_cast<int64_t>(axis)), stride));
        }
    }
};

}  // namespace

Host::Host(const Target &target, const Constants &constants, const Callees &callees)
    : target_(target), constants_(constants), callees_(callees) {}

std::string Host::functions_of(const TileProgram &program, const KernelProgram &kernels, const std::string &stem,
                               const std::string &kernel) const {
    const Program p(program, kernels, stem, target_, constants_, callees_, Called::by_host);
    return p.rooms() + p.plan() + p.body(kernel);
}

std::string Host::functions_of_callee(const TileProgram &program, const KernelProgram &kernels, const std::string &stem) const {
    const Program p(program, kernels, stem, target_, constants_, callees_, Called::by_program);
    return fmt::format("enum {{ {}_numbers = {} }};\n\n", stem, p.numbers()) + p.rooms() + p.run();
}

}  // namespace tessera::emit_gpu
