#include "algorithms/export/onnx/body.h"

#include <cctype>
#include <cstring>

#include "support/text/error.h"

namespace tessera::onnx {

static Attribute attribute_of_type(const std::string &name, int32_t type) {
    Attribute a;
    a.name = name, a.type = type;
    return a;
}

Attribute integer_attribute(const std::string &name, int64_t value) {
    Attribute a = attribute_of_type(name, 2);
    a.integer = value;
    return a;
}
Attribute integers_attribute(const std::string &name, const std::vector<int64_t> &values) {
    Attribute a = attribute_of_type(name, 7);
    a.integers = values;
    return a;
}
Attribute text_attribute(const std::string &name, const std::string &value) {
    Attribute a = attribute_of_type(name, 3);
    a.text = value;
    return a;
}
Attribute tensor_attribute(const std::string &name, const TensorData &tensor) {
    Attribute a = attribute_of_type(name, 4);
    a.tensor = std::make_shared<TensorData>(tensor);
    return a;
}
Attribute graph_attribute(const std::string &name, Graph graph) {
    Attribute a = attribute_of_type(name, 5);
    a.graph = std::make_shared<Graph>(std::move(graph));
    return a;
}

Attributes attributes(const std::vector<Attribute> &all) {
    Attributes by_name;
    for (const Attribute &a : all) by_name[a.name] = a;
    return by_name;
}

std::string ValueNames::fresh(const std::string &wanted) {
    std::string name = wanted;
    while (!taken_.insert(name).second) name = wanted + "_" + std::to_string(++counts_[wanted]);
    return name;
}

// What tells one node from another; "" for one with graphs.
static std::string key_of(const std::string &op, const std::string &domain, const std::vector<std::string> &inputs,
                          const Attributes &attributes) {
    auto part = [](const std::string &text) { return std::to_string(text.size()) + "'" + text; };
    std::string key = part(op) + part(domain);
    for (const std::string &i : inputs) key += part(i);
    for (const auto &[name, a] : attributes) {
        if (a.graph) return "";
        key += ";" + part(name) + std::to_string(a.integer) + part(a.text);
        for (const int64_t i : a.integers) key += "," + std::to_string(i);
        if (!a.tensor) continue;
        key += part(std::string(a.tensor->raw)) + std::to_string(a.tensor->type);
        for (const int64_t e : a.tensor->extents) key += "x" + std::to_string(e);
    }
    return key;
}

const std::vector<std::string> *Body::find(const std::string &key) const {
    for (const Body *b = this; b; b = b->outer_)
        if (const auto it = b->made_.find(key); it != b->made_.end()) return &it->second;
    return nullptr;
}

std::string Body::one(const std::string &op, const std::vector<std::string> &inputs, const Attributes &attributes) {
    return several(op, inputs, attributes, 1)[0];
}

std::vector<std::string> Body::several(const std::string &op, const std::vector<std::string> &inputs, const Attributes &attributes,
                                       size_t outputs, const std::string &domain) {
    const std::string key = key_of(op, domain, inputs, attributes);
    if (!key.empty())
        if (const auto *made = find(key)) return *made;
    Node n;
    n.op = op, n.domain = domain, n.inputs = inputs, n.attributes = attributes;
    for (size_t i = 0; i < outputs; i++) n.outputs.push_back(names.fresh(topic));
    nodes.push_back(n);
    if (!key.empty()) made_[key] = n.outputs;
    return n.outputs;
}

std::string Body::table(DType type, const std::vector<int64_t> &extents, const std::string &bytes) {
    TensorData t;
    t.type = onnx_type(type), t.extents = extents;
    parts.bytes.push_back(bytes);
    t.raw = parts.bytes.back();
    const std::string before = topic;
    topic = "const";
    std::string name = one("Constant", {}, attributes({tensor_attribute("value", t)}));
    topic = before;
    return name;
}

std::string Body::number(const Scalar &value) {
    Scalar v = value;
    if (v.type == DType::index) v = Scalar::of_integer(DType::i64, v.integer);
    std::string bytes(static_cast<size_t>(size_of(v.type)), '\0');
    store_scalar(bytes.data(), v);
    return table(v.type, {}, bytes);
}

std::string Body::integer(int64_t value) { return number(Scalar::of_integer(DType::i64, value)); }

std::string Body::integers(const std::vector<int64_t> &values) {
    std::string bytes(values.size() * sizeof(int64_t), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return table(DType::i64, {static_cast<int64_t>(values.size())}, bytes);
}

int32_t onnx_type(DType type) {
    if (type == DType::index) type = DType::i64;
    constexpr int32_t last = 64;  // beyond all that TensorProto.DataType has
    for (int32_t number = 1; number <= last; number++)
        if (dtype_of(number) == type) return number;
    return 0;
}

ValueInfo inner_value(const std::string &name, DType type, size_t rank) {
    ValueInfo info;
    info.name = name, info.type = onnx_type(type), info.is_tensor = true;
    info.extents.emplace(rank);
    return info;
}

std::string identifier(const std::string &name) {
    std::string text;
    for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) ? "_" + text : text;
}

}  // namespace tessera::onnx
