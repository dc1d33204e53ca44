#include "algorithms/import/onnx/model.h"

#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include "algorithms/import/onnx/wire.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera::onnx {

namespace {

constexpr int most_depth = 32;            // graphs within each other
constexpr size_t most_nodes = 1'000'000;  // of all graphs
constexpr size_t most_dims = 64;

struct Reader {
    Model &model;
    size_t nodes = 0;

    [[noreturn]] static void wrong_form(const std::string &place, uint32_t number) {
        throw UserError("onnx.field", "the model, at " + place + ": its field " + std::to_string(number) +
                                          " has another form than ONNX's format says. Fetch or export the file again.");
    }
    static std::string_view bytes_of(const WireField &field, const std::string &place) {
        if (field.form != WireForm::bytes) wrong_form(place, field.number);
        return field.bytes;
    }
    static std::string text_of(const WireField &field, const std::string &place) { return std::string(bytes_of(field, place)); }
    static int64_t integer_of(const WireField &field, const std::string &place) {
        if (field.form != WireForm::varint) wrong_form(place, field.number);
        return field.integer();
    }

    std::pair<std::string, std::string> entry(std::string_view bytes, const std::string &place) {
        std::pair<std::string, std::string> both;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) {
            if (field.number == 1) both.first = text_of(field, place);
            if (field.number == 2) both.second = text_of(field, place);
        }
        return both;
    }

