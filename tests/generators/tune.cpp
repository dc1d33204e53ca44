#include "generators/tune/tune.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "generators/tune/tune_shapes.h"
#include "schedules/artifact/merge.h"
#include "schedules/target/target_file.h"
#include "support/text/shell_words.h"
#include "tests/generators/harness.h"
#include "tests/support/fake_path.h"

namespace tessera::test_tune {

using namespace tessera::test;

static std::vector<std::string> tune(const TemporaryFolder &folder, const std::vector<std::string> &more) {
    const auto slow = folder.path() / "slow.json";
    write_file(slow, slow_matmul().text());
    std::vector<std::string> all = {"tune",
                                    "matmul",
                                    "--target",
                                    "avx2",
                                    "--schedule",
                                    slow.string(),
                                    "--quiet",
                                    "--records",
                                    (folder.path() / "tune.db").string(),
                                    "--out",
                                    (folder.path() / "out").string(),
                                    "--measure-s",
                                    "0.03",
                                    "--population",
                                    "24",
                                    "--batch",
                                    "3",
                                    "--model",
                                    "none"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

TEST_CASE("tune writes an artifact that is faster, and generate takes it") {
    const TemporaryFolder folder;
    const auto page = folder.path() / "pages/out.html";
    const Outcome o = generator(tune(folder, {"--trials", "6", "--report", page.string(), "--shape", "M=48", "N=64", "K=32"}));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("matmul/f32/avx2 M48_N64_K32: 6 trials"));
    CHECK_THAT(o.out, Catch::Contains("what each change is worth"));
    const auto file = folder.path() / "out/matmul/f32/avx2/M48_N64_K32.json";
    REQUIRE(std::filesystem::exists(file));
    const Schedule tuned = read_schedule(file);
    CHECK(tuned.parent_name().empty());  // all knobs of its one stage differ
    CHECK(tuned.document()["measured"]["trials"] == 6);
    CHECK(tuned.document()["algorithm"]["name"] == "matmul");
    CHECK_THAT(read_file(page),
               Catch::Contains("/stages/y/micro") && Catch::Contains("M48_N64_K32.json") && Catch::Contains("circle class=\"winner\""));
    CHECK(
        generator({"show", "matmul", "--target", "avx2", "--schedule", file.string(), "--shape", "M=48", "N=64", "K=32", "--what", "tiles"})
            .code == 0);
    CHECK(generator({"generate", "matmul", "--target", "avx2", "--schedule", file.string(), "--out", (folder.path() / "kernel").string()})
              .code == 0);
    CHECK_THAT(generator({"records", "list", (folder.path() / "tune.db").string()}).out, Catch::Contains("matmul/f32/avx2 M48_N64_K32"));

    // What was measured trains a model, which the next campaign begins with.
    const std::string rows = (folder.path() / "rows.tsv").string(), model = (folder.path() / "model.json").string();
    write_file(rows, generator({"records", "export", (folder.path() / "tune.db").string()}).out);
    CHECK_THAT(generator({"cost-model", "train", rows, "--out", model}).out, Catch::Contains("learnt from 6 candidates of 1 tasks"));
    const Outcome judged = generator({"cost-model", "judge", rows});
    CHECK_THAT(judged.out, Catch::Contains("rank correlation") && Catch::Contains("draft") &&
                               Catch::Contains("no model was trained: that takes examples of a second algorithm or shape"));
    CHECK_THAT(judged.out, !Catch::Contains(" trained "));
    std::vector<std::string> again = tune(folder, {"--trials", "3", "--shape", "M=48", "N=64", "K=32", "--json"});
    const Outcome json = generator(again);
    CHECK(nlohmann::json::parse(json.out)["trials"].size() == 3);
    const size_t at = static_cast<size_t>(std::find(again.begin(), again.end(), "--model") - again.begin());
    again[at + 1] = model;
    CHECK(nlohmann::json::parse(generator(again).out)["trials"].size() == 3);
}

TEST_CASE("tune needs no C compiler and no linker") {
    const TemporaryFolder folder;
    const FakePath nothing;
    const Outcome o = generator(tune(folder, {"--trials", "3", "--prepack", "w", "--shape", "M=48", "N=64", "K=32"}));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("3 trials") && !Catch::Contains("not compiled"));
    CHECK(std::filesystem::exists(folder.path() / "out/matmul/f32/avx2/M48_N64_K32_prepacked.json"));
}

TEST_CASE("tune for several shapes ends with one artifact, whose variants a kernel chooses from by its extents") {
    const TemporaryFolder folder;
    std::vector<std::string> words = tune(folder, {"--trials", "13", "--shape", "M=1", "M=64", "N=64", "K=32"});
    const Outcome o = generator(words);
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("M=1 ") && Catch::Contains("M=64 ") && Catch::Contains("wrote "));
    const auto file = folder.path() / "out/matmul/f32/avx2/M1-64_N64_K32_partly_fixed.json";
    REQUIRE(std::filesystem::exists(file));
    const nlohmann::json document = read_schedule(file).document(), measured = document["measured"];
    REQUIRE(measured["shapes"].size() == 2);
    CHECK(measured["task"]["fixed"] == nlohmann::json::object({{"N", 64}, {"K", 32}}));
    CHECK(measured["task"]["extents"] == nlohmann::json::object({{"M", 64}}));
    CHECK(measured["shapes"][0]["extents"] == nlohmann::json::object({{"M", 1}}));
    CHECK(measured["shapes"][0]["trials"] == 6);
    CHECK(measured["shapes"][1]["trials"] == 7);
    // Equal schedules would be one; a row and a block of rows hardly have them.
    if (document.contains("variants")) {
        CHECK(document["variants"].size() == 1);
        CHECK(document["variants"][0]["when"] == nlohmann::json::array({"M <= 8"}));
        CHECK(measured["shapes"][0]["runs"] == "M <= 8");
    }
    CHECK(measured["shapes"][1]["runs"] == "otherwise");
    CHECK(generator({"check", (folder.path() / "out").string()}).code == 0);
    const Outcome shown = generator({"show", "matmul", "--target", "avx2", "--shape", "N=64", "K=32", "--schedule-dir",
                                     (folder.path() / "out").string(), "--what", "tiles"});
    CHECK(shown.code == 0);
    CHECK_THAT(shown.err, Catch::Contains("schedule 'matmul/f32/avx2/M1-64_N64_K32_partly_fixed', tuned for this shape"));
    if (document.contains("variants")) CHECK_THAT(shown.out, Catch::Contains("M <= 8") && Catch::Contains("otherwise"));
    CHECK(generator({"verify", "matmul", "--target", "avx2", "--shape", "N=64", "K=32", "--schedule", file.string(), "--quiet"}).code == 0);
    CHECK(generator({"generate", "matmul", "--target", "avx2", "--shape", "N=64", "K=32", "--schedule", file.string(), "--out",
                     (folder.path() / "kernel").string()})
              .code == 0);

