// Trains a causal encoder over bytes on text, goes on with it after whatever ended it, and lets it write.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "curve.h"
#include "model.h"

namespace fs = std::filesystem;

static constexpr const char *usage =
    R"(usage: encoder2 train [--steps N] [--every N] [--seed N] [--threads N] [--dropout P] [--rate R] [--scale E]
                      [--text PATH] [--out FOLDER] [--resume]
       encoder2 time [--threads N] [--dropout P] [--text PATH]     (numbers of steps on its input)
       encoder2 quantize [--threads N] [--text PATH] [--out FOLDER]
       encoder2 write [--bytes N] [--seed N] [--threads N] [--out FOLDER] [--int8 | --no-cache] [BEGINNING]

  --steps N      how many steps there are in all (200)
  --every N      steps between checkpoints (50)
  --seed N       of batches, of dropout and of the first weights (1); when it writes, of what it chooses
  --threads N    (1); results are the same bits for any number
  --dropout P    how much of what blocks add is left out (0.1)
  --rate R       of learning, after a warm-up of 20 steps (0.003)
  --scale E      in bf16 the loss of the first step is multiplied by 2^E (0)
  --text PATH    a file or a folder of texts; else those of Debian's package fortunes, of miscfiles, or the licences that every Debian has
  --out FOLDER   of checkpoint.safetensors, loss.csv and loss.svg, and of int8.safetensors, which quantize makes (.)
  --resume       goes on from the checkpoint there, where there is one
  --bytes N      how many it writes (400)
  --int8         writes with the weights of int8.safetensors, where those of the MLP are codes of i8
  --no-cache     computes keys and values of the whole text for each byte: the same bytes, later
)";

struct Arguments {
    int64_t steps = 200, every = 50, bytes = 400;
    uint64_t seed = 1;
    int32_t threads = 1, scale = 0;
    Recipe recipe;
    fs::path text, out = ".";
    bool resume = false, int8 = false, cache = true;
    std::string beginning = "The ";
};

// What is wrong with how the program is called.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static double number(const std::string &option, const char *text, double least, double most) {
    char *end = nullptr;
    const double value = std::strtod(text, &end);
    if (*text == 0 || *end != 0 || !(value >= least && value <= most))
        throw Refusal(option + ": expected a number of " + std::to_string(least) + " to " + std::to_string(most) + ", got '" + text + "'");
    return value;
}

static Arguments read(int argc, char **argv) {
    Arguments a;
    const double many = 1e9;
    for (int i = 2; i < argc; i++) {
        const std::string option = argv[i];
        if (option == "--resume" || option == "--int8" || option == "--no-cache") {
            if (option == "--resume") a.resume = true;
            if (option == "--int8") a.int8 = true;
            if (option == "--no-cache") a.cache = false;
            continue;
        }
        if (!option.starts_with("--")) {
            a.beginning = option;
            continue;
        }
        if (i + 1 == argc) throw Refusal(option + ": expected a value behind it");
        const char *value = argv[++i];
        if (option == "--steps") a.steps = static_cast<int64_t>(number(option, value, 0, many));
        else if (option == "--every") a.every = static_cast<int64_t>(number(option, value, 1, many));
        else if (option == "--bytes") a.bytes = static_cast<int64_t>(number(option, value, 1, many));
        else if (option == "--seed") a.seed = static_cast<uint64_t>(number(option, value, 0, many));
        else if (option == "--threads") a.threads = static_cast<int32_t>(number(option, value, 1, 256));
        else if (option == "--dropout") a.recipe.dropout = number(option, value, 0, 0.9);
        else if (option == "--rate") a.recipe.rate = number(option, value, 0, 1);
        else if (option == "--scale") a.scale = static_cast<int32_t>(number(option, value, 0, 100));
        else if (option == "--text") a.text = value;
        else if (option == "--out") a.out = value;
        else throw Refusal("there is no option " + option);
    }
    return a;
}

static double held_out_loss(const Model &model, const State &state, const Text &text, const Arguments &a) {
    return Inference(model.inference(state), a.threads).loss(text.held_out);
}

