#include "generators/choose/tuning_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "generators/registry/options.h"
#include "generators/registry/transforms.h"
#include "schedules/knobs/notation.h"
#include "support/files/json_reader.h"
#include "support/text/error.h"

namespace tessera {

static Goal read_goal(const JsonReader &reader) {
    const JsonReader name = reader.at("name");
    std::vector<std::string> names;
    Goal goal;
    bool known = false;
    for (const Metric metric : {Metric::latency, Metric::throughput, Metric::code_size, Metric::workspace}) {
        names.push_back(name_of(metric));
        if (name.text() == names.back()) goal.metric = metric, known = true;
    }
    if (!known) name.fail("json.value", "expected one of " + join(names) + ", got '" + name.quotable() + "'.");
    if (const auto least = reader.find("least_speed")) goal.min_speed = least->real(0.01, 10);
    if (const auto callers = reader.find("callers")) goal.callers = static_cast<int>(callers->integer(1, 4096));
    return goal;
}

static std::string read_base(const JsonReader &over) {
    if (over.at("hash").text().empty()) return "";
    const JsonReader name = over.at("schedule");
    if (!is_schedule_name(name.text())) name.fail("json.value", "expected a schedule's name, got '" + name.quotable() + "'.");
    return name.text();
}

// What stands once in an artifact for one shape, and with each of several.
static void read_choice(const JsonReader &reader, TuningRecord &record) {
    if (const auto metric = reader.find("metric")) record.goal = read_goal(*metric);
    if (const auto caches = reader.find("caches")) {
        record.is_cold = caches->text() == "cold";
        if (!record.is_cold) caches->fail("json.value", "expected 'cold', got '" + caches->quotable() + "'.");
    }
    if (const auto chosen_by = reader.find("chosen_by")) record.is_predicted = !chosen_by->text().empty();
    if (const auto seed = reader.find("seed")) record.seed = seed->integer(0);
    if (const auto candidates = reader.find("candidates")) record.candidates = candidates->integer(1, 1000000);
    if (const auto prepack = reader.find("prepack")) record.prepack = prepack->texts();
    if (const auto ranges = reader.find("ranges")) record.ranges = ranges->texts();
    if (const auto over = reader.find("over")) record.base = read_base(*over);
}

static Extents read_shape(const JsonReader &reader, const std::vector<Extents> &others) {
    Extents shape;
    for (const auto &[dim, extent] : reader.fields()) shape[dim] = extent.integer(1, INT32_MAX);
    const bool same_dims = others.empty() || std::equal(shape.begin(), shape.end(), others[0].begin(), others[0].end(),
                                                        [](const auto &a, const auto &b) { return a.first == b.first; });
    if (!same_dims) reader.fail("json.value", "expected the same dims in each shape, got others than in the first.");
    return shape;
}

std::optional<TuningRecord> tuning_record_of(const Schedule &schedule) {
    if (!provenance_of(schedule)) return std::nullopt;
    TuningRecord record;
    read_measured(schedule, [&](const JsonReader &reader) {
        read_choice(reader, record);
        if (const auto shapes = reader.find("shapes"))
            for (const JsonReader &one : shapes->items()) {
                record.shapes.push_back(read_shape(one.at("extents"), record.shapes));
                read_choice(one, record);
            }
        if (const auto unreached = reader.find("unreached"))
            for (const JsonReader &one : unreached->items()) record.shapes.push_back(read_shape(one, record.shapes));
    });
    return record;
}

std::vector<std::string> tuning_words(const KernelTask &t, const TuningRecord &record) {
    std::vector<std::string> words = {"tune", name_before(t.algorithm, t.transforms), "--numerics", t.numerics, "--target", t.target};
    for (const std::string &transform : t.transforms) words.insert(words.end(), {"--transform", transform});
    auto add = [&](const std::vector<std::string> &more) { words.insert(words.end(), more.begin(), more.end()); };
    auto add_all = [&](const char *option, const std::map<std::string, int64_t> &values) {
        if (!values.empty()) words.push_back(option);
        add(assignments(values));
    };
    add_all("--option", t.options), add_all("--shape", t.fixed);
    if (record.shapes.empty()) {
        add_all("--extents", t.extents);
    } else {  // a dim has one extent for each shape, or one for all
        words.push_back("--extents");
        for (const auto &[dim, extent] : record.shapes[0]) {
            auto is_same = [&, d = dim, e = extent](const Extents &shape) { return shape.at(d) == e; };
            const size_t count = std::all_of(record.shapes.begin(), record.shapes.end(), is_same) ? 1 : record.shapes.size();
            for (size_t i = 0; i < count; i++) add(assignments({{dim, record.shapes[i].at(dim)}}));
        }
    }
    if (t.threads > 1) add({"--threads", std::to_string(t.threads)});
    if (!record.prepack.empty()) add({"--prepack", join(record.prepack, ",")});
    if (!record.ranges.empty()) words.push_back("--range"), add(record.ranges);
    if (record.is_predicted) add({"--deterministic", "--seed", std::to_string(record.seed)});
    if (record.candidates > 0) add({"--trials", std::to_string(record.candidates)});
    if (record.goal.metric != Metric::latency) add({"--metric", name_of(record.goal.metric)});
    if (!is_speed(record.goal.metric)) add({"--least-speed", fmt::format("{}", record.goal.min_speed)});
    if (record.is_cold) words.push_back("--cold-caches");
    return words;
}

}  // namespace tessera
