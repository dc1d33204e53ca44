// What is learnt from: the bytes of files, and batches of them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

struct Text {
    std::vector<uint8_t> learnt, held_out;
    std::vector<std::string> files;  // in the order of their names
    uint64_t hash = 0;               // of all their bytes (FNV-1a)
};

// The file, or all regular files of the folder that are text (no byte of 0) in the order of their names; the last tenth of all is held out.
// std::runtime_error where there are less than 64 KiB.
Text read_text(const std::filesystem::path &path);
// The first of these that is there: the texts of Debian's package fortunes, of miscfiles, and the licences that every Debian has.
std::filesystem::path text_of_debian();

// `texts` pieces of `bytes` bytes, and the byte that follows each byte, by a counter alone: the same for the same seed and step.
struct Batch {
    std::vector<int32_t> ids, targets;  // (texts, bytes), row-major
};
Batch batch_of(const std::vector<uint8_t> &text, int64_t texts, int64_t bytes, uint64_t seed, uint64_t step);

// A number out of a counter, 64 bits that depend on each of its bits (the finisher of Steele, Lea, Flood: SplitMix64, OOPSLA 2014).
uint64_t mixed(uint64_t counter);
