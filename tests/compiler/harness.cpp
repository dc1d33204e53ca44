#include "tests/compiler/harness.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <list>
#include <memory>
#include <random>

#include "algorithms/evaluate/reference.h"
#include "compiler/abi/c_names.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/compile/specialize.h"
#include "compiler/emit/emit_gpu.h"
#include "compiler/emit/emit_library.h"
#include "compiler/emit/emit_source.h"
#include "compiler/emit/header.h"
#include "compiler/emit/spec.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/reduction_trees.h"
#include "compiler/rewrite/prepack.h"
#include "compiler/tile/arguments.h"
#include "runtime/abi/tessera.h"
#include "support/text/error.h"
#include "tests/compiler/foreign.h"

namespace tessera::test {

Extents complete(const Algorithm &algorithm, const Extents &symbolic) {
    Extents all = symbolic;
    for (const Dim &d : algorithm.dims) {
        if (d.kind == DimKind::fixed) all[d.name] = d.value;
        if (d.kind == DimKind::symbolic && !d.equals.empty()) all[d.name] = all.at(d.equals);
        if (d.kind != DimKind::derived) continue;
        Expr size = rewrite(
            d.size, [&](const Expr &e) { return e.kind() == ExprKind::extent && all.count(e->name) ? Expr(all.at(e->name)) : Expr(); });
        if (size.is_constant()) all[d.name] = std::max<int64_t>(0, size->value.integer);
    }
    return all;
}

static std::vector<int64_t> shape_of(const Tensor &t, const Extents &extents) {
    std::vector<int64_t> shape;
    for (const std::string &d : t.dims) shape.push_back(extents.at(d));
    return shape;
}

Arrays make_inputs(const Algorithm &algorithm, const Extents &symbolic, uint32_t seed, bool specials) {
    Extents extents = complete(algorithm, symbolic);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> real(-1, 1);
    const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-42, -3e38};
    Arrays arrays;
    for (const Tensor &t : algorithm.tensors) {
        if (t.role == Role::constant) continue;
        Array a(t.dtype, shape_of(t, extents));
        int64_t rows = 0;
        for (int64_t i = 0; i < a.size(); i++) {
            if (is_float(t.dtype)) {
                double v = specials && random() % 13 == 0 ? odd[random() % 6] : real(random);
                a.set(i, Scalar::of_real(t.dtype, v));
            } else if (t.dtype == DType::i64 && t.dims.size() == 1) {
                a.set(i, Scalar::of_integer(t.dtype, rows));
                rows += static_cast<int64_t>(random() % 4);
            } else if (is_in_half_bytes(t.dtype)) {
                a.set(i, Scalar::of_integer(t.dtype, static_cast<int64_t>(random() % 16)));
            } else {
                a.set(i, Scalar::of_integer(t.dtype, static_cast<int64_t>(random() % 9) - 4));
            }
        }
        arrays[t.name] = std::move(a);
    }
    return arrays;
}

Parameters make_parameters(const Algorithm &algorithm, uint32_t seed) {
    Parameters parameters;
    for (const Parameter &p : algorithm.parameters) {
        const Scalar any = is_float(p.dtype) ? Scalar::of_real(p.dtype, 0.25 + seed % 3) : Scalar::of_integer(p.dtype, 3 + seed % 5);
        parameters[p.name] = p.range ? p.range->nearest(any) : any;
    }
    return parameters;
}

Arrays run_reference(const Algorithm &algorithm, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters) {
    EvaluationOptions options;
    options.extents = symbolic;
    return evaluate(algorithm, inputs, parameters, options);
}

static Arrays all_arguments(const TileProgram &program, const Extents &extents, const Arrays &inputs) {
    Arrays all;
    for (const Argument &a : program.arguments) {
        auto it = inputs.find(a.tensor.name);
        if (it != inputs.end()) all[a.tensor.name] = is_in_half_bytes(it->second.dtype) ? in_bytes(it->second) : it->second;
        else all[a.tensor.name] = Array(a.tensor.dtype, shape_of(a.tensor, extents));
        if (it == inputs.end()) std::fill(all[a.tensor.name].data.begin(), all[a.tensor.name].data.end(), std::byte{0xa5});
    }
    return all;
}

