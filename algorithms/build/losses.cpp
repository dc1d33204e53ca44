#include "algorithms/build/losses.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// Labels as positions among the classes, and which of them count.
struct Labels {
    Labels(const Tile &labels, const Tile &scores, const Dim &classes, const ClassLoss &loss) {
        if (is_float(labels.dtype()) || labels.dtype() == DType::boolean)
            throw UserError("losses.labels",
                            "labels of a loss are integers; " + labels.describe() + " is " + name_of(labels.dtype()) + ".");
        const std::vector<std::string> dims = scores.dims();
        if (std::find(dims.begin(), dims.end(), classes.name) == dims.end())
            throw UserError("losses.classes",
                            scores.describe() + " has no dim '" + classes.name + "' of classes; its dims are " + join(dims) + ".");
        for (const std::string &d : labels.dims())
            if (d == classes.name || std::find(dims.begin(), dims.end(), d) == dims.end())
                throw UserError("losses.labels", labels.describe() + " has the dim '" + d + "'; labels have dims of " + scores.describe() +
                                                     " other than '" + classes.name + "'.");
        if (bool(loss.weights) && loss.weights.dims() != std::vector{classes.name})
            throw UserError("losses.classes",
                            "the weights " + loss.weights.describe() + " of classes have the one dim '" + classes.name + "'.");
        class_dim = classes.name;
        for (const std::string &d : dims)
            if (d != classes.name) outer.push_back(d);
        const DType type = labels.dtype();
        position = cast(DType::index, labels.value());
        inside = Expr(0) <= position && position < extent(classes.name);
        Expr is_counted = inside;
        if (loss.ignored) {
            const DTypeTraits &range = traits_of(type);
            if (range.lowest <= *loss.ignored && *loss.ignored <= range.highest)
                is_counted = is_counted && labels.value() != constant_int(type, *loss.ignored);
        }
        counts = Tile(&labels.builder(), is_counted, labels.dims());
    }

    Tile picked(const Tile &of, const std::vector<std::string> &dims) const {
        return Tile(&of.builder(), read_where(of.at({{class_dim, position}}, dims).value(), inside), dims);
    }

    std::string class_dim;
    std::vector<std::string> outer;  // of the scores, without that of classes
    Tile counts;
    Expr position, inside;
};

// What of `each` loss counts, reduced.
Tile reduced(const Tile &each, const Labels &labels, const ClassLoss &loss) {
    Builder &f = each.builder();
    const DType type = each.dtype();
    const Tile zero = f.scalar(type, 0), one = f.scalar(type, 1);
    Tile weight = loss.weights ? labels.picked(loss.weights, labels.counts.dims()) : one;
    const Tile weighted = select(labels.counts, loss.weights ? each * weight : each, zero);
    const Tile ordered(&f, weighted.value(), labels.outer);
    if (loss.reduction == LossReduction::none) return ordered;
    const Tile total = labels.outer.empty() ? ordered : f.fold(sum_monoid(type), {ordered}, labels.outer)[0].named("total");
    if (loss.reduction == LossReduction::sum) return total;
    weight = Tile(&f, select(labels.counts, weight, zero).value(), labels.outer);
    return total / (labels.outer.empty() ? weight : f.fold(sum_monoid(type), {weight}, labels.outer)[0].named("count"));
}

}  // namespace

Tile negative_log_likelihood(const Tile &log_probabilities, const Tile &labels, const Dim &classes, const ClassLoss &loss, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Labels at(labels, log_probabilities, classes, loss);
    return reduced(-at.picked(log_probabilities, at.outer), at, loss);
}

Tile softmax_cross_entropy(const Tile &scores, const Tile &labels, const Dim &classes, const ClassLoss &loss, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Labels at(labels, scores, classes, loss);
    return reduced(logsumexp_above(at.picked(scores, at.outer), scores, classes), at, loss);
}

}  // namespace tessera