    // With all measurements there, it is the same artifact again.
    words.push_back("--resume"), words.push_back("--json");
    const nlohmann::json again = nlohmann::json::parse(generator(words).out);
    CHECK(again["shapes"][0]["trials"] == 6);
    CHECK(again["shapes"][1]["task"] == "matmul/f32/avx2 M64_N64_K32_partly_fixed");
    CHECK(again["stopped"] == false);
    *std::find(words.begin(), words.end(), "13") = "2";
    const nlohmann::json fewer = nlohmann::json::parse(generator(words).out);
    CHECK(fewer["shapes"][0]["trials"] == 6);
    CHECK(fewer["shapes"][1]["trials"] == 7);
    words = tune(folder, {"--dry-run", "--shape", "M=1", "M=64", "N=64", "K=32"});
    CHECK_THAT(generator(words).out, Catch::Contains("M=1\n") && Catch::Contains("M=64\n") && Catch::Contains("decisions; about 10^"));
}

TEST_CASE("tune packs operands ahead of time where it may, under a name of its own") {
    const TemporaryFolder folder;
    const Outcome o = generator(tune(folder, {"--trials", "4", "--shape", "M=48", "N=64", "K=32", "--prepack", "w", "--space",
                                              "pack.w=ahead", "vector=N", "micro.M=2,4,6"}));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    const auto file = folder.path() / "out/matmul/f32/avx2/M48_N64_K32_prepacked.json";
    REQUIRE(std::filesystem::exists(file));
    const nlohmann::json document = read_schedule(file).document();
    CHECK(document["stages"]["y"]["pack"]["w"]["at"] == "prepack");
    CHECK(document["measured"]["prepack"] == nlohmann::json::array({"w"}));
    CHECK(generator({"check", (folder.path() / "out").string()}).code == 0);
    const std::string out = (folder.path() / "kernel").string();
    CHECK(
        generator({"generate", "matmul", "--target", "avx2", "--shape", "M=48", "N=64", "K=32", "--schedule", file.string(), "--out", out})
            .code == 0);
    CHECK_THAT(read_file(folder.path() / "kernel/matmul.h"), Catch::Contains("matmul_pack_w"));
    // Its arguments are others, so that it is not taken unless it is named.
    const Outcome taken = generator({"show", "matmul", "--target", "avx2", "--shape", "M=48", "N=64", "K=32", "--schedule-dir",
                                     (folder.path() / "out").string(), "--what", "tiles"});
    CHECK_THAT(taken.err,
               Catch::Contains("it takes operands packed ahead of time, which changes the kernel's arguments, so it has to be named"));
    CHECK_THAT(generator(tune(folder, {"--dry-run", "--shape", "M=48", "N=64", "K=32", "--prepack", "w"})).out,
               Catch::Contains("y.pack.w") && Catch::Contains("ahead"));
    check_refused(tune(folder, {"--shape", "M=48", "N=64", "K=32", "--prepack", "y"}),
                  {"error[tune.prepack]: matmul: --prepack 'y': expected an operand of the kernel; its operands are x, w. 'y' is what it "
                   "computes; name one of those."});
    check_refused({"tune", "matmul", "--target", "opencl", "--quiet", "--shape", "M=8", "N=8", "K=8", "--prepack", "w"},
                  {"error[command.arguments]: tune: target 'opencl': --prepack is of processors; on a GPU what a block reads is staged in "
                   "shared memory. Leave it out."});
}

TEST_CASE("tune searches a schedule for OpenCL on the device that there is") {
    if (std::string(TESSERA_OPENCL_LIBRARY).empty()) {
        WARN("built without OpenCL (ocl-icd-opencl-dev, pocl-opencl-icd): not run");
        return;
    }
    setenv("POCL_DEVICES", "basic", 0);  // PoCL's default device gives wrong results where shared memory is filled inside a loop
    const TemporaryFolder folder;
    const Outcome o = generator({"tune",
                                 "matmul",
                                 "--target",
                                 "opencl",
                                 "--schedule",
                                 "none",
                                 "--shape",
                                 "M=32",
                                 "N=32",
                                 "K=16",
                                 "--trials",
                                 "3",
                                 "--batch",
                                 "3",
                                 "--population",
                                 "24",
                                 "--measure-s",
                                 "0.03",
                                 "--quiet",
                                 "--records",
                                 (folder.path() / "tune.db").string(),
                                 "--out",
                                 (folder.path() / "out").string()});
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out,
               Catch::Contains("matmul/f32/opencl M32_N32_K16: 3 trials") && !Catch::Contains("wrong") && !Catch::Contains("crashed"));
    const auto file = folder.path() / "out/matmul/f32/opencl/M32_N32_K16.json";
    if (std::filesystem::exists(file))
        CHECK(generator({"generate", "matmul", "--target", "opencl", "--schedule", file.string(), "--shape", "M=32", "N=32", "K=16",
                         "--out", (folder.path() / "kernel").string()})
                  .code == 0);
}

