// A few fixed programs and what is counted of them: a model is trained on what the features of a program were then, so that it is of no
// use once the same program has others.
#pragma once
#include <vector>

#include "costmodel/features/features.h"

namespace tessera {

// Samples of programs, targets and threads that between them give each feature several values.
std::vector<Featured> counted_samples();

// "sha256:…" of names and meanings, and of the values that a few fixed programs have (counted_samples): a model is of use only for the
// table that it was trained on, counted as it was then.
std::string feature_hash();

}  // namespace tessera
