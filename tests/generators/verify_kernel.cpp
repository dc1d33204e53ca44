#include "generators/commands/verify_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/expr/function.h"
#include "algorithms/library/library.h"
#include "schedules/target/target.h"
#include "tests/generators/harness.h"
#include "tests/generators/programs.h"
#include "tests/support/npz_file.h"

namespace tessera::test_verify_kernel {

using namespace tessera::test;

TEST_CASE("verify says what it compared") {
    const Outcome outcome = generator({"verify", "matmul", "--target", "avx2", "--schedule", "none", "--shapes", "6"});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::StartsWith("matmul on avx2, f32, schedule none: 6 of 6 shapes right (2 of them empty), with 1 and 2 "
                                              "threads; equal to the tile program bit by bit; relative error at most "));
}

TEST_CASE("verify says where every shape is empty") {
    const std::vector<std::vector<std::string>> all = {{"--shape", "N=0"}, {"--extents", "M=4", "N=0", "K=4"}};
    for (const std::vector<std::string> &more : all) {
        std::vector<std::string> words = {"verify", "matmul", "--target", "avx2", "--schedule", "none", "--shapes", "3"};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome outcome = generator(words);
        INFO(outcome.err);
        CHECK(outcome.code == 0);
        CHECK_THAT(outcome.out, Catch::Contains("of them empty)") &&
                                    Catch::Contains("note: every shape is empty, so that nothing was computed; give one that is "
                                                    "not by --extents, or fix larger ones by --shape\n"));
    }
}

TEST_CASE("verify counts what is NaN on both sides") {
    Registry registry;
    registry.add("roots", "y = sqrt(x)", [](const Numerics &numerics) {
        Builder f("roots", numerics);
        Tile x = f.input("x", {f.dim("N")});
        return f.output("y", sqrt(x)).build();
    });
    std::vector<std::string> words = {"verify", "roots", "--schedule", "none", "--target", "avx2", "--extents", "N=40"};
    const Outcome some = generator(words, registry);
    INFO(some.out << some.err);
    CHECK(some.code == 0);
    CHECK_THAT(some.out, Catch::Matches("[^]*\nnote: [12][0-9] of 40 elements are NaN, as the algorithm says, and tell nothing else of the "
                                        "kernel: at N=40 the first is y\\[[0-9]+\\]; state what the inputs are by --range or --inputs\n"));
    words.insert(words.end(), {"--range", "x=0,1"});
    CHECK_THAT(generator(words, registry).out, !Catch::Contains("NaN"));
    words.back() = "x=-2,-1", words.push_back("--json");
    const auto all = nlohmann::json::parse(generator(words, registry).out);
    CHECK(all["shapes"][0]["nan"] == 40);
    CHECK(all["shapes"][0]["elements"] == 40);
    CHECK(all["shapes"][0]["first_nan"] == "y[0]");
}

