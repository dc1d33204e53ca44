// What `verify` and the manifest say of errors: certificates of samples, and what holds for all inputs in declared ranges.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "generators/certify/certificate.h"
#include "generators/certify/stability.h"

namespace tessera {

// {"seed", "shapes": [extents], "shapes_left_out", "outputs": [{"output", "elements", "unbounded", "unknown", "bound", "error", "ulp",
// "relative": {"largest", "p999"}, "ratio", "median_ratio"}]}, on inputs that the seed draws. Unless `is_asked`, a shape that takes an
// interpreter more than a second or so is left out. `wrong` gets what is wrong with each shape, "" where nothing is.
nlohmann::ordered_json certificate_json(const PreparedKernel &prepared, const std::vector<Extents> &shapes, bool is_asked, uint64_t seed,
                                        std::vector<std::string> &wrong, const StatedInputs &stated = {});

// {"proved", "samples", "found", "stages": [{"stage", "lowest", "highest", "error", "trouble"}]}; null where nothing is known. `ranges` are
// the words of parse_ranges.
nlohmann::ordered_json stability_json(const PreparedKernel &prepared, const Extents &extents, const std::vector<std::string> &ranges,
                                      uint64_t seed);

// What a manifest is to have of each kernel.
struct CertificateRequest {
    std::vector<std::string> extents;  // "M=64"; none: awkward shapes
    std::vector<std::string> ranges;   // of inputs; none: no proof
    uint64_t seed = 1;
    int shapes = 12;
};

// certificate_json, and with ranges "ranges" and "for_all_inputs", the stability at `extents`. UserError certificate.wrong where a kernel
// is wrong; command.extents where a proof is asked for and a dynamic dim has no extent.
nlohmann::ordered_json certificate_json(const PreparedKernel &prepared, const CertificateRequest &request);

}  // namespace tessera