TEST_CASE("of a GPU's space tune says what it can, and what it cannot") {
    const Outcome o = generator({"tune", "matmul", "--target", "cuda-sm80", "--quiet", "--shape", "M=256", "N=256", "K=256", "--dry-run"});
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("y.block.M") && Catch::Contains("y.pack.w") && Catch::Contains("y.k.K") &&
                          Catch::Contains("decisions; about 10^"));
    check_refused({"tune", "matmul", "--target", "cuda-sm80", "--quiet", "--shape", "M=8", "N=8", "K=8"},
                  {"error[tune.gpu]: target 'cuda-sm80': expected a target whose kernels tune can run, got one for CUDA. --dry-run lists "
                   "its space; --target opencl measures on the same device, where its driver has OpenCL."});
    check_refused({"tune", "matmul", "--target", "opencl", "--quiet", "--shape", "M=8", "N=8", "K=8", "--deterministic"},
                  {"error[command.arguments]: tune: target 'opencl': --deterministic chooses by the cost model, which does not know a "
                   "GPU's blocks. Leave it out, so that candidates are measured."});
    check_refused({"tune", "matmul", "--target", "opencl", "--quiet", "--shape", "M=8", "N=8", "K=8", "--threads", "2"},
                  {"error[command.arguments]: tune: target 'opencl': --threads is of processors; a GPU's threads come from the schedule. "
                   "Leave it out."});
    const TemporaryFolder none;
    const Outcome alone = shell("OCL_ICD_VENDORS='" + none.path().string() +
                                "' '" TESSERA_GENERATOR "' tune matmul --target opencl --quiet --shape M=8 N=8 K=8");
    CHECK(alone.code == 2);
    CHECK_THAT(
        alone.err,
        Catch::Contains("error[tune.device]: target 'opencl': expected an OpenCL device to measure on, got none") &&
            Catch::Contains(
                "Install a device's driver (Debian's pocl-opencl-icd has one for the CPU), or name a --runner on a machine that has one."));
}

TEST_CASE("tune makes code or workspace small where that is the metric, under a name of its own") {
    const TemporaryFolder folder;
    const auto packed = folder.path() / "packed.json";
    write_file(packed,
               Schedule("matmul/packed").stage("y", StageKnobs().micro({{"M", 8}, {"N", 8}}).vector({{"N", 4}}).pack("w", "root")).text());
    for (const std::string metric : {"code-size", "workspace"}) {
        std::vector<std::string> words =
            tune(folder, {"--trials", "10", "--shape", "M=48", "N=64", "K=32", "--metric", metric, "--least-speed", "0.05"});
        *std::find(words.begin(), words.end(), (folder.path() / "slow.json").string()) = packed.string();
        const Outcome o = generator(words);
        INFO(o.out << o.err);
        REQUIRE(o.code == 0);
        CHECK_THAT(o.out, Catch::Contains(metric + "  ") && Catch::Contains(" times less "));
        const auto measured = read_schedule(folder.path() / ("out/matmul/f32/avx2/M48_N64_K32_" + metric + ".json")).document()["measured"];
        CHECK(measured["metric"]["name"] == metric);
        CHECK(measured["metric"]["bytes"] < measured["metric"]["bytes_of_base"]);
    }
    // What is small is not what a kernel takes that wants to be fast.
    const Outcome o = generator({"show", "matmul", "--target", "avx2", "--shape", "M=48", "N=64", "K=32", "--schedule-dir",
                                 (folder.path() / "out").string(), "--what", "tiles"});
    CHECK_THAT(o.err, !Catch::Contains("tuned for this shape"));
    check_refused(tune(folder, {"--metric", "size"}),
                  {"error[command.arguments]", "--metric: expected latency or throughput or code-size or workspace, got 'size';"});
    check_refused(tune(folder, {"--metric", "1"}), {"--metric: expected latency or throughput or code-size or workspace, got '1';"});
    check_refused(tune(folder, {"--least-speed", "nan"}), {"--least-speed: expected a number in 0.01 ..= 10, got 'nan'"});
    check_refused(tune(folder, {"--least-speed", "0.5"}),
                  {"error[command.arguments]: tune: --least-speed bounds the time where bytes are to be small"});
    check_refused(tune(folder, {"--trials", "0"}), {"--trials: expected an integer in 1 ..= 1000000, got '0'"});
    check_refused(tune(folder, {"--seed", "-1"}), {"--seed: expected an integer in 0 ..= 9223372036854775807, got '-1'"});
    check_refused(tune(folder, {"--dry-run", "--json"}),
                  {"error[command.arguments]: tune: --dry-run lists the decisions as text only; leave out --json."});
    check_refused({"tune", "matmul", "--metric", "code-size", "--deterministic"},
                  {"error[command.arguments]: tune: --metric code-size is for one kernel that is measured; leave out --deterministic."});
}

TEST_CASE("tune makes the throughput of several callers large") {
    const TemporaryFolder folder;
    const Outcome o =
        generator(tune(folder, {"--trials", "7", "--shape", "M=48", "N=64", "K=32", "--metric", "throughput", "--threads", "2"}));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("calls a second of 2 callers"));
    const auto measured = read_schedule(folder.path() / "out/matmul/f32/avx2/M48_N64_K32_threads2_throughput.json").document()["measured"];
    CHECK(measured["metric"]["name"] == "throughput");
    CHECK(measured["metric"]["callers"] == 2);
    CHECK(measured["metric"]["calls_per_second"] > 0);
    check_refused(tune(folder, {"--shape", "M=48", "N=64", "K=32", "--metric", "throughput", "--least-speed", "0.5"}),
                  {"error[command.arguments]: tune: --least-speed bounds the time where bytes are to be small"});
    check_refused({"tune", "matmul", "--target", "opencl", "--quiet", "--shape", "M=8", "N=8", "K=8", "--metric", "throughput"},
                  {"error[command.arguments]: tune: target 'opencl': --metric throughput is of processors, whose threads call at one time. "
                   "Leave it out."});
}