TEST_CASE("verify gives JSON, for one shape") {
    const Outcome outcome = generator(
        {"verify", "segmented_sum", "--numerics", "f64", "--schedule", "none", "--json", "--shape", "N=5", "--extents", "B=3", "T=8"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto result = nlohmann::json::parse(outcome.out);
    CHECK(result["format"] == "tessera-verify");
    CHECK(result["failures"] == 0);
    REQUIRE(result["shapes"].size() == 1);
    CHECK(result["shapes"][0]["extents"] == nlohmann::json({{"B", 3}, {"T", 8}}));
    CHECK(result["shapes"][0]["difference"] == "");
}

static Registry numeric_registry() {
    Registry registry = sample_registry();
    registry.add("linear_gelu", "y = gelu(x w + b)", library::linear_gelu)
        .add("softmax", "y = softmax of rows", library::softmax)
        .add("adamw", "a step of AdamW", library::adamw_options(), library::adamw);
    return registry;
}

TEST_CASE("a certificate has the bound of each output and what is measured") {
    const std::vector<std::string> command = {"verify",        "linear_gelu", "--target", "avx2", "--schedule", "none",
                                              "--certificate", "--extents",   "M=7",      "N=19", "K=64"};
    std::vector<std::string> for_programs = command;
    for_programs.emplace_back("--json");
    const Outcome text = generator(command, numeric_registry()), json = generator(for_programs, numeric_registry());
    INFO(text.err << json.err);
    REQUIRE(text.code == 0);
    REQUIRE(json.code == 0);
    CHECK_THAT(text.out, Catch::Contains("certificate of 'y', 133 elements: error at most ") && !Catch::Contains("no bound"));
    const auto certificate = nlohmann::json::parse(json.out)["certificate"];
    REQUIRE(certificate["outputs"].size() == 1);
    const auto y = certificate["outputs"][0];
    CHECK(y["output"] == "y");
    CHECK(y["unbounded"] == 0);
    CHECK(y["bound"] >= y["error"]["largest"]);
    CHECK(y["error"]["largest"] >= y["error"]["p999"]);
    CHECK(y["ratio"] >= 1);
    CHECK(y["ratio"] <= 100);
    CHECK(y["ulp"]["largest"] > 0.25);
    CHECK(y["relative"]["largest"] > 0);
}

TEST_CASE("a manifest has the certificate that was asked for, and the same bytes each time") {
    const auto manifest = [](std::vector<std::string> more) {
        const TemporaryFolder folder;
        std::vector<std::string> command = {"generate", "softmax",       "--target", "avx2,x86-64",         "--schedule",
                                            "none",     "--certificate", "--out",    folder.path().string()};
        command.insert(command.end(), more.begin(), more.end());
        const Outcome outcome = generator(command, numeric_registry());
        INFO(outcome.err);
        REQUIRE(outcome.code == 0);
        return nlohmann::json::parse(read_file(folder.path() / "softmax.manifest.json"));
    };
    const std::vector<std::string> at = {"--extents", "M=3", "N=40"};
    const auto sampled = manifest(at);
    for (const auto &target : sampled["targets"]) {
        const auto &certificate = target["certificate"];
        CHECK(certificate["shapes"] == nlohmann::json::array({{{"M", 3}, {"N", 40}}}));
        CHECK(certificate["outputs"][0]["elements"] == 120);
        CHECK(certificate["outputs"][0]["bound"] >= certificate["outputs"][0]["error"]["largest"]);
        CHECK(certificate.count("for_all_inputs") == 0);
    }
    CHECK(manifest(at) == sampled);
    CHECK(manifest({})["targets"][0]["certificate"]["shapes"].size() >= 8);
    std::vector<std::string> ranged = at;
    ranged.insert(ranged.end(), {"--range", "-100,100"});
    const auto proof = manifest(ranged)["targets"][1]["certificate"]["for_all_inputs"];
    CHECK(proof["proved"] == true);
    CHECK(proof["stages"].back()["highest"] <= 1.001);
    for (const auto &[words, expected] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"--range", "-1,1"}, "command.extents"},
             {{"--extents", "M=3"}, "command.extents"},
             {{"--extents", "M=3", "N=4", "--range", "y=1,2"}, "command.range"}}) {
        const TemporaryFolder folder;
        std::vector<std::string> command = {
            "generate", "softmax", "--target", "avx2", "--schedule", "none", "--certificate", "--out", folder.path().string()};
        command.insert(command.end(), words.begin(), words.end());
        const Outcome outcome = generator(command, numeric_registry());
        CHECK(outcome.code == 2);
        CHECK_THAT(outcome.err, Catch::Contains(expected));
    }
}

TEST_CASE("kernels with elements of four bits are compared, and certified element by element") {
    Registry registry;
    registry.add("codes_of", "y = the codes of x", [](const Numerics &n) {
        Builder f("codes_of", n);
        const Dim M = f.dim("M"), N = f.dim("N");
        return f.output("y", cast(DType::f4e2m1fn, f.input("x", {M, N}), Rounding::nearest_even, true), DType::f4e2m1fn).build();
    });
    registry.add("decoded", "y = w x", [](const Numerics &n) {
        Builder f("decoded", n);
        const Dim N = f.dim("N"), K = f.dim("K");
        return f.output("y", dot(f.input("w", {N, K}, DType::f4e2m1fn), f.input("x", {K}), {K})).build();
    });
    const Outcome out = generator(
        {"verify", "codes_of", "--target", "avx2", "--schedule", "none", "--certificate", "--json", "--extents", "M=3", "N=7"}, registry);
    INFO(out.out << out.err);
    REQUIRE(out.code == 0);
    const auto y = nlohmann::json::parse(out.out)["certificate"]["outputs"][0];
    CHECK(y["elements"] == 21);
    CHECK(y["bound"].is_null());
    CHECK(y["error"]["largest"] > 0);  // of numbers, and not of bytes
    CHECK(y["error"]["largest"] <= 1);
    const Outcome stable = generator({"verify", "decoded", "--target", "avx2", "--schedule", "none", "--stable", "--range", "w=-6,6",
                                      "x=-1,1", "--extents", "N=4", "K=9"},
                                     registry);
    INFO(stable.out << stable.err);
    CHECK(stable.code == 0);
    CHECK_THAT(stable.out, Catch::Contains("proved"));
}