static Extents extents_of(const TileProgram &program, const Extents &symbolic) {
    Algorithm dims;
    dims.dims = program.dims;
    return complete(dims, symbolic);
}

// What the program wrote, as its callers see it. What lies behind a row of half bytes is 0.
static Arrays written(const TileProgram &program, const Extents &extents, const Arrays &all) {
    Arrays result;
    for (const Argument &a : program.arguments) {
        if (!a.written) continue;
        const Array &made = result[a.tensor.name] = all.at(a.tensor.name);
        if (!a.half_bytes || a.packed) continue;
        const Tensor declared = declared_tensor(a);
        const Array halves = from_bytes(made, declared.dtype, shape_of(declared, extents));
        if (in_bytes(halves) != made) throw std::runtime_error(program.name + " leaves something behind a row of " + a.tensor.name);
        result[a.tensor.name] = halves;
    }
    return result;
}

Arrays run_interpreter(const TileProgram &program, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters) {
    Extents extents = extents_of(program, symbolic);
    Arrays all = all_arguments(program, extents, inputs);
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : all) views[name] = array.view(name);
    interpret(program, views, symbolic, parameters);
    return written(program, extents, all);
}

Arrays run_lockstep(const TileProgram &program, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters,
                    const LockstepOptions &options, LockstepReport &report) {
    Extents extents = extents_of(program, symbolic);
    Arrays all = all_arguments(program, extents, inputs);
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : all) views[name] = array.view(name);
    report = run_in_lockstep(program, views, symbolic, parameters, options);
    return written(program, extents, all);
}

static std::string compare_all(const Arrays &got, const Arrays &expected, const std::function<bool(const Scalar &, const Scalar &)> &same) {
    for (auto &[name, want] : expected) {
        auto it = got.find(name);
        if (it == got.end()) return name + " is missing";
        if (it->second.extents != want.extents || it->second.dtype != want.dtype) return name + " has another shape or type";
        for (int64_t i = 0; i < want.size(); i++) {
            Scalar g = it->second.get(i), w = want.get(i);
            if (same(g, w)) continue;
            std::string at;
            int64_t rest = i;
            for (size_t d = want.extents.size(); d-- > 0; rest /= want.extents[d])
                at = std::to_string(rest % want.extents[d]) + (at.empty() ? "" : ", ") + at;
            return name + "[" + at + "] is " + to_string(constant(g)) + ", not " + to_string(constant(w));
        }
    }
    return "";
}

std::string differ_in_bits(const Arrays &got, const Arrays &expected) {
    return compare_all(got, expected, [](const Scalar &a, const Scalar &b) { return a == b; });
}

std::string differ(const Arrays &got, const Arrays &expected, double tolerance) {
    return compare_all(got, expected, [&](const Scalar &a, const Scalar &b) {
        if (a == b || !is_float(a.type)) return a == b;
        return std::fabs(a.real - b.real) <= tolerance * (1 + std::fabs(b.real));
    });
}

bool keeps_order(const Algorithm &algorithm, const KnobsByStage &stages) {
    return reduction_trees(algorithm, stages).hash == reduction_trees(algorithm, {}).hash;
}

bool has_opencl() { return TESSERA_OPENCL_LIBRARY[0] != 0; }

std::vector<Target> targets() {
    std::vector<Target> result;
    for (const char *name : {"x86-64", "avx2", "avx512"})
        if (Target t = target_named(name); runs_here(t)) result.push_back(t);
    return result;
}

bool can_emulate(const Target &target) {
    const std::string missing = toolchain_for(target.arch).missing;
    if (!missing.empty()) std::printf("skipped: not installed:%s\n", missing.c_str());
    return missing.empty();
}

TileProgram lowered(const Case &c, const Target &target) {
    TileProgram program = lower_variant(c.algorithm, c.when, c.stages, target);
    program.name = c.name;
    verify(program);
    return program;
}

TileProgram lowered(const std::string &name, const Algorithm &algorithm, const KnobsByStage &stages, const Target &target) {
    return lowered({name, algorithm, stages, {}}, target);
}

std::vector<TileProgram> lowered_packings(const std::string &name, const Algorithm &algorithm, const KnobsByStage &stages,
                                          const Target &target) {
    std::vector<TileProgram> programs = lower_packings(algorithm, stages, target);
    for (TileProgram &program : programs) {
        program.name = name + program.name.substr(algorithm.name.size());
        verify(program);
    }
    return programs;
}

