#include "generators/generator.h"

#include <new>
#include <regex>
#include <sstream>

#include "support/text/error.h"
#include "tests/generators/harness.h"

namespace tessera::test_generator {

using namespace tessera::test;

TEST_CASE("help and version end well") {
    const Outcome help = generator({"--help"});
    CHECK(help.code == 0);
    CHECK_THAT(help.out,
               Catch::Contains("0 when all is well, 1 when a check failed, 2 on a mistake of the caller's, 3 on an error of Tessera's."));
    for (const char *command : {"list", "show", "generate", "explain", "diff", "verify", "bench"}) {
        CHECK_THAT(help.out, Catch::Contains(std::string("\n  ") + command));
        const Outcome own = generator({command, "--help"});
        CHECK(own.code == 0);
        CHECK_THAT(own.out, Catch::Contains("--schedule-dir"));
    }
    CHECK_THAT(generator({"--version"}).out, Catch::StartsWith("tessera ") && Catch::Contains(", Halide 21.0.0"));
}

TEST_CASE("the command line's errors have the form of all others") {
    check_refused({}, {"error[command.unknown]: tessera-generator: expected a command, got no command; the commands are list, show, "
                       "generate, explain, diff, verify, bench, tune, check, records, "
                       "cost-model, quantize, doctor, import, export, bundle, registry, replay, residuals. --help describes them."});
    check_refused({"lst"}, {"got 'lst'; ", "Did you mean 'list'?"});
    check_refused({"nosuch", "--help"}, {"error[command.unknown]", "got 'nosuch'; the commands are list"});
    check_refused({"nosuch", "--version"}, {"error[command.unknown]", "got 'nosuch'"});
    check_refused({"show"}, {"error[command.arguments]: tessera-generator show: algorithm is required; tessera-generator show --help "
                             "describes the arguments."});
    check_refused({"list", "--colour"},
                  {"error[command.arguments]: tessera-generator list: The following argument was not expected: --colour;"});
}

TEST_CASE("an error of an algorithm's author, of ours or of a library becomes an exit code") {
    auto throwing = [](const std::function<void()> &raise) {
        Registry registry;
        registry.add("broken", "", [=](const Numerics &) -> Algorithm {
            raise();
            return {};
        });
        return registry;
    };
    check_refused({"show", "broken"}, {"error[algorithm.own]: words"}, 2, throwing([] { throw UserError("algorithm.own", "words"); }));
    check_refused({"show", "broken"}, {InternalError("words").what()}, 3, throwing([] { throw InternalError("words"); }));
    check_refused({"show", "broken"}, {InternalError(std::bad_alloc().what()).what()}, 3, throwing([] { throw std::bad_alloc(); }));
    check_refused({"show", "broken"}, {"error[generator.builder]: algorithm 'broken': ", "it threw 'foreign'."}, 2,
                  throwing([] { throw std::runtime_error("foreign"); }));
}

TEST_CASE("output that cannot be written is an error of every command") {
    for (const char *command :
         {"list", "list --json", "show matmul", "show matmul --what tiles", "explain matmul/avx2", "doctor", "--help", "--version"}) {
        const Outcome outcome = stock_generator(std::string(command) + " > /dev/full");
        INFO(command << "\n" << outcome.err);
        CHECK(outcome.code == 2);
        CHECK_THAT(outcome.err, Catch::Contains("error[output.stdout]: standard output: expected to write all of it; ") &&
                                    Catch::Contains(". Free some space, or send it elsewhere."));
    }
}

// A rule that can be checked: help begins with what it is, or with what the command does, and leaves no question word open.
TEST_CASE("each line of help is a sentence or a noun phrase") {
    const std::regex described(R"(^  (\S.*?)  +(\S.*)$|^ {20,}(\S.*)$)"),
        dangling("^(Of|What|Which|How|For|Where|Whether|They|Their|Its|That) .*");
    size_t lines = 0;
    for (const std::string command : {"", "list", "show", "generate", "explain", "diff", "verify", "bench", "tune", "check", "records",
                                      "cost-model", "quantize", "doctor", "import", "export", "bundle", "registry", "replay"}) {
        std::istringstream help(stock_generator(command + " --help").out);
        for (std::string line; std::getline(help, line);) {
            std::smatch match;
            if (!std::regex_match(line, match, described)) continue;
            const std::string text = match[2].matched ? match[2] : match[3];
            INFO(command << ": " << text);
            CHECK_FALSE(std::regex_match(text, dangling));
            lines++;
        }
    }
    CHECK(lines > 100);
}

TEST_CASE("an input of a model is bound once") {
    const TemporaryFolder folder;
    const std::string model = "'" + (folder.path() / "norm.onnx").string() + "'";
    REQUIRE(stock_generator("export layernorm --shape N=2 --out " + model).code == 0);
    const Outcome twice =
        stock_generator("import " + model + " --bind gamma=1,2 beta=0,0 gamma=3,4 --out '" + folder.path().string() + "'");
    CHECK(twice.code == 2);
    CHECK_THAT(twice.err, Catch::Contains("error[onnx.bind]: --bind gamma=3,4: the input is bound twice; bind it once."));
}

TEST_CASE("the stock generator knows the standard library") {
    const Outcome outcome = stock_generator("list");
    CHECK(outcome.code == 0);
    for (const char *name : {"attention",
                             "attention_causal",
                             "average_pool2d_nhwc",
                             "column_sum",
                             "conv1d",
                             "conv2d_bias_relu_nhwc",
                             "conv2d_nchw",
                             "conv2d_nhwc",
                             "conv3d_ndhwc",
                             "resize_bicubic_nhwc",
                             "cumulative_sum",
                             "adamw",
                             "histogram",
                             "embedding_gradient",
                             "depthwise_conv2d_nhwc",
                             "fft",
                             "ifft",
                             "rfft",
                             "irfft",
                             "grouped_conv2d_nhwc",
                             "max_pool2d_nhwc",
                             "feed_forward",
                             "encoder",
                             "encoder_layer",
                             "attention_kept",
                             "gemv",
                             "layernorm",
                             "linear",
                             "linear_gelu",
                             "matmul",
                             "matmul_qint4",
                             "matmul_dynamic_qint4",
                             "matmul_dynamic_qint8",
                             "linear_dynamic_qint8",
                             "residual_layernorm",
                             "reverse_cumulative_sum",
                             "ring_append",
                             "rmsnorm",
                             "segmented_cumulative_sum",
                             "segmented_sum",
                             "softmax"})
        CHECK_THAT(outcome.out, Catch::Contains(std::string("\n  ") + name + " "));
    CHECK_THAT(
        stock_generator("list conv2d_nhwc").out,
        Catch::Contains("  options     stride: 1 to 64, default 1; step between windows\n              padding: 0 to 64, default 0; "));
    CHECK_THAT(stock_generator("list gemm").out, Catch::Contains("activation: none, relu, gelu, gelu_tanh, silu, relu6, default none; "));
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("memory that there is not is an exception, of arrays too") {
    volatile size_t bytes = size_t{1} << 62;
    CHECK_THROWS_AS(static_cast<void>(::operator new(bytes)), std::bad_alloc);
    CHECK_THROWS_AS(static_cast<void>(::operator new[](bytes)), std::bad_alloc);
    CHECK_THROWS_AS(static_cast<void>(::operator new[](bytes, std::align_val_t{64})), std::bad_alloc);
    CHECK(::operator new[](bytes, std::nothrow) == nullptr);
}
#endif

}  // namespace tessera::test_generator