TEST_CASE("what functions round away is in certificates and in proofs") {
    Registry registry = numeric_registry();
    Numerics flushed = numerics_named("f16");
    flushed.name = "flushed", flushed.denormals = Denormals::flushed;
    registry.add_numerics(flushed);
    for (const char *numerics : {"tf32", "flushed"}) {
        const Outcome outcome = generator({"verify", "matmul", "--numerics", numerics, "--target", "avx2", "--schedule", "none",
                                           "--certificate", "--stable", "--range=-1,1", "--extents", "M=3", "N=5", "K=40", "--json"},
                                          registry);
        INFO(numerics << outcome.out << outcome.err);
        REQUIRE(outcome.code == 0);
        const auto json = nlohmann::json::parse(outcome.out);
        const auto y = json["certificate"]["outputs"][0];
        CHECK(y["unbounded"] == 0);
        CHECK(y["bound"] >= y["error"]["largest"]);
        CHECK(json["stability"]["proved"] == true);
    }
    // A function of one's own may have another definition in f64: nobody says how far the two are apart.
    registry.add("nearly", "y = nearly sqrt(x)", [](const Numerics &n) {
        Builder f("nearly", n);
        const Dim N = f.dim("N");
        const Expr x = input(0, DType::f32), wide = input(0, DType::f64);
        const FunctionRef nearly = make_function("nearly", 1, x * constant(DType::f32, 0.75), wide * constant(DType::f64, 0.7));
        const Tile of = f.input("x", {N});
        return f.output("y", Tile(&f, applied(nearly, {of.value()}), {"N"})).build();
    });
    const Outcome outcome = generator({"verify", "nearly", "--target", "avx2", "--schedule", "none", "--certificate", "--stable",
                                       "--range=-1,1", "--extents", "N=9", "--json"},
                                      registry);
    INFO(outcome.out << outcome.err);
    const auto json = nlohmann::json::parse(outcome.out);
    CHECK(json["certificate"]["outputs"][0]["bound"].is_null());
    CHECK_THAT(json["certificate"]["outputs"][0]["unknown"].get<std::string>(), Catch::Contains("defined differently in f64"));
    CHECK(json["stability"]["stages"].back()["error"].is_null());
}

TEST_CASE("a certificate of packed operands, of states, and in f64") {
    for (const std::vector<std::string> &kernel : std::vector<std::vector<std::string>>{
             {"matmul", "--schedule", "matmul/prepacked_avx2", "--shape", "N=70", "K=33", "--extents", "M=5"},
             {"adamw", "--schedule", "none", "--extents", "N=40"},
             {"softmax", "--numerics", "f64", "--schedule", "none", "--shapes", "6"}}) {
        std::vector<std::string> command = {"verify", "--target", "avx2", "--certificate", "--json", "--quiet"};
        command.insert(command.begin() + 1, kernel.begin(), kernel.end());
        const Outcome outcome = generator(command, numeric_registry());
        INFO(kernel[0] << outcome.err);
        REQUIRE(outcome.code == 0);
        const auto outputs = nlohmann::json::parse(outcome.out)["certificate"]["outputs"];
        REQUIRE(!outputs.empty());
        for (const auto &c : outputs) {
            CHECK((c["unbounded"] == 0) == (c["unknown"] == ""));
            CHECK((c["ratio"] == 0 || c["ratio"] >= 1));
        }
    }
}

