#include "generators/residuals/residuals_command.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "generators/commands/kernel_line.h"
#include "generators/commands/notes.h"
#include "generators/residuals/plan_of_gradient.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/time_text.h"

namespace tessera {

namespace {

struct ResidualsOptions {
    KernelOptions kernel;
    std::vector<std::string> extents;
    std::string budget, out;
};

std::string text_of(const GradientPlan &plan, int64_t budget) {
    size_t width = 5;
    for (const PlannedResidual &s : plan.stages) width = std::max(width, s.stage.size());
    std::string text = fmt::format("{:<{}}  {:>14}  {:<9}  {}\n", "stage", width, "bytes", "choice", "time of its copies");
    for (const PlannedResidual &s : plan.stages)
        if (s.is_saved || s.is_again)
            text += fmt::format("{:<{}}  {:>14.0f}  {:<9}  {:>10}\n", s.stage, width, s.bytes, s.is_saved ? "save" : "recompute",
                                time_text(s.seconds));
    for (const auto &[call, every] : plan.groups) text += fmt::format("rounds of {} in groups of {}\n", call, every);
    text += fmt::format(
        "peak of the lowered program, of {} bytes\n  everything saved             {:>14}\n  this plan                    {:>14}\n  "
        "everything "
        "computed again    {:>14}\ntime that copies add at least  {} (everything computed again: {})\n",
        budget, plan.peak_of_all, plan.peak, plan.peak_of_none, time_text(plan.seconds_again), time_text(plan.seconds_most));
    return text;
}

}  // namespace

// UserError command.arguments where a file of this name could not be written as things stand. Nothing is made.
static void check_writable(const std::filesystem::path &out) {
    const std::filesystem::path folder = out.has_parent_path() ? out.parent_path() : ".";
    const auto refuse = [&](const std::string &expected) {
        throw UserError("command.arguments", "residuals: --out " + printable(out.string()) + ": expected " + expected);
    };
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
        refuse("a name in a folder that is there; '" + printable(folder.string()) + "' is none. Make it first.");
    if (std::filesystem::is_directory(out, error)) refuse("the name of a file, got a folder. Name a file in it.");
    if (access(folder.c_str(), W_OK | X_OK) != 0)
        refuse("a folder that may be written to; '" + printable(folder.string()) + "' may not: " + std::strerror(errno) + ".");
}

int64_t parse_bytes(const std::string &text, const std::string &option) {
    constexpr std::pair<const char *, double> units[] = {{"", 1},         {"b", 1},        {"k", 1e3},     {"kb", 1e3},     {"m", 1e6},
                                                         {"mb", 1e6},     {"g", 1e9},      {"gb", 1e9},    {"t", 1e12},     {"tb", 1e12},
                                                         {"ki", 0x1p10},  {"kib", 0x1p10}, {"mi", 0x1p20}, {"mib", 0x1p20}, {"gi", 0x1p30},
                                                         {"gib", 0x1p30}, {"ti", 0x1p40},  {"tib", 0x1p40}};
    const auto refuse = [&](const std::string &expected) {
        throw UserError("command.arguments", option + " " + printable(text) + ": expected " + expected + ".");
    };
    double number = 0;
    const char *end = text.data() + text.size();
    const bool begins = !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.');
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    std::string suffix(stop, end);
    if (suffix.starts_with(' ')) suffix.erase(0, 1);
    for (char &c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto *unit = std::find_if(std::begin(units), std::end(units), [&](const auto &u) { return suffix == u.first; });
    if (!begins || error == std::errc::invalid_argument || unit == std::end(units))
        refuse(
            "a number of bytes, such as 4096, 64MB or 1.5GiB; units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB "
            "(of 1024)");
    if (error == std::errc::result_out_of_range || number * unit->second >= 0x1p63)
        refuse("less than 2^63 bytes, 9223372 TB; a budget that nothing exceeds may be 1TB");
    return static_cast<int64_t>(number * unit->second);
}

Command residuals_command(ProgramLine &program, const Registry &registry) {
    auto o = std::make_shared<ResidualsOptions>();
    const CommandLine line = program.command(
        "residuals", "Choose which stages a gradient keeps and which it computes again, the fastest within a budget of workspace");
    add_algorithm_options(line, o->kernel);
    add_schedule_options(line, o->kernel);
    line.option("--extents", o->extents, "Extents of dynamic dims, at which memory and time are counted").takes("DIM=EXTENT");
    line.option("--budget", o->budget, "The most workspace that the kernel may ask for in one thread, such as 64MB or 1.5GiB")
        .takes("BYTES")
        .required();
    line.option("-o,--out", o->out, "Where to write the plan, which --residuals takes").takes("FILE.json");
    return {line, [=, &registry] {
                const std::filesystem::path out(o->out);
                if (!o->out.empty() && out.extension() != ".json")
                    throw UserError("command.arguments", "residuals: --out " + o->out +
                                                             ": expected a name that ends in .json, as --residuals takes it. Name it so.");
                const int64_t budget = parse_bytes(o->budget, "--budget");
                if (!o->out.empty()) check_writable(out);  // a plan may take minutes
                const GradientPlan plan =
                    plan_of_gradient(registry, o->kernel, parse_shape(o->extents, "--extents"), budget, printing_notes(o->kernel));
                std::cout << text_of(plan, budget);
                if (o->out.empty()) return exit_ok;
                const OutputFolder folder(out.has_parent_path() ? out.parent_path() : ".");
                folder.write(out.filename().string(), plan.text());
                folder.publish(out.filename().string());
                std::cout << "wrote " << o->out << "\n";
                return exit_ok;
            }};
}

}  // namespace tessera
