#include "algorithms/import/onnx/import.h"

#include <bit>
#include <cmath>
#include <fstream>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "algorithms/evaluate/reference.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera::test_onnx_import {

namespace {

// Protocol Buffers' wire format, as far as these models need it.
struct Message {
    std::string bytes;

    static std::string varint(uint64_t value) {
        std::string text;
        for (; value >= 128; value >>= 7) text += static_cast<char>(value & 127 | 128);
        return text + static_cast<char>(value);
    }
    Message &number(uint32_t field, int64_t value) {
        bytes += varint(field << 3) + varint(static_cast<uint64_t>(value));
        return *this;
    }
    Message &text(uint32_t field, const std::string &value) {
        bytes += varint(field << 3 | 2) + varint(value.size()) + value;
        return *this;
    }
    Message &message(uint32_t field, const Message &value) { return text(field, value.bytes); }
};

Message integers(const std::string &name, const std::vector<int64_t> &values) {
    Message a;
    a.text(1, name).number(20, 7);
    for (int64_t v : values) a.number(8, v);
    return a;
}

Message node(const std::string &op, const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
             const std::vector<Message> &attributes = {}) {
    Message n;
    for (const std::string &i : inputs) n.text(1, i);
    for (const std::string &o : outputs) n.text(2, o);
    n.text(3, "the_" + outputs[0]).text(4, op);
    for (const Message &a : attributes) n.message(5, a);
    return n;
}

// An extent is a number, or a name where it is 0.
struct Extent {
    int64_t number;
    std::string name;
};

Message value(const std::string &name, const std::vector<Extent> &extents) {
    Message shape, tensor, type, info;
    for (const Extent &e : extents) shape.message(1, e.number ? Message().number(1, e.number) : Message().text(2, e.name));
    tensor.number(1, 1).message(2, shape);
    type.message(1, tensor);
    return info.text(1, name).message(2, type);
}

Message weights(const std::string &name, const std::vector<int64_t> &extents) {
    Message t;
    int64_t count = 1;
    for (int64_t e : extents) t.number(1, e), count *= e;
    std::string raw;
    for (int64_t i = 0; i < count; i++) {
        const float v = static_cast<float>(i * 37 % 101) / 50 - 1;
        raw.append(reinterpret_cast<const char *>(&v), sizeof v);
    }
    return t.number(2, 1).text(8, name).text(9, raw);
}

Message number(const std::string &name, float value) {
    std::string raw;
    raw.append(reinterpret_cast<const char *>(&value), sizeof value);
    return Message().number(2, 1).text(8, name).text(9, raw);
}

std::string model(const std::vector<Message> &nodes, const std::vector<Message> &inputs, const std::vector<std::string> &outputs,
                  const std::vector<Message> &tensors = {}) {
    Message graph, whole;
    for (const Message &n : nodes) graph.message(1, n);
    for (const Message &t : tensors) graph.message(5, t);
    for (const Message &i : inputs) graph.message(11, i);
    for (const std::string &o : outputs) graph.message(12, value(o, {}));
    return whole.number(1, 8).message(7, graph).message(8, Message().number(2, 17)).bytes;
}

onnx::Imported imported(const std::string &bytes, const onnx::ImportOptions &options = {}) {
    return onnx::import_model(*onnx::read_model(bytes, "the test"), options);
}

void check_refused(const std::string &bytes, const onnx::ImportOptions &options, const std::vector<std::string> &words) {
    try {
        imported(bytes, options);
        FAIL("it was not refused");
    } catch (const UserError &e) {
        for (const std::string &w : words) CHECK_THAT(e.what(), Catch::Contains(w));
    }
}

// Three convolutions with what follows, of other channels each.
std::string layers() {
    std::vector<Message> nodes, tensors;
    std::string x = "x";
    const int64_t channels[] = {3, 5, 8, 2};
    for (int i = 0; i < 3; i++) {
        const std::string n = std::to_string(i);
        tensors.push_back(weights("w" + n, {channels[i + 1], channels[i], 3, 3}));
        tensors.push_back(weights("b" + n, {channels[i + 1]}));
        nodes.push_back(node("Conv", {x, "w" + n, "b" + n}, {"c" + n}, {integers("pads", {1, 1, 1, 1})}));
        nodes.push_back(node("Relu", {"c" + n}, {"r" + n}));
        x = "r" + n;
    }
    return model(nodes, {value("x", {{0, "N"}, {3, ""}, {0, "H"}, {0, "W"}})}, {x}, tensors);
}

Array evaluated(const onnx::Imported &made, const Array &x) {
    std::map<std::string, Array> tensors;
    for (const onnx::Weight &w : made.weights) tensors[w.name] = w.array;
    for (const auto &[own, name] : made.inputs) tensors[own] = x;
    return evaluate(made.program, tensors).at(made.outputs.begin()->first);
}

}  // namespace

