#include "generators/choose/model_choice.h"

#include <filesystem>
#include <optional>

#include "generators/registry/author_made.h"
#include "generators/registry/options.h"
#include "schedules/target/nearest_targets.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace fs = std::filesystem;

// The nearest target that a model ships for.
static std::optional<std::string> target_with_model(const Target &target) {
    for (const std::string &name : nearest_targets(target))
        if (shipped_model(name)) return name;
    return std::nullopt;
}

// The file of the model that a campaign begins with; nothing for 'none', 'roofline', or where none ships for the target.
static std::optional<fs::path> model_file(const std::string &choice, const Target &target) {
    if (choice == "none" || choice == "roofline") return std::nullopt;
    if (!choice.empty()) return choice;
    const auto name = target_with_model(target);
    return name ? shipped_model(*name) : std::nullopt;
}

std::unique_ptr<CostModel> model_for(const Registry &registry, const std::string &choice, const Target &target) {
    if (choice == "roofline") return roofline_model();
    if (const auto *own = find_extension(registry.cost_models(), choice)) {
        std::unique_ptr<CostModel> model = author_made("cost model '" + choice + "'", [&] { return own->value(target); });
        if (model) return model;
        throw UserError("generator.builder", "cost model '" + choice +
                                                 "': expected the function that makes it to return one; it returned " +
                                                 "none. Correct it in the generator's source.");
    }
    std::unique_ptr<CostModel> model = boosted_model();
    if (const auto file = model_file(choice, target)) model->load(*file);
    return model;
}

Target as_shipped_model_sees(const Target &target) {
    const auto name = target_with_model(target);
    if (!name) return target;
    const Target trained = target_named(*name);
    Target seen = target;
    seen.l1_bytes = trained.l1_bytes, seen.l2_bytes = trained.l2_bytes, seen.l3_bytes = trained.l3_bytes;
    return seen;
}

std::string model_hash(const Registry &registry, const std::string &choice, const Target &target) {
    if (find_extension(registry.cost_models(), choice)) return "registered:" + choice;
    const auto file = model_file(choice, target);
    return file ? sha256(read_file(*file)) : choice == "roofline" ? choice : "none";
}

}  // namespace tessera