static void train(const Arguments &a) {
    Model model(a.threads);
    const fs::path source = a.text.empty() ? text_of_debian() : a.text;
    const Text text = read_text(source);
    fs::create_directories(a.out);
    const fs::path checkpoint = a.out / "checkpoint.safetensors";
    const bool goes_on = a.resume && fs::exists(checkpoint);
    State state = goes_on ? model.load(checkpoint) : model.initial(a.seed, text.hash, a.scale);
    if (state.text != text.hash)
        throw std::runtime_error(checkpoint.string() + " is of another text than " + source.string() +
                                 "; name that by --text, or another --out");
    std::printf("%lld weights, %zu files of %zu bytes in %s; after step %zu held-out loss %.3f\n", static_cast<long long>(model.weights()),
                text.files.size(), text.learnt.size() + text.held_out.size(), source.c_str(), state.losses.size(),
                held_out_loss(model, state, text, a));
    if (!goes_on) model.save(checkpoint, state);
    const auto begin = std::chrono::steady_clock::now();
    const size_t first = state.losses.size();
    while (static_cast<int64_t>(state.losses.size()) < a.steps) {
        const Model::Step made = model.advance(state, text.learnt, a.recipe);
        const auto step = static_cast<int64_t>(state.losses.size());
        if (step % a.every != 0 && step != a.steps) continue;
        model.save(checkpoint, state);
        write_csv(a.out / "loss.csv", state.losses);
        write_svg(a.out / "loss.svg", state.losses);
        const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
        if (model.is_mixed())
            std::printf("%s, %lld steps skipped, ", state.precision.is_wide ? "in f32" : "in bf16",
                        static_cast<long long>(state.precision.skipped));
        std::printf("step %lld: loss %.3f, held-out %.3f, gradient %.2f long, %.1f ms a step\n", static_cast<long long>(step), made.loss,
                    held_out_loss(model, state, text, a), made.length, spent.count() / static_cast<double>(state.losses.size() - first));
        std::fflush(stdout);
    }
    write_csv(a.out / "loss.csv", state.losses);
    write_svg(a.out / "loss.svg", state.losses);
}

// For each number on the input makes so many steps, and says how long each took, in ms. First it says its sizes: B S L D H E F V.
static void time_steps(const Arguments &a) {
    Model model(a.threads);
    const Text text = read_text(a.text.empty() ? text_of_debian() : a.text);
    State state = model.initial(a.seed, text.hash, a.scale);
    for (const int64_t extent : model.sizes()) std::printf("%lld ", static_cast<long long>(extent));
    std::printf("\n");
    std::fflush(stdout);
    for (int64_t steps = 0; std::scanf("%" SCNd64, &steps) == 1;) {
        while (steps-- > 0) {
            const auto begin = std::chrono::steady_clock::now();
            model.advance(state, text.learnt, a.recipe);
            std::printf("%.4f ", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
        }
        std::printf("\n");
        std::fflush(stdout);
    }
}

// The MLP's weights in codes of i8, and what that does to the loss.
static void quantize(const Arguments &a) {
    const Model model(a.threads);
    const State state = model.load(a.out / "checkpoint.safetensors");
    const Text text = read_text(a.text.empty() ? text_of_debian() : a.text);
    if (state.text != text.hash) throw std::runtime_error("the checkpoint is of another text; name the one that it learnt by --text");
    Inference whole(model.inference(state), a.threads), codes(in_codes(model.inference(state), a.threads), a.threads);
    codes.save(a.out / "int8.safetensors");
    std::printf("%zu bytes of weights, held-out loss %.4f; in int8.safetensors %zu bytes, held-out loss %.4f\n", whole.bytes_of_weights(),
                whole.loss(text.held_out), codes.bytes_of_weights(), codes.loss(text.held_out));
}

// One byte after the other, each drawn from what the encoder says of it.
static void write(const Arguments &a) {
    const auto trained = [&] {
        const Model model(a.threads);
        return model.inference(model.load(a.out / "checkpoint.safetensors"));
    };
    Inference encoder(a.int8 ? Inference::load(a.out / "int8.safetensors") : trained(), a.threads);
    std::vector<uint8_t> text(a.beginning.begin(), a.beginning.end());
    if (text.empty()) throw Refusal("expected a beginning of at least one byte");
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < a.bytes; i++) {
        const std::vector<Number> scores = a.cache ? encoder.scores(text) : encoder.scores_at_once(text);
        const Number top = *std::max_element(scores.begin(), scores.end());
        std::vector<double> up_to;
        double sum = 0;
        for (const Number score : scores) up_to.push_back(sum += std::exp(static_cast<double>(score - top)));
        const double drawn = static_cast<double>(mixed(mixed(a.seed) + static_cast<uint64_t>(i)) >> 11) * 0x1p-53 * sum;
        text.push_back(static_cast<uint8_t>(std::upper_bound(up_to.begin(), up_to.end() - 1, drawn) - up_to.begin()));
    }
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::printf("\n");
    std::fprintf(stderr, "%.3f ms a byte\n", spent.count() / static_cast<double>(a.bytes));
}

int main(int argc, char **argv) {
    const std::string command = argc < 2 ? "" : argv[1];
    try {
        if (command == "train") return train(read(argc, argv)), 0;
        if (command == "time") return time_steps(read(argc, argv)), 0;
        if (command == "quantize") return quantize(read(argc, argv)), 0;
        if (command == "write") return write(read(argc, argv)), 0;
        if (command == "--help") return std::fputs(usage, stdout), 0;
        throw Refusal("expected train, time, quantize or write, got '" + command + "'");
    } catch (const Refusal &refusal) {
        std::fprintf(stderr, "encoder2: %s\n%s", refusal.what(), usage);
        return 2;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "encoder2: %s\n", error.what());
        return 1;
    }
}