TEST_CASE("seconds alone are the budget where no trials are given") {
    const TemporaryFolder folder;
    const std::string words = "--budget-s 3 --shape M=2 N=8 K=8";
    std::vector<std::string> line = tune(folder, {"--json"});
    for (std::istringstream in(words); !in.eof();) in >> line.emplace_back();
    const Outcome o = generator(line);
    INFO(o.err);
    REQUIRE(o.code == 0);
    const auto result = nlohmann::json::parse(o.out);
    CHECK((result["elapsed_s"] >= 3.0 || result["trials"].size() > 64));
    // The first of both that is used up ends it: here the trials, with seconds enough for a busy machine.
    *(std::find(line.begin(), line.end(), "--budget-s") + 1) = "600";
    line.insert(line.end(), {"--trials", "3"});
    CHECK(nlohmann::json::parse(generator(line).out)["trials"].size() == 3);
    check_refused(tune(folder, {"--exploration", "nan"}), {"--exploration: expected a number in 0 ..= 1, got 'nan'"});
}

TEST_CASE("tune with cold caches says so, and is a campaign of its own") {
    const TemporaryFolder folder;
    const std::vector<std::string> task = {"--trials", "7", "--shape", "M=48", "N=64", "K=32"};
    auto tuned = [&](std::vector<std::string> more) {
        more.insert(more.end(), task.begin(), task.end());
        return generator(tune(folder, more));
    };
    const Outcome o = tuned({"--cold-caches"});
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK(read_schedule(folder.path() / "out/matmul/f32/avx2/M48_N64_K32.json").document()["measured"]["caches"] == "cold");
    CHECK(tuned({"--resume", "--name", "matmul/warm_avx2"}).code == 0);
    CHECK_FALSE(read_schedule(folder.path() / "out/matmul/warm_avx2.json").document()["measured"].contains("caches"));
    check_refused(tune(folder, {"--cold-caches", "--metric", "throughput", "--threads", "2"}),
                  {"error[command.arguments]: tune: --cold-caches is for one caller"});
    check_refused({"tune", "matmul", "--shape", "M=48", "N=64", "K=32", "--cold-caches", "--deterministic"},
                  {"error[command.arguments]: tune: --cold-caches is for a search that measures"});
    check_refused({"tune", "matmul", "--target", "opencl", "--quiet", "--shape", "M=8", "N=8", "K=8", "--cold-caches"},
                  {"error[command.arguments]: tune: target 'opencl': --cold-caches is of processors. Leave it out."});
}

TEST_CASE("a dry run lists the decisions of any algorithm's space") {
    const TemporaryFolder folder;
    const Outcome o = generator(tune(folder, {"--dry-run", "--shape", "M=48", "N=64", "K=32"}));
    CHECK(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("y.micro.N") && Catch::Contains("y.pack.w") && Catch::Contains("decisions; about 10^"));
    CHECK(!std::filesystem::exists(folder.path() / "tune.db"));
}

TEST_CASE("what a dry run lists may be asked for, also what samples rarely have") {
    const TemporaryFolder folder;
    for (const std::string answer : {"y.micro.M=16", "y.micro.M=64", "y.vector=M", "y.k.K=256"}) {
        const std::string decision = answer.substr(0, answer.find('=')), value = answer.substr(answer.find('=') + 1);
        const Outcome all = generator(tune(folder, {"--dry-run", "--shape", "M=512", "N=512", "K=512"}));
        const size_t line = all.out.find(decision + " ");
        REQUIRE(line != std::string::npos);
        CHECK_THAT(all.out.substr(line, all.out.find('\n', line) - line) + " ", Catch::Contains(" " + value + " "));
        const Outcome one = generator(tune(folder, {"--dry-run", "--shape", "M=512", "N=512", "K=512", "--space", answer}));
        INFO(one.err);
        CHECK(one.code == 0);
    }
}

TEST_CASE("tune does not write an artifact that computes something else than the algorithm") {
    const TemporaryFolder folder;
    auto chosen = [&](double wrong_at) {
        return generator({"tune", "count", "--target", "avx2", "--deterministic", "--trials", "8", "--quiet", "--schedule", "count/plain",
                          "--space", "split.K=lanes:8", "--shape", "M=64", "K=296", "--out", (folder.path() / "out").string()},
                         miscounting_registry(wrong_at));
    };
    const Outcome wrong = chosen(37);
    INFO(wrong.out << wrong.err);
    CHECK(wrong.code == 2);
    CHECK_THAT(wrong.err,
               Catch::Contains("error[tune.wrong]: count: the schedule that was found computes something else than the algorithm, "
                               "and no artifact is written: count[") &&
                   Catch::Contains("the exact result is 296, the tile program gives ") &&
                   Catch::Contains("A schedule that splits a fold uses the combine of its monoid beside its step: make them agree."));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "out/count"));
    const Outcome right = chosen(1000);
    INFO(right.out << right.err);
    CHECK(right.code == 0);
    CHECK(std::filesystem::exists(folder.path() / "out/count"));
}

