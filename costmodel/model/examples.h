// What models learn from, as text: a line for each measured candidate, its fields apart by tabs: task, seconds (0 for a failure),
// draft, bound, then the features of the table. A first line names the fields.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "costmodel/model/cost_model.h"

namespace tessera {

void write_examples(std::ostream &out, const std::vector<Example> &examples);
// UserError examples.format with the line, examples.features when the fields are those of another table. `subject` names the text.
std::vector<Example> read_examples(std::istream &in, const std::string &subject);

}  // namespace tessera
