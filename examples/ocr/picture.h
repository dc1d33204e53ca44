// A picture of a line of text, and what the network takes of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

// 8 bits a channel, rows from the top.
struct Picture {
    int64_t rows = 0, columns = 0, channels = 0;  // 1 channel, or red, green and blue
    std::vector<uint8_t> values;                  // [rows, columns, channels]
};

// A PGM or PPM file (P5 or P6) of at most 255 shades and 2^26 values. Throws std::runtime_error.
Picture read_picture(const std::string &file);

// Bilinear with the pixels' centres aligned, in steps of 1/2048, rounded to 8 bits.
Picture resized(const Picture &picture, int64_t rows, int64_t columns);

// The network's input [48, columns, 3]: blue, green and red from -1 to 1.
struct Line {
    static constexpr int64_t rows = 48, channels = 3, least_columns = 320;
    int64_t columns = 0;
    std::vector<float> values;
};

// The picture at 48 rows, with 0 to its right up to 320 columns: as RapidOCR prepares a batch of one.
Line line_of(const Picture &picture);