TEST_CASE("stable is proved within ranges, or the stage is named and an input shown") {
    const auto stable = [](const std::vector<std::string> &words) {
        std::vector<std::string> command = {"verify", "softmax", "--target", "avx2", "--schedule", "none", "--quiet", "--stable"};
        command.insert(command.end(), words.begin(), words.end());
        return generator(command, numeric_registry());
    };
    const Outcome proved = stable({"--range=-1000,1000", "--extents", "M=2", "N=9"});
    INFO(proved.err);
    CHECK(proved.code == 0);
    CHECK_THAT(proved.out, Catch::Contains("'y' lies in 0 to 1") &&
                               Catch::Contains(" for all inputs in the ranges, in any order of additions\n") &&
                               Catch::Contains("proved: no stage of floats overflows or becomes NaN"));
    const std::vector<std::string> wide = {"verify",    "matmul",  "--target", "avx2",        "--schedule",
                                           "none",      "--quiet", "--stable", "--range=0,1", "--range=x=-1e38,1e38",
                                           "--extents", "M=2",     "N=3",      "K=64"};
    const Outcome found = generator(wide);
    INFO(found.out << found.err);
    CHECK(found.code == 1);
    CHECK_THAT(found.out, Catch::Contains("stage 'y' may overflow f32: ") &&
                              Catch::Contains("not stable: stage 'y' holds inf, with every input at its highest"));
    std::vector<std::string> as_json = wide;
    as_json.emplace_back("--json");
    const auto result = nlohmann::json::parse(generator(as_json).out)["stability"];
    CHECK(result["proved"] == false);
    CHECK(result["stages"][0]["stage"] == "y");
    CHECK(result["stages"][0]["error"].is_null());
    CHECK_THAT(stable({"--extents", "M=2", "N=9"}).err, Catch::Contains("error[command.range]: 'x' of softmax has no range"));
    CHECK_THAT(stable({"--range=q=1,2", "--extents", "M=2", "N=9"}).err,
               Catch::Contains("error[command.range]") && Catch::Contains("no input or parameter 'q'; it has x."));
    CHECK_THAT(stable({"--range=2,1", "--extents", "M=2", "N=9"}).err, Catch::Contains("expected NAME=LOWEST..HIGHEST"));
    CHECK_THAT(stable({"--range=-1,1"}).err, Catch::Contains("error[command.extents]"));
}

