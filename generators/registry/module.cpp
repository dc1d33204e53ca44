#include "generators/registry/module.h"

#include <sstream>

#include <nlohmann/json.hpp>

#include "compiler/abi/c_names.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

static const Handed module_file{"module", "module file", "Split it into several."};

static std::vector<std::string> read_assignments(const JsonReader &reader, const std::string &field, int64_t lo, int64_t hi) {
    Extents values;
    if (const auto given = reader.find(field))
        for (const auto &[name, value] : given->fields()) values[name] = value.integer(lo, hi);
    return assignments(values);
}

// A file beside the module's, or a name.
static std::string read_named(const JsonReader &reader, const std::filesystem::path &folder) {
    const std::string &text = reader.text();
    return text.ends_with(".json") ? (folder / text).lexically_normal().string() : text;
}

static ModuleKernel read_kernel(const JsonReader &reader, const std::filesystem::path &folder, const KernelOptions &common) {
    reader.only({"name", "algorithm", "numerics", "options", "shape", "derive_for", "schedule", "schedules", "transforms"});
    ModuleKernel kernel{"", common, {}};
    if (const auto name = reader.find("name"))
        if (kernel.name = name->text(); !is_c_name(kernel.name))
            name->fail("json.value",
                       "expected the name of a C function: letters, digits and '_', and no keyword; got '" + name->quotable() + "'.");
    kernel.options.algorithm = read_named(reader.at("algorithm"), folder);
    if (const auto numerics = reader.find("numerics")) kernel.options.numerics = read_named(*numerics, folder);
    if (const auto options = reader.find("options"))
        for (const auto &[name, value] : options->fields()) {
            const std::string text = value.value().is_string() ? value.text() : std::to_string(value.integer(INT64_MIN, INT64_MAX));
            kernel.options.options.push_back(name + "=" + text);
        }
    if (const auto transforms = reader.find("transforms")) kernel.options.transforms = transforms->texts();
    kernel.options.shape = read_assignments(reader, "shape", 0, max_extent);
    kernel.options.derive_for = read_assignments(reader, "derive_for", 0, max_extent);
    if (const auto schedule = reader.find("schedule")) kernel.options.schedule = read_named(*schedule, folder);
    if (const auto schedules = reader.find("schedules"))
        for (const auto &[target, schedule] : schedules->fields()) kernel.schedules.push_back(target + "=" + read_named(schedule, folder));
    return kernel;
}

Module read_module(const std::filesystem::path &file, const KernelOptions &common) {
    const std::string subject = printable(file.string());
    const nlohmann::json document = parse_json(read_regular(file, module_file), subject);
    const JsonReader reader(document, subject);
    reader.only({"format", "version", "name", "kernels"});
    if (reader.at("format").text() != "tessera-module" || reader.at("version").integer() != 1)
        reader.fail("json.version", "expected \"format\": \"tessera-module\", \"version\": 1; write it by tessera-module.schema.json");
    Module module{reader.at("name").text(), {}};
    const std::filesystem::path folder = file.parent_path();
    for (const JsonReader &one : reader.at("kernels").items()) module.kernels.push_back(read_kernel(one, folder, common));
    if (module.kernels.empty() || module.kernels.size() > max_kernels)
        throw UserError("module.kernels",
                        subject + ": expected 1 to " + std::to_string(max_kernels) + " kernels, got " +
                            std::to_string(module.kernels.size()) +
                            (module.kernels.empty() ? ". Add what the library shall export." : ". Make several libraries."));
    return module;
}

ModuleKernel parse_kernel(const std::string &word, const KernelOptions &common) {
    auto fail = [&] {
        throw UserError("command.kernel", "--kernel '" + word +
                                              "': expected [<name>=]<algorithm>[:<dim>=<extent>,…], such as up=linear_gelu:N=1536,K=384. "
                                              "What does not fit in there is said in a file, --module.");
    };
    ModuleKernel kernel{"", common, {}};
    std::string algorithm = word;
    if (const size_t at = word.find('='); at != std::string::npos && is_c_name(word.substr(0, at)))
        kernel.name = word.substr(0, at), algorithm = word.substr(at + 1);
    // A path may have a colon, but no extents follow that one.
    if (const size_t at = algorithm.rfind(':'); at != std::string::npos && algorithm.find('/', at) == std::string::npos) {
        std::istringstream extents(algorithm.substr(at + 1));
        for (std::string extent; std::getline(extents, extent, ',');) kernel.options.shape.push_back(extent);
        if (kernel.options.shape.empty()) fail();
        algorithm.resize(at);
    }
    if (algorithm.empty()) fail();
    kernel.options.algorithm = algorithm;
    return kernel;
}

}  // namespace tessera