    TensorData tensor(std::string_view bytes, const std::string &place) {
        TensorData t;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) switch (field.number) {
            case 1: each_varint(field, place, [&](uint64_t v) { t.extents.push_back(static_cast<int64_t>(v)); }); break;
            case 2: t.type = static_cast<int32_t>(integer_of(field, place)); break;
            case 4: each_fixed32(field, place, [&](uint32_t v) { t.floats.push_back(std::bit_cast<float>(v)); }); break;
            case 5:
            case 7:
            case 11: each_varint(field, place, [&](uint64_t v) { t.integers.push_back(static_cast<int64_t>(v)); }); break;
            case 6: t.has_strings = true; break;
            case 8: t.name = text_of(field, place); break;
            case 9: t.raw = bytes_of(field, place); break;
            case 10: each_fixed64(field, place, [&](uint64_t v) { t.doubles.push_back(std::bit_cast<double>(v)); }); break;
            case 13: t.external.insert(entry(bytes_of(field, place), place)); break;
            default: break;
            }
        if (t.extents.size() > most_dims)
            throw UserError("onnx.limit", "the model, at " + place + ": a tensor has " + std::to_string(t.extents.size()) +
                                              " dims; expected at most " + std::to_string(most_dims) + ".");
        return t;
    }

    Attribute attribute(std::string_view bytes, const std::string &place, int depth) {
        Attribute a;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) switch (field.number) {
            case 1: a.name = text_of(field, place); break;
            case 2: a.real = std::bit_cast<float>(static_cast<uint32_t>(field.value)); break;
            case 3: a.integer = integer_of(field, place); break;
            case 4: a.text = text_of(field, place); break;
            case 5: a.tensor = std::make_shared<TensorData>(tensor(bytes_of(field, place), place)); break;
            case 6: a.graph = std::make_shared<Graph>(graph(bytes_of(field, place), place, depth + 1)); break;
            case 7: each_fixed32(field, place, [&](uint32_t v) { a.reals.push_back(std::bit_cast<float>(v)); }); break;
            case 8: each_varint(field, place, [&](uint64_t v) { a.integers.push_back(static_cast<int64_t>(v)); }); break;
            case 9: a.texts.push_back(text_of(field, place)); break;
            case 20: a.type = static_cast<int32_t>(integer_of(field, place)); break;
            case 21: a.refers_to = text_of(field, place); break;
            default: break;
            }
        return a;
    }

    Node node(std::string_view bytes, const std::string &place, int depth) {
        if (++nodes > most_nodes)
            throw UserError("onnx.limit", "the model has over " + std::to_string(most_nodes) + " nodes; import parts of it (--until).");
        Node n;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) switch (field.number) {
            case 1: n.inputs.push_back(text_of(field, place)); break;
            case 2: n.outputs.push_back(text_of(field, place)); break;
            case 3: n.name = text_of(field, place); break;
            case 4: n.op = text_of(field, place); break;
            case 5: {
                Attribute a = attribute(bytes_of(field, place), place, depth);
                n.attributes[a.name] = std::move(a);
                break;
            }
            case 7: n.domain = text_of(field, place); break;
            default: break;
            }
        if (n.domain == "ai.onnx") n.domain.clear();
        return n;
    }

    ValueInfo::Extent extent(std::string_view bytes, const std::string &place) {
        ValueInfo::Extent e;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) {
            if (field.number == 1) e.number = integer_of(field, place);
            if (field.number == 2) e.name = text_of(field, place);
        }
        if (e.number && *e.number < 0) e.number.reset();  // what some exporters write for "not known"
        return e;
    }

    // A tensor's type, or that of a tensor that may be left out.
    void type_of_value(std::string_view bytes, const std::string &place, bool is_optional, ValueInfo &info) {
        WireMessage type(bytes, place);
        for (WireField part; type.next(part);) {
            if (part.number == 9 && !is_optional) {
                WireMessage optional(bytes_of(part, place), place);
                for (WireField inner; optional.next(inner);)
                    if (inner.number == 1) type_of_value(bytes_of(inner, place), place, true, info);
            }
            if (part.number != 1) continue;
            info.is_tensor = true;
            WireMessage tensor_type(bytes_of(part, place), place);
            for (WireField inner; tensor_type.next(inner);) {
                if (inner.number == 1) info.type = static_cast<int32_t>(integer_of(inner, place));
                if (inner.number != 2) continue;
                info.extents.emplace();
                WireMessage shape(bytes_of(inner, place), place);
                for (WireField dim; shape.next(dim);)
                    if (dim.number == 1) info.extents->push_back(extent(bytes_of(dim, place), place));
            }
        }
    }

    ValueInfo value_info(std::string_view bytes, const std::string &place) {
        ValueInfo info;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) {
            if (field.number == 1) info.name = text_of(field, place);
            if (field.number == 2) type_of_value(bytes_of(field, place), place, false, info);
        }
        return info;
    }

    Graph graph(std::string_view bytes, const std::string &place, int depth) {
        if (depth > most_depth)
            throw UserError("onnx.depth",
                            "the model, at " + place + ": graphs lie over " + std::to_string(most_depth) + " deep within each other.");
        Graph g;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) switch (field.number) {
            case 1: g.nodes.push_back(node(bytes_of(field, place), place + ".node[" + std::to_string(g.nodes.size()) + "]", depth)); break;
            case 2: g.name = text_of(field, place); break;
            case 5: {
                TensorData t = tensor(bytes_of(field, place), place + ".initializer[" + std::to_string(g.initializers.size()) + "]");
                const std::string name = t.name;
                if (!g.initializers.emplace(name, std::move(t)).second)
                    throw UserError("onnx.graph", "the model, at " + place + ": two initializers are called '" + printable(name) +
                                                      "'; expected one of each name. Export the model again.");
                break;
            }
            case 11: g.inputs.push_back(value_info(bytes_of(field, place), place + ".input")); break;
            case 12: g.outputs.push_back(value_info(bytes_of(field, place), place + ".output")); break;
            case 15:
                throw UserError("onnx.field", "the model, at " + place +
                                                  ": a sparse initializer; Tessera reads dense ones. Make it dense before exporting.");
            default: break;
            }
        check_names(g, place);
        return g;
    }

    // Each name stands for one value of a graph; an input may have an initializer as its default.
    static void check_names(const Graph &g, const std::string &place) {
        std::set<std::string> inputs, made;
        const auto twice = [&](const std::string &name) {
            throw UserError("onnx.graph", "the model, at " + place + ": two values are called '" + printable(name) +
                                              "'; expected one of each name. Export the model again.");
        };
        for (const ValueInfo &i : g.inputs)
            if (!inputs.insert(i.name).second) twice(i.name);
        for (const Node &n : g.nodes)
            for (const std::string &o : n.outputs)
                if (!o.empty() && (inputs.count(o) || g.initializers.count(o) || !made.insert(o).second)) twice(o);
    }

    std::pair<std::string, int64_t> opset(std::string_view bytes, const std::string &place) {
        std::pair<std::string, int64_t> both;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) {
            if (field.number == 1) both.first = text_of(field, place);
            if (field.number == 2) both.second = integer_of(field, place);
        }
        if (both.first == "ai.onnx") both.first.clear();
        return both;
    }

    ModelFunction function(std::string_view bytes, const std::string &place) {
        ModelFunction f;
        WireMessage message(bytes, place);
        for (WireField field; message.next(field);) switch (field.number) {
            case 1: f.name = text_of(field, place); break;
            case 4: f.inputs.push_back(text_of(field, place)); break;
            case 5: f.outputs.push_back(text_of(field, place)); break;
            case 6: f.attributes.push_back(text_of(field, place)); break;
            case 7: f.nodes.push_back(node(bytes_of(field, place), place, 0)); break;
            case 9: f.opsets.insert(opset(bytes_of(field, place), place)); break;
            case 10: f.domain = text_of(field, place); break;
            case 11: {
                Attribute a = attribute(bytes_of(field, place), place, 0);
                f.defaults[a.name] = std::move(a);
                break;
            }
            case 14: f.metadata.insert(entry(bytes_of(field, place), place)); break;
            default: break;
            }
        return f;
    }

    void whole() {
        bool has_graph = false;
        WireMessage message(model.content, "the model");
        for (WireField field; message.next(field);) switch (field.number) {
            case 1: model.ir_version = integer_of(field, "the model"); break;
            case 2: model.producer = text_of(field, "the model"); break;
            case 7: model.graph = graph(bytes_of(field, "the model"), "graph", 0), has_graph = true; break;
            case 8: model.opsets.insert(opset(bytes_of(field, "the model"), "opset_import")); break;
            case 14: model.metadata.insert(entry(bytes_of(field, "the model"), "metadata_props")); break;
            case 25: model.functions.push_back(function(bytes_of(field, "the model"), "function")); break;
            default: break;
            }
        if (!has_graph)
            throw UserError("onnx.field",
                            "the model has no graph; expected a file that an ONNX exporter wrote. It may be of another format.");
    }
};