TEST_CASE("mistakes of tune's are refused with words") {
    const TemporaryFolder folder;
    const std::vector<std::string> shape = {"--shape", "M=48", "N=64", "K=32"};
    auto refuse = [&](std::vector<std::string> more, const std::vector<std::string> &parts) {
        more.insert(more.end(), shape.begin(), shape.end());
        check_refused(tune(folder, more), parts);
    };
    refuse({"--space", "y.micro.Q=4"},
           {"error[tune.space]: --space 'y.micro.Q=4': no decision is called so; the decisions are y.", "Did you mean 'y.micro."});
    refuse({"--space", "unroll=1"}, {"error[tune.space]: --space 'unroll=1': no decision is called so; the decisions are y.",
                                     ". Did you mean 'unroll.K'? --dry-run lists their answers."});
    refuse({"--space", "unroll.K=7"}, {"error[tune.space]: --space 'unroll.K=7': no decision has that answer; the decisions are y.",
                                       ". --dry-run lists their answers."});
    for (const char *seconds : {"inf", "nan", "0", "soon"})
        refuse({"--measure-s", seconds},
               {"error[command.arguments]", "expected seconds, in 0.000001 ..= 1e9, got '" + std::string(seconds) + "'"});
    refuse({"--report", "/proc/none/out.html"}, {"error[output.folder]", "/proc/none"});
    refuse({"--report", folder.path().string()},
           {"error[output.write]: --report '" + folder.path().string() + "': expected a file to write, got a folder. Name a file in it."});
    refuse({"--cc", " "}, {"error[command.cc]: --cc ' ': expected the name of a C compiler"});
    check_refused(tune(folder, {"--extents", "M=x"}),
                  {"error[command.shape]: --extents 'M=x': expected <dim>=<extent>", "go before --extents"});
    check_refused(tune(folder, {"--extents", "M=4", "M=4", "--shape", "N=64", "K=32"}),
                  {"error[command.shape]: --shape: expected shapes that differ; M=4 is given twice. Give it once."});
    check_refused(tune(folder, {"--extents", "M=4", "M=5", "K=1", "K=2", "K=3", "--shape", "N=64"}),
                  {"error[command.shape]: --shape: expected as many extents of K as of M, which has 2, one for each shape; got 3. Give a "
                   "dim once where all shapes have the same of it."});
    check_refused({"tune", "matmul", "--target", "avx2", "--quiet", "--deterministic", "--shape", "M=1", "M=48", "N=64", "K=32"},
                  {"error[command.arguments]: tune: --deterministic is for one shape; give each dim one extent, or leave it out."});
    refuse({"--shape", "M=1", "--trials", "1"}, {"error[campaign.budget]: tune: expected at least one trial for each of the 2 shapes, got "
                                                 "1. Raise --trials, or tune for fewer shapes."});
    for (const std::vector<std::string> &ahead : {std::vector<std::string>{"--prepack", "w"}, {"--space", "pack.w=ahead"}})
        refuse({"--shape", "M=1", ahead[0], ahead[1]}, {"error[tune.prepack]: matmul: expected one shape where operands may be packed "
                                                        "ahead of time, since all variants of a kernel take them packed "
                                                        "alike; got 2 shapes, and w packed by --prepack, --space or the schedule to beat. "
                                                        "Tune one shape at a time, or pack nothing ahead of time."});
    for (const std::vector<std::string> &empty : {std::vector<std::string>{"--shape", "M=0", "M=16", "N=64", "K=32"},
                                                  {"--shape", "M=0", "N=64", "K=32"},
                                                  {"--shape", "N=64", "K=32", "--extents", "M=0"}})
        check_refused(tune(folder, empty), {"error[tune.extents]: matmul: expected an extent of at least 1 for each dim, got M=0: an empty "
                                            "kernel has no time. Tune for the extents that the kernel mostly runs with"});
    for (const std::vector<std::string> &more : {std::vector<std::string>{}, {"--dry-run"}}) {
        std::vector<std::string> words =
            tune(folder, {"--shape", "M=4", "N=32", "K=32", "--space", "unroll.K=8", "--space", "micro.N=32", "--space", "vector=M"});
        words.insert(words.end(), more.begin(), more.end());
        check_refused(words, {"error[tune.space]: --space 'micro.N=32 unroll.K=8 vector=M': no schedule satisfies all of these. Of the "
                              "last one that was tried: --space '",
                              "': it allows none of the answers to y.",
                              ". Allow more answers, or leave a restriction out; --dry-run lists the answers."});
    }
    refuse(
        {"--dry-run", "--resume"},
        {"error[command.arguments]: tune: --resume is for a search; --dry-run only lists the decisions. Leave out the one or the other."});
    refuse({"--dry-run", "--report", (folder.path() / "a.html").string()},
           {"error[command.arguments]: tune: --report is for a search; --dry-run only lists"});
    for (const char *name : {"", ":memory:"})
        check_refused(
            {"tune", "matmul", "--target", "avx2", "--quiet", "--shape", "M=8", "N=8", "K=8", "--out", folder.path().string(), "--records",
             name},
            {"error[records.open]: records '" + std::string(name) + "': expected the name of a file that keeps what is measured"});
    check_refused({"records", "prune", (folder.path() / "none.db").string()}, {"error[records.open]", "none.db'"});
    for (const std::string what : {"list", "export", "prune"})
        check_refused({"records", what, "s.db", "other.db", "extra"},
                      {"error[command.arguments]: records " + what +
                       ": expected one database, got 'other.db', 'extra' after 's.db'. Leave it out; only merge takes several."});
    check_refused({"records", "list", "s.db", "--fewest", "3"},
                  {"error[command.arguments]: records list: --fewest is for prune. Leave it out."});
    CHECK(!std::filesystem::exists(folder.path() / "none.db"));
    refuse({"--space", "nonsense"}, {"error[tune.space]", "expected <decision>=<value>"});
    check_refused({"tune", "layernorm", "--target", "avx2", "--shape", "M=64", "N=64", "--space", "z.block.Q=4", "--quiet"},
                  {"error[tune.space]", "and ", " more."});
    check_refused({"tune", "matmul", "--target", "avx2", "--records", "/proc/none/tune.db", "--quiet", "--shape", "M=48", "N=64", "K=32"},
                  {"error[records.open]"});
    check_refused(tune(folder, {"--shape", "M=48"}), {"error[command.extents]", "dim N has no extent"});
    check_refused({"tune", "matmul", "--target", "arm64", "--shape", "M=4", "N=4", "K=4"},
                  {"error[command.target]", "To tune for it from here, name a command that runs its programs with --runner",
                   "and with --cc the C compiler for it, where it has another kind of processor."});
    check_refused({"tune", "matmul", "--target", "avx2", "--model", "/no/such/model.json", "--quiet", "--shape", "M=48", "N=64", "K=32"},
                  {"error[model.file]"});
    check_refused({"cost-model", "train", "-"}, {"error[command.arguments]", "--out"});
    check_refused(
        {"tune", "matmul", "--target", "avx2", "--quiet", "--shape", "M=20000", "N=100000", "K=3", "--out", folder.path().string()},
        {"error[tune.size]: matmul: expected at most 2 GB of arguments to tune with, got 8.0."});
    const std::string examples = (folder.path() / "rows.tsv").string();
    std::ofstream(examples) << "kept\n";
    check_refused({"cost-model", "train", examples, "--out", (folder.path() / "." / "rows.tsv").string()},
                  {"error[command.arguments]", "is the file of the examples"});
    CHECK(read_file(examples) == "kept\n");
    check_refused({"cost-model", "judge", examples, "--out", "m.json"},
                  {"error[command.arguments]: cost-model judge: --out is for train. Leave it out."});
    check_refused({"cost-model", "features", examples}, {"error[command.arguments]: cost-model features: expected no file, got '"});
    for (const char *fewest : {"-3", "0", "999999999999999999999"})
        check_refused({"records", "prune", "s.db", "--fewest", fewest}, {"error[command", "--fewest"});
    check_refused({"cost-model", "judge", "/no/such/file"}, {"error[examples.file]"});
    check_refused({"records", "list", "/no/such/file"}, {"error[records.open]"});
    check_refused({"records", "merge", (folder.path() / "a.db").string()}, {"error[command.arguments]", "name one or more"});
}

