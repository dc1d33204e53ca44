// Losses of classification, as tiles: of scores (…, C) and the labels (…) of the classes that were right.
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

enum class LossReduction : uint8_t { none, sum, mean };

struct ClassLoss {
    Tile weights = {};                    // (C), of the scores' type: what each class counts; nothing: 1
    std::optional<int64_t> ignored = {};  // a label that does not count, of a class or not
    LossReduction reduction = LossReduction::mean;
};

// -log_probabilities[label] weights[label] for each label: with `none` (…); with `sum` their sum, and with `mean` that by the sum of the
// weights that count, which is NaN where none does. Labels are integers. What is ignored, and a label that is no class, has the loss and
// the weight 0. Stages total and, of a mean, count. UserError losses.labels, losses.classes.
Tile negative_log_likelihood(const Tile &log_probabilities, const Tile &labels, const Dim &classes, const ClassLoss &loss = {},
                             Span caller = std::source_location::current());
// The same of log_softmax(scores), which is not kept: exact where a score and the logarithm of the sum are both far from 0.
Tile softmax_cross_entropy(const Tile &scores, const Tile &labels, const Dim &classes, const ClassLoss &loss = {},
                           Span caller = std::source_location::current());

}  // namespace tessera