// What stands before the elements of a packed operand.
static std::vector<std::byte> header_of(const Argument &argument, TessDType type, size_t bytes, const Extents &extents) {
    std::vector<std::byte> header(TESS_PACKED_HEADER_BYTES);
    const std::vector<std::string> &dims = carried_dims(argument);
    auto write = [&](size_t at, const auto &value) { std::memcpy(header.data() + at, &value, sizeof value); };
    std::memcpy(header.data(), "TESSPACK", 8);
    write(8, uint32_t{TESS_PACKED_VERSION}), write(12, uint32_t{128}), write(16, layout_hash(*argument.packed)),
        write(24, static_cast<uint32_t>(type));
    write(28, static_cast<uint32_t>(dims.size())), write(32, uint64_t{bytes});
    for (size_t i = 0; i < dims.size(); i++) write(48 + 8 * i, extents.at(dims[i]));
    return header;
}

// Rows of large arguments are so many elements apart, which 32 bits do not hold, or less where they are many. Any `page_elements` are whole
// pages.
static constexpr int64_t far_apart = (int64_t{1} << 31) + (1 << 20), many_rows = 512, page_elements = 1 << 16;

// Memory with a page on either side that nobody may touch, and a pattern around the data.
class Fenced {
public:
    // Rows that are `step` bytes apart, a multiple of a page, and pages that nobody may touch between them.
    Fenced(size_t rows, size_t row, size_t step, size_t gap, bool at_end) : bytes((rows - 1) * step + row), rows_(rows), step_(step) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        inner_ = (row + gap + page - 1) / page * page;
        total_ = (rows - 1) * step + inner_ + 2 * page;
        base_ = static_cast<std::byte *>(mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (base_ == MAP_FAILED) throw std::runtime_error("no address space");
        inside_ = base_ + page;
        for (size_t i = 0; i < rows; i++) {
            if (mprotect(inside_ + i * step, inner_, PROT_READ | PROT_WRITE)) throw std::runtime_error("no memory for a row");
            std::memset(inside_ + i * step, canary, inner_);
        }
        data = at_end ? inside_ + inner_ - row - gap : inside_ + gap;
    }
    Fenced(size_t bytes, size_t gap, bool at_end) : bytes(bytes) {
        size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        inner_ = (bytes + gap + page) / page * page;
        total_ = inner_ + 2 * page;
        base_ = static_cast<std::byte *>(mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base_ == MAP_FAILED) throw std::runtime_error("no memory");
        inside_ = base_ + page;
        std::memset(inside_, canary, inner_);
        mprotect(base_, page, PROT_NONE);
        mprotect(inside_ + inner_, page, PROT_NONE);
        data = at_end ? inside_ + inner_ - bytes - gap : inside_ + gap;
    }
    ~Fenced() { munmap(base_, total_); }
    Fenced(const Fenced &) = delete;

    // Around the data; `also_inside`, and of rows that are apart: everywhere.
    bool intact(bool also_inside) const {
        auto clean = [](const std::byte *from, const std::byte *to) {
            return std::all_of(from, to, [](std::byte b) { return b == std::byte{canary}; });
        };
        for (size_t i = 0; i < rows_ && step_; i++)
            if (!clean(inside_ + i * step_, inside_ + i * step_ + inner_)) return false;
        if (step_) return true;
        return clean(inside_, data) && clean(data + bytes, inside_ + inner_) && (!also_inside || clean(data, data + bytes));
    }
    std::byte *data = nullptr;
    size_t bytes;
    static constexpr uint8_t canary = 0xc3;

private:
    size_t inner_ = 0, total_ = 0, rows_ = 0, step_ = 0;  // step: 0 where there are no rows apart
    std::byte *base_ = nullptr, *inside_ = nullptr;
};

static void write_text(const std::filesystem::path &path, const std::string &text) { std::ofstream(path) << text; }

static std::vector<TargetKernels> kernels_of(const std::vector<TileProgram> &programs, const Target &target) {
    std::vector<Kernel> kernels;
    for (const TileProgram &p : programs) kernels.push_back({p.name, {{{}, p}}});
    return {{target, kernels}};
}

