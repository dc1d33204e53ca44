#include "tests/generators/harness.h"

#include <fstream>
#include <iostream>
#include <sstream>

#include "algorithms/build/builder.h"
#include "algorithms/library/library.h"
#include "generators/generator.h"
#include "support/text/error.h"

namespace tessera::test {

Registry sample_registry() {
    Registry registry;
    registry.add("matmul", "y[M, N] = x[M, K] w[K, N]", library::matmul)
        .add("layernorm", "y[M, N] = layernorm of x[M, N] over N", library::layernorm)
        .add("segmented_sum", "y[B, N] = sums of rows", library::segmented_sum)
        .add("ring_append", "cache[B, (position + t) mod W, D] = x[B, t, D]", library::ring_append)
        .add("cumulative_sum", "y[M, N] = prefix sums", library::cumulative_sum);
    return registry;
}

Registry sample_registry_with_encoder() {
    Registry all = sample_registry();
    all.add("encoder", "layers", library::encoder_options(), library::encoder);
    return all;
}

std::vector<std::string> odd_names() {
    return {"feature%2Fx", "%%%%%%%%", "%s%n",  "a b",       " ",   "it's", "\"q\"", "größe 行列 🙂", "$HOME", "a$ORIGIN", "${LIB}",
            "$(true)",     "a;b",      "a&b|c", "#a",        "a:b", "a,b",  "a=b",   "back\\slash",         "(x)",   "[y]*?",    "-o",
            "--",          "~",        "@file", "new\nline", "\xff"};
}

Schedule slow_matmul() { return Schedule("matmul/slow").stage("y", StageKnobs().micro({{"M", 1}, {"N", 1}})); }

Registry miscounting_registry(double wrong_at) {
    auto count = [wrong_at](const Numerics &numerics) {
        const DType type = DType::f32;
        const Expr one = select(constant(type, -2) < input(0, type), constant(type, 1), constant(type, 0));
        Monoid m = sum_monoid(type);
        m.name = "count", m.batch.clear(), m.batch_parts.clear();
        m.lift = {one}, m.step = {left(0, type) + one};
        m.combine = {left(0, type) + right(0, type) +
                     select(right(0, type) == constant(type, wrong_at), constant(type, 1), constant(type, 0))};
        Builder f("count", numerics);
        const Dim M = f.dim("M"), K = f.dim("K");
        return f.output("count", f.fold(m, {f.input("x", {M, K})}, {K.name})[0]).build();  // (M)
    };
    Registry registry;
    registry.add("count", "count[M] = elements of x[M, K] above -2", count).add_schedule([] {
        return Schedule("count/plain").stage("count", StageKnobs().micro({{"M", 1}}));
    });
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

Outcome stock_generator(const std::string &arguments, const std::string &before) {
    return shell(before + "'" + TESSERA_GENERATOR + "' " + arguments);
}

void check_refused(const std::vector<std::string> &arguments, const std::vector<std::string> &parts, int code, const Registry &registry) {
    const Outcome outcome = generator(arguments, registry);
    INFO(join(arguments, " ") << "\n" << outcome.err);
    CHECK(outcome.code == code);
    for (const std::string &part : parts) CHECK_THAT(outcome.err, Catch::Contains(part));
}

}  // namespace tessera::test
