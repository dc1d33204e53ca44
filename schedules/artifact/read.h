// Reading a schedule's document: every field's form, type and range. Whether the names in it are an algorithm's is for check.h.
//
// Errors are UserError schedule.*, with the schedule's name and the field's JSON pointer (RFC 6901): format, version,
// name, characters, missing-field, unknown-field, unknown-knob, type, range, choice, syntax, directive, repeated,
// variants, dead-variant.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "schedules/knobs/schedule.h"

namespace tessera {

// The place of a value: which schedule, and where in it.
struct FieldPlace {
    std::string schedule;
    std::string pointer;                 // "" for the document
    std::vector<std::string> ancestors;  // where the value may come from one

    FieldPlace operator/(const std::string &key) const;
    [[noreturn]] void fail(const std::string &id, const std::string &message) const;
};

// Checks a whole document as it was handed in; nulls are allowed where they can delete. `subject` names the document until its own
// name is known.
void check_document(const nlohmann::json &document, const std::string &subject);

// The knobs of one stage. `stages` are the stages that the schedule has knobs for (see parse_place). Nulls are skipped.
Knobs read_knobs(const nlohmann::json &stage, const std::set<std::string> &stages, const FieldPlace &where);

// The conditions of one variant.
std::vector<Condition> read_conditions(const nlohmann::json &when, const FieldPlace &where);

std::vector<std::string> read_strings(const nlohmann::json &list, const FieldPlace &where);

}  // namespace tessera
