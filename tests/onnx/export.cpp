// What export.py does not see of exported models: what is refused, what is recognised, and the writer itself.
#include "algorithms/export/onnx/export.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/export/onnx/write_model.h"
#include "algorithms/import/onnx/exported.h"
#include "algorithms/import/onnx/import.h"
#include "algorithms/text/hash.h"
#include "support/text/error.h"

namespace tessera::test_onnx_export {

using namespace tessera;

static Algorithm sum_of_two() {
    Builder f("sum_of_two");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), z = f.input("z", {N});
    return f.output("y", x + z).build();
}

// The model after a change of what was written.
template <class Change>
static onnx::Imported imported_after(const Algorithm &algorithm, Change change) {
    const auto model = onnx::read_model(onnx::export_model(algorithm), "model");
    change(*model);
    const auto changed = onnx::read_model(onnx::write_model(*model), "model");
    return onnx::import_model(*changed, {});
}

static std::vector<double> results(const onnx::Imported &made) {
    std::map<std::string, Array> given;
    for (const auto &[own, name] : made.inputs)
        given[own] = Array(DType::f32, {3}, name == "x" ? std::vector<double>{1, 2, 3} : std::vector<double>{4, 5, 7});
    return evaluate(made.program, given).at(made.outputs.begin()->first).values();
}

TEST_CASE("an exported model is the algorithm again, whatever tools call it") {
    const Algorithm algorithm = sum_of_two();
    const onnx::Imported same = imported_after(algorithm, [](onnx::Model &) {});
    CHECK(semantic_hash(same.program) == semantic_hash(algorithm));
    CHECK(same.program.name == "sum_of_two");
    CHECK(same.inputs == std::map<std::string, std::string>{{"x", "x"}, {"z", "z"}});
    const onnx::Imported renamed = imported_after(algorithm, [](onnx::Model &m) {
        m.producer = "another tool", m.graph.name = "main";
        for (onnx::Node &n : m.functions[0].nodes) n.name = "node";
    });
    CHECK(semantic_hash(renamed.program) == semantic_hash(algorithm));
}

TEST_CASE("an exported function whose nodes were changed is what its nodes say") {
    const onnx::Imported product = imported_after(sum_of_two(), [](onnx::Model &m) {
        for (onnx::Node &n : m.functions[0].nodes)
            if (n.op == "Add") n.op = "Mul";
    });
    CHECK(semantic_hash(product.program) != semantic_hash(sum_of_two()));
    CHECK(results(product) == std::vector<double>{4, 10, 21});
}

TEST_CASE("what metadata say wrongly is not believed") {
    const Algorithm other = [] {
        Builder f("other");
        const Dim N = f.dim("N");
        const Tile x = f.input("x", {N}), z = f.input("z", {N});
        return f.output("y", x - z).build();
    }();
    const auto model = onnx::read_model(onnx::export_model(other), "model");
    const std::string text = model->functions[0].metadata.at(onnx::exported_algorithm);
    for (const std::string &said : {std::string("{"), std::string("[[[[[["), text, std::string("{\"format\": \"tessera-algorithm\"}")}) {
        const onnx::Imported made =
            imported_after(sum_of_two(), [&](onnx::Model &m) { m.functions[0].metadata[onnx::exported_algorithm] = said; });
        CHECK(results(made) == std::vector<double>{5, 7, 10});
    }
}

TEST_CASE("functions that call each other without end are refused") {
    const auto call_itself = [](onnx::Model &m) {
        onnx::Node n;
        n.domain = m.functions[0].domain, n.op = m.functions[0].name;
        n.inputs = m.functions[0].inputs, n.outputs = {"again"};
        m.functions[0].nodes.push_back(n);
    };
    CHECK_THROWS_AS(imported_after(sum_of_two(), call_itself), UserError);
}

TEST_CASE("an extent of the importer's options is fixed in an exported model") {
    const auto model = onnx::read_model(onnx::export_model(sum_of_two()), "model");
    onnx::ImportOptions options;
    options.shape = {{"N", 3}};
    CHECK(onnx::import_model(*model, options).program.dim("N").value == 3);
}