TEST_CASE("onnx: equal parts are one callee, and outlining keeps every bit") {
    const std::string bytes = layers();
    const onnx::Imported outlined = imported(bytes), plain = imported(bytes, {.outline = false});
    REQUIRE(outlined.program.calls().size() == 3);
    std::set<const Algorithm *> callees;
    for (const Call &call : outlined.program.calls()) callees.insert(call.callee.get());
    std::set<std::string> names;
    for (const Algorithm *callee : callees) names.insert(callee->name);
    CHECK(names == std::set<std::string>{"conv_relu", "conv_relu_2"});  // the first one reads a picture whose channels lie outermost
    CHECK(plain.program.calls().empty());
    std::vector<double> values;
    for (int i = 0; i < 2 * 3 * 5 * 4; i++) values.push_back(i % 17 - 8);
    const Array x(DType::f32, {2, 3, 5, 4}, values);
    CHECK(evaluated(outlined, x) == evaluated(plain, x));
    CHECK(evaluated(outlined, x).extents == std::vector<int64_t>{2, 2, 5, 4});
}

TEST_CASE("onnx: equal layers are one that repeats, with their weights one behind another") {
    std::vector<Message> nodes, tensors = {weights("head", {8, 3})};
    std::string x = "x";
    for (int i = 0; i < 5; i++) {
        const std::string n = std::to_string(i);
        tensors.push_back(weights("up" + n, {8, 24}));
        tensors.push_back(weights("down" + n, {24, 8}));
        tensors.push_back(weights("b" + n, {8}));
        nodes.push_back(node("MatMul", {x, "up" + n}, {"u" + n}));
        nodes.push_back(node("Relu", {"u" + n}, {"a" + n}));
        nodes.push_back(node("MatMul", {"a" + n, "down" + n}, {"d" + n}));
        tensors.push_back(number("s" + n, 0.3f + static_cast<float>(i) / 7));
        nodes.push_back(node("Mul", {"d" + n, "s" + n}, {"m" + n}));
        nodes.push_back(node("Add", {"m" + n, "b" + n}, {"e" + n}));
        nodes.push_back(node("Add", {"e" + n, x}, {"r" + n}));
        x = "r" + n;
    }
    nodes.push_back(node("MatMul", {x, "head"}, {"y"}));
    const std::string bytes = model(nodes, {value("x", {{0, "N"}, {8, ""}})}, {"y"}, tensors);
    const onnx::Imported rolled = imported(bytes), plain = imported(bytes, {.outline = false});
    REQUIRE(rolled.program.calls().size() == 2);
    const Call &layers = rolled.program.calls().front();
    REQUIRE(layers.repeat);
    CHECK(rolled.program.dim(layers.repeat->dim).value == 5);
    CHECK(layers.repeat->carried.size() == 1);
    CHECK(layers.callee->calls().size() == 2);
    CHECK(layers.callee->parameters.size() == 1);  // the scale, another in each layer
    REQUIRE(rolled.weights.size() == 4);
    CHECK(rolled.weights[0].array.extents == std::vector<int64_t>{5, 8, 24});
    std::vector<double> values;
    for (int i = 0; i < 3 * 8; i++) values.push_back(i % 17 / 8.0 - 1);
    const Array in(DType::f32, {3, 8}, values);
    CHECK(evaluated(rolled, in) == evaluated(plain, in));
    // What a middle layer gives is a result too: the layers up to it, and those behind it.
    const onnx::Imported middle = imported(bytes, {.until = {"r2", "y"}});
    std::vector<int64_t> rounds;
    for (const Call &call : middle.program.calls())
        if (call.repeat) rounds.push_back(middle.program.dim(call.repeat->dim).value);
    CHECK(rounds == std::vector<int64_t>{3, 2});
}