TEST_CASE("verify takes inputs in ranges, of four bits too, and from a file") {
    Registry registry;
    registry.add("logs", "y = the sum of s log(x)", [](const Numerics &n) {
        Builder f("logs", n);
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N});
        return f.output("y", sum(log(x) * f.parameter("s", DType::f32, 0, 2), {N})).build();
    });
    registry.add("decoded", "y = w x", [](const Numerics &n) {
        Builder f("decoded", n);
        const Dim N = f.dim("N"), K = f.dim("K");
        return f.output("y", dot(f.input("w", {N, K}, DType::i4), f.input("x", {K}), {K})).build();
    });
    const auto run = [&](std::vector<std::string> words) {
        words.insert(words.begin(), "verify");
        words.insert(words.end(), {"--target", "avx2", "--schedule", "none", "--quiet", "--json"});
        return generator(words, registry);
    };
    // The largest result at the first shape.
    const auto largest = [&](const std::vector<std::string> &words) {
        const Outcome outcome = run(words);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.code == 0);
        return nlohmann::json::parse(outcome.out)["shapes"][0]["largest"].get<double>();
    };
    const std::vector<std::string> at = {"--extents", "M=3", "N=8"};
    const auto with = [](std::vector<std::string> words, const std::vector<std::string> &more) {
        words.insert(words.end(), more.begin(), more.end());
        return words;
    };
    CHECK(largest(with({"logs", "--range", "x=2.5..3", "s=1..1"}, at)) >= 8 * 0.9162);
    CHECK(largest(with({"logs", "--range", "x=2.5,3", "s=1..1"}, at)) <= 8 * 1.0987);
    CHECK(largest(with({"decoded", "--range", "w=-1..0", "x=1..1"}, {"--extents", "N=40", "K=9"})) <= 9);
    CHECK(largest({"decoded", "--range", "w=3..3", "x=1..1", "--extents", "N=4", "K=9"}) == 27);
    for (const auto &[ranges, highest] : {std::pair<std::string, double>{"w=-1..1", 9}, {"w=-8..7", 72}}) {
        const Outcome proved = run({"decoded", "--stable", "--range", ranges, "x=-1..1", "--extents", "N=4", "K=9"});
        INFO(proved.out << proved.err);
        CHECK(nlohmann::json::parse(proved.out)["stability"]["stages"].back()["highest"].get<double>() == Approx(highest).epsilon(1e-4));
    }
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "in.npz").string();
    const std::string ones = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
                                 std::string("\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\0\x40", 16));
    const std::string half = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", std::string("\0\0\0\x3f", 4));
    write_file(file, zip_of({{"x.npy", ones}, {"s.npy", half}}));
    CHECK(largest({"logs", "--inputs", file}) == Approx(0.5 * std::log(2.0)));
    const auto refused = [&](const std::vector<std::string> &words, const std::string &expected) {
        const Outcome outcome = run(words);
        CHECK(outcome.code == 2);
        CHECK_THAT(outcome.err, Catch::Contains(expected));
    };
    refused({"logs", "--inputs", file, "--range", "x=0,1"}, "'x': --range names it too");
    refused({"logs", "--inputs", file, "--extents", "M=3"}, "has shape [2, 2]; expected [3, 2]");
    write_file(file, zip_of({{"x.npy", half}}));
    refused({"logs", "--inputs", file}, "'x' has shape []; expected rank 2, of the dims M, N.");
    write_file(file, zip_of({{"z.npy", ones}}));
    refused({"logs", "--inputs", file}, "'z': logs has no input or parameter of that name; it has x, s.");
    write_file(file, zip_of({{"s.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", std::string("\0\0\x40\x40", 4))}}));
    refused({"logs", "--inputs", file}, "'s': the parameter must be at least 0 and at most 2, not 3.");
    write_file(file, zip_of({{"x.npy", npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1), }", "1234")}}));
    refused({"logs", "--inputs", file}, "'x': expected f32, which is <f4 here, got <i4.");
    refused(with({"decoded", "--range", "w=-9..0"}, {"--extents", "N=4", "K=9"}), "'w' of decoded is of i4, which goes from -8 to 7.");
    refused(with({"decoded", "--range", "w=0.25..0.5"}, {"--extents", "N=4", "K=9"}), "no integer is in it");
}

// The interpreter runs the same calls and rounds, so the whole is compared, callees and what is between them.
TEST_CASE("verify compares a program with rounds whole, its callees emitted once or in their place") {
    const Registry registry = program_registry();
    for (const char *schedule : {"none", "layered/once"}) {
        const Outcome outcome = generator(
            {"verify", "layered", "--target", "avx2", "--quiet", "--schedule", schedule, "--shape", "D=9", "--extents", "L=3", "M=5"},
            registry);
        INFO(outcome.err);
        CHECK(outcome.code == 0);
        CHECK_THAT(outcome.out, Catch::StartsWith(std::string("layered on avx2, f32, schedule ") + schedule + ": 1 of 1 shapes right") &&
                                    Catch::Contains("; equal to the tile program bit by bit; relative error at most "));
    }
    CHECK_THAT(generator({"show", "layered", "--target", "avx2", "--quiet", "--schedule", "layered/once", "--what", "tiles"}, registry).out,
               Catch::Contains("for layers.L < |L| - 2\n") && Catch::Contains("invoke layer(") && Catch::Contains("invoke norm("));
    // As a file, without rounds and with an even number of them.
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "layered.json").string();
    write_file(file, generator({"show", "layered", "--json"}, registry).out);
    for (const char *rounds : {"L=0", "L=4"}) {
        const Outcome outcome = generator(
            {"verify", file, "--target", "avx2", "--quiet", "--schedule", "layered/once", "--extents", rounds, "M=7", "D=9", "--json"},
            registry);
        INFO(outcome.err);
        REQUIRE(outcome.code == 0);
        CHECK(nlohmann::json::parse(outcome.out)["shapes"][0]["difference"] == "");
    }
}

TEST_CASE("a variant of one extent takes what is packed for all") {
    Registry registry = sample_registry();
    registry.add_schedule([] {
        return Schedule("ahead")
            .stage("y", StageKnobs().micro({{"N", 8}}).vector({{"N", 4}}).pack("w", "prepack", {"N/8", "K", "N%8"}))
            .variant({"N == 19"}, "y", StageKnobs().unroll({{"K", 2}}))
            .variant({"N == 16", "K <= 9"}, "y", StageKnobs().unroll({{"K", 3}}));
    });
    for (const char *n : {"N=19", "N=16", "N=17"}) {
        const Outcome outcome =
            generator({"verify", "matmul", "--target", "x86-64", "--schedule", "ahead", "--extents", "M=3", n, "K=5"}, registry);
        INFO(outcome.err);
        CHECK(outcome.code == 0);
        CHECK_THAT(outcome.out, Catch::Contains("1 of 1 shapes right"));
    }
}