TEST_CASE("all that ONNX cannot say is refused at once, with the stage, the reason and the remedy") {
    Builder inner("inner");
    const Dim N = inner.dim("N");
    const Tile bits = inner.input("bits", {N}, DType::f6e3m2fn);
    inner.output("y", bits * 2.0);
    Builder f("outer");
    const Dim M = f.dim("M");
    const Tile a = f.input("a", {M}, DType::f6e3m2fn), codes = f.input("codes", {M}, DType::f6e2m3fn);
    const Tile y = f.call("call", inner.build(), {a})[0];
    f.output("y", y + codes);
    std::string said;
    try {
        onnx::export_model(f.build());
    } catch (const UserError &e) {
        CHECK(e.id() == "onnx.refused");
        said = e.message();
    }
    CHECK(said ==
          "outer has what ONNX cannot say:"
          "\n  a, tensor a: ONNX has no type f6e3m2fn. Declare the tensor in a type that it has."
          "\n  codes, tensor codes: ONNX has no type f6e2m3fn. Declare the tensor in a type that it has."
          "\n  call.bits, tensor bits: ONNX has no type f6e3m2fn. Declare the tensor in a type that it has.");
}

TEST_CASE("what is written is read, attributes of every kind and subgraphs too") {
    onnx::Model m;
    m.producer = "test", m.ir_version = 10, m.opsets = {{"", 21}}, m.metadata = {{"key", "value"}};
    m.graph.name = "g";
    onnx::Node n;
    n.name = "n", n.op = "Op", n.domain = "some", n.inputs = {"x", "", "w"}, n.outputs = {"y"};
    auto add = [&](const std::string &name, int32_t type) -> onnx::Attribute & {
        onnx::Attribute &a = n.attributes[name];
        a.name = name, a.type = type;
        return a;
    };
    add("real", 1).real = -0.5F;
    add("integer", 2).integer = INT64_MIN;
    add("text", 3).text = std::string("a\0b", 3);
    const std::string bytes = "abcdefgh";
    onnx::Attribute &tensor = add("tensor", 4);
    tensor.tensor = std::make_shared<onnx::TensorData>();
    tensor.tensor->type = 1, tensor.tensor->extents = {2}, tensor.tensor->raw = bytes;
    onnx::Attribute &graph = add("graph", 5);
    graph.graph = std::make_shared<onnx::Graph>();
    graph.graph->name = "inner";
    add("reals", 6).reals = {1, 2};
    add("integers", 7).integers = {-1, 0, 300};
    add("texts", 8).texts = {"a", ""};
    m.graph.nodes = {n};
    onnx::TensorData w;
    w.name = "w", w.type = 7, w.extents = {2}, w.integers = {-1, INT64_MAX};
    m.graph.initializers["w"] = w;
    onnx::ValueInfo x;
    x.name = "x", x.type = 1, x.is_tensor = true, x.extents = {{3, ""}, {std::nullopt, "N"}, {std::nullopt, ""}};
    m.graph.inputs = {x};
    const std::string written = onnx::write_model(m);
    const auto read = onnx::read_model(written, "model");
    CHECK(onnx::write_model(*read) == written);
    const onnx::Node &again = read->graph.nodes.at(0);
    CHECK(again.inputs == n.inputs);
    CHECK(again.real("real", 0) == -0.5);
    CHECK(again.integer("integer") == INT64_MIN);
    CHECK(again.text("text", "") == n.attributes["text"].text);
    CHECK(again.integers("integers") == std::vector<int64_t>{-1, 0, 300});
    CHECK(again.find("texts")->texts == std::vector<std::string>{"a", ""});
    CHECK(again.find("tensor")->tensor->raw == bytes);
    CHECK(again.graph("graph").name == "inner");
    CHECK(read->graph.initializers.at("w").integers == w.integers);
    CHECK(read->graph.inputs.at(0).extents->at(1).name == "N");
    CHECK(read->metadata == m.metadata);
    CHECK(read->ir_version == 10);
}

}  // namespace tessera::test_onnx_export