std::vector<Build> c_builds(const std::string &options) {
    std::vector<Build> builds;
    for (const char *compiler : {"gcc", "clang"})
        if (std::system((std::string(compiler) + " --version > /dev/null 2>&1").c_str()) == 0) builds.push_back({compiler, options});
    return builds;
}

static void run_compiler(const std::string &command, const std::string &log) {
    if (std::system((command + " > '" + log + "' 2>&1").c_str()) == 0) return;
    std::ifstream said(log);
    throw std::runtime_error("the kernels do not compile: " + std::string(std::istreambuf_iterator<char>(said), {}).substr(0, 4000));
}

Loaded::Loaded(const std::vector<TileProgram> &programs, const Target &target, const Build &build)
    : Loaded(kernels_of(programs, target), build) {}

Loaded::Loaded(const std::vector<TargetKernels> &targets, const Build &build) {
    const Target &target = targets[0].target;
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
    folder = pattern;
    std::string glue = std::string("#include \"kernels.h\"\n") + (target.is_gpu() ? "#include \"tests/compiler/opencl_call.h\"\n" : ""),
                entries;
    for (const Kernel &kernel : targets[0].kernels) {
        const TileProgram &p = kernel.general();
        names.push_back(p.name);
        entries += "{call_" + p.name + ", size_" + p.name + "}, ";
        std::string tensors, parameters;
        for (size_t i = 0; i < p.arguments.size(); i++) tensors += "t[" + std::to_string(i) + "], ";
        if (!p.parameters.empty()) {
            const std::vector<std::string> names = c_argument_names(p);
            glue += "static " + p.name + "_parameters parameters_" + p.name + "(const int64_t *b) {\n    " + p.name + "_parameters p;\n";
            for (size_t i = 0; i < p.parameters.size(); i++)
                glue += "    p." + names[p.arguments.size() + i] + " = *(const " + c_parameter_type(p.parameters[i].dtype) + " *)(b + " +
                        std::to_string(i) + ");\n";
            glue += "    return p;\n}\n";
            parameters = "&p, ";
        }
        const bool named = has_named_tensors(p);
        const std::string head = "(const TessTensor *const *t, const int64_t *b, const TessContext *c",
                          all = parameters.empty() ? "    (void)b;\n"
                                                   : "    const " + p.name + "_parameters p = parameters_" + p.name + "(b);\n";
        // By name and, for every other kernel, in a table.
        const bool by_name = named && names.size() % 2;
        if (target.is_gpu()) {
            const std::string kernel = "    TessKernel k = tess_kernel();\n    " + p.name +
                                       "_describe(&k);\n    return call_on_device(&k, t, " + std::to_string(p.arguments.size()) + ", " +
                                       (parameters.empty() ? "0" : "&p") + ", c, ";
            glue += "int call_" + p.name + head + ") {\n" + all + kernel + "0);\n}\n";
            glue += "int size_" + p.name + head + ", uint64_t *n) {\n" + all + kernel + "n);\n}\n";
            continue;
        }
        glue += "int call_" + p.name + head + ") {\n" + all + "    return " + p.name + (by_name ? "(" + tensors : "_table(t, ") +
                parameters + "c);\n}\n";
        glue += "int size_" + p.name + head + ", uint64_t *n) { (void)b; return " + p.name + "_workspace(" + (named ? tensors : "t, ") +
                "c, n); }\n";
        glue += "int describe_" + p.name + "(TessKernel *k) { return " + p.name + "_describe(k); }\n";
    }
    write_text(folder / "kernels.h", header_of("kernels", targets));
    std::string code = (folder / "libkernels.a").string(), more;
    if (target.is_gpu()) {
        // PoCL's default device gives wrong results where shared memory is filled inside a loop.
        setenv("POCL_DEVICES", "basic", 0);
        setenv("POCL_CACHE_DIR", (std::filesystem::temp_directory_path() / "tessera-test-pocl").c_str(), 0);
        GpuSource source = tessera::kernels_of(targets[0].kernels, target);
        // What OpenCL's loader holds is lost each time it is unloaded with the last library that needs it.
        [[maybe_unused]] static void *const loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
        code = (folder / "kernels.c").string(), more = std::string(" -DTESSERA_OPENCL=1 '") + TESSERA_SOURCE_DIR +
                                                       "/autotune/measure/opencl_memory.c' '" + TESSERA_OPENCL_LIBRARY + "' -lOpenCL";
        write_text(code, host_of(targets[0].kernels, target, source.kernels, source.uses_double));
        write_text(folder / "kernels.cl", source.kernels);
    } else if (build.compiler.empty()) {
        emit_library(targets, {code, {}});
    }
    std::string at = folder.string();
    std::string folders = std::string(" -I'") + TESSERA_SOURCE_DIR + "/runtime/abi' -I'" + TESSERA_SOURCE_DIR + "'";
    auto compile_source = [&](const std::string &compiler) {
        write_text(folder / "kernels.c", source_of(targets[0].kernels, target));
        code = at + "/kernels.o";
        run_compiler(compiler + " -std=c11 -Wall -Wextra -Werror -Wno-psabi " + build.options + " -c -o '" + code + "' '" + at +
                         "/kernels.c'" + folders,
                     at + "/log");
    };
    if (!target.is_gpu() && target.arch != host_arch()) {
        const std::string head = "(const TessTensor *const *, const int64_t *, const TessContext *";
        write_text(folder / "glue.c", glue + "typedef struct { int (*call)" + head + "); int (*size)" + head +
                                          ", uint64_t *); } Entry;\nconst Entry entries[] = {" + entries + "};\n");
        const Toolchain tools = toolchain_for(target.arch);
        if (!build.compiler.empty()) compile_source(tools.compiler);
        foreign = std::make_unique<Foreign>(folder, code, tools);
        return;
    }
    write_text(folder / "glue.c", glue);
    if (!build.compiler.empty()) compile_source(build.compiler + " -fPIC");
    run_compiler(std::string(TESSERA_CC) + " -std=c99 -O1 -fno-strict-aliasing -fPIC -shared -Wl,-z,text" + folders + " -o '" + at +
                     "/kernels.so' '" + at + "/glue.c' '" + code + "'" + more + " '" + TESSERA_RUNTIME_LIBRARY + "' -lpthread -lm",
                 at + "/log");
    library = dlopen((at + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
}

Loaded::~Loaded() {
    if (library) dlclose(library);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
}

int Loaded::call(const TileProgram &program, const std::vector<TessTensor> &tensors, const std::vector<int64_t> &parameters,
                 const Layout &layout) const {
    auto symbol = [&](const std::string &name) {
        void *address = dlsym(library, name.c_str());
        if (!address) throw std::runtime_error("no symbol " + name);
        return address;
    };
    using Call = int (*)(const TessTensor *const *, const int64_t *, const TessContext *);
    using Size = int (*)(const TessTensor *const *, const int64_t *, const TessContext *, uint64_t *);
    auto run = reinterpret_cast<Call>(symbol("call_" + program.name));
    auto size = reinterpret_cast<Size>(symbol("size_" + program.name));
    std::vector<const TessTensor *> pointers;
    for (const TessTensor &t : tensors) pointers.push_back(&t);
    TessContext context = tess_context();
    context.threads = layout.threads;
    context.features_off = layout.features_off;
    fault = tess_fault();
    context.fault = &fault;
    std::unique_ptr<TessPool, void (*)(TessPool *)> pool(layout.threads > 1 ? tess_pool_create(layout.threads) : nullptr,
                                                         tess_pool_destroy);
    context.pool = pool.get();
    uint64_t bytes = 0;
    int status = size(pointers.data(), parameters.data(), &context, &bytes);
    if (status) return status;
    Fenced workspace(bytes, 0, true);
    context.workspace = bytes ? workspace.data : nullptr;
    context.workspace_bytes = bytes;
    status = run(pointers.data(), parameters.data(), &context);
    if (!workspace.intact(false)) throw std::runtime_error(program.name + " writes beside its workspace");
    return status;
}

Loaded::Room Loaded::workspace(const TileProgram &program, const Extents &symbolic) const {
    const Extents extents = extents_of(program, symbolic);
    std::vector<TessTensor> tensors;
    std::vector<const TessTensor *> pointers;
    std::list<std::vector<int64_t>> shapes;
    for (const Argument &a : program.arguments) {
        const std::vector<int64_t> &shape = shapes.emplace_back(shape_of(a.tensor, extents));
        tensors.push_back(
            tess_dense(nullptr, static_cast<TessDType>(abi_dtype(a.tensor.dtype)), static_cast<int32_t>(shape.size()), shape.data()));
    }
    for (const TessTensor &t : tensors) pointers.push_back(&t);
    using Size = int (*)(const TessTensor *const *, const int64_t *, const TessContext *, uint64_t *);
    auto size = reinterpret_cast<Size>(dlsym(library, ("size_" + program.name).c_str()));
    const TessContext context = tess_context();
    Room room{0, 0};
    room.status = size(pointers.data(), nullptr, &context, &room.bytes);
    return room;
}

// A packing kernel's size query says how much was written.
void Loaded::check_size(const TileProgram &program, const std::vector<TessTensor> &tensors, const Layout &layout) const {
    using Size = int (*)(const TessTensor *, const TessContext *, uint64_t *);
    auto size = reinterpret_cast<Size>(dlsym(library, (program.name + "_size").c_str()));
    TessContext context = tess_context();
    context.features_off = layout.features_off;
    TessTensor operand = tensors[0];
    operand.data = nullptr;
    uint64_t bytes = 0;
    if (!size || size(&operand, &context, &bytes) != TESS_OK || bytes != static_cast<uint64_t>(tensors[1].extents[0]))
        throw std::runtime_error(program.name + "_size gives " + std::to_string(bytes));
}

Arrays Loaded::run(const TileProgram &program, const Extents &symbolic, const Arrays &inputs, const Parameters &parameters,
                   const Layout &layout) const {
    const Extents extents = extents_of(program, symbolic);
    Arrays all = all_arguments(program, extents, inputs);
    std::vector<TessTensor> descriptors(program.arguments.size());
    std::list<std::vector<int64_t>> arrays;
    std::list<uint64_t> sizes;
    std::vector<std::unique_ptr<Fenced>> memory;
    auto is_apart = [&](size_t i) {
        const Array &a = all.at(program.arguments[i].tensor.name);
        if (foreign || names_gpu(program.target)) return false;  // where copies are made of what a tensor spans
        return layout.apart && program.arguments[i].large && a.extents.size() > 1 && a.size() > 0;
    };
    // How many elements further a row begins than the one before it ends.
    auto pitch = [&](size_t i) -> int64_t {
        const Array &a = all.at(program.arguments[i].tensor.name);
        if (!is_apart(i)) return a.extents.size() > 1 ? layout.pitch : 0;
        const int64_t rows = a.size() / a.extents.back();
        return (rows <= many_rows ? far_apart : many_rows * far_apart / rows / page_elements * page_elements) - a.extents.back();
    };
    // Row by row: the pattern stays between rows that are apart.
    auto rows = [&](size_t i, const std::function<void(std::byte *, std::byte *, size_t)> &each) {
        Array &a = all.at(program.arguments[i].tensor.name);
        if (program.arguments[i].packed) {
            if (!a.data.empty()) each(memory[i]->data + TESS_PACKED_HEADER_BYTES, a.data.data(), a.data.size());
            return;
        }
        auto width = a.extents.empty() ? 1 : a.extents.back();
        auto bytes = static_cast<size_t>(width * size_of(a.dtype)), step = static_cast<size_t>((width + pitch(i)) * size_of(a.dtype));
        const int64_t all_rows = width ? a.size() / width : 0,
                      group = layout.backwards && a.extents.size() > 1 && all_rows ? all_rows / a.extents[0] : 0;
        for (int64_t row = 0; row < all_rows; row++) {
            const int64_t place = group ? (a.extents[0] - 1 - row / group) * group + row % group : row;
            each(memory[i]->data + static_cast<size_t>(place) * step, a.data.data() + static_cast<size_t>(row) * bytes, bytes);
        }
    };
    for (size_t i = 0; i < program.arguments.size(); i++) {
        const Argument &argument = program.arguments[i];
        Array &a = all.at(argument.tensor.name);
        std::vector<int64_t> padded = a.extents;
        if (padded.size() > 1) padded.back() += pitch(i);
        int64_t count = 1, size = size_of(a.dtype);
        for (int64_t e : padded) count *= e;
        if (padded.size() > 1 && a.size()) count -= pitch(i);
        if (!a.size()) count = 0;
        const bool halves = argument.half_bytes && !argument.packed;
        const TessDType type = static_cast<TessDType>(abi_dtype(halves ? argument.half_bytes->dtype : a.dtype));
        if (argument.packed) {
            const std::vector<std::byte> header = header_of(argument, type, a.data.size(), extents);
            const size_t bytes = header.size() + a.data.size();
            memory.push_back(std::make_unique<Fenced>(
                bytes, layout.at_end ? (TESS_PACKED_ALIGNMENT - bytes % TESS_PACKED_ALIGNMENT) % TESS_PACKED_ALIGNMENT : 0, layout.at_end));
            descriptors[i] = tess_packed(memory.back()->data, &sizes.emplace_back(bytes));
            rows(i, [](std::byte *there, std::byte *here, size_t n) { std::memcpy(there, here, n); });
            if (argument.read) std::memcpy(memory.back()->data, header.data(), header.size());
            continue;
        }
        const auto gap = static_cast<size_t>(layout.gap * size);
        if (is_apart(i)) {
            const auto rows_of = static_cast<size_t>(a.size() / a.extents.back()), row = static_cast<size_t>(a.extents.back() * size);
            memory.push_back(std::make_unique<Fenced>(rows_of, row, static_cast<size_t>(padded.back() * size), gap, layout.at_end));
        } else {
            memory.push_back(std::make_unique<Fenced>(static_cast<size_t>(count * size), gap, layout.at_end));
        }
        // With strides and a byte offset, or neither where the rows follow each other.
        std::vector<int64_t> &strides = arrays.emplace_back(padded.size(), 1);
        for (size_t d = padded.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(1, padded[d]);
        descriptors[i] = tess_dense(memory[i]->data, type, static_cast<int32_t>(padded.size()),
                                    arrays.emplace_back(halves ? shape_of(declared_tensor(argument), extents) : a.extents).data());
        if (layout.pitch || layout.backwards || is_apart(i) || i % 2) descriptors[i].strides = strides.data();
        if (layout.backwards && padded.size() > 1 && a.size()) {
            descriptors[i].byte_offset = static_cast<uint64_t>((a.extents[0] - 1) * strides[0] * size);
            strides[0] = -strides[0];
        }
        for (size_t d = 0; d + 1 < strides.size() && halves; d++) strides[d] *= 2;
        rows(i, [](std::byte *there, std::byte *here, size_t n) { std::memcpy(there, here, n); });
    }
    std::vector<int64_t> bits(program.parameters.size());
    for (size_t i = 0; i < program.parameters.size(); i++) store_scalar(&bits[i], parameters.at(program.parameters[i].name));
    std::vector<Span> spans;
    for (size_t i = 0; i < memory.size(); i++)
        spans.push_back({memory[i]->data, memory[i]->bytes, static_cast<size_t>(layout.gap * size_of(program.arguments[i].tensor.dtype))});
    const int status = foreign ? foreign->call(static_cast<size_t>(std::find(names.begin(), names.end(), program.name) - names.begin()),
                                               descriptors, spans, bits, layout)
                               : call(program, descriptors, bits, layout);
    if (status) {
        char words[300];
        tess_status_message(status, &fault, nullptr, words, sizeof words);
        throw std::runtime_error(program.name + " gives the status: " + words);
    }
    for (size_t i = 0; i < program.arguments.size(); i++) {
        const Argument &argument = program.arguments[i];
        bool same = true;
        if (argument.packed) {
            const std::vector<std::byte> header = header_of(argument, static_cast<TessDType>(abi_dtype(argument.tensor.dtype)),
                                                            all.at(argument.tensor.name).data.size(), extents);
            if (std::memcmp(header.data(), memory[i]->data, header.size()) != 0)
                throw std::runtime_error(program.name + ": " + argument.tensor.name + " has another header");
            std::memset(memory[i]->data, Fenced::canary, header.size());
            if (argument.written) check_size(program, descriptors, layout);
        }
        rows(i, [&](std::byte *there, std::byte *here, size_t n) {
            if (argument.written) std::memcpy(here, there, n);
            else same = same && std::memcmp(here, there, n) == 0;
            std::memset(there, Fenced::canary, n);
        });
        if (!same) throw std::runtime_error(program.name + " changes its input " + argument.tensor.name);
        if (!memory[i]->intact(true)) throw std::runtime_error(program.name + " writes beside " + argument.tensor.name);
    }
    return written(program, extents, all);
}

}  // namespace tessera::test
