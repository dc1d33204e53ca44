#include "algorithms/export/onnx/export.h"

#include <algorithm>

#include "algorithms/export/onnx/function.h"
#include "algorithms/export/onnx/write_model.h"
#include "algorithms/import/onnx/exported.h"
#include "algorithms/text/hash.h"
#include "support/text/error.h"

namespace tessera::onnx {

namespace {

// The version of the file format that comes with an opset.
int64_t ir_version_of(int64_t opset) { return opset >= 26 ? 13 : opset >= 24 ? 12 : opset == 23 ? 11 : 10; }

ValueInfo tensor_info(const Algorithm &a, const std::string &name, DType type, const std::vector<std::string> &dims) {
    ValueInfo info;
    info.name = name, info.type = onnx_type(type), info.is_tensor = true;
    info.extents.emplace();
    for (const std::string &d : dims) {
        const Dim *dim = &a.dim(d);
        while (!dim->equals.empty()) dim = &a.dim(dim->equals);
        ValueInfo::Extent e;
        if (dim->kind == DimKind::fixed) e.number = dim->value;
        else e.name = dim->name;
        info.extents->push_back(e);
    }
    return info;
}

void report(const Algorithm &algorithm, const std::vector<Refusal> &refusals) {
    if (refusals.empty()) return;
    std::string text = algorithm.name + " has what ONNX cannot say:";
    std::vector<std::string> seen;
    for (const Refusal &r : refusals) {
        const std::string line = "\n  " + r.stage + ", " + r.what + ": " + r.why + ". " + r.remedy;
        if (std::find(seen.begin(), seen.end(), line) != seen.end()) continue;
        seen.push_back(line);
        text += line;
    }
    throw UserError("onnx.refused", text);
}

}  // namespace

std::string export_model(const Algorithm &algorithm) {
    Functions functions;
    const MadeFunction how = functions.of(algorithm, "");
    report(algorithm, functions.refusals);

    Model model;
    model.producer = "tessera";
    model.opsets = {{"", functions.parts.opset}, {exported_domain, 1}};
    model.ir_version = ir_version_of(functions.parts.opset);
    model.metadata = {{exported_hash, semantic_hash(algorithm)}};
    model.functions = std::move(functions.all);
    for (ModelFunction &f : model.functions) f.opsets = model.opsets;
    for (ModelFunction &f : model.functions) f.metadata[exported_body] = body_digest(f, model);

    const ModelFunction &whole = model.functions.back();
    Graph &graph = model.graph;
    graph.name = identifier(algorithm.name);
    Node call;
    call.op = how.name, call.domain = exported_domain, call.inputs = whole.inputs, call.outputs = whole.outputs;
    size_t next = 0;
    for (const Tensor &t : algorithm.tensors)
        if (t.role != Role::constant) graph.inputs.push_back(tensor_info(algorithm, whole.inputs.at(next++), t.dtype, t.dims));
    for (const Parameter &p : algorithm.parameters) graph.inputs.push_back(tensor_info(algorithm, whole.inputs.at(next++), p.dtype, {}));
    while (next < whole.inputs.size()) graph.inputs.push_back(tensor_info(algorithm, whole.inputs.at(next++), DType::i64, {}));
    next = 0;
    for (const Tensor &t : exported_results(algorithm))
        graph.outputs.push_back(tensor_info(algorithm, whole.outputs.at(next++), t.dtype, t.dims));
    graph.nodes = {call};
    return write_model(model);
}

}  // namespace tessera::onnx
