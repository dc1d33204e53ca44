#include "generators/kernel/model_choice.h"

#include <filesystem>
#include <optional>

#include "generators/kernel/best_match.h"
#include "generators/kernel/options.h"
#include "support/files/output_folder.h"
#include "support/text/sha256.h"

namespace tessera {

namespace fs = std::filesystem;

// The file of the model that a campaign begins with; nothing for 'none', 'roofline', or where none ships for the target.
static std::optional<fs::path> model_file(const std::string &choice, const Target &target) {
    if (choice == "none" || choice == "roofline") return std::nullopt;
    if (!choice.empty()) return choice;
    for (const std::string &name : nearest_targets(target))
        if (auto file = shipped_model(name)) return file;
    return std::nullopt;
}

std::unique_ptr<CostModel> model_for(const std::string &choice, const Target &target) {
    if (choice == "roofline") return roofline_model();
    std::unique_ptr<CostModel> model = boosted_model();
    if (const auto file = model_file(choice, target)) model->load(*file);
    return model;
}

std::string model_hash(const std::string &choice, const Target &target) {
    const auto file = model_file(choice, target);
    return file ? sha256(read_file(*file)) : choice == "roofline" ? choice : "none";
}

}  // namespace tessera
