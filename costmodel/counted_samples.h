// A few fixed programs and what is counted of them: a model is trained on what the features of a program were then, so that it is of no
// use once the same program has others.
#pragma once
#include <vector>

#include "costmodel/features.h"

namespace tessera {

// Of programs, targets and threads that between them give each feature several values.
std::vector<Featured> counted_samples();

}  // namespace tessera
