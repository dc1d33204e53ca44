#include "schedules/target/target_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using nlohmann::json;

constexpr int64_t max_bytes = int64_t{1} << 40;
constexpr double max_rate = 1e18;

Rate read_rate(const JsonReader &r) {
    r.only({"one_thread", "all_threads", "spread"});
    return {r.at("one_thread").real(1, max_rate), r.at("all_threads").real(1, max_rate), r.at("spread").real(0, 100)};
}

std::map<std::string, Rate> read_rates(const JsonReader &r, const std::vector<std::string> &names) {
    r.only(names);
    std::map<std::string, Rate> rates;
    for (const auto &[name, value] : r.fields()) rates[name] = read_rate(value);
    return rates;
}

Measured read_measured(const JsonReader &r) {
    r.only(measured_fields());
    Measured m;
    m.processor = r.at("processor").quotable();
    m.threads = static_cast<int>(r.at("threads").integer(1, 4096));
    m.peaks = read_rates(r.at("peaks"), peak_names());
    m.read = read_rates(r.at("read"), memory_names());
    m.copy = read_rates(r.at("copy"), memory_names());
    if (m.threads > 1) m.parallel_loop_s = r.at("parallel_loop_s").real(0, 1);
    return m;
}

Target read_base(const JsonReader &r) {
    const std::string &name = r.text();
    std::vector<std::string> names = target_names();
    std::erase(names, "host");
    if (name == "host" || name.starts_with("host+") || name.ends_with(".json"))
        r.fail("target.base", "expected a target that is the same on every machine; got '" + r.quotable() + "'. The targets are " +
                                  join(names) + ", with features added by +.");
    return r.located([&] { return target_named(name); });
}

std::string rates_text(const std::map<std::string, Rate> &rates, const std::vector<std::string> &order) {
    std::string text;
    for (const std::string &name : order)
        if (auto it = rates.find(name); it != rates.end())
            text += fmt::format("{}\n      \"{}\": {{\"one_thread\": {:.3e}, \"all_threads\": {:.3e}, \"spread\": {:.3g}}}",
                                text.empty() ? "" : ",", name, it->second.one_thread, it->second.all_threads, it->second.spread);
    return text.empty() ? "{}" : "{" + text + "\n    }";
}

}  // namespace

const std::vector<std::string> &target_fields() {
    static const std::vector<std::string> names = {"format", "version", "name", "vector", "caches", "measured"};
    return names;
}

const std::vector<std::string> &measured_fields() {
    static const std::vector<std::string> names = {"processor", "threads", "peaks", "read", "copy", "parallel_loop_s"};
    return names;
}

Target parse_target(std::string_view text, const std::string &subject) {
    const json document = parse_json(text, subject);
    const JsonReader r(document, subject);
    if (const JsonReader format = r.at("format"); format.text() != "tessera-target")
        format.fail("target.format", "expected \"tessera-target\"; got \"" + format.quotable() +
                                         "\". Hand in a target file, as doctor --calibrate writes it.");
    if (const JsonReader version = r.at("version"); version.integer() != 1)
        version.fail("target.version",
                     "the target file has version " + version.value().dump() + "; this Tessera reads version 1. Calibrate anew.");
    r.only(target_fields());
    Target target = read_base(r.at("name"));
    if (const auto vector = r.find("vector")) {
        vector->only({"bytes", "registers"});
        target.vector_registers = static_cast<int>(vector->at("registers").integer(4, target.vector_registers));
        const JsonReader bytes = vector->at("bytes");
        target.vector_bytes = static_cast<int>(bytes.integer(16, target.vector_bytes));
        if (target.vector_bytes & (target.vector_bytes - 1))
            bytes.fail("json.value", "expected a power of two, got " + bytes.value().dump() + ".");
    }
    if (const auto caches = r.find("caches")) {
        caches->only({"l1", "l2", "l3"});
        target.l1_bytes = caches->at("l1").integer(1024, max_bytes);
        target.l2_bytes = caches->at("l2").integer(target.l1_bytes, max_bytes);
        target.l3_bytes = caches->at("l3").integer(target.l2_bytes, max_bytes);
    }
    if (const auto measured = r.find("measured")) target.measured = read_measured(*measured);
    return target;
}

Target read_target(const std::filesystem::path &file) {
    return parse_target(read_regular(file, {"target", "target file", "Calibrate anew."}), file.string());
}

Target target_or_file(const std::string &name) { return name.ends_with(".json") ? read_target(name) : target_named(name); }

std::string target_text(const Target &t) {
    std::string text = fmt::format(
        "{{\n  \"format\": \"tessera-target\",\n  \"version\": 1,\n  \"name\": {},\n  \"vector\": {{\"bytes\": {}, \"registers\": {}}},\n"
        "  \"caches\": {{\"l1\": {}, \"l2\": {}, \"l3\": {}}}",
        json(t.name).dump(), t.vector_bytes, t.vector_registers, t.l1_bytes, t.l2_bytes, t.l3_bytes);
    if (t.measured) {
        const Measured &m = *t.measured;
        text += fmt::format(
            ",\n  \"measured\": {{\n    \"processor\": {},\n    \"threads\": {},\n    \"peaks\": {},\n    \"read\": {},\n    \"copy\": {}",
            json(quotable(m.processor)).dump(), m.threads, rates_text(m.peaks, peak_names()), rates_text(m.read, memory_names()),
            rates_text(m.copy, memory_names()));
        if (m.threads > 1) text += fmt::format(",\n    \"parallel_loop_s\": {:.3e}", m.parallel_loop_s);
        text += "\n  }";
    }
    return text + "\n}\n";
}

}  // namespace tessera
