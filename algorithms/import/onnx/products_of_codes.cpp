#include "algorithms/import/onnx/products_of_codes.h"

#include <algorithm>

namespace tessera::onnx {

namespace {

// The sum of so many products of two codes of 8 bits fits 32 bits.
constexpr int64_t most_terms = (int64_t{1} << 31) / (255 * 255);

int64_t elements_of(const TensorData &t) {
    int64_t count = 1;
    for (int64_t e : t.extents)
        if (__builtin_mul_overflow(count, e, &count)) return -1;
    return count;
}

bool is_byte(int32_t type) {
    const std::optional<DType> dtype = dtype_of(type);
    return dtype == DType::u8 || dtype == DType::i8;
}

class Pass {
public:
    Pass(const Model &model, const std::set<std::string> &wanted) : graph_(model.graph), wanted_(wanted) {
        for (const Node &n : graph_.nodes)
            for (const std::string &o : n.outputs) makers_[o] = &n;
        for (const ValueInfo &i : graph_.inputs) input_types_[i.name] = i.type;
        for (const ValueInfo &o : graph_.outputs) wanted_.insert(o.name);
    }

    std::optional<Graph> run() {
        std::map<size_t, Node> products;
        for (size_t i = 0; i < graph_.nodes.size(); i++)
            if (std::optional<Node> product = of_codes(graph_.nodes[i])) products[i] = std::move(*product);
        if (products.empty()) return {};
        Graph made = graph_;
        for (auto &[i, product] : products) made.nodes[i] = std::move(product);
        std::set<std::string> read = wanted_;
        note_reads(made, read);
        std::erase_if(made.nodes, [&](const Node &n) { return is_dequantize(n) && !read.count(n.outputs[0]); });
        return made;
    }

private:
    const Graph &graph_;
    std::set<std::string> wanted_;
    std::map<std::string, const Node *> makers_;  // of values
    std::map<std::string, int32_t> input_types_;

    static bool is_dequantize(const Node &n) { return n.op == "DequantizeLinear" && n.domain.empty() && n.outputs.size() == 1; }

    static void note_reads(const Graph &graph, std::set<std::string> &read) {
        for (const Node &n : graph.nodes) {
            read.insert(n.inputs.begin(), n.inputs.end());
            for (const auto &[name, a] : n.attributes)
                if (a.graph) note_reads(*a.graph, read);
        }
        for (const ValueInfo &o : graph.outputs) read.insert(o.name);
    }

    // The tensor that a name stands for, or null.
    const TensorData *tensor(const std::string &name) const {
        if (const auto it = graph_.initializers.find(name); it != graph_.initializers.end()) return &it->second;
        const auto maker = makers_.find(name);
        if (maker == makers_.end() || maker->second->op != "Constant" || !maker->second->domain.empty()) return nullptr;
        const Attribute *value = maker->second->find("value");
        return value ? value->tensor.get() : nullptr;
    }

    // The type of what is stored, given or quantized; 0 where that is not seen.
    int32_t type_of(const std::string &name) const {
        if (const TensorData *t = tensor(name)) return t->type;
        if (const auto it = input_types_.find(name); it != input_types_.end()) return it->second;
        const auto maker = makers_.find(name);
        if (maker == makers_.end() || maker->second->op != "QuantizeLinear") return 0;
        const Node &q = *maker->second;
        if (q.has_input(2)) return type_of(q.inputs[2]);
        const auto type = static_cast<int32_t>(q.integer("output_dtype", 0));
        return type ? type : type_number(DType::u8);
    }

    // The node that makes numbers of codes of 8 bits by f32 scales, without blocks.
    const Node *codes(const std::string &name) const {
        const auto maker = makers_.find(name);
        if (maker == makers_.end() || !is_dequantize(*maker->second)) return nullptr;
        const Node &n = *maker->second;
        if (!n.has_input(0) || !n.has_input(1) || n.integer("block_size", 0) != 0 || n.integer("output_dtype", 0) > 1) return nullptr;
        const TensorData *scale = tensor(n.inputs[1]);
        return is_byte(type_of(n.inputs[0])) && scale && dtype_of(scale->type) == DType::f32 ? &n : nullptr;
    }

    // Whether there is one number, or none.
    bool is_one(const Node &n, size_t input) const {
        if (!n.has_input(input)) return true;
        const TensorData *t = tensor(n.inputs[input]);
        return t && elements_of(*t) == 1;
    }

    std::optional<Node> of_codes(const Node &n) const {
        const bool is_conv = n.op == "Conv", is_gemm = n.op == "Gemm";
        if (!n.domain.empty() || (!is_conv && !is_gemm && n.op != "MatMul") || !n.has_input(0) || !n.has_input(1)) return {};
        if (is_gemm && n.integer("transA", 0)) return {};
        const Node *x = codes(n.inputs[0]), *w = codes(n.inputs[1]);
        if (!x || !w || !is_one(*x, 1) || !is_one(*x, 2)) return {};
        const TensorData *weights = tensor(w->inputs[0]);
        if (!weights || weights->extents.size() < (is_conv ? 3 : 2) || (is_gemm && weights->extents.size() != 2)) return {};
        const auto rank = static_cast<int64_t>(weights->extents.size());
        const int64_t outputs_at = is_conv || (is_gemm && n.integer("transB", 0)) ? 0 : rank - 1;
        const int64_t outputs = weights->extents[static_cast<size_t>(outputs_at)];
        const int64_t terms = is_conv ? elements_of(*weights) / std::max<int64_t>(outputs, 1)
                                      : weights->extents[static_cast<size_t>(outputs_at == 0 ? 1 : rank - 2)];
        if (terms < 0 || terms > most_terms) return {};
        if (!is_one(*w, 1) || !is_one(*w, 2)) {
            const int64_t axis = w->integer("axis", 1);
            if ((axis < 0 ? axis + rank : axis) != outputs_at || (!is_conv && rank != 2)) return {};
        }
        Node made = n;
        made.domain = codes_domain;
        auto input = [](const Node &of, size_t i) { return of.has_input(i) ? of.inputs[i] : std::string(); };
        made.inputs.clear();
        for (const Node *of : {x, w})
            for (size_t i = 0; i < 3; i++) made.inputs.push_back(input(*of, i));
        made.inputs.push_back(input(n, 2));
        return made;
    }
};

}  // namespace

std::optional<Graph> with_products_of_codes(const Model &model, const std::set<std::string> &wanted) { return Pass(model, wanted).run(); }

}  // namespace tessera::onnx