TEST_CASE("onnx: all that is refused is refused at once, with nodes and remedies") {
    const Message in = value("x", {{2, ""}, {0, "K"}});
    const std::string bytes = model({node("Frobnicate", {"x"}, {"a"}), node("Frobnicate", {"a"}, {"b"}), node("Relu", {"b"}, {"c"}),
                                     node("NonMaxSuppression", {"x"}, {"d"})},
                                    {in}, {"c", "d"});
    check_refused(bytes, {},
                  {"error[onnx.refused]", "the operator Frobnicate: node 'the_a' (Frobnicate) and 1 more.", "--until",
                   "the operator NonMaxSuppression: node 'the_d' (NonMaxSuppression)."});
    CHECK(imported(model({node("Relu", {"x"}, {"r"}), node("NonMaxSuppression", {"r"}, {"d"})}, {in}, {"d"}), {.until = {"r"}})
              .outputs.size() == 1);
    check_refused(model({node("Relu", {"x"}, {"r"})}, {in}, {"r"}), {.shape = {{"M", 3}}}, {"error[onnx.shape]", "--shape M", "K"});
    check_refused(model({node("Relu", {"x"}, {"r"})}, {in}, {"r"}), {.most = {{"M", 3}}}, {"error[onnx.shape]", "--max M", "K"});
    check_refused(model({node("Relu", {"x"}, {"r"})}, {in}, {"r"}), {.most = {{"K", 0}}},
                  {"error[onnx.shape]", "--max K=0", "expected 1 to"});
    CHECK(imported(model({node("Relu", {"x"}, {"r"})}, {in}, {"r"}), {.most = {{"K", 512}}}).dims.at(0).max == 512);
    check_refused(model({node("Relu", {"y"}, {"r"})}, {in}, {"r"}), {},
                  {"error[onnx.graph]", "its input 'y' is made by no node before it"});
    check_refused(model({node("Add", {"x", "y"}, {"r"})}, {in, value("y", {{2, ""}, {5, ""}})}, {"r"}), {},
                  {"do not broadcast: axis 1", "--shape", "--multiple"});
}

TEST_CASE("onnx: pictures that are halved and doubled fit where their extents are multiples") {
    const std::string bytes = model(
        {node("MaxPool", {"x"}, {"p"}, {integers("kernel_shape", {2, 2}), integers("strides", {2, 2})}),
         node("DepthToSpace", {"q"}, {"d"}, {Message().text(1, "blocksize").number(3, 2).number(20, 2)}), node("Add", {"x", "d"}, {"y"})},
        {value("x", {{1, ""}, {1, ""}, {0, "H"}, {0, "W"}}), value("q", {{1, ""}, {4, ""}, {0, "H2"}, {0, "W2"}})}, {"y"});
    check_refused(bytes, {}, {"do not broadcast"});
    // The result of a pool, doubled, is as large as before.
    const std::string doubled = model(
        {node("MaxPool", {"x"}, {"p"}, {integers("kernel_shape", {2, 2}), integers("strides", {2, 2})}),
         node("Concat", {"p", "p", "p", "p"}, {"q"}, {Message().text(1, "axis").number(3, 1).number(20, 2)}),
         node("DepthToSpace", {"q"}, {"d"}, {Message().text(1, "blocksize").number(3, 2).number(20, 2)}), node("Add", {"x", "d"}, {"y"})},
        {value("x", {{1, ""}, {1, ""}, {0, "H"}, {0, "W"}})}, {"y"});
    check_refused(doubled, {}, {"do not broadcast"});
    const onnx::Imported made = imported(doubled, {.multiples = {{"H", 4}, {"W", 8}}});
    CHECK(made.program.dim("H").multiple_of == 4);
    const Array x(DType::f32, {1, 1, 4, 8}, std::vector<double>(32, 1.5));
    CHECK(evaluated(made, x) == Array(DType::f32, {1, 1, 4, 8}, std::vector<double>(32, 3.0)));
}

