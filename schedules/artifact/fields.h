// A schedule's document as a list of fields, which is what inheritance works on: a field is the smallest thing that one
// schedule states and another overrides.
//
//   stages / stage / knob / dim           block, k, micro, vector, unroll, tail, split; pack by operand
//   stages / stage / levels / level / dim
//   stages / stage / directives / id
//   stages / stage / knob                 every other knob
//   requires, variants, algorithm / name, algorithm / surface
//
// `name`, `extends` and `measured` are a schedule's own and are not inherited.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

using FieldPath = std::vector<std::string>;

struct Field {
    nlohmann::json value;
    std::string set_by;                                            // the schedule that states it
    std::vector<std::pair<std::string, nlohmann::json>> overrode;  // what ancestors stated, nearest first
    size_t order = 0;                                              // of directives: which was appended first
};

using Fields = std::map<FieldPath, Field>;

// What a document states, nulls included: a null stands at a field or at what holds fields.
std::vector<std::pair<FieldPath, nlohmann::json>> statements(const nlohmann::json &document);

// Applies what `document` states over `fields`. A null that deletes nothing is UserError schedule.nothing-to-delete
// where it `must_delete`; `ancestors` are for its message.
using MustDelete = std::function<bool(const FieldPath &path)>;
bool never(const FieldPath &path);
void apply(Fields &fields, const nlohmann::json &document, const std::string &name, const std::vector<std::string> &ancestors,
           const MustDelete &must_delete);

// The document that states exactly these fields.
nlohmann::json document_of(const Fields &fields);

// "/stages/acc/block/M"
std::string pointer_of(const FieldPath &path);

}  // namespace tessera