Handed handed_model() {
    return {"onnx", "ONNX model", "Keep its tensors in files of their own (external data).", std::numeric_limits<int32_t>::max()};
}

}  // namespace

int64_t Model::opset(const std::string &domain) const {
    const auto it = opsets.find(domain);
    return it == opsets.end() ? 0 : it->second;
}

std::unique_ptr<Model> read_model(const std::filesystem::path &file) {
    return read_model(read_regular(file, handed_model()), file.string(), file.parent_path());
}

std::unique_ptr<Model> read_model(std::string content, const std::string &subject, const std::filesystem::path &folder) {
    if (content.empty()) throw UserError("onnx.wire", subject + ": the file is empty; expected an ONNX model.");
    auto model = std::make_unique<Model>();
    model->folder = folder, model->content = std::move(content);
    Reader{*model}.whole();
    return model;
}

TensorData read_tensor(std::string_view content, const std::string &subject) {
    Model none;
    return Reader{none}.tensor(content, subject);
}

std::string Node::describe() const {
    const std::string which = !name.empty() ? name : outputs.empty() ? "" : outputs[0];
    return "node '" + which + "' (" + (domain.empty() ? "" : domain + ".") + op + ")";
}

const Attribute *Node::find(const std::string &attribute) const {
    const auto it = attributes.find(attribute);
    return it == attributes.end() ? nullptr : &it->second;
}

static const Attribute *typed(const Node &node, const std::string &attribute, int32_t type, const char *what) {
    const Attribute *a = node.find(attribute);
    if (a && a->type != type && a->type != 0)
        throw UserError("onnx.attribute", node.describe() + ": expected " + what + " as attribute '" + attribute + "', got type " +
                                              std::to_string(a->type) + " of AttributeProto. Check the exporter.");
    return a;
}

int64_t Node::integer(const std::string &attribute, int64_t otherwise) const {
    const Attribute *a = typed(*this, attribute, 2, "an integer");
    return a ? a->integer : otherwise;
}
double Node::real(const std::string &attribute, double otherwise) const {
    const Attribute *a = typed(*this, attribute, 1, "a number");
    return a ? a->real : otherwise;
}
std::string Node::text(const std::string &attribute, const std::string &otherwise) const {
    const Attribute *a = typed(*this, attribute, 3, "a text");
    return a ? a->text : otherwise;
}
std::vector<int64_t> Node::integers(const std::string &attribute, const std::vector<int64_t> &otherwise) const {
    const Attribute *a = typed(*this, attribute, 7, "integers");
    return a ? a->integers : otherwise;
}
std::vector<double> Node::reals(const std::string &attribute) const {
    const Attribute *a = typed(*this, attribute, 6, "numbers");
    return a ? std::vector<double>(a->reals.begin(), a->reals.end()) : std::vector<double>();
}
int64_t Node::integer(const std::string &attribute) const {
    if (!find(attribute)) throw UserError("onnx.attribute", describe() + ": the attribute '" + attribute + "' is missing.");
    return integer(attribute, 0);
}
const Graph &Node::graph(const std::string &attribute) const {
    const Attribute *a = typed(*this, attribute, 5, "a graph");
    if (!a || !a->graph) throw UserError("onnx.attribute", describe() + ": the attribute '" + attribute + "', a graph, is missing.");
    return *a->graph;
}

}  // namespace tessera::onnx
