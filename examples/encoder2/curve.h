// The losses of all steps, as a table and as a picture.
#pragma once
#include <filesystem>
#include <vector>

#include "number.h"

// "step,loss" and a line for each step, in digits that give the same number again.
void write_csv(const std::filesystem::path &file, const std::vector<Number> &losses);
// From 0 to the largest, over steps: each loss, and their mean over the last twentieth of all.
void write_svg(const std::filesystem::path &file, const std::vector<Number> &losses);
