#include "generators/doctor/doctor.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/doctor/calibrate.h"
#include "generators/doctor/environment_checks.h"
#include "generators/registry/options.h"
#include "schedules/target/target_file.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct DoctorOptions {
    bool json = false, calibrate = false;
    std::string out, target = "host";
    double seconds = 1;
};

// Features of this processor that the best target for it does not use by itself.
std::vector<std::string> left_out(const Target &host) {
    std::vector<std::string> rest = host_features();
    std::erase_if(rest, [&](const std::string &f) { return host.has(f); });
    return rest;
}

std::string plural(int64_t n, const std::string &one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

std::string cache_text(const Machine &m) {
    std::vector<std::string> all;
    for (const Cache &c : m.caches)
        all.push_back(fmt::format("L{} {}{}", c.level, bytes_text(c.bytes), c.threads > 1 ? " for " + plural(c.threads, "thread") : ""));
    return all.empty() ? "unknown" : join(all);
}

bool complete(const std::vector<EnvironmentCheck> &all) {
    return std::all_of(all.begin(), all.end(), [](const EnvironmentCheck &f) { return f.found || !f.required; });
}

std::string text(const Machine &m, const Target &host, const std::vector<EnvironmentCheck> &all) {
    const std::vector<std::string> rest = left_out(host);
    std::string out = "machine\n";
    auto line = [&](const std::string &what, const std::string &value) { out += fmt::format("  {:<14}  {}\n", what, value); };
    line("processor", fmt::format("{} ({}), {}, {}, {}, {} of memory", m.processor, m.architecture, plural(m.cores, "core"),
                                  plural(m.threads, "thread"), plural(m.numa_nodes, "NUMA node"), bytes_text(m.memory_bytes)));
    line("caches", cache_text(m));
    line("features", join(host_features()));
    line("target", host.name + (rest.empty() ? ", which uses all of them" : "; to use more, add to it by +: " + join(rest)));
    for (const bool required : {true, false}) {
        out += required ? "needed to generate, verify and time kernels for this machine\n" : "needed for some things\n";
        for (const EnvironmentCheck &f : all)
            if (f.required == required)
                line(f.what, f.found ? fmt::format("{}; for {}", *f.found, f.needed_for)
                                     : fmt::format("missing; for {}. {}", f.needed_for, f.remedy));
    }
    return out + (complete(all) ? "All that generating for this machine needs is here.\n"
                                : "Something that generating for this machine needs is missing.\n");
}

ordered_json json_of(const Machine &m, const Target &host, const std::vector<EnvironmentCheck> &all) {
    ordered_json caches = ordered_json::array(), checks = ordered_json::array();
    for (const Cache &c : m.caches) caches.push_back({{"level", c.level}, {"bytes", c.bytes}, {"threads", c.threads}});
    for (const EnvironmentCheck &f : all) {
        ordered_json check = {{"what", f.what}, {"found", nullptr}, {"required", f.required}, {"needed_for", f.needed_for}};
        if (f.found) check["found"] = *f.found;
        else check["remedy"] = f.remedy;
        checks.push_back(check);
    }
    return {{"format", "tessera-doctor"},
            {"version", 1},
            {"complete", complete(all)},
            {"machine",
             {{"processor", m.processor},
              {"architecture", m.architecture},
              {"cores", m.cores},
              {"threads", m.threads},
              {"numa_nodes", m.numa_nodes},
              {"memory_bytes", m.memory_bytes},
              {"caches", caches}}},
            {"features", host_features()},
            {"target", host.name},
            {"checks", checks}};
}

int examine(const DoctorOptions &options) {
    const Machine machine = this_machine();
    const Target host = target_named("host");
    const std::vector<EnvironmentCheck> all = environment_checks();
    std::cout << (options.json ? json_text(json_of(machine, host, all), 2) + "\n" : text(machine, host, all));
    return complete(all) ? exit_ok : exit_check_failed;
}

std::string rates_text(const Measured &m) {
    std::string out =
        fmt::format("{:<24}{:>12}{:>14}{:>10}\n", m.processor.substr(0, 23), "one thread", plural(m.threads, "thread"), "spread");
    auto row = [&](const std::string &what, const Rate &r, const char *unit) {
        out +=
            fmt::format("{:<24}{:>12.1f}{:>14.1f}{:>8.1f} %  {}\n", what, r.one_thread * 1e-9, r.all_threads * 1e-9, 100 * r.spread, unit);
    };
    auto rows = [&](const std::string &before, const std::map<std::string, Rate> &rates, const std::vector<std::string> &names,
                    const char *unit) {
        for (const std::string &name : names)
            if (auto r = rates.find(name); r != rates.end()) row(before + name, r->second, unit);
    };
    rows("peak ", m.peaks, peak_names(), "Gop/s");
    rows("read ", m.read, memory_names(), "GB/s");
    rows("copy ", m.copy, memory_names(), "GB/s");
    if (m.threads > 1) out += fmt::format("{:<24}{:>26.2f}{:>14}us\n", "parallel loop", m.parallel_loop_s * 1e6, "");
    return out;
}

int calibrate(const Registry &registry, const DoctorOptions &options) {
    std::filesystem::path file;
    std::unique_ptr<OutputFolder> folder;  // made before what takes a minute
    if (!options.out.empty()) {
        file = std::filesystem::absolute(options.out);
        std::error_code unknown;
        if (file.filename().empty() || std::filesystem::is_directory(file, unknown))
            throw UserError("output.write", "--out '" + options.out + "': expected a file to write, got a folder. Name a file in it.");
        folder = std::make_unique<OutputFolder>(file.parent_path());
    }
    const Precision precision{0.01, options.seconds / 20, options.seconds};
    const auto note = [&](const std::string &what) { std::cerr << "measuring: " << what << "\n"; };
    const Target target = calibrated(registry.target(options.target), this_machine(), precision, note);
    if (!folder) {
        std::cout << target_text(target);
        return exit_ok;
    }
    folder->write("target.json", target_text(target));
    folder->publish("target.json", file);
    std::cout << rates_text(*target.measured);
    return exit_ok;
}

}  // namespace

Command doctor_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<DoctorOptions>();
    const CommandLine line =
        program.command("doctor", "Describe this machine and list missing tools. Exits 1 if kernels cannot be built here");
    const CommandOption json = line.flag("--json", options->json, "Print JSON, for programs");
    const CommandOption calibrating =
        line.flag("--calibrate", options->calibrate, "Measure peaks and bandwidths instead, and write a target file").excludes(json);
    line.option("-o,--out", options->out, "The target file (*.json) to write. Default: stdout").needs(calibrating).takes("FILE");
    line.option("--target", options->target, "The target whose vectors are measured").needs(calibrating).shows_default();
    line.seconds("--seconds", options->seconds, "Most seconds for each of some 25 measurements; most need less").needs(calibrating);
    return {line, [=, &registry] { return options->calibrate ? calibrate(registry, *options) : examine(*options); }};
}

}  // namespace tessera