TEST_CASE("tune measures where temporary files have odd names") {
    const TemporaryFolder folder;
    const auto odd = folder.path() / "t m'p$x";
    std::filesystem::create_directories(odd);
    std::vector<std::string> words = tune(folder, {"--trials", "3", "--shape", "M=48", "N=64", "K=32", "--json"});
    words[0] = TESSERA_GENERATOR, words.insert(words.begin() + 1, "tune");
    const Outcome o = shell("TMPDIR=" + shell_word(odd.string()) + " " + shell_words(words));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    const nlohmann::json trials = nlohmann::json::parse(o.out)["trials"];
    CHECK(trials.size() == 3);
    for (const auto &trial : trials) CHECK((trial["verdict"] == "measured" || trial["verdict"] == "slow"));
    CHECK(std::filesystem::is_empty(odd));
}

TEST_CASE(
    "outputs of tune that would destroy one another, or an artifact that would extend itself, are refused before anything is measured") {
    namespace fs = std::filesystem;
    const TemporaryFolder folder;
    const std::vector<std::string> shape = {"--shape", "M=48", "N=64", "K=32"};
    const std::string out = (folder.path() / "out").string(), records = (folder.path() / "tune.db").string();
    auto refuse = [&](std::vector<std::string> more, const std::vector<std::string> &parts) {
        more.insert(more.end(), shape.begin(), shape.end());
        check_refused(tune(folder, more), parts);
        CHECK(!fs::exists(records));
    };
    const std::string own = ": expected a place of its own, got that of ", end = ", and one would destroy the other. Name another.";
    for (const char *suffix : {"", "-wal", "-shm", "-journal"})
        refuse({"--report", records + suffix},
               {"error[output.place]: --records '" + records + "'" + own + "--report '" + records + suffix + "'" + end});
    fs::create_symlink("tune.db", folder.path() / "page.html");
    refuse({"--report", (folder.path() / "page.html").string()}, {"error[output.place]"});
    const std::string artifact = out + "/matmul/f32/avx2/M48_N64_K32.json";
    refuse({"--report", out + "/./matmul/f32/../f32/avx2/M48_N64_K32.json"},
           {"error[output.place]: --report '", own + "the artifact '" + artifact + "'" + end});
    std::vector<std::string> words = tune(folder, shape);
    *std::find(words.begin(), words.end(), records) = artifact;
    check_refused(words, {"error[output.place]: --records '" + artifact + "'" + own + "the artifact '" + artifact + "'" + end});
    CHECK(!fs::exists(artifact));

    fs::create_symlink("loop", folder.path() / "loop");
    const std::string loop = (folder.path() / "loop").string();
    refuse({"--report", loop},
           {"error[output.write]: --report '" + loop + "': expected a file to write; Too many levels of symbolic links. Name another."});
    words = tune(folder, shape);
    *std::find(words.begin(), words.end(), out) = loop;
    check_refused(words, {"error[output.folder]: folder '" + loop +
                          "/matmul/f32/avx2': expected one to write to; Too many levels of symbolic links."});
    check_refused({"tune", "--all", "--quiet", "--out", loop}, {"error[tune.all]"}, 2, Registry());
    check_refused({"generate", "matmul", "--target", "avx2", "--quiet", "--out", loop}, {"error[output.folder]: folder '" + loop + "'"});

    const fs::path dir = folder.path() / "out/matmul";
    fs::create_directories(dir);
    write_file(dir / "old.json", Schedule("matmul/old").stage("y", StageKnobs().vector({{"N", 4}})).text());
    write_file(dir / "young.json", Schedule("matmul/young").extends("matmul/old").text());
    for (const auto &[name, whose] : {std::pair("matmul/young", "the schedule to beat, 'matmul/young'"),
                                      std::pair("matmul/old", "an ancestor of the schedule to beat, 'matmul/young'")}) {
        words = tune(folder, {"--schedule-dir", out, "--name", name});
        *std::find(words.begin(), words.end(), (folder.path() / "slow.json").string()) = "matmul/young";
        words.insert(words.end(), shape.begin(), shape.end());
        check_refused(words, {std::string("error[schedule.cycle]: tune: artifact '") + name +
                              "': expected a name that differs from those of the schedules it extends, got that of " + whose +
                              ". Give it another with --name, or beat another with --schedule."});
        CHECK(!fs::exists(records));
    }
}

TEST_CASE("tune says with what it goes on, and takes another content of a target file for another target") {
    const TemporaryFolder folder;
    Target target = target_named("avx2");
    const auto file = folder.path() / "machine.json";
    write_file(file, target_text(target));
    const auto resumed = [&](const std::vector<std::string> &more) {
        std::vector<std::string> words = tune(folder, {"--resume", "--target", file.string(), "--shape", "M=48", "N=64", "K=32"});
        words.insert(words.end(), more.begin(), more.end());
        words.erase(std::find(words.begin(), words.end(), "--quiet"));
        words.erase(std::find(words.begin(), words.end(), "--target"), std::find(words.begin(), words.end(), "--target") + 2);
        const Outcome o = generator(words);
        CHECK(o.code == 0);
        return o;
    };
    CHECK_THAT(
        resumed({"--trials", "3"}).err,
        Catch::Contains(
            "note: matmul/f32/avx2 M48_N64_K32: nothing to resume: the records have no campaign of this task; a new campaign begins\n"));
    const Outcome fewer = resumed({"--trials", "1"});
    CHECK_THAT(fewer.err, Catch::Contains("M48_N64_K32: goes on with 3 recorded trials, and the seeds that it began with\n"));
    CHECK_THAT(fewer.out, Catch::Contains(": 3 trials in"));
    CHECK_THAT(resumed({"--trials", "1", "--seed", "5"}).err,
               Catch::Contains("the recorded campaign of this task differs in seed; a new campaign begins\n"));
    target.l3_bytes *= 2;
    write_file(file, target_text(target));
    CHECK_THAT(resumed({"--trials", "1"}).err,
               Catch::Contains("the recorded campaign of this task differs in target_file; a new campaign begins\n"));
    CHECK_THAT(resumed({"--trials", "1", "--quiet"}).err, !Catch::Contains("recorded"));
}