TEST_CASE("onnx: resizing an axis of any extent is resizing one of each extent") {
    const auto text = [](const std::string &name, const std::string &value) {
        return Message().text(1, name).number(20, 3).text(4, value);
    };
    for (const char *nearest : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
        for (const char *coordinates : {"half_pixel", "asymmetric"})
            for (const char *mode : {"nearest", "linear"})
                for (int scale = 2; scale <= 9; scale++) {
                    const bool is_nearest = std::string(mode) == "nearest";
                    if (is_nearest && std::string(coordinates) == "asymmetric" && std::string(nearest) != "floor") continue;
                    const auto scales = static_cast<float>(scale);
                    Message t;
                    t.number(1, 1).number(2, 1).text(8, "s").text(9, std::string(reinterpret_cast<const char *>(&scales), sizeof scales));
                    const std::string bytes = model(
                        {node("Resize", {"x", "", "s"}, {"y"},
                              {text("mode", mode), text("coordinate_transformation_mode", coordinates), text("nearest_mode", nearest)})},
                        {value("x", {{0, "W"}})}, {"y"}, {t});
                    const onnx::Imported any = imported(bytes);
                    for (int64_t w : {1, 2, 3, 5}) {
                        INFO(mode << " " << coordinates << " " << nearest << " " << scale << " " << w);
                        const std::vector<double> numbers = {3, -1, 7, 2, 5};
                        const Array x(DType::f32, {w}, {numbers.begin(), numbers.begin() + w});
                        const Array of_any = evaluated(any, x), of_one = evaluated(imported(bytes, {.shape = {{"W", w}}}), x);
                        REQUIRE(of_any.extents == of_one.extents);
                        for (int64_t i = 0; i < of_any.size(); i++) REQUIRE(of_any.get(i).real == Approx(of_one.get(i).real).margin(1e-6));
                    }
                }
}

Message scalar_value(const std::string &name, int type) {
    return Message().text(1, name).message(2, Message().message(1, Message().number(1, type).message(2, Message())));
}

Message graph_of(const std::vector<Message> &nodes, const std::vector<Message> &inputs, const std::vector<Message> &outputs) {
    Message graph;
    for (const Message &n : nodes) graph.message(1, n);
    for (const Message &i : inputs) graph.message(11, i);
    for (const Message &o : outputs) graph.message(12, o);
    return graph;
}

Message scalar(const std::string &name, int type, int64_t value) {
    return Message().number(2, type).text(8, name).number(type == 7 ? 7 : 5, value);
}

TEST_CASE("onnx: a scan of any length calls its body once for each round") {
    // h = h w + x, for every x; the body reads w from outside.
    const Message body = graph_of({node("MatMul", {"h", "w"}, {"hw"}), node("Add", {"hw", "x"}, {"n"}), node("Identity", {"n"}, {"each"})},
                                  {value("h", {{1, ""}, {3, ""}}), value("x", {{1, ""}, {3, ""}})}, {value("n", {}), value("each", {})});
    const auto with = [&](int64_t backward) {
        return model({node("Scan", {"h0", "xs"}, {"last", "all"},
                           {Message().text(1, "body").number(20, 5).message(6, body),
                            Message().text(1, "num_scan_inputs").number(3, 1).number(20, 2), integers("scan_input_axes", {1}),
                            integers("scan_input_directions", {backward}), integers("scan_output_axes", {1})})},
                     {value("xs", {{1, ""}, {0, "T"}, {3, ""}})}, {"last", "all"}, {weights("w", {3, 3}), weights("h0", {1, 3})});
    };
    for (int64_t backward : {0, 1}) {
        const onnx::Imported made = imported(with(backward));
        REQUIRE(made.program.calls().size() == 1);
        CHECK(made.program.calls().begin()->repeat.has_value());
        for (int64_t length : {1, 2, 5}) {
            INFO("backward " << backward << ", length " << length);
            std::vector<double> x;
            for (int64_t i = 0; i < length * 3; i++) x.push_back(static_cast<double>(i % 7) - 3);
            std::map<std::string, Array> tensors;
            std::vector<double> h, w;
            for (const onnx::Weight &weight : made.weights) tensors[weight.name] = weight.array;
            for (int i = 0; i < 9; i++) w.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
            h.assign(w.begin(), w.begin() + 3);
            tensors[made.inputs.begin()->first] = Array(DType::f32, {1, length, 3}, x);
            const std::map<std::string, Array> results = evaluate(made.program, tensors);
            Array last, all;
            for (const auto &[own, name] : made.outputs) (name == "last" ? last : all) = results.at(own);
            REQUIRE(all.extents == std::vector<int64_t>{1, length, 3});
            for (int64_t t = 0; t < length; t++) {
                std::vector<double> next;
                const int64_t from = backward ? length - 1 - t : t;
                for (size_t j = 0; j < 3; j++)
                    next.push_back(h[0] * w[j] + h[1] * w[3 + j] + h[2] * w[6 + j] + x[static_cast<size_t>(from * 3) + j]);
                h = next;
                for (int64_t j = 0; j < 3; j++)
                    CHECK(all.get(t * 3 + j).real == Approx(h[static_cast<size_t>(j)]).epsilon(1e-4).margin(1e-4));
            }
            for (int64_t j = 0; j < 3; j++) CHECK(last.get(j).real == Approx(h[static_cast<size_t>(j)]).epsilon(1e-4).margin(1e-4));
        }
    }
}

TEST_CASE("onnx: a loop ends after its rounds, or by a condition of data where it stacks nothing") {
    // x doubles while it is below 100.
    const Message x = value("v", {{1, ""}});
    const std::vector<Message> grows = {node("Add", {"v", "v"}, {"n"}), node("Squeeze", {"n"}, {"s"}), node("Less", {"s", "most"}, {"go"})};
    const std::vector<Message> inputs = {scalar_value("i", 7), scalar_value("c", 9), x};
    const auto with = [&](const std::vector<Message> &nodes, const std::vector<Message> &outputs, const std::string &trips,
                          const std::vector<std::string> &results) {
        Message most = Message().number(2, 1).text(8, "most");
        const float hundred = 100;
        most.text(9, std::string(reinterpret_cast<const char *>(&hundred), sizeof hundred));
        return model({node("Loop", {trips, "yes", "x"}, results,
                           {Message().text(1, "body").number(20, 5).message(6, graph_of(nodes, inputs, outputs))})},
                     {value("x", {{1, ""}})}, results, {scalar("trips", 7, 4), scalar("yes", 9, 1), most});
    };
    const Message go = scalar_value("go", 9), n = value("n", {}), c = scalar_value("c", 9);
    const auto result = [](const onnx::Imported &made, double from) { return evaluated(made, Array(DType::f32, {1}, {from})).get(0).real; };
    CHECK(result(imported(with(grows, {go, n}, "", {"y"})), 3) == 192);
    CHECK(result(imported(with(grows, {go, n}, "trips", {"y"})), 3) == 48);
    CHECK(result(imported(with({node("Add", {"v", "v"}, {"n"})}, {c, n}, "trips", {"y"})), 3) == 48);
    check_refused(with(grows, {go, n, n}, "trips", {"y", "all"}), {}, {"error[onnx.refused]", "its condition is data"});
    check_refused(with({node("Concat", {"v", "v"}, {"n"}, {Message().text(1, "axis").number(3, 0).number(20, 2)})}, {c, n}, "", {"y"}), {},
                  {"error[onnx.refused]", "changes its shape"});
    check_refused(with({node("Add", {"v", "v"}, {"n"})}, {c, n}, "", {"y"}), {},
                  {"error[onnx.refused]", "it never ends: it has no trip count below 2000000000, and its condition is true in every round.",
                   "Give it a trip count"});
}

// x (0, 4) by weights of i8, twice, with the float's codes before each and behind it.
static std::string between_quantizers(int64_t terms, int64_t scales, int64_t axis = 1, bool with_outside_reader = false) {
    const auto codes = [](const std::string &name, const std::vector<int64_t> &extents) {
        Message t;
        int64_t count = 1;
        for (int64_t e : extents) t.number(1, e), count *= e;
        std::string raw;
        for (int64_t i = 0; i < count; i++) raw += static_cast<char>(i * 37 % 101 - 50);
        return t.number(2, 3).text(8, name).text(9, raw);
    };
    std::vector<Message> nodes, tensors = {number("s", 0.01F), weights("by", {scales}), codes("w0", {terms, 4}), codes("w1", {4, 4})};
    std::string x = "x";
    for (const std::string n : {"0", "1"}) {
        nodes.push_back(node("QuantizeLinear", {x, "s"}, {"q" + n}));
        nodes.push_back(node("DequantizeLinear", {"q" + n, "s"}, {"x" + n}));
        nodes.push_back(node("DequantizeLinear", {"w" + n, "by"}, {"v" + n}, {Message().text(1, "axis").number(3, axis).number(20, 2)}));
        nodes.push_back(node("MatMul", {"x" + n, "v" + n}, {"p" + n}));
        x = "p" + n;
    }
    if (with_outside_reader) nodes.push_back(node("Neg", {"x1"}, {"also"}));
    std::vector<std::string> outputs = {"p1"};
    if (with_outside_reader) outputs.emplace_back("also");
    return model(nodes, {value("x", {{0, "M"}, {terms, ""}})}, outputs, tensors);
}

TEST_CASE("onnx: products between quantizers are products of codes, and weights stay codes") {
    const auto operators = [](const std::string &bytes) { return imported(bytes).operators; };
    const auto held_as = [](const onnx::Imported &made) {
        std::multiset<std::string> types;
        for (const onnx::Weight &w : made.weights) types.insert(name_of(w.array.dtype));
        return types;
    };
    for (const int64_t scales : {1, 4}) {
        const onnx::Imported made = imported(between_quantizers(6, scales));
        CHECK(made.operators.at("tessera.codes.MatMul") == 2);
        CHECK(made.operators.count("DequantizeLinear") == 0);
        const std::multiset<std::string> types = held_as(made);
        CHECK(types.count("i8") == 2);
        CHECK(types.count("f32") == types.size() - 2);
    }
    // What is read outside stays too.
    CHECK(operators(between_quantizers(6, 1, 1, true)).at("DequantizeLinear") == 1);
    // Sums that might not fit 32 bits, and scales that are no outputs', keep the float product.
    CHECK(operators(between_quantizers(40000, 1)).at("MatMul") == 1);
    CHECK(operators(between_quantizers(4, 4, 0)).count("tessera.codes.MatMul") == 0);
}

TEST_CASE("onnx: outputs that other nodes read are computed once, and are no copies") {
    std::vector<Message> nodes;
    std::vector<std::string> outputs;
    for (int i = 0; i < 40; i++) {
        outputs.push_back("t" + std::to_string(i));
        nodes.push_back(node("Tanh", {i ? outputs[outputs.size() - 2] : "x"}, {outputs.back()}));
    }
    const Algorithm made = imported(model(nodes, {value("x", {{0, "N"}})}, outputs)).program;
    CHECK(made.outputs.size() == outputs.size());
    CHECK(made.steps.size() == outputs.size());
    size_t functions = 0;
    for (const Stage &stage : made.stages())
        for (const Expr &e : expressions_of(stage)) walk(e, [&](const Expr &n) { functions += n.kind() == ExprKind::function; });
    CHECK(functions == outputs.size());
}

TEST_CASE("onnx: attention of any extents, twice, is one callee of softmax over keys, beside double") {
    const auto attention = [](const std::string &q, const std::string &k, const std::string &v, const std::string &y) {
        return node("Attention", {q, k, v}, {y}, {Message().text(1, "is_causal").number(3, 1).number(20, 2)});
    };
    const std::string bytes = model({attention("q", "k", "v", "a"), attention("a", "k", "v", "y")},
                                    {value("q", {{0, "N"}, {4, ""}, {0, "S"}, {8, ""}}), value("k", {{0, "N"}, {2, ""}, {0, "T"}, {8, ""}}),
                                     value("v", {{0, "N"}, {2, ""}, {0, "T"}, {8, ""}})},
                                    {"y"});
    const onnx::Imported made = imported(bytes);
    REQUIRE(made.program.calls().size() == 2);
    CHECK(made.program.calls()[0].callee->name == made.program.calls()[1].callee->name);
    // Nothing of queries and keys is kept but by the fold that a schedule streams.
    std::vector<std::string> kept;
    for (const Stage &s : made.program.calls()[0].callee->stages()) kept.push_back(s.name.substr(s.name.find_last_of('.') + 1));
    CHECK(kept == std::vector<std::string>{"scaled", "scores", "online_softmax", "y"});
    const int64_t N = 2, S = 5, T = 3, D = 8;
    const auto filled = [](const std::vector<int64_t> &extents, int seed) {
        Array a(DType::f32, extents);
        for (int64_t i = 0; i < a.size(); i++) a.set(i, Scalar::of_real(DType::f32, std::sin(static_cast<double>(i * seed))));
        return a;
    };
    const std::map<std::string, Array> given = {
        {"q", filled({N, 4, S, D}, 3)}, {"k", filled({N, 2, T, D}, 5)}, {"v", filled({N, 2, T, D}, 7)}};
    std::vector<double> rows = given.at("q").values();
    const std::vector<double> k = given.at("k").values(), v = given.at("v").values();
    for (int round = 0; round < 2; round++)
        for (int64_t head = 0; head < N * 4; head++)
            for (int64_t s = 0; s < S; s++) {
                double *q = &rows[static_cast<size_t>((head * S + s) * D)], sum = 0;
                std::vector<double> made_row(static_cast<size_t>(D));
                for (int64_t t = 0; t < T && t <= s; t++) {
                    const size_t key = static_cast<size_t>((head / 2 * T + t) * D);
                    double score = 0;
                    for (size_t d = 0; d < 8; d++) score += q[d] * k[key + d] / std::sqrt(8.0);
                    sum += std::exp(score);
                    for (size_t d = 0; d < 8; d++) made_row[d] += std::exp(score) * v[key + d];
                }
                for (size_t d = 0; d < 8; d++) q[d] = made_row[d] / sum;
            }
    const std::vector<double> y = evaluate(made.program, given).at(made.outputs.begin()->first).values();
    REQUIRE(y.size() == rows.size());
    for (size_t i = 0; i < y.size(); i++) REQUIRE(y[i] == Approx(rows[i]).margin(1e-5));
}

TEST_CASE("onnx: further results that the model gives are results of outlined parts too") {
    const std::string bytes = model({node("LayerNormalization", {"x", "w"}, {"a", "mean"}), node("LayerNormalization", {"a", "w"}, {"y"}),
                                     node("Softmax", {"y"}, {"z"})},
                                    {value("x", {{0, "N"}, {4, ""}})}, {"z", "mean"}, {weights("w", {4})});
    const onnx::Imported made = imported(bytes);
    CHECK(made.outputs.size() == 2);
    const Array x(DType::f32, {2, 4}, {1, 2, 3, 6, -1, -1, 0, 0});
    std::map<std::string, Array> given = {{"x", x}};
    for (const onnx::Weight &w : made.weights) given[w.name] = w.array;
    const std::map<std::string, Array> results = evaluate(made.program, given);
    for (const auto &[own, name] : made.outputs)
        if (name == "mean") CHECK(results.at(own) == Array(DType::f32, {2, 1}, {3, -0.5}));
}

TEST_CASE("onnx: a damaged file is refused, or is another model; it never does harm") {
    const std::string whole = layers();
    const auto tried = [&](const std::string &bytes) {
        try {
            imported(bytes);
        } catch (const UserError &) {}
    };
    for (size_t cut = 0; cut < whole.size(); cut += 7) tried(whole.substr(0, cut));
    std::mt19937 random(7);
    for (int i = 0; i < 400; i++) {
        std::string bytes = whole;
        for (int n = 0; n < 1 + i % 3; n++) bytes[random() % bytes.size()] = static_cast<char>(random());
        tried(bytes);
    }
    check_refused("", {}, {"error[onnx.wire]", "the file is empty"});
    check_refused("\x3a\xff\xff\xff\xff\x7f", {}, {"error[onnx.wire]", "longer than what is left"});
    Message nested;
    for (int i = 0; i < 40; i++)
        nested =
            Message().message(1, Message().text(4, "If").message(5, Message().text(1, "then_branch").number(20, 5).message(6, nested)));
    check_refused(Message().message(7, nested).bytes, {}, {"error[onnx.depth]", "32 deep"});
}

TEST_CASE("onnx: tensors in files of their own lie below the model's folder") {
    const TemporaryFolder folder;
    const float numbers[] = {1, 2, 3};
    std::ofstream(folder.path() / "data.bin", std::ios::binary).write(reinterpret_cast<const char *>(numbers), sizeof numbers);
    const auto with = [&](const std::string &location, const std::string &offset) {
        Message t;
        t.number(1, 2).number(2, 1).text(8, "w").message(13, Message().text(1, "location").text(2, location));
        t.message(13, Message().text(1, "offset").text(2, offset)).message(13, Message().text(1, "length").text(2, "8"));
        const std::string bytes = model({node("Add", {"x", "w"}, {"y"})}, {value("x", {{2, ""}})}, {"y"}, {t});
        return onnx::import_model(*onnx::read_model(bytes, "the test", folder.path()), {});
    };
    const onnx::Imported made = with("data.bin", "4");
    CHECK(made.weights.at(0).array == Array(DType::f32, {2}, {2, 3}));
    CHECK_THROWS_WITH(with("../data.bin", "0"), Catch::Contains("error[onnx.external]") && Catch::Contains("below its folder"));
    CHECK_THROWS_WITH(with("/etc/passwd", "0"), Catch::Contains("error[onnx.external]"));
    CHECK_THROWS_WITH(with("data.bin", "8"), Catch::Contains("ends behind the end"));
    CHECK_THROWS_WITH(with("none.bin", "0"), Catch::Contains("error[onnx.file]"));
}

TEST_CASE("onnx: wrong ranks and missing inputs are refused by name") {
    const auto scalar = value("x", {}), row = value("x", {{4, ""}}), picture = value("x", {{1, ""}, {3, ""}, {4, ""}});
    const Message taps = integers("kernel_shape", {2});
    for (const char *pool : {"AveragePool", "MaxPool", "LpPool"})
        for (const Message &x : {scalar, row})
            check_refused(model({node(pool, {"x"}, {"y"}, {taps})}, {x}, {"y"}), {}, {pool, "'x'", "at least 3", "the_y"});
    for (const char *op : {"MaxUnpool", "ConvTranspose"})
        for (const Message &x : {scalar, row})
            check_refused(model({node(op, {"x", "w"}, {"y"}, {taps})}, {x}, {"y"}, {weights("w", {1})}), {}, {op, "at least 3"});
    check_refused(model({node("DeformConv", {"x", "w", "w"}, {"y"})}, {scalar}, {"y"}, {weights("w", {1})}), {}, {"DeformConv", "axes"});
    check_refused(model({node("ConvTranspose", {"x", "w"}, {"y"})}, {picture}, {"y"}, {weights("w", {1})}), {}, {"'w'", "at least 3"});
    check_refused(model({node("LSTM", {"x", "w", "r"}, {"y"})}, {row}, {"y"}, {weights("w", {1, 4, 4}), weights("r", {1, 4, 1})}), {},
                  {"LSTM", "at least 3"});
    check_refused(model({node("InstanceNormalization", {"x", "w", "w"}, {"y"})}, {row}, {"y"}, {weights("w", {4})}), {}, {"at least 2"});
    check_refused(model({node("Hardmax", {"x"}, {"y"})}, {scalar}, {"y"}), {}, {"Hardmax", "at least 1"});
    check_refused(model({node("EyeLike", {"x"}, {"y"})}, {row}, {"y"}), {}, {"EyeLike", "at least 2"});
    check_refused(model({node("Slice", {"x", "w"}, {"y"})}, {row}, {"y"}, {weights("w", {1})}), {}, {"Slice", "input 2 is left out"});
    check_refused(model({node("Concat", {}, {"y"})}, {row}, {"y"}), {}, {"Concat", "input 0 is left out"});
    check_refused(model({node("ConvTranspose", {"x", "w"}, {"y"}, {integers("strides", {})})}, {picture}, {"y"}, {weights("w", {3, 1, 2})}),
                  {}, {"ConvTranspose", "strides"});
}

TEST_CASE("onnx: what no array can hold is refused") {
    const auto range = [](float limit, float delta) {
        return model({node("Range", {"a", "b", "d"}, {"y"})}, {}, {"y"}, {number("a", 0), number("b", limit), number("d", delta)});
    };
    check_refused(range(10, 0), {}, {"Range", "no number of elements"});
    check_refused(range(std::nanf(""), 1), {}, {"Range", "no number of elements"});
    check_refused(range(1e12F, 1), {}, {"Range", "no number of elements"});
    Message repeats;
    const int64_t huge[] = {int64_t{1} << 62};
    repeats.number(1, 1).number(2, 7).text(8, "s").text(9, std::string(reinterpret_cast<const char *>(huge), sizeof huge));
    check_refused(model({node("Tile", {"x", "s"}, {"y"})}, {value("x", {{0, "n"}})}, {"y"}, {repeats}), {}, {"Tile", "0 to 10^9"});
    const auto zero = [](const char *name) { return Message().text(1, name).number(20, 2).number(3, 0); };
    check_refused(
        model({node("DepthToSpace", {"x"}, {"y"}, {zero("blocksize")})}, {value("x", {{1, ""}, {4, ""}, {2, ""}, {2, ""}})}, {"y"}), {},
        {"DepthToSpace", "blocksize is 0"});
    check_refused(model({node("Split", {"x"}, {"y"}, {zero("num_outputs")})}, {value("x", {{4, ""}})}, {"y"}), {}, {"num_outputs is 0"});
}

TEST_CASE("onnx: a name stands for one value, and the opset is one that is known") {
    const auto x = value("x", {{4, ""}});
    check_refused(model({node("Tanh", {"x"}, {"y"}), node("Relu", {"x"}, {"y"})}, {x}, {"y"}), {}, {"two values are called 'y'"});
    check_refused(model({node("Tanh", {"x"}, {"y"})}, {x, x}, {"y"}), {}, {"two values are called 'x'"});
    check_refused(model({node("Add", {"x", "w"}, {"y"})}, {x}, {"y"}, {weights("w", {4}), weights("w", {4})}), {}, {"two initializers"});
    for (const int64_t opset : {int64_t{0}, int64_t{-5}, int64_t{99}, int64_t{1} << 40}) {
        Message graph;
        graph.message(1, node("Tanh", {"x"}, {"y"})).message(11, x).message(12, value("y", {}));
        check_refused(Message().number(1, 8).message(7, graph).message(8, Message().number(2, opset)).bytes, {}, {"error[onnx.opset]"});
        check_refused(Message().number(1, 8).message(7, graph).bytes, {}, {"says no opset"});
    }
    const std::string with_default = model({node("Add", {"x", "w"}, {"y"})}, {x, value("w", {{4, ""}})}, {"y"}, {weights("w", {4})});
    CHECK(imported(with_default).fixed_defaults == std::vector<std::string>{"w"});
}

TEST_CASE("onnx: an extent that an option says is not other than the model's") {
    const std::string bytes = model({node("Tanh", {"x"}, {"y"})}, {value("x", {{0, "n"}, {5, ""}})}, {"y"});
    check_refused(bytes, {.shape = {{"x.1", 7}}}, {"--shape x.1=7", "the model has 5 there"});
    check_refused(bytes, {.shape = {{"n", 5}}, .most = {{"n", 3}}}, {"--max says at most 3"});
    check_refused(bytes, {.shape = {{"n", 5}}, .multiples = {{"n", 4}}}, {"--multiple says a multiple of 4"});
    CHECK(imported(bytes, {.shape = {{"x.1", 5}, {"n", 8}}, .multiples = {{"n", 4}}, .most = {{"n", 8}}}).dims.empty());
}

// The row that an odd padding is more lies at the beginning, so the result is that of explicit pads (1, 0).
TEST_CASE("onnx: odd padding of a transposed convolution with an output shape begins with the greater half") {
    const auto x = value("x", {{1, ""}, {1, ""}, {3, ""}});
    const std::vector<Message> w = {weights("w", {1, 1, 3})};
    const auto with = [&](const Message &how) {
        return imported(model({node("ConvTranspose", {"x", "w"}, {"y"}, {integers("strides", {2}), how})}, {x}, {"y"}, w));
    };
    Array data(DType::f32, {1, 1, 3}, {1, -2, 5});
    CHECK(evaluated(with(integers("output_shape", {6})), data).values() == evaluated(with(integers("pads", {1, 0})), data).values());
}

}  // namespace tessera::test_onnx_import
