// A target as a file: one of the built-in targets with the caches of a machine and what was measured on it. Its form is in
// tessera-target.schema.json; `doctor --calibrate` writes one, and a target may be given by the path of one wherever it is
// given by name. Code for a target file is that for the target it names: the numbers steer schedules and the cost model.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "schedules/target/target.h"

namespace tessera {

// A file is read as input from strangers. UserErrors: target.file no regular file · target.too-large over 1 MiB · json.* with the
// place (json_parse.h, json_reader.h) · target.format, target.version · target.unknown, target.unknown-feature · target.base for
// "host", which differs from machine to machine.
Target read_target(const std::filesystem::path &file);
Target parse_target(std::string_view text, const std::string &subject);

// What a user names: a file "<path>.json", or a target as target_named has it. UserError as these.
Target target_or_file(const std::string &name);

// The file's text. parse_target gives the same target, with rates to four digits.
std::string target_text(const Target &target);

// The fields of the document and of "measured", in the order of the format.
const std::vector<std::string> &target_fields();
const std::vector<std::string> &measured_fields();

}  // namespace tessera