TEST_CASE("what a runner and a file system say in other than UTF-8 is no end of tune") {
    const TemporaryFolder folder;
    const auto runner = [&](const std::string &name, const std::string &otherwise) {
        write_file(folder.path() / name, "#!/bin/sh\ncase \"$1\" in */candidate0|*/base) exec \"$1\";; esac\n" + otherwise + "\n");
        std::filesystem::permissions(folder.path() / name, std::filesystem::perms::owner_all);
        return (folder.path() / name).string();
    };
    const auto messages = [&](const std::vector<std::string> &more) {
        std::vector<std::string> words = tune(folder, {"--trials", "4", "--shape", "M=48", "N=64", "K=32", "--json"});
        for (size_t i = 0; i < more.size(); i += 2) {
            if (const auto given = std::find(words.begin(), words.end(), more[i]); given != words.end()) words.erase(given, given + 2);
            words.insert(words.end(), {more[i], more[i + 1]});
        }
        const Outcome o = generator(words);
        INFO(o.err);
        REQUIRE(o.code == 0);
        const nlohmann::json result = nlohmann::json::parse(o.out);
        std::string all;
        for (const auto &trial : result["trials"]) all += trial["message"].get<std::string>() + "\n";
        return all;
    };
    CHECK_THAT(messages({"--runner", runner("fails", "printf 'na\\357f \\351\\377' >&2; exit 3")}),
               Catch::Contains("it ended with code 3: na\\xeff \\xe9\\xff\n"));
    CHECK_THAT(messages({"--runner", runner("says", "printf '%079d\\303\\251\\n' 0; exec cat > /dev/null")}),
               Catch::Contains("it answered '" + std::string(79, '0') + "\\xc3'"));
    CHECK(messages({"--runner", "env \xff=1"}) == "\n\n\n\n");
    CHECK(messages({"--out", (folder.path() / "o\xff").string(), "--records", (folder.path() / "r\xff").string()}) == "\n\n\n\n");
    CHECK(std::filesystem::exists(folder.path() / "o\xff/matmul/f32/avx2/M48_N64_K32.json"));
}

TEST_CASE("a campaign that is told to end leaves nothing behind") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() / "tmp");
    std::string command = "TMPDIR=" + (folder.path() / "tmp").string() + " " + TESSERA_GENERATOR;
    for (const std::string &word : tune(folder, {"--trials", "1000", "--budget-s", "100", "--shape", "M=48", "N=64", "K=32"}))
        command += " " + word;
    const auto until = [&](int trials) {
        return " & until [ \"$(" TESSERA_GENERATOR " records list " + (folder.path() / "tune.db").string() +
               " 2> /dev/null | awk 'NR > 1 { n = $3 } END { print n + 0 }')\" -ge " + std::to_string(trials) +
               " ] || ! kill -0 $! 2> /dev/null; do sleep 0.1; done; kill -TERM $!; ";
    };
    const Outcome once = shell(command + until(4) + "wait $!");
    INFO(once.out << once.err);
    CHECK(once.code == 0);
    CHECK_THAT(once.out, Catch::Contains("trials in ") && Catch::Contains("\n  stopped after ") &&
                             Catch::Contains(" of 1000 trials; --resume goes on from here\n"));
    CHECK(std::filesystem::is_empty(folder.path() / "tmp"));
    const Outcome twice = shell(command + " --resume" + until(8) + "sleep 0.3; kill -TERM $!; wait $!");
    INFO(twice.out << twice.err);
    CHECK(twice.code == 0);
    CHECK_THAT(twice.out,
               Catch::Contains("stopped before the best was measured again; no artifact is written, and --resume goes on from here"));
    const Outcome json = shell(command + " --resume --json" + until(12) + "wait $!");
    CHECK(json.code == 0);
    CHECK(nlohmann::json::parse(json.out)["stopped"] == true);
    CHECK(std::filesystem::is_empty(folder.path() / "tmp"));
}

TEST_CASE("who tells a campaign to end hears what it does meanwhile, and a second time what is kept") {
    const TemporaryFolder folder;
    const std::string records = (folder.path() / "tune.db").string(),
                      place = (folder.path() / "out/matmul/f32/avx2/M48_N64_K32.json").string();
    std::string command = TESSERA_GENERATOR;
    for (const std::string &word : tune(folder, {"--trials", "1000", "--budget-s", "100", "--shape", "M=48", "N=64", "K=32"}))
        if (word != "--quiet") command += " " + word;
    const Outcome o = shell(command + " & until [ \"$(" TESSERA_GENERATOR " records list " + records +
                            " 2> /dev/null | awk 'NR > 1 { n = $3 } END { print n + 0 }')\" -ge 4 ] || ! kill -0 $! 2> /dev/null; do sleep "
                            "0.1; done; kill -TERM $!; sleep 0.3; kill -TERM $!; wait $!");
    INFO(o.out << o.err);
    CHECK(o.code == 0);
    CHECK_THAT(o.err, Catch::Contains("stopping: trial ") &&
                          Catch::Contains(" is dropped, the best so far is measured again, then " + place +
                                          " is written if it is faster; press Ctrl-C again to stop at once\n") &&
                          Catch::Contains("stopping at once: nothing is written; what was measured is kept in " + records +
                                          ", and --resume goes on from there\n"));
    CHECK(!std::filesystem::exists(place));
}

