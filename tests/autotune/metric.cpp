#include "autotune/measure/metric.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace tessera::test_metric {

static Measurement measured(double speed, uint64_t code, uint64_t workspace) {
    Measurement m;
    m.ratio = speed, m.lower = speed * 0.99, m.upper = speed * 1.01, m.code_bytes = code, m.workspace_bytes = workspace;
    return m;
}

TEST_CASE("bytes count while the kernel is fast enough") {
    const Measurement base = measured(1, 1000, 4096), small = measured(0.95, 500, 0), slow = measured(0.5, 100, 0);
    CHECK(gain_over(base, small, {}) == Approx(0.95 * 0.99));
    CHECK(gain_over(base, small, {Metric::code_size, 0.9}) == Approx(1064.0 / 564));
    CHECK(gain_over(base, small, {Metric::workspace, 0.9}) == Approx(4160.0 / 64));
    CHECK(gain_over(base, slow, {Metric::code_size, 0.9}) < 0.01);
    CHECK(gain_over(base, slow, {Metric::code_size, 0.4}) > 1);
}

TEST_CASE("a goal's model prefers few bytes among what is fast enough") {
    auto candidate = [](double draft, float statements) {
        Featured f;
        f.values.resize(feature_table().size());
        for (size_t i = 0; i < f.values.size(); i++)
            if (feature_table()[i].name == "statements") f.values[i] = statements;
        f.draft = draft, f.bound = 5e-6;
        return f;
    };
    const auto time = roofline_model();
    const std::vector<Featured> all = {candidate(1e-5, 8), candidate(1e-5, 4), candidate(8e-5, 3)};
    GoalModel latency(*time, {});
    CHECK(latency.predict(all) == time->predict(all));
    GoalModel bytes(*time, {Metric::code_size, 0.9});
    bytes.set_base(all[0]);
    const std::vector<double> scores = bytes.predict(all);
    CHECK(std::max_element(scores.begin(), scores.end()) - scores.begin() == 1);
    CHECK(scores[0] > scores[2]);
}

}  // namespace tessera::test_metric
