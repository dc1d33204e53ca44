// Features of classical models: counts of n-grams.
#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

// How often each n-gram of a pool of integers stands in each row, its elements up to max_skip_count + 1 apart: one fold over positions.
std::vector<Value> count_grams(Context &c) {
    const Value &x = c.in(0);
    const std::vector<int64_t> pool = c.node.integers("pool_int64s"), begins = c.node.integers("ngram_counts"),
                               at_index = c.node.integers("ngram_indexes");
    const std::string mode = c.node.text("mode", "TF");
    const int64_t shortest = c.node.integer("min_gram_length"), longest = c.node.integer("max_gram_length"),
                  skips = c.node.integer("max_skip_count");
    if (pool.empty()) c.refuse("its pool has no integers.", "Map words to numbers before the model.");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF") c.refuse("its mode is '" + mode + "'.", "Check the exporter.");
    if (x.rank() < 1 || x.rank() > 2)
        c.refuse("its input has " + std::to_string(x.rank()) + " axes; expected 1 or 2.", "Check the exporter.");
    if (shortest < 1 || longest < shortest || longest > 16 || skips < 0 || (longest > 1 && skips > 64))
        c.refuse("its n-grams are " + std::to_string(shortest) + " to " + std::to_string(longest) + " long with up to " +
                     std::to_string(skips) + " skips; expected at most 16, and 64 skips.",
                 "Export shorter ones.");
    // Each n-gram has its index of the result, whether its length is asked for or not.
    struct Gram {
        std::vector<int64_t> tokens;
        int64_t index;
    };
    std::vector<Gram> grams;
    int64_t width = 0;
    for (size_t i = 0; i < begins.size(); i++) {
        const size_t length = i + 1;
        const auto begin = static_cast<size_t>(begins[i]), end = i + 1 < begins.size() ? static_cast<size_t>(begins[i + 1]) : pool.size();
        if (begins[i] < 0 || end > pool.size() || begin > end || (end - begin) % length)
            c.refuse("its ngram_counts do not divide its pool of " + std::to_string(pool.size()) + " integers.", "Check the exporter.");
        for (size_t at = begin; at < end; at += length)
            grams.push_back({{pool.begin() + static_cast<int64_t>(at), pool.begin() + static_cast<int64_t>(at + length)}, 0});
    }
    if (grams.size() != at_index.size())
        c.refuse("it has " + std::to_string(grams.size()) + " n-grams and " + std::to_string(at_index.size()) + " indices.",
                 "Check the exporter.");
    std::set<int64_t> used;
    for (size_t i = 0; i < grams.size(); i++) {
        grams[i].index = at_index[i];
        if (at_index[i] < 0 || at_index[i] >= most_known * 256 || !used.insert(at_index[i]).second)
            c.refuse("two n-grams share an index, or it is out of bounds.", "Give each its own.");
        width = std::max(width, at_index[i] + 1);
    }
    std::vector<Axis> own;
    const Tile tile = c.spread(x, own);
    const Axis row = own.size() == 2 ? own[0] : Axis{Expr(1), ""}, P = own.back(), M = c.new_axis(Expr(width), own);
    std::vector<Axis> over = {row, M, P};
    Expr found(0);
    for (int64_t length = shortest; length <= longest; length++) {
        Array table(DType::i64, {width, length}), counts(DType::boolean, {width});
        bool any = false;
        for (const Gram &g : grams) {
            if (static_cast<int64_t>(g.tokens.size()) != length) continue;
            any = true;
            counts.set(g.index, Scalar::of_integer(DType::boolean, 1));
            for (int64_t k = 0; k < length; k++)
                table.set(g.index * length + k, Scalar::of_integer(DType::i64, g.tokens[static_cast<size_t>(k)]));
        }
        if (!any) continue;
        const Value tokens = c.constant(std::move(table)), is_gram = c.constant(std::move(counts));
        for (int64_t step = 1; step <= (length == 1 ? 1 : skips + 1); step++) {
            Expr same = c.read(is_gram, {at(M)}, over).value();
            const std::optional<int64_t> positions = c.space.number(P.extent);
            if (positions && (length - 1) * step >= *positions) continue;
            const Expr inside = at(P) + Expr((length - 1) * step) < P.extent;
            for (int64_t k = 0; k < length; k++) {
                std::map<std::string, Expr> there = {{P.dim, at(P) + Expr(k * step)}};
                const Expr token = cast(DType::i64, read_where(substitute(tile.value(), there), inside));
                same = same && token == c.read(tokens, {at(M), Expr(k)}, over).value();
            }
            found = found + select(inside && same, Expr(1), Expr(0));
        }
    }
    const Tile each(&c.f, c.space.resolved(cast(DType::i32, found)),
                    row.dim.empty() ? std::vector{M.dim, P.dim} : std::vector{row.dim, M.dim, P.dim});
    Tile y = cast(DType::f32, c.f.fold(sum_monoid(DType::i32), {each}, {P.dim})[0].named("counts"));
    std::vector<Axis> result = {M};
    if (own.size() == 2) result.insert(result.begin(), row);
    if (mode == "IDF") y = min(y, 1.0);
    const std::vector<double> weights = c.node.find("weights") ? c.node.reals("weights") : std::vector<double>();
    if (mode == "TF" || weights.empty()) return {c.result(y, result, DType::f32)};
    if (weights.size() != grams.size()) c.refuse("it does not have a weight for each n-gram.", "Check the exporter.");
    std::vector<double> by_index(static_cast<size_t>(width));
    for (size_t i = 0; i < grams.size(); i++) by_index[static_cast<size_t>(grams[i].index)] = weights[i];
    const Value factor = c.constant(Array(DType::f32, {width}, by_index));
    return {c.result(Context::ordered(y * c.read(factor, {at(M)}, {M}), {y}), result, DType::f32)};
}

}  // namespace

std::vector<Operator> feature_operators() {
    return {
        {"TfIdfVectorizer", count_grams},
    };
}

}  // namespace tessera::onnx