TEST_CASE("a shape that an ended campaign did not reach keeps the base") {
    const TemporaryFolder folder;
    std::string command = TESSERA_GENERATOR;
    for (const std::string &word : tune(folder, {"--trials", "2000", "--shape", "M=64", "M=512", "N=64", "K=32"})) command += " " + word;
    const Outcome o = shell(command + " & until [ \"$(" TESSERA_GENERATOR " records list " + (folder.path() / "tune.db").string() +
                            " 2> /dev/null | awk 'NR > 1 { n = $3 } END { print n + 0 }')\" -ge 8 ] || ! kill -0 $! 2> /dev/null; do sleep "
                            "0.1; done; kill -TERM $!; wait $!");
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("not reached; keeps the base") && Catch::Contains("wrote ") && Catch::Contains("\nstopped after ") &&
                          Catch::Contains(" of 2000 trials; --resume"));
    const auto file = folder.path() / "out/matmul/f32/avx2/M64-512_N64_K32_partly_fixed.json";
    REQUIRE(std::filesystem::exists(file));
    const nlohmann::json document = read_schedule(file).document(), measured = document["measured"];
    CHECK(document["stages"] == slow_matmul().document()["stages"]);
    REQUIRE(document["variants"].size() == 1);
    CHECK(document["variants"][0]["when"] == nlohmann::json::array({"M <= 181"}));
    REQUIRE(measured["shapes"].size() == 1);
    CHECK(measured["shapes"][0]["extents"] == nlohmann::json::object({{"M", 64}}));
    CHECK(measured["task"]["extents"] == nlohmann::json::object({{"M", 64}}));
    CHECK(measured["unreached"] == nlohmann::json::array({{{"M", 512}}}));
    CHECK(generator({"check", (folder.path() / "out").string()}).code == 0);
}

TEST_CASE("a shape that cannot be tuned keeps the base, and the others are tuned all the same") {
    const TemporaryFolder folder;
    // A runner that fails on the second shape: each has a folder of its own for its programs.
    const auto seen = folder.path() / "seen", runner = folder.path() / "runner";
    write_file(runner, "here=$(dirname \"$1\"); grep -q \"$here\" " + seen.string() + " 2> /dev/null || echo \"$here\" >> " +
                           seen.string() + "\n[ \"$(sed -n 2p " + seen.string() + ")\" = \"$here\" ] && exit 3\nexec \"$1\"\n");
    std::vector<std::string> words =
        tune(folder, {"--trials", "12", "--shape", "M=8", "M=16", "M=64", "N=64", "K=32", "--runner", "sh " + runner.string()});
    const Outcome o = generator(words);
    INFO(o.out << o.err);
    CHECK(o.code == 1);
    CHECK_THAT(o.out, Catch::Contains("keeps the base: error[tune.runner]: matmul: expected a runner that runs the schedule to beat") &&
                          Catch::Contains("\nwrote ") && !Catch::Contains("not reached") && !Catch::Contains("stopped"));
    const nlohmann::json measured =
        read_schedule(folder.path() / "out/matmul/f32/avx2/M8-16-64_N64_K32_partly_fixed.json").document()["measured"];
    CHECK(measured["shapes"].size() == 2);
    CHECK(measured["unreached"] == nlohmann::json::array({{{"M", 16}}}));
    // What the first shape was given is recorded: the next folder is again that of the second.
    words.push_back("--resume"), words.push_back("--json");
    write_file(seen, "another\n");
    const Outcome again = generator(words);
    CHECK(again.code == 1);
    const nlohmann::json left_out = nlohmann::json::parse(again.out);
    CHECK(left_out["stopped"] == false);
    CHECK_THAT(left_out["shapes"][1].value("message", ""), Catch::Contains("error[tune.runner]"));
    CHECK(left_out["shapes"][2].contains("trials"));
    write_file(seen, "another\nand another\n");
    const Outcome repaired = generator(words);
    CHECK(repaired.code == 0);
    for (const nlohmann::json &one : nlohmann::json::parse(repaired.out)["shapes"]) CHECK(one.contains("trials"));
}

TEST_CASE("different sets of shapes have artifacts of different names") {
    const Registry registry = sample_registry();
    const auto name = [&](const std::vector<std::string> &shape) {
        TuneOptions options;
        options.kernel.algorithm = "matmul", options.kernel.target = "avx2", options.kernel.shape = shape, options.dry_run = true;
        std::vector<Extents> extents;
        std::unique_ptr<TuneRun> run;
        for (const TuneOptions &one : options_by_shape(options)) {
            run = prepare_run(registry, one);
            extents.push_back(run->extents);
        }
        return artifact_name(options, run->prepared, extents);
    };
    const std::string one = name({"M=1", "M=2", "M=2", "N=8", "N=8", "N=16", "K=32"}),
                      other = name({"M=1", "M=1", "M=2", "N=8", "N=16", "N=16", "K=32"});
    CHECK_THAT(one, Catch::StartsWith("matmul/f32/avx2/M1-2_N8-16_K32_"));
    CHECK_THAT(other, Catch::StartsWith("matmul/f32/avx2/M1-2_N8-16_K32_"));
    CHECK(one != other);
    CHECK(name({"M=1", "M=2", "N=8", "N=16", "K=32"}) == "matmul/f32/avx2/M1-2_N8-16_K32_partly_fixed");
    CHECK(name({"M=1", "M=2", "M=4", "N=8", "K=32"}) == "matmul/f32/avx2/M1-2-4_N8_K32_partly_fixed");
    // The artifact says which shapes they are where there are many.
    const std::string many = name({"M=1", "M=2", "M=12", "N=1024", "N=861", "N=509", "K=1024", "K=543", "K=700"});
    CHECK_THAT(many, Catch::StartsWith("matmul/f32/avx2/3shapes_") && Catch::EndsWith("_dynamic"));
    CHECK(many != name({"M=1", "M=2", "M=12", "N=1024", "N=861", "N=509", "K=1024", "K=543", "K=701"}));
}

}  // namespace tessera::test_tune
