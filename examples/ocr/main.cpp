// Reads lines of text from pictures.
//
//   ocr <folder with model.safetensors and characters.txt> [--raw] <picture>...
//
// Each picture gives a line: its text, the confidence, and the milliseconds of the network. Of "-", names of pictures are read from the
// standard input, one a line. --raw writes the probabilities of each picture to <picture>.f32, row-major.
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>

#include "recognizer.h"

static void read_one(Recognizer &recognizer, const std::string &file, bool raw) {
    const Line line = line_of(read_picture(file));
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<float> &y = recognizer.probabilities(line);
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    if (raw) {
        std::ofstream out(file + ".f32", std::ios::binary);
        out.write(reinterpret_cast<const char *>(y.data()), static_cast<std::streamsize>(y.size() * sizeof(float)));
        if (!out.flush()) throw std::runtime_error("cannot write " + file + ".f32");
    }
    const Reading reading = recognizer.decode(y);
    std::printf("%s\t%.4f\t%.3f\n", reading.text.c_str(), reading.confidence, taken.count());
    std::fflush(stdout);
}

int main(int argc, char **argv) {
    int next = 2;
    const bool raw = argc > next && std::string(argv[next]) == "--raw";
    next += raw;
    if (argc <= next) {
        std::fprintf(stderr, "usage: ocr <folder with model.safetensors and characters.txt> [--raw] <picture.pgm or .ppm, or ->...\n");
        return 2;
    }
    try {
        Recognizer recognizer(argv[1]);
        for (; next < argc; next++) {
            if (std::string(argv[next]) != "-") {
                read_one(recognizer, argv[next], raw);
                continue;
            }
            for (std::string name; std::getline(std::cin, name);) read_one(recognizer, name, raw);
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
