#include "algorithms/text/numerics_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "algorithms/text/json.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

static const Handed numerics_file{"numerics", "numerics policy file", "A policy is a few lines."};

Numerics read_numerics(const std::filesystem::path &file) {
    const std::string subject = printable(file.string());
    nlohmann::json document = parse_json(read_regular(file, numerics_file), subject);
    const JsonReader reader(document, subject);
    if (reader.at("format").text() != "tessera-numerics" || reader.at("version").integer() != 1)
        reader.fail("numerics.format",
                    "expected \"format\": \"tessera-numerics\", \"version\": 1; write it by tessera-numerics.schema.json.");
    document.erase("format"), document.erase("version");
    const Numerics policy = numerics_from_json(reader);
    if (policy.name.find('+') != std::string::npos)
        reader.at("name").fail("numerics.policy",
                               "expected a name without '+'; got '" + printable(policy.name) + "'. Say its words in \"licensed\".");
    const std::vector<std::string> known = numerics_names();
    if (std::find(known.begin(), known.end(), policy.name) != known.end())
        reader.at("name").fail("numerics.duplicate", "expected a name that is none of Tessera's own, " + join(known) + "; got '" +
                                                         policy.name + "'. Rename the policy.");
    return policy;
}

}  // namespace tessera