TEST_CASE("verify and bench pack what a kernel takes packed") {
    Registry registry = sample_registry();
    registry.add_schedule([] {
        return Schedule("ahead").stage(
            "y",
            StageKnobs().micro({{"N", 8}}).vector({{"N", 4}}).pack("w", "prepack", {"N/8", "K", "N%8"}).pack("x", "prepack", {"M", "K"}));
    });
    const Outcome verified = generator({"verify", "matmul", "--target", "x86-64", "--schedule", "ahead", "--shapes", "6"}, registry);
    INFO(verified.err);
    CHECK(verified.code == 0);
    CHECK_THAT(verified.out, Catch::StartsWith("matmul on x86-64, f32, schedule ahead: 6 of 6 shapes right (2 of them empty), with 1 and 2 "
                                               "threads; equal to the tile program bit by bit"));
    const Outcome timed = generator(
        {"bench", "matmul", "--target", "x86-64", "--schedule", "ahead", "--extents", "M=8", "N=12", "K=8", "--seconds", "0.01", "--json"},
        registry);
    INFO(timed.err);
    REQUIRE(timed.code == 0);
    CHECK(nlohmann::json::parse(timed.out)["operations"] == 2.0 * 8 * 12 * 8);
    CHECK(nlohmann::json::parse(timed.out)["bytes"] == 4.0 * (8 * 8 + 16 * 8 + 8 * 12));
}

TEST_CASE("extents are refused alike by all commands that take them") {
    Registry registry;
    registry.add("scaled", "y[N] = x[N] w[N2], N2 == N", [](const Numerics &numerics) {
        Builder f("scaled", numerics);
        Dim N = symbolic_dim("N"), N2 = symbolic_dim("N2"), J = symbolic_dim("J");
        N.min = 2, N2.equals = "N", N2.multiple_of = 4, J.max = 9;
        N = f.dim(N), N2 = f.dim(N2), J = f.dim(J);
        const Tile x = f.input("x", {N, J}), w = f.input("w", {N2});
        return f.output("y", x * w.at({{"N2", variable("N")}}, {"N"})).build();  // (N, J)
    });
    const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
        {{"N=8", "N2=4", "J=1"}, "error[shape.constraint]: scaled: dim N2, dimension 0 of 'w': extent must equal that of N, 8, not 4."},
        {{"N=1", "J=1"}, "error[shape.constraint]: scaled: dim N, dimension 0 of 'x': extent must be at least 2, not 1."},
        {{"N=10", "J=1"},
         "error[shape.constraint]: scaled: dim N2, dimension 0 of 'w': extent must be a multiple of 4, not 10. It is equal to N, which was "
         "given."},
        {{"N2=10", "J=1"}, "error[shape.constraint]: scaled: dim N2, dimension 0 of 'w': extent must be a multiple of 4, not 10."},
        {{"N2=8", "J=10"}, "error[shape.constraint]: scaled: dim J, dimension 1 of 'x': extent must be at most 9, not 10."},
        {{"N=8", "j=512"},
         "error[shape.unknown-dim]: scaled: there is no dim 'j' to give an extent; the symbolic dims are N, N2, J. Did you "
         "mean 'J'?"},
    };
    const TemporaryFolder folder;
    const std::vector<std::vector<std::string>> commands = {{"verify", "scaled", "--extents"},
                                                            {"bench", "scaled", "--extents"},
                                                            {"tune", "scaled", "--extents"},
                                                            {"verify", "scaled", "--shape"},
                                                            {"bench", "scaled", "--shape"},
                                                            {"tune", "scaled", "--shape"},
                                                            {"generate", "scaled", "--out", (folder.path() / "out").string(), "--shape"},
                                                            {"show", "scaled", "--shape"},
                                                            {"show", "scaled", "--what", "tiles", "--shape"}};
    for (const auto &[extents, words] : mistakes)
        for (std::vector<std::string> line : commands) {
            line.insert(line.begin() + 2, {"--target", "x86-64"});
            if (line[0] == "show" && line.size() == 5) line.erase(line.begin() + 2, line.begin() + 4);
            line.insert(line.end(), extents.begin(), extents.end());
            check_refused(line, {words}, 2, registry);
        }
    // Either dim says both.
    for (const char *given : {"N=8", "N2=8"}) {
        const Outcome timed =
            generator({"bench", "scaled", "--target", "x86-64", "--quiet", "--seconds", "0.01", "--extents", given, "J=3"}, registry);
        INFO(timed.err);
        CHECK(timed.code == 0);
        CHECK_THAT(generator({"show", "scaled", "--shape", given}, registry).out,
                   Catch::Contains("dim N = 8") && Catch::Contains("dim N2 = 8"));
    }
    const Outcome verified = generator({"verify", "scaled", "--target", "x86-64", "--quiet", "--shapes", "6"}, registry);
    INFO(verified.out << verified.err);
    CHECK(verified.code == 0);
}

