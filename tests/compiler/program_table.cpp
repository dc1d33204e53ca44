// Sharded programs as tables: kernels that a compiler made, on ranks that are threads, give the bits of the interpreter over ranks.
#include "compiler/mesh/program_table.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/mesh/evaluate_ranks.h"
#include "algorithms/mesh/shard.h"
#include "algorithms/transform/bind_extents.h"
#include "compiler/emit/emit_source.h"
#include "compiler/emit/spec.h"
#include "compiler/lower/lower.h"
#include "runtime/mesh/program.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "tests/mesh/ranks.h"

namespace tessera::test_program_table {

namespace {

using test_mesh::on_ranks;

const Numerics f32 = numerics_named("f32");

// Memory of a rank, aligned as tess_mesh_run wants it.
struct Memory {
    explicit Memory(uint64_t bytes) : data(std::aligned_alloc(64, (bytes + 64) / 64 * 64)) { std::memset(data, 0xa5, bytes); }
    ~Memory() { std::free(data); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    void *data;
};

// The parts of a program as C, compiled and loaded.
class Kernels {
public:
    explicit Kernels(const ProgramTable &table) {
        const Target target = target_named("x86-64");
        std::vector<Kernel> kernels;
        for (const Algorithm *part : table.kernels) {
            programs_.push_back(lower(*part, {}, target));
            kernels.push_back({part->name, {{{}, programs_.back()}}});
        }
        const std::string at = folder_.path().string();
        std::ofstream(at + "/kernels.c") << source_of(kernels, target);
        const std::string folder = TESSERA_SOURCE_DIR;
        const std::string options =
            " -std=c11 -O0 -ffp-contract=off -Wno-psabi -fPIC -shared -I'" + folder + "' -I'" + folder + "/runtime/abi'";
        const std::string command =
            TESSERA_CC + options + " -o '" + at + "/kernels.so' '" + at + "/kernels.c' '" + TESSERA_RUNTIME_LIBRARY + "' -lpthread -lm";
        REQUIRE(std::system(command.c_str()) == 0);
        library_ = dlopen((at + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        REQUIRE(library_);
        for (const Algorithm *part : table.kernels) {
            kernels_.push_back(tess_kernel());
            const auto describe = reinterpret_cast<int32_t (*)(TessKernel *)>(dlsym(library_, (part->name + "_describe").c_str()));
            REQUIRE(describe);
            REQUIRE(describe(&kernels_.back()) == TESS_OK);
        }
    }
    ~Kernels() {
        if (library_) dlclose(library_);
    }
    Kernels(const Kernels &) = delete;
    Kernels &operator=(const Kernels &) = delete;

    // As a rank runs them. `blocks` has their parameters.
    std::vector<TessProgramKernel> of_rank(const MeshProgram &p, int64_t rank, const std::map<std::string, Scalar> &parameters,
                                           std::vector<std::vector<uint64_t>> &blocks) const {
        std::vector<TessProgramKernel> all;
        blocks.resize(kernels_.size());
        for (size_t i = 0; i < kernels_.size(); i++) {
            const ParameterLayout layout = parameter_layout(programs_[i]);
            blocks[i].resize(static_cast<size_t>(layout.bytes + 7) / 8);
            for (size_t j = 0; j < programs_[i].parameters.size(); j++) {
                const std::string &name = programs_[i].parameters[j].name;
                Scalar value;
                if (const auto given = parameters.find(name); given != parameters.end()) value = given->second;
                for (const MeshAxis &axis : p.mesh.axes)
                    if (name == rank_parameter(axis.name)) value = Scalar::of_integer(DType::i32, p.mesh.coordinate(rank, axis.name));
                store_scalar(reinterpret_cast<char *>(blocks[i].data()) + layout.offsets[j], value);
            }
            TessProgramKernel kernel = {};
            kernel.size = sizeof kernel, kernel.kernel = &kernels_[i];
            kernel.parameters = blocks[i].empty() ? nullptr : blocks[i].data();
            all.push_back(kernel);
        }
        return all;
    }

private:
    TemporaryFolder folder_;
    std::vector<TileProgram> programs_;
    std::vector<TessKernel> kernels_;
    void *library_ = nullptr;
};

void check_on_threads(const Algorithm &f, const std::string &mesh, const std::string &layout, int64_t chunks = 0) {
    INFO(f.name << " on " << mesh << ", layout " << layout);
    const MeshProgram p = shard(f, mesh_named(mesh), layout_named(f, layout, chunks));
    std::mt19937 random(5);
    Arrays whole;
    for (const Tensor &t : f.tensors) {
        if (t.role == Role::constant) continue;
        std::vector<int64_t> shape;
        for (const std::string &d : t.dims) shape.push_back(f.dim(d).value);
        Array array(t.dtype, shape);
        for (int64_t i = 0; i < array.size(); i++)
            array.set(i, is_float(t.dtype) ? Scalar::of_real(t.dtype, std::uniform_real_distribution<double>(-1, 1)(random))
                                           : Scalar::of_integer(t.dtype, static_cast<int64_t>(random() % 4)));
        whole[t.name] = array;
    }
    std::map<std::string, Scalar> parameters;
    for (const Parameter &q : f.parameters)
        parameters[q.name] = is_float(q.dtype) ? Scalar::of_real(q.dtype, 0.5) : Scalar::of_integer(q.dtype, 1);
    const std::vector<Arrays> given = placed(p, whole), expected = evaluate_ranks(p, given, parameters);

    const ProgramTable table = program_table(p);
    const TessProgramTable words = {table.words.data(), table.words.size() * 8};
    const auto ranks = static_cast<int>(p.mesh.ranks());
    TessFault fault = tess_fault();
    REQUIRE(tess_program_verify(&words, 1, ranks, &fault) == TESS_OK);
    const Kernels kernels(table);
    std::string wrong;
    std::mutex one;
    on_ranks(ranks, [&](TessMesh *threads, int rank) {
        const auto bad = [&](const std::string &what) {
            const std::lock_guard lock(one);
            wrong += "rank " + std::to_string(rank) + ": " + what + "; ";
        };
        const auto at = static_cast<size_t>(rank);
        std::vector<std::vector<uint64_t>> blocks;
        const std::vector<TessProgramKernel> own = kernels.of_rank(p, rank, parameters, blocks);
        std::vector<std::unique_ptr<Memory>> memory;
        std::vector<void *> buffers;
        for (const ProgramTable::Buffer &b : table.buffers) {
            memory.push_back(std::make_unique<Memory>(b.bytes)), buffers.push_back(memory.back()->data);
            if (const auto it = given[at].find(b.name); it != given[at].end()) std::memcpy(buffers.back(), it->second.data.data(), b.bytes);
        }
        buffers.resize(buffers.size() + static_cast<size_t>(table.local_buffers));
        const Memory arena(table.arena_bytes);
        TessProgram *program = nullptr;
        TessFault why = tess_fault();
        int32_t status = tess_program_make(&words, own.data(), static_cast<int32_t>(own.size()), threads, nullptr, &program, &why);
        if (status != TESS_OK) return bad(std::string("make: ") + tess_status_kind(status));
        TessContext context = tess_context();
        const Memory workspace(tess_program_workspace(program));
        context.workspace = workspace.data, context.workspace_bytes = tess_program_workspace(program);
        status = tess_mesh_run(program, buffers.data(), arena.data, &context, &why);
        if (status != TESS_OK) bad(std::string("run: ") + tess_status_kind(status));
        else
            for (size_t i = 0; i < table.buffers.size(); i++)
                if (const auto it = expected[at].find(table.buffers[i].name);
                    it != expected[at].end() && std::memcmp(buffers[i], it->second.data.data(), table.buffers[i].bytes) != 0)
                    bad(table.buffers[i].name + " has other bits");
        tess_program_destroy(program);
    });
    CHECK(wrong == "");
}

Algorithm two_layers() {
    Builder f("two_layers", f32);
    const Dim B = f.dim("B", 8), K = f.dim("K", 16), H = f.dim("H", 32), O = f.dim("O", 8);
    const Tile x = f.input("x", {B, K}), w_in = f.input("w_in", {K, H}), w_out = f.input("w_out", {H, O});
    const Tile hidden = gelu(dot(x, w_in, {K})).named("hidden");  // (B, H)
    return f.output("y", dot(hidden, w_out, {H})).build();        // (B, O)
}

Algorithm training_step() {
    Builder f("training_step", f32);
    const Dim B = f.dim("B", 8), K = f.dim("K", 16), O = f.dim("O", 4);
    const Tile x = f.input("x", {B, K}), target = f.input("target", {B, O}), w = f.state("w", {K, O});
    const Tile error = (dot(x, w, {K}) - target).named("error");  // (B, O)
    const Tile gradient = dot(x, error, {B}).named("gradient");   // (K, O)
    f.update("update_w", w, {f.index(K), f.index(O)}, w - gradient * f.parameter("rate", DType::f32));
    return f.output("loss", sum(sum(error * error, O), B)).build();
}

}  // namespace

TEST_CASE("sharded programs run on threads with the interpreter's bits", "[mesh]") {
    for (const int n : {1, 2, 4}) {
        const std::string of = "=" + std::to_string(n);
        check_on_threads(two_layers(), "t" + of, "H=t", 4);
        check_on_threads(two_layers(), "t" + of, "B=t,H=t", 4);
        check_on_threads(two_layers(), "t" + of, "K=t", 4);
        check_on_threads(two_layers(), "d=2,t" + of, "B=d,H=t");
        check_on_threads(training_step(), "data" + of, "B=data", 4);
        check_on_threads(training_step(), "data" + of, "B=data,K=data,x.K=", 4);
        const Algorithm attention = bind_extents(library::attention_causal(f32), {{"H", 4}, {"S", 8}, {"T", 8}, {"D", 8}, {"E", 8}});
        check_on_threads(attention, "c" + of, "T=c", 4);
        check_on_threads(attention, "h=2,c" + of, "H=h,S=c");
        check_on_threads(attention, "c" + of, "H=c,q.H=,q.S=c,k.H=,k.T=c,v.H=,v.T=c,o.H=,o.S=c");
        check_on_threads(bind_extents(library::dropout(f32), {{"M", 4}, {"N", 12}}), "a" + of, "N=a");
        check_on_threads(bind_extents(library::argmax(f32), {{"M", 4}, {"N", 16}}), "a" + of, "N=a");
        check_on_threads(bind_extents(library::transpose(f32), {{"M", 8}, {"N", 4}}), "a" + of, "M=a,N=a");
    }
}

TEST_CASE("a table has tensors of fixed extents", "[mesh]") {
    const Algorithm f = bind_extents(library::matmul(f32), {{"K", 8}});
    CHECK_THROWS_WITH(
        program_table(shard(f, mesh_named("a=2"), layout_named(f, "K=a"))),
        "error[mesh.extent]: matmul.x: its dim 'M' has no fixed extent, as tensors in a table have; bind it first (bind_extents).");
}

}  // namespace tessera::test_program_table
