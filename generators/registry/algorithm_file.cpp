#include "generators/registry/algorithm_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "algorithms/evaluate/monoid_laws.h"
#include "algorithms/evaluate/rule_laws.h"
#include "algorithms/text/json.h"
#include "algorithms/verify/verify.h"
#include "support/files/json_parse.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

static const Handed algorithm_file{"algorithm", "algorithm file", "Pass large constants as inputs.", json_max_bytes};

bool is_algorithm_file(const std::string &name) { return name.ends_with(".json"); }

// What an algorithm is with everything that it calls: a short text can say a program that no machine has room for.
struct Size {
    int64_t stages = 0, levels = 1;
};

// `sizes` are those of the callees before it.
static Size size_of(const nlohmann::json &algorithm, const std::vector<Size> &sizes) {
    Size size;
    for (const nlohmann::json &step : algorithm.at("steps")) {
        const Size of = step.contains("call") ? sizes.at(step.at("call").at("callee").get<size_t>()) : Size{1, 0};
        size.stages += of.stages, size.levels = std::max(size.levels, of.levels + 1);
        if (size.stages <= max_stages && size.levels <= max_call_levels) continue;
        throw UserError("algorithm.too-large",
                        "expected at most " + std::to_string(max_stages) + " stages in " + std::to_string(max_call_levels) +
                            " levels of calls, counting the stages of a callee at each call, got more in '" +
                            quotable(algorithm.at("name").get<std::string>()) + "'. Split the program into several.");
    }
    return size;
}

static void check_size(const nlohmann::json &document) {
    std::vector<Size> sizes;
    if (document.contains("callees"))
        for (const nlohmann::json &callee : document.at("callees")) sizes.push_back(size_of(callee, sizes));
    size_of(document, sizes);
}

// The place of a stage or call; the whole document for none.
static std::string step_of(const nlohmann::json &document, const std::string &name) {
    if (name.empty()) return "";
    const auto named = [&](const nlohmann::json &step) {
        const bool is_call = step.contains("call");
        return (is_call ? step["call"].value("scope", "") : step.value("name", "")) == name;
    };
    const nlohmann::json &steps = document.at("steps");
    const auto it = std::find_if(steps.begin(), steps.end(), named);
    return it == steps.end() ? "" : "/steps/" + std::to_string(it - steps.begin());
}

Algorithm read_algorithm(const std::filesystem::path &file) {
    const std::string text = read_regular(file, algorithm_file), subject = printable(file.string());
    const nlohmann::json document = parse_json(text, subject);
    try {
        Algorithm algorithm = algorithm_from_json(document);
        check_size(document);
        verify(algorithm);
        check_monoid_laws(algorithm);
        check_rule_laws(algorithm);
        return algorithm;
    } catch (const UserError &error) {
        UserError named(error.id(), subject + ": " + error.message());
        throw named.about(error.stage(), error.span())
            .at(subject, error.document().empty() ? step_of(document, error.stage()) : error.pointer());
    }
}

}  // namespace tessera