TEST_CASE("verify explains an error that is large beside results near zero") {
    Registry registry;
    registry.add("cancelled", "y[M] = 1.1 x[M] - x[M] - 0.1 x[M]", [](const Numerics &numerics) {
        Builder f("cancelled", numerics);
        const Dim M = f.dim("M");
        const Tile x = f.input("x", {M});
        const Tile y = x * 1.1;
        return f.output("y", y - x - x * 0.1).build();  // (M)
    });
    const Outcome outcome = generator({"verify", "cancelled", "--target", "x86-64", "--quiet", "--schedule", "none"}, registry);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains("note: at M=") && Catch::Contains("the largest element of 'y' is ") &&
                                Catch::Contains("errors are relative to it, and the declared order of operations errs by "));
    const Outcome plain = generator({"verify", "matmul", "--target", "x86-64", "--quiet", "--schedule", "none", "--numerics", "bf16"});
    CHECK_THAT(plain.out, !Catch::Contains("near") && !Catch::Contains("the largest element"));
}

TEST_CASE("verify's errors") {
    check_refused({"verify", "matmul", "--shapes", "0"},
                  {"error[command.arguments]: tessera-generator verify: --shapes: Value 0 not in range 1 to 2147483647; "});
    check_refused({"verify", "matmul", "--schedule", "none", "--extents", "M=1"}, {"error[command.extents]: matmul: dim N has no extent"});
    check_refused({"verify", "matmul", "--schedule", "none", "--extents", "M=500", "N=500", "K=500", "--run-limit-s", "0.05"},
                  {"error[verify.limit]: matmul: verifying was stopped; expected it to end within 0.05 s. Verify fewer or smaller shapes, "
                   "or raise --run-limit-s."});
    check_refused({"verify", "matmul", "--schedule", "none", "--shapes", "2000000000", "--run-limit-s", "0.05"},
                  {"error[verify.limit]: matmul: verifying was stopped; expected it to end within 0.05 s."});
    const std::vector<std::string> have = host_features();
    const auto is_missing = [&](const std::string &feature) { return std::find(have.begin(), have.end(), feature) == have.end(); };
    for (const std::string &feature : known_features(Arch::x86_64))
        if (is_missing(feature)) {
            // The target's name has no feature that it has anyway, and the first that the processor lacks is named.
            const Target target = target_named((feature.starts_with("avx512") ? "avx512+" : "x86-64+") + feature);
            const std::string first = *std::find_if(target.features.begin(), target.features.end(), is_missing);
            check_refused(
                {"verify", "matmul", "--schedule", "none", "--target", target.name},
                {"error[command.target]: target '" + target.name + "': this processor lacks " + first + ", so its code cannot run here; ",
                 "Choose --target host"});
        }
    check_refused({"verify", "matmul", "--schedule", "none", "--target", host_arch() == Arch::arm64 ? "x86-64" : "arm64"},
                  {"error[command.target]: target '",
                   "': this machine is " + std::string(name_of(host_arch())) + ", so its code cannot run here. Choose --target host"});
}

TEST_CASE("a kernel is verified and timed where there is no other program") {
    const std::string path = getenv("PATH");
    setenv("PATH", "/nowhere", 1);
    CHECK(generator({"verify", "matmul", "--schedule", "none", "--quiet", "--shapes", "2"}).code == 0);
    CHECK(generator({"bench", "matmul", "--schedule", "none", "--quiet", "--seconds", "0.001", "--extents", "M=2", "N=3", "K=4"}).code ==
          0);
    const TemporaryFolder folder;
    check_refused(
        {"tune", "matmul", "--schedule", "none", "--quiet", "--cc", "cc", "--shape", "M=4", "N=4", "K=4", "--records",
         (folder.path() / "tune.db").string(), "--out", folder.path().string()},
        {"error[command.cc]: the C compiler 'cc': expected to find it on the path, to make the program that measures; ", "Install one."});
    setenv("PATH", path.c_str(), 1);
}

}  // namespace tessera::test_verify_kernel
