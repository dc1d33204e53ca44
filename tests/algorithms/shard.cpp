// Sharding: what all ranks give together is what the algorithm gives.
#include "algorithms/mesh/shard.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/convolution.h"
#include "algorithms/build/indexing.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/mesh/evaluate_ranks.h"
#include "algorithms/mesh/program_json.h"
#include "algorithms/transform/bind_extents.h"
#include "algorithms/transform/given_extents.h"
#include "support/text/error.h"

namespace tessera::test_shard {

namespace {

const Numerics f32 = numerics_named("f32");

struct Sample {
    Algorithm algorithm;
    Arrays whole;
    std::map<std::string, Scalar> parameters;
};

// The extent of a dim whose size no data decides.
int64_t extent_in(const Algorithm &a, const Dim &d) {
    if (!d.size.defined()) return d.value;
    const Expr size = replace_extents(d.size, [&](const Expr &e) { return Expr(extent_in(a, a.dim(e->name))); });
    REQUIRE(size.is_constant());
    return size->value.integer;
}

// The algorithm with all its dims fixed, and numbers for its inputs.
Sample sample(const Algorithm &f, const Extents &extents, std::mt19937 &random) {
    Extents own;
    for (const auto &[dim, extent] : extents)
        if (const Dim *d = f.find_dim(dim); d && d->kind == DimKind::symbolic) own[dim] = extent;
    Sample s{bind_extents(f, own), {}, {}};
    for (const Tensor &t : s.algorithm.tensors) {
        if (t.role == Role::constant) continue;
        std::vector<int64_t> shape;
        for (const std::string &d : t.dims) shape.push_back(extent_in(s.algorithm, s.algorithm.dim(d)));
        Array array(t.dtype, shape);
        for (int64_t i = 0; i < array.size(); i++) {
            if (is_float(t.dtype)) array.set(i, Scalar::of_real(t.dtype, std::uniform_real_distribution<double>(-1, 1)(random)));
            else array.set(i, Scalar::of_integer(t.dtype, static_cast<int64_t>(random() % (t.dtype == DType::boolean ? 2 : 4))));
        }
        s.whole[t.name] = array;
    }
    for (const Parameter &p : s.algorithm.parameters)
        s.parameters[p.name] = is_float(p.dtype) ? Scalar::of_real(p.dtype, 0.5) : Scalar::of_integer(p.dtype, 1);
    return s;
}

double distance(const Array &a, const Array &b) {
    const std::vector<double> x = a.values(), y = b.values();
    REQUIRE(x.size() == y.size());
    double most = 0, largest = 1;
    for (size_t i = 0; i < x.size(); i++) most = std::max(most, std::abs(x[i] - y[i])), largest = std::max(largest, std::abs(x[i]));
    return most / largest;
}

size_t count_of(const MeshProgram &p, CollectiveKind kind) {
    size_t count = 0;
    for (const MeshStep &step : p.steps)
        if (const auto *c = std::get_if<Collective>(&step)) count += c->kind == kind;
    return count;
}

size_t collectives(const MeshProgram &p) {
    return count_of(p, CollectiveKind::all_to_all) + count_of(p, CollectiveKind::all_reduce) + count_of(p, CollectiveKind::reduce_scatter) +
           count_of(p, CollectiveKind::all_gather);
}

// Whether a fold of floats runs over a dim that the layout cuts: then the tree of chunks decides the bits.
bool folds_floats(const MeshProgram &p) {
    for (const MeshTensor &t : p.tensors)
        for (const std::string &d : t.dims)
            if (d.ends_with(".chunks") && is_float(t.dtype)) return true;
    return false;
}

// What is written is a document by the schema, and is read as what it was.
void check_json(const MeshProgram &p) {
    static valijson::Schema schema;
    static const bool is_there = [] {
        std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/schedules/tessera-mesh-program.schema.json");
        valijson::SchemaParser(valijson::SchemaParser::kDraft7)
            .populateSchema(valijson::adapters::NlohmannJsonAdapter(nlohmann::json::parse(file)), schema);
        return true;
    }();
    const nlohmann::json written = to_json(p);
    CHECK((is_there && valijson::Validator(valijson::Validator::kStrongTypes)
                           .validate(schema, valijson::adapters::NlohmannJsonAdapter(written), nullptr)));
    const MeshProgram read = mesh_program_from_json(written);
    CHECK(to_json(read) == written);
    CHECK(to_whole_text(read) == to_whole_text(p));
    CHECK(hash_of(read) == hash_of(p));
    CHECK_NOTHROW(verify(read));
}

void check_law(const Sample &s, const std::string &axes_of_one, const std::string &layout_text) {
    INFO(s.algorithm.name << ", layout " << layout_text);
    const Arrays expected = evaluate(s.algorithm, s.whole, s.parameters);
    const auto on = [&](int64_t n, int64_t chunks) {
        std::string text = axes_of_one;
        for (char &c : text)
            if (c == '1') c = static_cast<char>('0' + n);
        const Layout layout = layout_named(s.algorithm, layout_text, chunks);
        const MeshProgram p = shard(s.algorithm, mesh_named(text), layout);
        INFO(to_text(p));
        check_json(p);
        const Arrays got = evaluate_whole(p, s.whole, s.parameters);
        REQUIRE(got.size() == expected.size());
        for (const auto &[name, array] : expected) {
            INFO(name);
            if (n == 1 && chunks == 0) CHECK(got.at(name) == array);
            else if (!folds_floats(p)) CHECK(got.at(name) == array);
            else CHECK(distance(array, got.at(name)) < 2e-5);
        }
        return got;
    };
    on(1, 0);
    on(2, 0);
    const Arrays one = on(1, 4);
    for (const int64_t n : {2, 4}) {
        INFO(n << " ranks");
        CHECK(on(n, 4) == one);
    }
}

Algorithm mlp() {
    Builder f("mlp", f32);
    const Dim B = f.dim("B"), K = f.dim("K"), H = f.dim("H"), O = f.dim("O");
    const Tile x = f.input("x", {B, K}), w_in = f.input("w_in", {K, H}), w_out = f.input("w_out", {H, O}), bias = f.input("bias", {O});
    const Tile hidden = gelu(dot(x, w_in, {K})).named("hidden");                // (B, H)
    return f.output("y", dot(hidden, w_out, {H}).named("out") + bias).build();  // (B, O)
}

// The gradient of half the squared error of a linear layer by its weights, with a step of it.
Algorithm training_step() {
    Builder f("training_step", f32);
    const Dim B = f.dim("B"), K = f.dim("K"), O = f.dim("O");
    const Tile x = f.input("x", {B, K}), target = f.input("target", {B, O}), w = f.state("w", {K, O});
    const Tile error = (dot(x, w, {K}) - target).named("error");  // (B, O)
    const Tile gradient = dot(x, error, {B}).named("gradient");   // (K, O)
    f.update("update_w", w, {f.index(K), f.index(O)}, w - gradient * 0.01);
    return f.output("error_out", error).build();
}

Algorithm two_layers() {
    Builder f("two_layers", f32);
    const Dim B = f.dim("B"), K = f.dim("K"), H = f.dim("H"), O = f.dim("O");
    const Tile x = f.input("x", {B, K}), w_in = f.input("w_in", {K, H}), w_out = f.input("w_out", {H, O});
    const Tile hidden = relu(dot(x, w_in, {K}));                               // (B, H)
    return f.output("y", relu(dot(hidden, w_out, {H}).named("out"))).build();  // (B, O)
}

std::vector<Algorithm> library_algorithms() {
    using namespace library;
    const auto options = [](const std::vector<Option> &of) { return complete_options("", of, {}); };
    return {matmul(f32),
            linear(f32),
            linear_gelu(f32),
            gemv(f32),
            linear_swiglu(f32),
            matmul_s8s8(f32),
            matmul_dynamic_qint8(f32),
            softmax(f32),
            layernorm(f32),
            residual_rmsnorm(f32),
            group_norm_nhwc(f32),
            logsumexp(f32),
            cross_entropy(f32),
            attention(f32),
            attention_causal(f32),
            attention_kept(f32),
            attention_decode(f32),
            conv2d_nhwc(f32, options(window_options())),
            column_sum(f32),
            cumulative_sum(f32),
            segmented_sum(f32),
            ring_append(f32),
            adamw(f32, options(adamw_options())),
            sgd_momentum(f32),
            embedding(f32),
            rotary(f32, options(rotary_options())),
            argmax(f32),
            transpose(f32),
            concat(f32),
            histogram(f32),
            embedding_gradient(f32),
            random_uniform(f32),
            random_normal(f32),
            dropout(f32),
            feed_forward(f32),
            mlp(),
            training_step()};
}

}  // namespace

TEST_CASE("what ranks give together is what the algorithm gives", "[shard]") {
    std::mt19937 random(7);
    size_t refused = 0;
    for (const Algorithm &f : library_algorithms()) {
        Extents extents;
        for (const Dim &d : f.dims)
            if (d.kind == DimKind::symbolic) extents[d.name] = allowed_extent(f, d, random() % 2 ? 8 : 4);
        const Sample s = sample(f, extents, random);
        for (int round = 0; round < 6; round++) {
            const bool is_grid = round % 2;
            std::string layout;
            for (const Dim &d : s.algorithm.dims) {
                if (d.kind != DimKind::fixed || d.value % 4 != 0 || random() % 3 == 0) continue;
                layout += (layout.empty() ? "" : ",") + d.name + (is_grid && random() % 2 ? "=b" : "=a");
            }
            try {
                check_law(s, is_grid ? "a=1,b=1" : "a=1", layout);
            } catch (const UserError &e) {  // what the rewrite says that it cannot
                INFO(e.what());
                CHECK((e.id() == "mesh.ragged" || e.id() == "mesh.state" || e.id() == "mesh.twice"));
                refused++;
            }
        }
    }
    CHECK(refused <= 20);
}

namespace {

MeshProgram sharded(const Sample &s, const std::string &mesh, const std::string &layout, int64_t chunks = 0) {
    return shard(s.algorithm, mesh_named(mesh), layout_named(s.algorithm, layout, chunks));
}

// Rows [first, first + count) of the first dim.
Array rows_of(const Array &whole, int64_t first, int64_t count) {
    std::vector<int64_t> extents = whole.extents;
    const auto row = whole.data.size() / static_cast<size_t>(extents[0]);
    extents[0] = count;
    Array part(whole.dtype, extents);
    std::copy_n(whole.data.begin() + static_cast<std::ptrdiff_t>(row) * first, part.data.size(), part.data.begin());
    return part;
}

}  // namespace

TEST_CASE("a product over a cut dim is the all-reduce of what ranks multiply", "[shard]") {
    std::mt19937 random(1);
    const Sample s = sample(library::gemv(f32), {{"M", 5}, {"K", 8}}, random);
    for (const int64_t n : {1, 2, 4, 8}) {
        const MeshProgram p = sharded(s, "t=" + std::to_string(n), "K=t");
        CHECK(collectives(p) == 1);
        // By hand: a rank's columns of a, its elements of x.
        Extents extents = {{"M", 5}, {"K", 8 / n}};
        const Algorithm own = bind_extents(library::gemv(f32), extents);
        std::vector<Array> partial;
        for (int64_t r = 0; r < n; r++) {
            Array columns(DType::f32, {5, 8 / n});
            for (int64_t i = 0; i < columns.size(); i++) columns.set(i, s.whole.at("a").get(i / (8 / n) * 8 + r * (8 / n) + i % (8 / n)));
            Array y = evaluate(own, {{"a", columns}, {"x", rows_of(s.whole.at("x"), r * (8 / n), 8 / n)}}).at("y");
            y.extents.insert(y.extents.begin(), 1);
            partial.push_back(y);
        }
        const Array by_hand = exchanged({CollectiveKind::all_reduce, "t", "", "", MeshMonoid::sum}, partial).at(0);
        CHECK(evaluate_whole(p, s.whole).at("y") == by_hand);
    }
}

TEST_CASE("the known schemes are layouts", "[shard]") {
    std::mt19937 random(2);
    const Extents extents = {{"B", 8}, {"K", 16}, {"H", 16}, {"O", 8}};
    SECTION("data parallel: gradients are all-reduced, nothing else moves") {
        const Sample s = sample(training_step(), {{"B", 32}, {"K", 16}, {"O", 4}}, random);
        const MeshProgram p = sharded(s, "data=4", "B=data", 4);
        INFO(to_text(p));
        CHECK(count_of(p, CollectiveKind::all_reduce) == 1);
        CHECK(collectives(p) == 1);
        CHECK(evaluate_whole(p, s.whole) == evaluate_whole(sharded(s, "data=1", "B=data", 4), s.whole));
    }
    SECTION("data parallel with weights cut: they are gathered, gradients are reduced and scattered") {
        const Sample s = sample(training_step(), {{"B", 32}, {"K", 16}, {"O", 4}}, random);
        const MeshProgram p = sharded(s, "data=4", "B=data,K=data,x.K=", 4);
        INFO(to_text(p));
        CHECK(count_of(p, CollectiveKind::all_gather) == 1);
        CHECK(count_of(p, CollectiveKind::reduce_scatter) == 1);
        CHECK(collectives(p) == 2);
        CHECK(evaluate_whole(p, s.whole) == evaluate_whole(sharded(s, "data=1", "B=data", 4), s.whole));
    }
    SECTION("tensor parallel: one all-reduce for two products") {
        const Sample s = sample(mlp(), extents, random);
        const MeshProgram p = sharded(s, "tensor=2", "H=tensor");
        INFO(to_text(p));
        CHECK(count_of(p, CollectiveKind::all_reduce) == 1);
        CHECK(collectives(p) == 1);
    }
    SECTION("tensor parallel with rows cut: an all-gather and a reduce-scatter") {
        const Sample s = sample(mlp(), {{"B", 4}, {"K", 16}, {"H", 64}, {"O", 16}}, random);
        const MeshProgram p = sharded(s, "tensor=2", "B=tensor,H=tensor", 4);
        INFO(to_text(p));
        CHECK(count_of(p, CollectiveKind::all_gather) == 1);
        CHECK(count_of(p, CollectiveKind::reduce_scatter) == 1);
        CHECK(collectives(p) == 2);
        CHECK(evaluate_whole(p, s.whole) == evaluate_whole(sharded(s, "tensor=4", "B=tensor,H=tensor", 4), s.whole));
    }
    SECTION("data and tensor parallel on a grid") {
        const Sample s = sample(mlp(), extents, random);
        const MeshProgram p = sharded(s, "data=2,tensor=2", "B=data,H=tensor", 4);
        INFO(to_text(p));
        CHECK(count_of(p, CollectiveKind::all_reduce) == 1);
        CHECK(collectives(p) == 1);
        CHECK(evaluate_whole(p, s.whole) == evaluate_whole(sharded(s, "data=1,tensor=4", "B=data,H=tensor", 4), s.whole));
    }
    SECTION("context parallel: keys and values stay, partial softmaxes are gathered") {
        const Sample s = sample(library::attention_causal(f32), {{"H", 2}, {"S", 4}, {"T", 16}, {"D", 8}, {"E", 8}}, random);
        const MeshProgram p = sharded(s, "context=4", "T=context", 4);
        INFO(to_text(p));
        CHECK(count_of(p, CollectiveKind::all_gather) == 3);
        CHECK(collectives(p) == 3);
        CHECK(evaluate_whole(p, s.whole) == evaluate_whole(sharded(s, "context=1", "T=context", 4), s.whole));
    }
    SECTION("sequence parallel: sequences are cut outside of attention, heads inside") {
        const Sample s = sample(library::attention_causal(f32), {{"H", 4}, {"S", 8}, {"T", 8}, {"D", 8}, {"E", 8}}, random);
        const MeshProgram p = sharded(s, "t=4", "H=t,q.H=,q.S=t,k.H=,k.T=t,v.H=,v.T=t,o.H=,o.S=t");
        INFO(to_text(p));
        CHECK(count_of(p, CollectiveKind::all_to_all) == 4);
        CHECK(collectives(p) == 4);
        CHECK(evaluate_whole(p, s.whole) == evaluate(s.algorithm, s.whole));
    }
    SECTION("heads and queries are no one else's business") {
        const Sample s = sample(library::attention_causal(f32), {{"H", 4}, {"S", 8}, {"T", 8}, {"D", 8}, {"E", 8}}, random);
        CHECK(collectives(sharded(s, "heads=4,seq=2", "H=heads,S=seq")) == 0);
        CHECK(evaluate_whole(sharded(s, "heads=4,seq=2", "H=heads,S=seq"), s.whole) == evaluate(s.algorithm, s.whole));
    }
    SECTION("random numbers are those of the whole") {
        const Sample s = sample(library::dropout(f32), {{"M", 8}, {"N", 12}}, random);
        const MeshProgram p = sharded(s, "a=2,b=4", "M=a,N=b");
        CHECK(collectives(p) == 0);
        CHECK(evaluate_whole(p, s.whole, s.parameters) == evaluate(s.algorithm, s.whole, s.parameters));
    }
}

TEST_CASE("a program with a step dropped, swapped, doubled or changed is refused", "[shard]") {
    std::mt19937 random(3);
    const Sample s = sample(mlp(), {{"B", 8}, {"K", 16}, {"H", 64}, {"O", 8}}, random);
    for (const char *layout : {"H=t", "B=t,H=t", "K=t", "K=d,H=t", "B=d,O=t,x.K=t", "B=t,y.B=,y.O=t", "B=t,x.B=,x.K=t"}) {
        const MeshProgram p = sharded(s, "d=2,t=2", layout, 4);
        INFO(to_text(p));
        REQUIRE(collectives(p) > 0);
        const auto refused = [&](const MeshProgram &mutant) {
            try {
                verify(mutant);
            } catch (const UserError &e) { return e.id().starts_with("mesh.") || e.id().starts_with("algorithm."); }
            return false;
        };
        REQUIRE_FALSE(refused(p));
        for (size_t i = 0; i < p.steps.size(); i++) {
            INFO("step " << i);
            MeshProgram dropped = p, doubled = p;
            dropped.steps.erase(dropped.steps.begin() + static_cast<std::ptrdiff_t>(i));
            CHECK(refused(dropped));
            doubled.steps.insert(doubled.steps.begin() + static_cast<std::ptrdiff_t>(i), p.steps[i]);
            CHECK(refused(doubled));
            const auto *c = std::get_if<Collective>(&p.steps[i]);
            if (!c) continue;
            const auto with = [&](const Collective &changed) {
                MeshProgram mutant = p;
                mutant.steps[i] = changed;
                return mutant;
            };
            std::vector<Collective> others;
            for (const CollectiveKind kind : collective_kinds)
                if (kind != c->kind) others.emplace_back(*c).kind = kind;
            for (const MeshMonoid monoid : mesh_monoids)
                if (monoid != c->monoid && folds(*c)) others.emplace_back(*c).monoid = monoid;
            for (const MeshAxis &axis : p.mesh.axes)
                if (axis.name != c->axis) others.emplace_back(*c).axis = axis.name;
            for (const Collective &other : others) CHECK(refused(with(other)));
            // What it took in place of what it makes: a dropped collective whose readers read on.
            MeshProgram read_on = dropped;
            for (MeshStep &step : read_on.steps)
                if (auto *part = std::get_if<Algorithm>(&step)) {
                    *part = map_expressions(*part, [&](const Expr &e) {
                        return replace_loads(e, [&](const Expr &l) { return l->name == c->result ? load_of(c->tensor, l) : Expr(); });
                    });
                    for (Tensor &t : part->tensors)
                        if (t.name == c->result) t.name = c->tensor;
                }
            for (auto &[name, tensor] : read_on.outputs)
                if (tensor == c->result) tensor = c->tensor;
            std::erase_if(read_on.tensors, [&](const MeshTensor &t) { return t.name == c->result; });
            CHECK(refused(read_on));
        }
        for (size_t i = 0; i + 1 < p.steps.size(); i++) {
            MeshProgram swapped = p;
            std::swap(swapped.steps[i], swapped.steps[i + 1]);
            if (refused(swapped)) continue;
            // Neither needs the other.
            CHECK(evaluate_whole(swapped, s.whole) == evaluate_whole(p, s.whole));
        }
        for (size_t i = 0; i < p.tensors.size(); i++)
            for (const MeshAxis &axis : p.mesh.axes) {
                MeshProgram moved = p;
                if (moved.tensors[i].placement.erase(axis.name) == 0 || moved.tensors[i].role) continue;
                INFO(p.tensors[i].name);
                CHECK(refused(moved));
            }
    }
}

TEST_CASE("layouts that cannot be are refused", "[shard]") {
    std::mt19937 random(4);
    const Sample s = sample(mlp(), {{"B", 6}, {"K", 16}, {"H", 64}, {"O", 8}}, random);
    const auto says = [&](const std::string &mesh, const std::string &layout, const std::string &words, int64_t chunks = 0) {
        CHECK_THROWS_WITH(sharded(s, mesh, layout, chunks), words);
    };
    says("data=4", "B=data",
         "error[mesh.divides]: mlp.B: expected a multiple of the 4 ranks of the axis data, got 6; pad it, or cut another dim.");
    says("data=4", "C=data",
         "error[mesh.text]: mlp: a layout has 'C'; expected a dim, or a tensor and its dim as in \"w.N=tensor\". The dims are B, K, H, O. "
         "Did you mean 'B'?");
    says("data=4", "K=tensor", "error[mesh.unknown-axis]: mlp.K: the layout cuts it along 'tensor'; the mesh is data=4.");
    says("data=2", "H=data",
         "error[mesh.chunks]: mlp.out: it folds 'H' of 64 along data of 2 ranks in 3 chunks; expected a multiple of "
         "the ranks that divides the extent.",
         3);
    says("data=2", "w_in.K=data,w_in.H=data",
         "error[mesh.twice]: mlp.w_in: the layout cuts it along data by shard(H) and by shard(K); an axis cuts one dim of a tensor.");
    says("data=2,tensor=2", "K=data,K=tensor",
         "error[mesh.text]: mlp: a layout has 'K' twice, as \"K=data\" and as \"K=tensor\"; remove one.");
    says("data=2", "y.O=data,y.O=", "error[mesh.text]: mlp: a layout has 'y.O' twice, as \"y.O=data\" and as \"y.O=\"; remove one.");
    says("data=2", "K=data,", "error[mesh.text]: a layout: expected entries like \"M=data\", got \"\".");
    says("data=2", "w_in.O=data", "error[mesh.unknown-dim]: mlp.w_in: the layout cuts its dim 'O'; it has K, H. Did you mean 'K'?");
    CHECK_THROWS_WITH(
        shard(mlp(), mesh_named("data=2"), layout_named(mlp(), "B=data")),
        "error[mesh.extent]: mlp.B: the layout cuts it along data, and its extent is not fixed; bind it first (bind_extents).");
    const Sample ring = sample(library::ring_append(f32), {{"B", 2}, {"W", 8}, {"T", 4}, {"D", 4}}, random);
    CHECK_THROWS_WITH(
        sharded(ring, "a=2", "W=a"),
        "error[mesh.state]: ring_append.append: it writes 'cache', which is shard(W) along a, at another index than that of a "
        "dim of 8; leave 'W' of it replicate.");
    CHECK(collectives(sharded(ring, "a=2,b=2", "B=a,D=b")) == 0);
}

TEST_CASE("a stage that writes where other ranks have a state is refused", "[shard]") {
    std::mt19937 random(8);
    {
        Builder f("diagonal", f32);
        const Dim I = f.dim("I", 4), J = f.dim("J", 4);
        const Tile g = f.input("g", {I}), d = f.state("d", {I, J});
        f.update("put", d, {f.index(I), f.index(I)}, g);
        const Sample s = sample(f.build(), {}, random);
        CHECK_THROWS_WITH(sharded(s, "a=2,b=2", "I=a,J=b"),
                          "error[mesh.state]: diagonal.put: it writes 'd', which is shard(J) along b, at the index of 'I', along which the "
                          "stage is cut on a; leave 'J' of it replicate.");
        check_law(s, "a=1,b=1", "I=a");
        check_law(s, "a=1,b=1", "J=b");
    }
    // One stage with two writes, of which the first or the second state is whole.
    Builder f("pair", f32);
    const Dim I = f.dim("I", 4), J = f.dim("J", 4);
    const Tile g = f.input("g", {I}), first = f.state("first", {I}), second = f.state("second", {J});
    f.update("put", first, {f.index(I)}, g);
    f.output("y", g * 2.0);
    Algorithm pair = f.build();
    for (Step &step : pair.steps)
        if (auto *stage = std::get_if<Stage>(&step); stage && stage->name == "put") {
            auto &map = std::get<Map>(stage->body);
            map.values.push_back(map.values[0]);
            map.values[1].to->state = "second";
            stage->results = {"", ""};
        }
    const Sample s = sample(pair, {}, random);
    check_law(s, "a=1", "I=a,J=a");
    check_law(s, "a=1", "y.I=a");
    CHECK_THROWS_WITH(sharded(s, "a=2", "I=a"),
                      "error[mesh.state]: pair.put: it writes 'second', which is replicate along a, and 'first', which is shard(I) there; "
                      "place both alike, or write them in two stages.");
    CHECK_THROWS_WITH(sharded(s, "a=2", "J=a"),
                      "error[mesh.state]: pair.put: it writes 'first', which is replicate along a, and 'second', which is shard(J) there; "
                      "place both alike, or write them in two stages.");
}

TEST_CASE("a mesh is read from text", "[shard]") {
    const Mesh mesh = mesh_named("data=2,tensor=4");
    CHECK(to_string(mesh) == "data=2,tensor=4");
    CHECK(mesh.ranks() == 8);
    CHECK(mesh.coordinate(6, "data") == 1);
    CHECK(mesh.coordinate(6, "tensor") == 2);
    CHECK(mesh.group(6, "data") == std::vector<int64_t>{2, 6});
    CHECK(mesh.group(6, "tensor") == std::vector<int64_t>{4, 5, 6, 7});
    CHECK_THROWS_WITH(mesh_named("data"), "error[mesh.text]: a mesh: expected entries like \"data=2\", got \"data\".");
    CHECK_THROWS_WITH(
        mesh_named("data=x"),
        "error[mesh.text]: a mesh: expected a number of ranks from 1 to 4096 for the axis 'data', as in \"data=2\", got \"x\".");
    CHECK_THROWS_WITH(
        mesh_named("data=99999999"),
        "error[mesh.text]: a mesh: expected a number of ranks from 1 to 4096 for the axis 'data', as in \"data=2\", got \"99999999\".");
    for (const char *text : {",data=2", "data=2,", "data=2,,tensor=2", ","})
        CHECK_THROWS_WITH(mesh_named(text), "error[mesh.text]: a mesh: expected entries like \"data=2\", got \"\".");
    CHECK_THROWS_WITH(mesh_named("a=2,a=2"), "error[mesh.axis]: the mesh a=2,a=2: the axis 'a' is there twice; rename one.");
    CHECK_THROWS_WITH(mesh_named("a=0"), "error[mesh.axis]: the mesh a=0: the axis 'a' has 0 ranks; expected 1 to 4096.");
    CHECK_THROWS_WITH(mesh_named("a=65536,b=65536,c=65536,d=65536"),
                      "error[mesh.axis]: the mesh a=65536,b=65536,c=65536,d=65536: the axis 'a' has 65536 ranks; expected 1 to 4096.");
    CHECK_THROWS_WITH(
        mesh_named("a=64,b=1,c=65"),
        "error[mesh.axis]: the mesh a=64,b=1,c=65: up to the axis 'c' it has 4160 ranks; expected at most 4096 of all axes together.");
    CHECK(mesh_named("a=64,b=1,c=64").ranks() == 4096);
}

TEST_CASE("dims of a rank are none of the algorithm's", "[shard]") {
    std::mt19937 random(5);
    Builder f("alike", f32);
    const Dim M = f.dim("M"), N = f.dim("N"), other = f.dim("N.data"), chunk = f.dim("N.data.chunk"), chunks = f.dim("N.data.chunks"),
              all = f.dim("N.chunks"), ranks = f.dim("data.ranks");
    const Tile x = f.input("x", {M, N}), u = f.input("u", {other, chunk}), v = f.input("v", {chunks, all, ranks});
    f.output("twice", x * 2.0).output("last", f.fold(argmax_monoid(DType::f32), {x, cast(DType::i64, f.index(N))}, {"N"})[1]);
    f.output("total", sum(x, N)).output("u_out", u * 2.0).output("v_out", v * 2.0);
    const Sample s =
        sample(f.build(),
               {{"M", 8}, {"N", 16}, {"N.data", 2}, {"N.data.chunk", 3}, {"N.data.chunks", 3}, {"N.chunks", 3}, {"data.ranks", 3}}, random);
    check_law(s, "data=1", "N=data");
    check_law(s, "data=1", "N=data,M=data");
    check_law(s, "data=1", "N=data,twice.N=,twice.M=data");
    check_law(s, "chunks=1", "N=chunks");  // N.chunks is a rank's part of N, and the chunks of all ranks
    check_law(s, "data=1,chunks=1", "N=data");
}

TEST_CASE("folds whose order counts keep it", "[shard]") {
    std::mt19937 random(6);
    Builder f("in_order", f32);
    const Dim M = f.dim("M"), A = f.dim("A"), B = f.dim("B");
    const Tile x = f.input("x", {M, A, B}), table = f.input("table", {M}), at = f.input("at", {A, B}, DType::i32);
    f.output("last_of_all", f.fold(last_monoid(DType::f32), {x}, {"A", "B"})[0]);
    f.output("replaced", replace_at(table, f.input("updates", {A, B}), {at}));
    const Sample s = sample(f.build(), {{"M", 4}, {"A", 4}, {"B", 8}}, random);
    for (const char *layout : {"A=a", "B=a", "A=a,B=a", "M=a,B=a"}) check_law(s, "a=1", layout);
    for (const char *layout : {"A=a,B=b", "B=a,A=b"}) check_law(s, "a=1,b=1", layout);
    CHECK(evaluate_whole(sharded(s, "a=2", "B=a"), s.whole) == evaluate(s.algorithm, s.whole));
    CHECK(evaluate_whole(sharded(s, "a=2", "A=a"), s.whole) == evaluate(s.algorithm, s.whole));
}

TEST_CASE("dims that are derived of fixed ones count with their extents", "[shard]") {
    std::mt19937 random(9);
    Builder f("projected", f32);
    const Dim L = f.dim("L"), C = f.dim("C"), O = f.dim("O"), P = f.dim(derived_dim("P", extent("L") * 2));
    const Tile x = f.input("x", {P, C}), w = f.input("w", {C, O});
    f.output("y", dot(x, w, {C})).output("z", f.input("l", {L}) * 2.0);
    const Sample s = sample(f.build(), {{"L", 32}, {"C", 16}, {"O", 4}}, random);
    // x has 64 rows: to gather them costs more than to exchange w and to scatter y.
    const MeshProgram p = sharded(s, "a=2", "C=a,O=a,w.C=");
    INFO(to_text(p));
    CHECK(count_of(p, CollectiveKind::all_gather) == 0);
    REQUIRE(count_of(p, CollectiveKind::reduce_scatter) == 1);
    for (const MeshStep &step : p.steps)
        if (const auto *c = std::get_if<Collective>(&step); c && c->kind == CollectiveKind::reduce_scatter)
            CHECK(bytes_sent(p, *c) == 64 * 2 * 4);
    CHECK(known_extent(p.dims, "P") == 64);
    CHECK(known_extent(f.build().dims, "P") == 1);
}

TEST_CASE("parts make the offsets of the rows that they read", "[shard]") {
    std::mt19937 random(10);
    using namespace library;
    const auto options = [](const std::vector<Option> &of) { return complete_options("", of, {}); };
    for (const Algorithm &f : {grouped_matmul(f32), attention_segments(f32, options(attention_segments_options()))}) {
        Extents extents;
        for (const Dim &d : f.dims)
            if (d.kind == DimKind::symbolic) extents[d.name] = allowed_extent(f, d, 8);
        const Sample s = sample(f, extents, random);
        for (const Dim &d : s.algorithm.dims)
            if (d.kind == DimKind::fixed) check_law(s, "a=1", d.name + "=a");
    }
    const Sample s = sample(grouped_matmul(f32), {{"T", 8}, {"K", 8}, {"N", 8}, {"O", 4}}, random);
    const MeshProgram p = sharded(s, "tensor=2", "N=tensor");
    INFO(to_whole_text(p));
    CHECK(count_of(p, CollectiveKind::all_gather) == 1);
    CHECK(evaluate_whole(p, s.whole) == evaluate(s.algorithm, s.whole));
    for (const MeshStep &step : p.steps)  // none makes offsets for another
        if (const auto *part = std::get_if<Algorithm>(&step)) CHECK_FALSE(part->find_tensor("offsets.made"));
}

// docs/mesh.md
TEST_CASE("a sharded program is text", "[shard]") {
    std::ostringstream out;
    std::streambuf *const screen = std::cout.rdbuf(out.rdbuf());
    const Algorithm f = bind_extents(two_layers(), {{"B", 8}, {"K", 16}, {"H", 64}, {"O", 8}});
    const MeshProgram p = shard(f, mesh_named("data=2,tensor=2"), layout_named(f, "B=data,H=tensor", /*chunks=*/4));
    std::cout << to_text(p);
    std::cout.rdbuf(screen);
    CHECK("\n" + out.str() == R"(
mesh program two_layers: data=2,tensor=2
  input x[B.data=4, K=16]: f32, data: shard(B.data), tensor: replicate
  input w_in[K=16, H.tensor=32]: f32, data: replicate, tensor: shard(H.tensor)
  input w_out[H.tensor=32, O=8]: f32, data: replicate, tensor: shard(H.tensor)
  part two_layers_0 of w_in, w_out, x
    out.partial[H.tensor.chunks=2, B.data=4, O=8]: f32, data: shard(B.data), tensor: partial(sum over H.tensor.chunks)
  all_reduce sum along tensor of out.partial, 128 bytes a rank
    out[B.data=4, O=8]: f32, data: shard(B.data), tensor: replicate
  part two_layers_1 of out
    y[B.data=4, O=8]: f32, data: shard(B.data), tensor: replicate
  output y
)");
    CHECK(hash_of(p) == hash_of(shard(f, mesh_named("data=2,tensor=2"), layout_named(f, "H=tensor,B=data", 4))));
    CHECK(hash_of(p) != hash_of(shard(f, mesh_named("data=2,tensor=2"), layout_named(f, "B=data,H=tensor", 2))));
}

TEST_CASE("what is no document of a program is refused", "[shard]") {
    const Algorithm f = bind_extents(two_layers(), {{"B", 8}, {"K", 16}, {"H", 64}, {"O", 8}});
    const nlohmann::json whole = to_json(shard(f, mesh_named("t=2"), layout_named(f, "H=t")));
    const auto says = [&](const std::function<void(nlohmann::json &)> &change, const std::string &words) {
        nlohmann::json document = whole;
        change(document);
        CHECK_THROWS_WITH(mesh_program_from_json(document), Catch::Contains(words));
    };
    REQUIRE(whole["steps"][1].contains("collective"));
    says([](auto &j) { j["version"] = 2; },
         "error[json.version]: mesh program: /version: this build reads version 1, the text has version 2");
    says([](auto &j) { j["step"] = 2; }, "error[json.unknown-field]: mesh program: ");
    says([](auto &j) { j["steps"][1]["collective"]["kind"] = "all"; },
         "error[json.value]: mesh program: /steps/1/collective/kind: there is no collective 'all'; expected one of all_reduce, "
         "reduce_scatter, all_gather, all_to_all.");
    says([](auto &j) { j["steps"][1]["part"] = j["steps"][0]["part"]; }, "/steps/1: a step is a part or a collective, got both");
    says([](auto &j) { j["placements"]["nosuch"] = nlohmann::json::object(); }, "there is no tensor of that name in \"declares\".");
    says([](auto &j) { j["placements"]["w_in"]["t"]["monoid"] = "sum"; }, "what is sharded has no monoid; remove it.");
    says([](auto &j) { j["steps"][0]["part"]["name"] = 5; }, "/steps/0/part");
}

}  // namespace tessera::test_shard
