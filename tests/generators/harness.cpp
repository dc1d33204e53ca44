#include "tests/generators/harness.h"

#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "algorithms/error.h"
#include "algorithms/library/library.h"
#include "generators/generator.h"

namespace tessera::test {

namespace fs = std::filesystem;

Registry sample_registry() {
    Registry registry;
    registry.add("matmul", "y[M, N] = x[M, K] w[K, N]", library::matmul)
        .add("layernorm", "y[M, N] = layernorm of x[M, N] over N", library::layernorm)
        .add("segmented_sum", "y[B, N] = sums of rows", library::segmented_sum)
        .add("ring_append", "cache[B, (position + t) mod W, D] = x[B, t, D]", library::ring_append)
        .add("cumulative_sum", "y[M, N] = prefix sums", library::cumulative_sum);
    return registry;
}

namespace {

// Takes what a stream is written for the time of its life.
class Captured {
public:
    explicit Captured(std::ostream &stream) : stream_(stream), saved_(stream.rdbuf(text_.rdbuf())) {}
    ~Captured() { stream_.rdbuf(saved_); }
    std::string text() const { return text_.str(); }

private:
    std::ostream &stream_;
    std::ostringstream text_;
    std::streambuf *saved_;
};

}  // namespace

Outcome generator(const std::vector<std::string> &arguments, const Registry &registry) {
    std::vector<std::string> words = {"tessera-generator"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char *> argv;
    for (std::string &word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    Captured out(std::cout), err(std::cerr);
    const int code = generator_main(static_cast<int>(words.size()), argv.data(), registry);
    return {code, out.text(), err.text()};
}

Outcome shell(const std::string &command) {
    const TemporaryFolder folder;
    const fs::path out = folder.path() / "out", err = folder.path() / "err";
    const int status = std::system(("( " + command + " ) >" + out.string() + " 2>" + err.string()).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

Outcome stock_generator(const std::string &arguments, const std::string &before) { return shell(before + "'" + TESSERA_GENERATOR + "' " + arguments); }

void write_file(const fs::path &file, const std::string &text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
}

std::string files_in(const fs::path &folder) {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names.empty() ? "" : join(names, " ");
}

void check_refused(const std::vector<std::string> &arguments, const std::vector<std::string> &parts, int code, const Registry &registry) {
    const Outcome outcome = generator(arguments, registry);
    INFO(join(arguments, " ") << "\n" << outcome.err);
    CHECK(outcome.code == code);
    for (const std::string &part : parts) CHECK_THAT(outcome.err, Catch::Contains(part));
}

}  // namespace tessera::test
