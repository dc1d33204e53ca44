// An ONNX model as its file says it (https://github.com/onnx/onnx, onnx.proto3), with nothing understood yet.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/evaluate/array.h"

namespace tessera::onnx {

struct Graph;

// A tensor of the file: its bytes are not looked at before they are needed (elements).
struct TensorData {
    std::string name;
    int32_t type = 0;  // of the enumeration TensorProto.DataType
    std::vector<int64_t> extents;
    std::string_view raw;                         // raw_data
    std::vector<float> floats;                    // float_data
    std::vector<double> doubles;                  // double_data
    std::vector<int64_t> integers;                // int32_data, int64_data, uint64_data
    std::map<std::string, std::string> external;  // external_data: "location", "offset", "length"
    bool has_strings = false;
};

struct Attribute {
    std::string name;
    int32_t type = 0;  // AttributeProto.AttributeType: 1 float, 2 int, 3 string, 4 tensor, 5 graph, 6 floats, 7 ints, 8 strings, …
    float real = 0;
    int64_t integer = 0;
    std::string text;
    std::shared_ptr<TensorData> tensor;
    std::shared_ptr<Graph> graph;
    std::vector<float> reals;
    std::vector<int64_t> integers;
    std::vector<std::string> texts;
    std::string refers_to;  // in a function's body: the attribute of the function that this one takes its value of
};

struct Node {
    std::string name, op, domain;
    std::vector<std::string> inputs, outputs;  // "" for one that is left out
    std::map<std::string, Attribute> attributes;

    std::string describe() const;  // "node 'conv1' (Conv)"
    const Attribute *find(const std::string &attribute) const;
    bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].empty(); }
    // UserError onnx.attribute where the attribute is of another type.
    int64_t integer(const std::string &attribute, int64_t otherwise) const;
    double real(const std::string &attribute, double otherwise) const;
    std::string text(const std::string &attribute, const std::string &otherwise) const;
    std::vector<int64_t> integers(const std::string &attribute, const std::vector<int64_t> &otherwise = {}) const;
    std::vector<double> reals(const std::string &attribute) const;
    // UserError onnx.attribute where there is none.
    int64_t integer(const std::string &attribute) const;
    const Graph &graph(const std::string &attribute) const;
};

// An input or output, or what is said of a value between. `extents`: a number, a name, or "" for what is not known.
struct ValueInfo {
    struct Extent {
        std::optional<int64_t> number;
        std::string name;
    };
    std::string name;
    int32_t type = 0;  // 0: not said, or no tensor
    bool is_tensor = false;
    std::optional<std::vector<Extent>> extents;
};

struct Graph {
    std::string name;
    std::vector<Node> nodes;
    std::map<std::string, TensorData> initializers;
    std::vector<ValueInfo> inputs, outputs;
};

// A function that the model defines of other nodes.
struct ModelFunction {
    std::string domain, name;
    std::vector<std::string> inputs, outputs, attributes;
    std::map<std::string, Attribute> defaults;
    std::vector<Node> nodes;
    std::map<std::string, int64_t> opsets;
    std::map<std::string, std::string> metadata;  // metadata_props
};

struct Model {
    std::filesystem::path folder;           // of external data
    std::string content;                    // which the tensors' bytes point into
    std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
    std::string producer;
    int64_t ir_version = 0;                       // of ONNX's file format
    std::map<std::string, std::string> metadata;  // metadata_props
    Graph graph;
    std::vector<ModelFunction> functions;

    int64_t opset(const std::string &domain) const;  // 0 where the model has none
};

// UserErrors onnx.file, onnx.too-large (over 2 GiB), onnx.wire, onnx.depth (subgraphs in each other), onnx.field (of another form, or a
// message that is missing), onnx.limit (dims, nodes).
std::unique_ptr<Model> read_model(const std::filesystem::path &file);
std::unique_ptr<Model> read_model(std::string content, const std::string &subject, const std::filesystem::path &folder = {});

// A file of one tensor (TensorProto), as test data are. `content` outlives the result.
TensorData read_tensor(std::string_view content, const std::string &subject);

// ONNX's number of a type, and its name as ONNX's documents have it ("float", "uint16"). Nothing for those that Tessera does not have.
std::optional<DType> dtype_of(int32_t type);
std::string type_name(int32_t type);
int32_t type_number(DType type);

// The elements. UserErrors onnx.type, onnx.tensor (bytes that are more or fewer than the shape says), onnx.external (a path that leaves
// the folder, bytes outside of the file).
Array elements(const TensorData &tensor, const Model &model);

}  // namespace tessera::onnx
