// Normalisations and sums of exponentials of rows at the edge, against the formula in f64 or wider: rows that are huge, tiny, constant, of
// one element, far from 0, or with one element far from the others. Errors are counted in units in the last place of f32.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "tests/compiler/harness.h"

namespace tessera::test_edges {

using namespace tessera::test;

namespace {

using Row = std::vector<double>;  // of values that f32 has
using Wide = long double;

struct EdgeRow {
    std::string name;
    Row row;
};

Row made(int n, const std::function<double(int)> &value) {
    Row row;
    for (int i = 0; i < n; i++) row.push_back(static_cast<float>(value(i)));
    return row;
}

std::vector<EdgeRow> edge_rows() {
    std::vector<EdgeRow> all;
    for (const int n : {1, 4, 16, 77}) {
        const std::string of = " of " + std::to_string(n);
        const auto wave = [](int i) { return std::sin(1 + 1.7 * i); };
        for (const double scale : {1.0, 1e-3, 1e8, 0x1p47, 1e19, 1e30, 3e38, 1e-20, 1e-38, 1e-42})
            all.push_back({"times " + std::to_string(scale) + of, made(n, [&](int i) { return scale * wave(i); })});
        for (const double value : {0.0, 0.1, 7.0, 1e19, 3.4e38, -3.4e38, 1e-42})
            all.push_back({"constant " + std::to_string(value) + of, made(n, [&](int) { return value; })});
        all.push_back({"16777216 + 2 i" + of, made(n, [](int i) { return 16777216 + 2 * i; })});
        all.push_back({"10000 + i / 1000" + of, made(n, [](int i) { return 10000 + i * 1e-3; })});
        all.push_back({"-1e30 (1 + i / 100000)" + of, made(n, [](int i) { return -1e30 * (1 + i * 1e-5); })});
        for (const int far : {0, n - 1})
            all.push_back({"one far, " + std::to_string(far) + of, made(n, [&](int i) { return i == far ? 1e4 : wave(i); })});
        all.push_back({"3e38, -3e38, ..." + of, made(n, [](int i) { return i % 2 ? -3e38 : 3e38; })});
    }
    return all;
}

// What is right, beside what an error counts, and what the last place of a subnormal element of the row makes of the result.
struct Expected {
    Wide value, size, grain = 0x1p-149;
};

std::vector<Expected> normalized(const Row &row, Wide epsilon) {
    Wide mean = 0, square = 0;
    const auto n = static_cast<Wide>(row.size());
    for (const double v : row) mean += v;
    mean /= n;
    for (const double v : row) square += (v - mean) * (v - mean);
    std::vector<Expected> all;
    const Wide root = std::sqrt(square / n + epsilon), mean_size = std::sqrt(square / n) / root;
    for (const double v : row) all.push_back({(v - mean) / root, std::max(std::fabs(v - mean) / root, mean_size), 0x1p-149 / root});
    return all;
}

// The logarithm of the sum of exp(v - top), where `top` is the largest.
Wide log_sum_below(const Row &row) {
    const Wide top = *std::max_element(row.begin(), row.end());
    Wide sum = 0;
    for (const double v : row) sum += std::exp(v - top);
    return std::log(sum);
}

std::vector<KnobsByStage> schedules_of(const Algorithm &a) {
    std::vector<KnobsByStage> all = {{}};
    KnobsByStage lanes;
    for (const Stage &s : a.stages())
        if (is_fold(s)) lanes[s.name].split = {{reduced_dims(s)[0], {Split::How::lanes, 4}}};
    all.push_back(lanes);
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    const std::vector<std::string> names = library.names();
    for (const char *target : {"avx2", "avx512"}) {
        const std::string name = a.name + "/" + target;
        if (std::count(names.begin(), names.end(), name)) all.push_back(resolve(library.find(name), library).stages);
    }
    return all;
}

using Formula = std::function<std::vector<Expected>(const Row &)>;

// `given` makes the inputs of a row; `most` is the error allowed, in halves of a unit in the last place.
void check(const Algorithm &a, const std::function<Extents(int64_t)> &extents, const std::function<void(Arrays &, const Row &)> &given,
           const Parameters &parameters, const Formula &formula, double most) {
    for (const KnobsByStage &stages : schedules_of(a)) {
        const TileProgram program = lowered(a.name, a, stages, target_named("avx512"));
        for (const EdgeRow &edge : edge_rows()) {
            const auto n = static_cast<int64_t>(edge.row.size());
            Arrays inputs = make_inputs(a, extents(n), 1);
            given(inputs, edge.row);
            const Arrays got = run_interpreter(program, extents(n), inputs, parameters);
            const Array &y = got.at(a.outputs[0]);
            const std::vector<Expected> expected = formula(edge.row);
            double worst = 0;
            for (size_t i = 0; i < expected.size(); i++) {
                const double got_y = y.get(static_cast<int64_t>(i)).real;
                const Wide off =
                    static_cast<float>(expected[i].value) == static_cast<float>(got_y) ? 0 : std::fabs(got_y - expected[i].value);
                const double bound = static_cast<double>(expected[i].size * 0x1p-24 + std::max(expected[i].grain, Wide{0x1p-149}));
                worst = std::isnan(off) ? INFINITY : std::max(worst, static_cast<double>(off) / bound);
            }
            INFO(a.name << " of " << edge.name << " under " << stages.size() << " stages");
            CHECK(worst <= most);
        }
    }
}

void fill(Array &a, double value) {
    for (int64_t i = 0; i < a.size(); i++) a.set(i, Scalar::of_real(a.dtype, value));
}

void put(Array &a, const Row &row) {
    for (size_t i = 0; i < row.size(); i++) a.set(static_cast<int64_t>(i), Scalar::of_real(a.dtype, row[i]));
}

void unscaled(Arrays &inputs) { fill(inputs.at("gamma"), 1), fill(inputs.at("beta"), 0); }

const auto one_row = [](int64_t n) { return Extents{{"M", 1}, {"N", n}}; };
const auto as_x = [](Arrays &inputs, const Row &row) { put(inputs.at("x"), row); };

}  // namespace

TEST_CASE("edges: layer and group normalisation are right to some last places, of any finite row") {
    const Parameters epsilon = {{"epsilon", Scalar::of_real(DType::f32, 1e-5)}};
    const Wide given = static_cast<float>(1e-5);
    const auto with_ones = [](Arrays &inputs, const Row &row) { unscaled(inputs), put(inputs.at("x"), row); };
    const Formula formula = [&](const Row &row) { return normalized(row, given); };
    check(library::layernorm({}), one_row, with_ones, epsilon, formula, 12);
    const auto group = [](int64_t n) { return Extents{{"N", 1}, {"P", n}, {"G", 1}, {"C", 1}}; };
    check(library::group_norm_nhwc({}), group, with_ones, epsilon, formula, 12);
    check(library::group_norm_nchw({}), group, with_ones, epsilon, formula, 12);
    const auto halved = [](Arrays &inputs, const Row &row) {  // x + r is the row, exactly
        unscaled(inputs), put(inputs.at("x"), row), fill(inputs.at("r"), 0);
    };
    check(library::residual_layernorm({}), one_row, halved, {}, [](const Row &row) { return normalized(row, static_cast<float>(1e-12)); },
          12);
}

TEST_CASE("edges: a root mean square is right to some last places, of any finite row") {
    const auto with_ones = [](Arrays &inputs, const Row &row) { fill(inputs.at("gamma"), 1), put(inputs.at("x"), row); };
    check(library::rmsnorm({}), one_row, with_ones, {},
          [](const Row &row) {
              Wide square = 0;
              for (const double v : row) square += Wide{v} * v;
              std::vector<Expected> all;
              for (const double v : row) {
                  const Wide y = v / std::sqrt(square / static_cast<Wide>(row.size()) + static_cast<float>(1e-6));
                  all.push_back({y, std::fabs(y)});
              }
              return all;
          },
          12);
}

TEST_CASE("edges: softmax is right to some last places, of any finite row") {
    check(library::softmax({}), one_row, as_x, {},
          [](const Row &row) {
              std::vector<Expected> all;
              const Wide top = *std::max_element(row.begin(), row.end()), sum = log_sum_below(row);
              // Terms under 2^-126.5 of the largest are 0.
              for (const double v : row) {
                  const Wide y = std::exp(v - top - sum);
                  all.push_back({y, y + 0x1p-102});
              }
              return all;
          },
          12);
}

TEST_CASE("edges: logsumexp and cross entropy are right to some last places of what they add") {
    check(library::logsumexp({}), one_row, as_x, {},
          [](const Row &row) {
              const Wide top = *std::max_element(row.begin(), row.end()), y = log_sum_below(row) + top;
              return std::vector<Expected>{{y, std::max(std::fabs(y), std::fabs(y - top)) + std::min(Wide{1}, std::fabs(top))}};
          },
          12);
    const auto with_id = [](Arrays &inputs, const Row &row) {
        put(inputs.at("x"), row), inputs.at("id").set(0, Scalar::of_integer(DType::i32, static_cast<int64_t>(row.size()) / 2));
    };
    check(library::cross_entropy({}), one_row, with_id, {},
          [](const Row &row) {
              const Wide top = *std::max_element(row.begin(), row.end()), own = row[row.size() / 2], sum = log_sum_below(row);
              const Wide y = sum + (top - own);
              return std::vector<Expected>{{y > std::numeric_limits<float>::max() ? Wide{INFINITY} : y, std::fabs(y) + 1}};
          },
          12);
}

namespace {

// Each element of a row is off by half a step, which is at least half of 2^-126; the result is rounded a few times.
struct Product {
    Wide exact = 0, bound = 0;
    Product(const std::vector<double> &row, const std::vector<int64_t> &weights, const std::vector<Wide> &scales, size_t group) {
        Wide size = 0;
        for (size_t begin = 0; begin < row.size(); begin += group) {
            Wide largest = 0;
            for (size_t k = begin; k < begin + group; k++) largest = std::max(largest, std::fabs(Wide{row[k]}));
            const Wide step = std::max(largest / 127, Wide{0x1p-126});
            for (size_t k = begin; k < begin + group; k++) {
                const Wide w = static_cast<Wide>(weights[k]) * scales[begin / group];
                exact += w * row[k], size += std::fabs(w * row[k]), bound += std::fabs(w) * step / 2;
            }
        }
        bound = bound * (1 + Wide{0x1p-19}) + size * 0x1p-19 + 0x1p-140;
    }
};

void check_product(const Algorithm &a, const std::string &weights, size_t group) {
    const int n = 32;
    for (const EdgeRow &edge : edge_rows()) {
        if (edge.row.size() != 16) continue;
        Row row = edge.row;
        row.insert(row.end(), edge.row.begin(), edge.row.end());
        const Extents shape = {{"M", 1}, {"N", 3}, {"K", n}};
        Arrays inputs = make_inputs(a, shape, 1);
        put(inputs.at("x"), row);
        fill(inputs.at(weights == "w" ? "w_scales" : "scale"), 0x1p-9);
        for (const KnobsByStage &stages : schedules_of(a)) {
            const Arrays got = run_interpreter(lowered(a.name, a, stages, target_named("avx512")), shape, inputs, {});
            for (int64_t column = 0; column < 3; column++) {
                std::vector<int64_t> w;
                for (int64_t k = 0; k < n; k++)
                    w.push_back(weights == "w" ? inputs.at("w").get(k * 3 + column).integer
                                               : inputs.at("codes").get(column * n + k).integer - 8);
                const Product right(row, w, {0x1p-9}, group);
                INFO(a.name << " of " << edge.name << " by column " << column);
                CHECK(std::fabs(got.at("y").get(column).real - right.exact) <= right.bound);
            }
        }
    }
    // What is not finite makes every result of its row NaN.
    for (const double special : {static_cast<double>(INFINITY), -static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
        const Extents shape = {{"M", 2}, {"N", 3}, {"K", n}};
        Arrays inputs = make_inputs(a, shape, 1);
        inputs.at("x").set(5, Scalar::of_real(DType::f32, special));
        for (const KnobsByStage &stages : schedules_of(a)) {
            const Arrays got = run_interpreter(lowered(a.name, a, stages, target_named("avx512")), shape, inputs, {});
            for (int64_t i = 0; i < 6; i++) CHECK(std::isnan(got.at("y").get(i).real) == (i < 3));
        }
    }
}

}  // namespace

TEST_CASE("edges: products of rows that are rounded to 8 bits are off by half a step of each element") {
    check_product(library::matmul_dynamic_qint8({}), "w", 32);
    check_product(library::matmul_dynamic_qint4({}, {{"group", 32}, {"half_scale", 0}}), "codes", 32);
}

}  // namespace tessera::test_edges
