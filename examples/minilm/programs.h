// The generated functions that the application has.
#pragma once
#include <vector>

#include "embedder.h"

const std::vector<Program> &programs();
// The one of that name; std::runtime_error where there is none.
const Program &program_named(const std::string &name);
