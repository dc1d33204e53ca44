#include "schedules/knobs/knob.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "schedules/artifact/read.h"
#include "schedules/artifact/write.h"

namespace tessera::test_knob {

using nlohmann::json;

// A statement of each knob.
static const json &statements() {
    static const json all = {{"place", "y.micro"},
                             {"block", {{"M", 64}}},
                             {"k", {{"K", 256}}},
                             {"micro", {{"M", 6}}},
                             {"levels", {{"tile", {{"N", 128}}}}},
                             {"loops", {"block.M", "K"}},
                             {"vector", {{"N", 8}}},
                             {"unroll", {{"M", 4}}},
                             {"parallel", {"block.M"}},
                             {"pack", {{"w", {{"at", "block"}, {"layout", {"N/16", "K", "N%16"}}, {"stages", 2}}}}},
                             {"prefetch", {{"x", {{"loop", "y.M"}, {"ahead", 2}}}}},
                             {"stream", "M"},
                             {"layout", {"N", "M"}},
                             {"tail", {{"M", "loop"}}},
                             {"split", {{"K", {{"how", "lanes"}, {"size", 16}}}}},
                             {"instruction", "fma"},
                             {"call", "once"},
                             {"use", "linear/avx2"},
                             {"warps", 4},
                             {"directives", {{{"id", "a"}, {"op", "unroll"}, {"loop", "K"}, {"factor", 2}}}}};
    return all;
}

static Knobs read(const json &knobs) { return read_knobs(knobs, {"y"}, FieldPlace{"s", "", {}}); }

static std::vector<Knob> stated_in(const Knobs &knobs) {
    std::vector<Knob> all;
    for_each_knob(knobs, [&](Knob knob, const auto &field) {
        if (is_stated(field)) all.push_back(knob);
    });
    return all;
}

TEST_CASE("each knob is read into its own field and written as it was read") {
    CHECK(statements().size() == knob_rules.size());
    for (const KnobRule &rule : knob_rules) {
        INFO(rule.name);
        const json one = {{rule.name, statements().at(rule.name)}};
        const Knobs knobs = read(one);
        CHECK(stated_in(knobs) == std::vector<Knob>{rule.knob});
        CHECK(json_of(knobs) == one);
    }
    CHECK(json_of(read(statements())) == statements());
    CHECK(json_of(Knobs{}) == json::object());
}

TEST_CASE("two sets of knobs are walked together") {
    Knobs a = read(statements()), b = a;
    b.warps = 8, b.tail.clear();
    std::vector<Knob> different;
    for_each_knob(a, b, [&](Knob knob, const auto &of_a, const auto &of_b) {
        if (of_a != of_b) different.push_back(knob);
    });
    CHECK(different == std::vector<Knob>{Knob::tail, Knob::warps});
}

TEST_CASE("knobs have names") {
    CHECK(knob_names().size() == knob_rules.size());
    CHECK((knob_names().front() == "place" && knob_names().back() == "directives"));
    for (const KnobRule &rule : knob_rules) CHECK((knob_named(rule.name) == rule.knob && name_of(rule.knob) == std::string(rule.name)));
    CHECK_FALSE(knob_named("blok"));
}

}  // namespace tessera::test_knob
