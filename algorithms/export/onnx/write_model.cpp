#include "algorithms/export/onnx/write_model.h"

#include <limits>

#include "algorithms/export/onnx/wire.h"
#include "support/text/error.h"

namespace tessera::onnx {

namespace {

// TensorProto.DataType: the types whose numbers have fields of their own.
enum : int32_t { type_int64 = 7, type_uint32 = 12, type_uint64 = 13 };

std::string written(const Graph &graph);

std::string entry(const std::string &key, const std::string &value) {
    WireWriter w;
    w.bytes(1, key);
    w.bytes(2, value);
    return w.content();
}

void entries(WireWriter &w, uint32_t number, const std::map<std::string, std::string> &all) {
    for (const auto &[key, value] : all) w.bytes(number, entry(key, value));
}

std::string written(const TensorData &t) {
    WireWriter w;
    w.integers(1, t.extents);
    w.integer(2, t.type);
    w.reals(4, t.floats);
    if (t.type != type_int64 && t.type != type_uint32 && t.type != type_uint64) w.integers(5, t.integers);
    if (t.type == type_int64) w.integers(7, t.integers);
    if (!t.name.empty()) w.bytes(8, t.name);
    if (!t.raw.empty()) w.bytes(9, t.raw);
    w.reals(10, t.doubles);
    if (t.type == type_uint32 || t.type == type_uint64) w.integers(11, t.integers);
    entries(w, 13, t.external);
    if (!t.external.empty()) w.integer(14, 1);  // EXTERNAL
    return w.content();
}

std::string written(const Attribute &a) {
    WireWriter w;
    w.bytes(1, a.name);
    if (a.refers_to.empty()) switch (a.type) {
        case 1: w.real(2, a.real); break;
        case 2: w.integer(3, a.integer); break;
        case 3: w.bytes(4, a.text); break;
        case 4: w.bytes(5, written(*a.tensor)); break;
        case 5: w.bytes(6, written(*a.graph)); break;
        case 6: w.reals(7, a.reals); break;
        case 7: w.integers(8, a.integers); break;
        case 8:
            for (const std::string &text : a.texts) w.bytes(9, text);
            break;
        default: broken("an attribute of a type that is not written");
        }
    w.integer(20, a.type);
    if (!a.refers_to.empty()) w.bytes(21, a.refers_to);
    return w.content();
}

std::string written(const Node &n) {
    WireWriter w;
    for (const std::string &i : n.inputs) w.bytes(1, i);
    for (const std::string &o : n.outputs) w.bytes(2, o);
    if (!n.name.empty()) w.bytes(3, n.name);
    w.bytes(4, n.op);
    for (const auto &[name, a] : n.attributes) w.bytes(5, written(a));
    if (!n.domain.empty()) w.bytes(7, n.domain);
    return w.content();
}

std::string written(const ValueInfo &info) {
    WireWriter w;
    w.bytes(1, info.name);
    if (!info.is_tensor) return w.content();
    WireWriter tensor;
    tensor.integer(1, info.type);
    if (info.extents) {
        WireWriter shape;
        for (const ValueInfo::Extent &e : *info.extents) {
            WireWriter dim;
            if (e.number) dim.integer(1, *e.number);
            else if (!e.name.empty()) dim.bytes(2, e.name);
            shape.bytes(1, dim.content());
        }
        tensor.bytes(2, shape.content());
    }
    WireWriter type;
    type.bytes(1, tensor.content());
    w.bytes(2, type.content());
    return w.content();
}

std::string written(const Graph &g) {
    WireWriter w;
    for (const Node &n : g.nodes) w.bytes(1, written(n));
    w.bytes(2, g.name);
    for (const auto &[name, t] : g.initializers) w.bytes(5, written(t));
    for (const ValueInfo &i : g.inputs) w.bytes(11, written(i));
    for (const ValueInfo &o : g.outputs) w.bytes(12, written(o));
    return w.content();
}

std::string opset(const std::string &domain, int64_t version) {
    WireWriter w;
    w.bytes(1, domain);
    w.integer(2, version);
    return w.content();
}

std::string written(const ModelFunction &f) {
    WireWriter w;
    w.bytes(1, f.name);
    for (const std::string &i : f.inputs) w.bytes(4, i);
    for (const std::string &o : f.outputs) w.bytes(5, o);
    for (const std::string &a : f.attributes) w.bytes(6, a);
    for (const Node &n : f.nodes) w.bytes(7, written(n));
    for (const auto &[domain, version] : f.opsets) w.bytes(9, opset(domain, version));
    w.bytes(10, f.domain);
    for (const auto &[name, a] : f.defaults) w.bytes(11, written(a));
    entries(w, 14, f.metadata);
    return w.content();
}

}  // namespace

std::string write_model(const Model &model) {
    WireWriter w;
    w.integer(1, model.ir_version);
    w.bytes(2, model.producer);
    w.bytes(7, written(model.graph));
    for (const auto &[domain, version] : model.opsets) w.bytes(8, opset(domain, version));
    entries(w, 14, model.metadata);
    for (const ModelFunction &f : model.functions) w.bytes(25, written(f));
    if (w.content().size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
        throw UserError("onnx.too-large", "the model '" + model.graph.name + "' has " + std::to_string(w.content().size()) +
                                              " bytes; expected at most 2^31 - 1, which is where Protocol Buffers end. Pass its constants "
                                              "as inputs.");
    return w.content();
}

std::string write_tensor(const TensorData &tensor) { return written(tensor); }

}  // namespace tessera::onnx
