// Runs real text through real weights with generated kernels, checks the result against double precision and times it
// beside OpenBLAS doing the two products.
//
//   minilm <folder with model.safetensors and vocab.txt>
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include "linear.h"
#include "linear_gelu.h"
#include "model.h"
#include "residual_layernorm.h"

static const char *const text =
    "Halide showed that an algorithm and its schedule can be written apart: the first says what is computed, the second "
    "in which order, where it is stored and what runs in parallel. A kernel for a neural network is such an algorithm, a "
    "few lines long, and the schedule is what makes it fast on one machine and slow on another. So the schedule should "
    "be searched for on the machine that will run it, kept as a small file, reviewed like any other change, and combined "
    "with the algorithm when the application is built. Nothing of the compiler is left in the application then, only a "
    "function that takes tensors and gives a status, and the numbers it computes do not depend on how many threads ran. "
    "This text passes through the embedding and the first feed forward layer of a sentence encoder while you read it.";

// A matrix, or the only row of one, as kernels take it.
class View {
public:
    explicit View(const Matrix &m, bool vector = false)
        : extents_{m.rows, m.columns},
          tensor_(tess_dense(const_cast<float *>(m.values.data()), TESS_F32, vector ? 1 : 2, vector ? extents_ + 1 : extents_)) {}
    View(const View &) = delete;
    operator const TessTensor *() const { return &tensor_; }

private:
    int64_t extents_[2];
    TessTensor tensor_;
};

static TessFault fault = tess_fault();

static void check(int32_t status, const char *const *names) {
    if (status == TESS_OK) return;
    char message[256];
    tess_status_message(status, &fault, names, message, sizeof message);
    std::fprintf(stderr, "kernel failed: %s\n", message);
    std::exit(1);
}

struct FeedForward {
    Matrix w_up, b_up, w_down, b_down, gamma, beta;

    // y = layernorm(x + linear(gelu(linear(x)))), by the generated kernels.
    void run(const Matrix &x, Matrix &hidden, Matrix &update, Matrix &y, const TessContext &context) const {
        const View dx(x), dh(hidden), du(update), dy(y);
        const View wu(w_up), bu(b_up, true), wd(w_down), bd(b_down, true);
        const View g(gamma, true), b(beta, true);
        check(linear_gelu(dx, wu, bu, dh, &context), linear_gelu_argument_names);
        check(linear(dh, wd, bd, du, &context), linear_argument_names);
        check(residual_layernorm(du, dx, g, b, dy, &context), residual_layernorm_argument_names);
    }

    uint64_t workspace(const Matrix &x, const Matrix &hidden, const Matrix &update, const TessContext &context) const {
        const View dx(x), dh(hidden), du(update);
        const View wu(w_up), bu(b_up, true), wd(w_down), bd(b_down, true);
        const View g(gamma, true), b(beta, true);
        uint64_t bytes[3] = {};
        check(linear_gelu_workspace(dx, wu, bu, dh, &context, &bytes[0]), linear_gelu_argument_names);
        check(linear_workspace(dh, wd, bd, du, &context, &bytes[1]), linear_argument_names);
        check(residual_layernorm_workspace(du, dx, g, b, du, &context, &bytes[2]), residual_layernorm_argument_names);
        return *std::max_element(bytes, bytes + 3);
    }

    double largest_error(const Matrix &x, const Matrix &y) const {
        double worst = 0;
        std::vector<double> hidden(static_cast<size_t>(w_up.columns)), out(static_cast<size_t>(w_down.columns));
        for (int64_t r = 0; r < x.rows; r++) {
            for (int64_t n = 0; n < w_up.columns; n++) {
                double sum = b_up.at(0, n);
                for (int64_t k = 0; k < w_up.rows; k++) sum += static_cast<double>(x.at(r, k)) * w_up.at(k, n);
                hidden[n] = sum * 0.5 * std::erfc(-sum / std::sqrt(2.0));
            }
            double mean = 0, variance = 0;
            for (int64_t n = 0; n < w_down.columns; n++) {
                double sum = b_down.at(0, n);
                for (int64_t k = 0; k < w_down.rows; k++) sum += hidden[k] * w_down.at(k, n);
                out[n] = sum + x.at(r, n);
                mean += out[n] / w_down.columns;
            }
            for (double v : out) variance += (v - mean) * (v - mean) / w_down.columns;
            for (int64_t n = 0; n < w_down.columns; n++) {
                double expected = (out[n] - mean) / std::sqrt(variance + 1e-12) * gamma.at(0, n) + beta.at(0, n);
                double error = std::fabs(expected - y.at(r, n));
                if (!(error <= worst)) worst = error;  // a NaN counts
            }
        }
        return worst;
    }
};

