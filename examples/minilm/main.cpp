// Embeds sentences with all-MiniLM-L6-v2.
//
//   minilm [--weights <type>] [--threads <count>] <folder of the model> [<what>]
//
// <what> is one of
//   demo     the default: which of some sentences means the same as the first, and how fast it is
//   tokens   the tokens of each line of the input
//   embed    the vector of each line of the input
//   time     for each line `<sentences> <tokens> <calls>` of the input, the milliseconds of each call
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "gemv.h"
#include "programs.h"

static const std::vector<std::string> sentences = {
    "A cat is sleeping on the warm window sill.",
    "The kitten naps in the sun by the window.",
    "The central bank raised its interest rate by half a percent.",
};

static const std::vector<std::string> paragraph = {
    "Halide showed that an algorithm and its schedule can be written apart.",
    "The first says what is computed, the second in which order, where it is stored and what runs in parallel.",
    "A kernel for a neural network is such an algorithm, a few lines long.",
    "The schedule is what makes it fast on one machine and slow on another.",
    "So the schedule should be searched for on the machine that will run it.",
    "It is kept as a small file, reviewed like any other change, and combined with the algorithm when the application is built.",
    "Nothing of the compiler is left in the application then.",
    "What is left is a function that takes tensors and gives a status, and its numbers do not depend on how many threads ran.",
};

static double milliseconds_of(const std::function<void()> &work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

static double median(std::vector<double> times) {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
}

// The cosines of the angles between the last of these unit vectors and each: a product of a matrix and a vector.
static std::vector<float> cosines_with_last(std::vector<float> vectors, int64_t width) {
    const int64_t count = static_cast<int64_t>(vectors.size()) / width;
    std::vector<float> cosines(static_cast<size_t>(count));
    const int64_t all[] = {count, width}, one[] = {width}, made[] = {count};
    const TessTensor a = tess_dense(vectors.data(), TESS_F32, 2, all);
    const TessTensor x = tess_dense(vectors.data() + (count - 1) * width, TESS_F32, 1, one);
    const TessTensor y = tess_dense(cosines.data(), TESS_F32, 1, made);
    if (gemv(&a, &x, &y, nullptr) != TESS_OK) throw std::runtime_error("gemv failed");
    return cosines;
}

static Batch words(int64_t sentence_count, int64_t tokens) {
    return batch_of({static_cast<size_t>(sentence_count), std::vector<int32_t>(static_cast<size_t>(tokens), 1012)});  // of full stops
}

static void demo(Embedder &embedder, int32_t threads) {
    // The first one last, so that the others stand before it.
    std::vector<std::string> asked(sentences.rbegin(), sentences.rend());
    const std::vector<float> cosines = cosines_with_last(embedder.embed(asked), embedder.width());
    std::printf("\"%s\"\n", sentences[0].c_str());
    for (size_t i = 1; i < sentences.size(); i++) std::printf("  %6.3f  \"%s\"\n", cosines[sentences.size() - 1 - i], sentences[i].c_str());

    std::vector<std::string> many;
    for (int i = 0; i < 16; i++) many.insert(many.end(), paragraph.begin(), paragraph.end());
    std::vector<double> times;
    for (int i = 0; i < 5; i++) times.push_back(milliseconds_of([&] { embedder.embed(many); }));
    std::printf("\n%.0f sentences a second from text, 10 to 24 words each, with padding, %d thread%s\n",
                static_cast<double>(many.size()) * 1e3 / median(times), threads, threads == 1 ? "" : "s");
    for (int64_t tokens : {16, 128}) {
        const Batch batch = words(1, tokens);
        times.clear();
        for (int i = 0; i < 21; i++) times.push_back(milliseconds_of([&] { embedder.run(batch); }));
        std::printf("%6.2f ms for one sentence of %lld tokens\n", median(times), static_cast<long long>(tokens));
    }
}

static void print_tokens(const Tokenizer &tokenizer) {
    for (std::string line; std::getline(std::cin, line);) {
        for (int32_t token : tokenizer.encode(line, SIZE_MAX)) std::printf("%d ", token);
        std::puts("");
    }
}

static void print_vectors(Embedder &embedder) {
    std::vector<std::string> lines;
    for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
    const std::vector<float> vectors = embedder.embed(lines);
    const size_t width = static_cast<size_t>(embedder.width());
    for (size_t i = 0; i < vectors.size(); i++) std::printf("%.9g%c", static_cast<double>(vectors[i]), (i + 1) % width ? ' ' : '\n');
}

static void print_times(Embedder &embedder) {
    for (std::string line; std::getline(std::cin, line);) {
        int64_t count = 0, tokens = 0, calls = 0;
        if (!(std::istringstream(line) >> count >> tokens >> calls))
            throw std::runtime_error("expected <sentences> <tokens> <calls>, got " + line);
        const Batch batch = words(count, tokens);
        for (int64_t i = 0; i < calls; i++) std::printf("%.4f ", milliseconds_of([&] { embedder.run(batch); }));
        std::puts("");
        std::fflush(stdout);
    }
}

static int run(const std::string &weights, int32_t threads, const std::string &folder, const std::string &what) {
    if (what == "tokens") return print_tokens(Tokenizer(folder + "/vocab.txt")), 0;
    Embedder embedder(program_named(weights), folder, threads);
    if (what == "demo") demo(embedder, threads);
    else if (what == "embed") print_vectors(embedder);
    else if (what == "time") print_times(embedder);
    else throw std::runtime_error("there is no '" + what + "'; there are demo, tokens, embed, time");
    return 0;
}

int main(int argc, char **argv) {
    std::vector<std::string> words(argv + 1, argv + argc), rest;
    std::string weights = "f32";
    int32_t threads = 1;
    bool wrong = false;
    for (size_t i = 0; i < words.size(); i++) {
        const bool value = i + 1 < words.size();
        if (words[i] == "--weights" && value) weights = words[++i];
        else if (words[i] == "--threads" && value) {
            const std::string &count = words[++i];
            wrong |= std::from_chars(count.data(), count.data() + count.size(), threads).ec != std::errc() || threads < 1 || threads > 4096;
        } else {
            rest.push_back(words[i]);
        }
    }
    if (wrong || rest.empty() || rest.size() > 2 || rest[0].starts_with("-"))
        return std::fprintf(stderr,
                            "usage: minilm [--weights <type>] [--threads <count>] <folder of the model> [demo|tokens|embed|time]\n"),
               2;
    try {
        return run(weights, threads, rest[0], rest.size() > 1 ? rest[1] : "demo");
    } catch (const std::exception &e) { return std::fprintf(stderr, "minilm: %s\n", e.what()), 1; }
}
