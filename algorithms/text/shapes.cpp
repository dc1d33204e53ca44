#include "algorithms/text/shapes.h"

#include <algorithm>
#include <map>

#include "algorithms/text/print.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// What is known of a dim's extent: "768", "(|H| - 2)/3", the name and extent of the caller's dim; "" of a free one.
using ExtentTexts = std::map<std::string, std::string>;

std::string with_extent(const ExtentTexts &extents, const std::string &dim) {
    const auto it = extents.find(dim);
    return it == extents.end() || it->second.empty() ? dim : dim + " = " + it->second;
}

std::string brackets(const ExtentTexts &extents, const std::vector<std::string> &dims) {
    std::vector<std::string> all;
    for (const std::string &d : dims) all.push_back(with_extent(extents, d));
    return "[" + (all.empty() ? "" : join(all)) + "]";
}

// A derived size where all that it uses is fixed is a number.
std::string size_text(const Algorithm &a, const Expr &size) {
    const Expr known = rewrite(size, [&](const Expr &e) -> Expr {
        const Dim *dim = e.kind() == ExprKind::extent ? a.find_dim(e->name) : nullptr;
        return dim && dim->kind == DimKind::fixed ? Expr(dim->value) : Expr();
    });
    return to_string(known);
}

std::string folded(const Stage &stage, const ExtentTexts &extents) {
    const auto over = [&](const std::vector<std::string> &dims) {
        const std::string all = brackets(extents, dims);
        return ", over " + all.substr(1, all.size() - 2);
    };
    return std::visit(Overloaded{[](const Map &) { return std::string(); },
                                 [&](const Reduce &r) { return r.dims.empty() ? std::string() : over(r.dims); },
                                 [&](const Scan &s) { return ", along " + with_extent(extents, s.dim); }},
                      stage.body);
}

std::string text_of(const Algorithm &a, const ExtentTexts &given, const std::string &indent) {
    ExtentTexts extents = given;
    for (const Dim &d : a.dims) {
        if (extents.count(d.name) && !extents.at(d.name).empty()) continue;
        if (d.kind == DimKind::fixed) extents[d.name] = std::to_string(d.value);
        if (d.kind == DimKind::derived) extents[d.name] = size_text(a, d.size);
        if (!d.equals.empty()) extents[d.name] = with_extent(extents, d.equals);
    }
    std::string text;
    for (const Tensor &t : a.tensors) {
        const auto half = a.half_bytes.find(t.name);
        const bool is_half = half != a.half_bytes.end();
        text += indent + name_of(t.role) + " " + t.name + brackets(extents, is_half ? half->second.dims : t.dims) + ": " +
                name_of(is_half ? half->second.dtype : t.dtype) + "\n";
    }
    for (const Step &step : a.steps)
        text += std::visit(
            Overloaded{[&](const Stage &stage) {
                           std::string lines;
                           for (const Tensor &t : results_of(stage)) {
                               const bool is_output = std::count(a.outputs.begin(), a.outputs.end(), t.name) > 0;
                               lines += indent + "stage " + t.name + brackets(extents, t.dims) + ": " + name_of(t.dtype) +
                                        folded(stage, extents) + (is_output ? ", output" : "") + "\n";
                           }
                           return lines.empty()
                                      ? indent + "stage " + stage.name + brackets(extents, stage.dims) + folded(stage, extents) + "\n"
                                      : lines;
                       },
                       [&](const Call &call) {
                           ExtentTexts inner;
                           std::vector<std::string> bound;
                           for (const auto &[own, of_caller] : call.dims) {
                               inner[own] = with_extent(extents, of_caller);
                               bound.push_back(own + " is " + inner[own]);
                           }
                           return indent + "call " + call.scope + " = " + call.callee->name +
                                  (call.repeat ? " for each " + with_extent(extents, call.repeat->dim) : "") +
                                  (bound.empty() ? "" : ": " + join(bound)) + "\n" + text_of(*call.callee, inner, indent + "  ");
                       }},
            step);
    return text;
}

}  // namespace

std::string shapes_text(const Algorithm &algorithm) { return algorithm.name + "\n" + text_of(algorithm, {}, "  "); }

}  // namespace tessera
