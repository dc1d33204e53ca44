#include "generators/kernel/prepared_library.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "compiler/abi/c_names.h"
#include "generators/registry/algorithm_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

PreparedLibrary library_of(std::vector<PreparedKernel> targets) {
    const std::string name = targets.front().compiled.kernel.name;
    return {name, false, {std::move(targets)}};
}

static std::string kernel_name(const Registry &registry, const ModuleKernel &kernel) {
    if (!kernel.name.empty()) return kernel.name;
    return is_algorithm_file(kernel.options.algorithm) ? load_algorithm(registry, kernel.options).name : kernel.options.algorithm;
}

[[noreturn]] static void refuse_names(const std::string &library, const std::string &what) {
    throw UserError("module.name", "library '" + library + "': " + what +
                                       " Give a kernel another name: \"name\" in the module's file, or --kernel <name>=<algorithm>.");
}

static void check_library_name(const std::string &name) {
    const auto is_in_names = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
    if (!name.empty() && name.size() <= 100 && name[0] != '-' && std::all_of(name.begin(), name.end(), is_in_names)) return;
    throw UserError("module.name", "library '" + printable(name) +
                                       "': expected at most 100 letters, digits, '_' and '-', which name lib<name>.a and <name>.h; got "
                                       "another name. Rename it.");
}

// Whether `ending`, behind a kernel's name, is in a name that the kernel has in its header or in its C file: "_table", "_variant0".
static bool is_own_ending(std::string ending) {
    static const std::vector<std::string> own = {"_table", "_workspace", "_describe", "_size",    "_argument_names", "_parameters",
                                                 "_spec",  "_plan",      "_body",     "_variant", "_task",           "_constant"};
    ending.erase(std::find_if_not(ending.rbegin(), ending.rend(), [](unsigned char c) { return std::isdigit(c); }).base(), ending.end());
    return std::find(own.begin(), own.end(), ending) != own.end() || ending.starts_with("_constant_");
}

// All kernels stand in one header, and in one file where they are C.
static void check_names(const PreparedLibrary &library) {
    std::map<std::string, std::string> whose;  // by the name of a function that stands for others
    for (const std::vector<PreparedKernel> &targets : library.kernels) {
        const PreparedKernel &p = targets.front();
        const std::string kernel = "kernel '" + p.compiled.kernel.name + "'";
        auto add = [&](const std::string &name, const std::string &owner) {
            const auto [other, fresh] = whose.emplace(name, owner);
            if (!fresh)
                refuse_names(library.name, "expected functions with names of their own, got '" + name + "' twice: for " + other->second +
                                               " and for " + owner + ".");
        };
        add(p.compiled.kernel.name, kernel);
        for (const Kernel &packing : p.compiled.packings) add(packing.name, "what packs an operand of " + kernel);
    }
    for (const auto &[name, owner] : whose)
        for (const auto &[other, of_other] : whose)
            if (other.size() > name.size() && other.starts_with(name) && is_own_ending(other.substr(name.size())))
                refuse_names(library.name, "expected functions with names of their own, got '" + other + "' for " + of_other +
                                               ", which is a name that '" + name + "', " + owner + ", takes for parts of its own.");
}

static std::vector<PreparedKernel> prepare_one(const Registry &registry, const ModuleKernel &kernel, const PreparationObserver &observer) {
    return prepare_all(registry, kernel.options,
                       parse_schedules(kernel.schedules, [&](const std::string &named) { return registry.target(named); }), kernel.name,
                       observer);
}

PreparedLibrary prepare_library(const Registry &registry, const Module &module, const PreparationObserver &observer) {
    if (module.name.empty()) return library_of(prepare_one(registry, module.kernels.at(0), observer));
    check_library_name(module.name);
    PreparedLibrary library{module.name, true, {}};
    std::vector<std::string> names;
    for (const ModuleKernel &kernel : module.kernels) {
        names.push_back(kernel_name(registry, kernel));
        if (const auto first = std::find(names.begin(), names.end(), names.back()); first != names.end() - 1)
            refuse_names(module.name, "expected kernels with names of their own, got '" + printable(names.back()) + "' for the kernels " +
                                          std::to_string(first - names.begin()) + " and " + std::to_string(names.size() - 1) +
                                          ", counted from 0.");
    }
    for (size_t i = 0; i < names.size(); i++) {
        try {
            library.kernels.push_back(prepare_one(registry, module.kernels[i], observer));
        } catch (const UserError &error) {
            throw UserError(error.id(), "library '" + module.name + "', kernel '" + printable(names[i]) + "': " + error.message());
        }
    }
    check_names(library);
    return library;
}

}  // namespace tessera