static double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

static double median(std::vector<double> times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
}

static int run(const std::string &folder) {
    Weights weights(folder + "/model.safetensors");
    std::vector<int64_t> ids = Vocabulary(folder + "/vocab.txt").encode(text);
    const std::string layer = "encoder.layer.0.";
    FeedForward ff{transposed(weights.tensor(layer + "intermediate.dense.weight")),
                   weights.tensor(layer + "intermediate.dense.bias"),
                   transposed(weights.tensor(layer + "output.dense.weight")),
                   weights.tensor(layer + "output.dense.bias"),
                   weights.tensor(layer + "output.LayerNorm.weight"),
                   weights.tensor(layer + "output.LayerNorm.bias")};

    // The encoder's input: word, position and type embeddings, normalised.
    Matrix words = weights.tensor("embeddings.word_embeddings.weight"), places = weights.tensor("embeddings.position_embeddings.weight");
    Matrix types = weights.tensor("embeddings.token_type_embeddings.weight");
    int64_t tokens = static_cast<int64_t>(ids.size()), width = words.columns;
    Matrix word = zeros(tokens, width), rest = zeros(tokens, width), x = zeros(tokens, width);
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t d = 0; d < width; d++) {
            word.at(t, d) = words.at(ids[t], d);
            rest.at(t, d) = places.at(t, d) + types.at(0, d);
        }
    Matrix gamma = weights.tensor("embeddings.LayerNorm.weight"), beta = weights.tensor("embeddings.LayerNorm.bias");
    Matrix hidden = zeros(tokens, ff.w_up.columns), update = zeros(tokens, width), y = zeros(tokens, width);

    TessContext context = tess_context();
    context.fault = &fault;
    context.workspace_bytes = std::max<uint64_t>(64, ff.workspace(x, hidden, update, context));
    std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, (context.workspace_bytes + 63) / 64 * 64), std::free);
    context.workspace = memory.get();
    const View dw(word), dr(rest), dg(gamma, true), db(beta, true), dx(x);
    check(residual_layernorm(dw, dr, dg, db, dx, &context), residual_layernorm_argument_names);

    ff.run(x, hidden, update, y, context);
    double error = ff.largest_error(x, y);
    std::printf("%lld tokens of %lld through the first feed-forward layer of all-MiniLM-L6-v2\n", static_cast<long long>(tokens),
                static_cast<long long>(width));
    std::printf("  largest error against double precision   %.2e\n", error);

    // Interleaved, so that a change of the machine's pace meets both.
    std::vector<double> ours, theirs;
    Matrix product = zeros(tokens, ff.w_up.columns), result = zeros(tokens, width);
    openblas_set_num_threads(1);
    for (int repeat = 0; repeat < 200; repeat++) {
        double start = seconds();
        ff.run(x, hidden, update, y, context);
        double middle = seconds();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(tokens), static_cast<int>(ff.w_up.columns),
                    static_cast<int>(width), 1, x.values.data(), static_cast<int>(width), ff.w_up.values.data(),
                    static_cast<int>(ff.w_up.columns), 0, product.values.data(), static_cast<int>(ff.w_up.columns));
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(tokens), static_cast<int>(width),
                    static_cast<int>(ff.w_up.columns), 1, product.values.data(), static_cast<int>(ff.w_up.columns), ff.w_down.values.data(),
                    static_cast<int>(width), 0, result.values.data(), static_cast<int>(width));
        ours.push_back(middle - start);
        theirs.push_back(seconds() - middle);
    }
    double flops = 4.0 * tokens * width * ff.w_up.columns;
    std::printf("  whole layer, generated kernels           %.3f ms  (%.0f GFLOP/s in the products)\n", median(ours) * 1e3,
                flops / median(ours) * 1e-9);
    std::printf("  the two products alone, OpenBLAS         %.3f ms  (%.0f GFLOP/s)\n", median(theirs) * 1e3,
                flops / median(theirs) * 1e-9);
    std::printf("  one thread each, median of %zu interleaved runs\n", ours.size());
    bool right = error < 1e-4;
    if (!right) std::fprintf(stderr, "the error is larger than 1e-4: the kernels are wrong\n");
    return right ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: minilm <folder with model.safetensors and vocab.txt>\n"), 2;
    try {
        return run(argv[1]);
    } catch (const std::exception &e) { return std::fprintf(stderr, "minilm: %s\n", e.what()), 1; }
}
