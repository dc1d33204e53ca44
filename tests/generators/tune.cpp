#include "generators/tune.h"

#include <nlohmann/json.hpp>

#include "schedules/merge.h"
#include "tests/generators/harness.h"

using namespace tessera;
using namespace tessera::test;

static std::vector<std::string> tune(const TemporaryFolder &folder, const std::vector<std::string> &more) {
    const auto slow = folder.path() / "slow.json";
    write_file(slow, Schedule("matmul/slow").stage("y", StageKnobs().vector({{"N", 4}})).text());
    std::vector<std::string> all = {"tune", "matmul", "--target", "x86-64", "--schedule", slow.string(), "--quiet", "--records", (folder.path() / "tune.db").string(), "--out", (folder.path() / "out").string(),
                                    "--measure-s", "0.03", "--population", "24", "--batch", "3", "--model", "none"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

TEST_CASE("tune writes an artifact that is faster, and generate takes it") {
    const TemporaryFolder folder;
    const auto page = folder.path() / "pages/out.html";
    const Outcome o = generator(tune(folder, {"--trials", "6", "--report", page.string(), "--shape", "M=48", "N=64", "K=32"}));
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("matmul/f32/x86-64 M48_N64_K32: 6 trials"));
    CHECK_THAT(o.out, Catch::Contains("what each change is worth"));
    const auto file = folder.path() / "out/matmul/f32/x86-64/M48_N64_K32.json";
    REQUIRE(std::filesystem::exists(file));
    const Schedule tuned = read_schedule(file);
    CHECK(tuned.parent_name().empty());  // one stage's knobs differ in all but the lanes
    CHECK(tuned.document()["measured"]["trials"] == 6);
    CHECK(tuned.document()["algorithm"]["name"] == "matmul");
    CHECK_THAT(read_file(page), Catch::Contains("/stages/y/micro") && Catch::Contains("M48_N64_K32.json") && Catch::Contains("circle class=\"winner\""));
    CHECK(generator({"show", "matmul", "--target", "x86-64", "--schedule", file.string(), "--shape", "M=48", "N=64", "K=32", "--what", "tiles"}).code == 0);
    CHECK(generator({"generate", "matmul", "--target", "x86-64", "--schedule", file.string(), "--out", (folder.path() / "kernel").string()}).code == 0);
    CHECK_THAT(generator({"records", "list", (folder.path() / "tune.db").string()}).out, Catch::Contains("matmul/f32/x86-64 M48_N64_K32"));

    // What was measured trains a model, which the next campaign begins with.
    const std::string rows = (folder.path() / "rows.tsv").string(), model = (folder.path() / "model.json").string();
    write_file(rows, generator({"records", "export", (folder.path() / "tune.db").string()}).out);
    CHECK_THAT(generator({"cost-model", "train", rows, "--out", model}).out, Catch::Contains("learnt from 6 candidates of 1 tasks"));
    const Outcome judged = generator({"cost-model", "judge", rows});
    CHECK_THAT(judged.out, Catch::Contains("rank correlation") && Catch::Contains("draft") && Catch::Contains("no model was trained: that takes examples of a second task"));
    CHECK_THAT(judged.out, !Catch::Contains(" trained "));
    std::vector<std::string> again = tune(folder, {"--trials", "3", "--shape", "M=48", "N=64", "K=32", "--json"});
    const Outcome json = generator(again);
    CHECK(nlohmann::json::parse(json.out)["trials"].size() == 3);
    const size_t at = static_cast<size_t>(std::find(again.begin(), again.end(), "--model") - again.begin());
    again[at + 1] = model;
    CHECK(nlohmann::json::parse(generator(again).out)["trials"].size() == 3);
}

TEST_CASE("tune searches a schedule for OpenCL on the device that there is") {
    if (std::string(TESSERA_OPENCL_LIBRARY).empty()) {
        WARN("built without OpenCL (ocl-icd-opencl-dev, pocl-opencl-icd): not run");
        return;
    }
    setenv("POCL_DEVICES", "basic", 0);  // PoCL's default device gives wrong results where shared memory is filled inside a loop
    const TemporaryFolder folder;
    const Outcome o = generator({"tune", "matmul", "--target", "opencl", "--schedule", "none", "--shape", "M=32", "N=32", "K=16", "--trials", "3", "--batch", "3",
                                 "--population", "24", "--measure-s", "0.03", "--quiet", "--records", (folder.path() / "tune.db").string(), "--out", (folder.path() / "out").string()});
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("matmul/f32/opencl M32_N32_K16: 3 trials") && !Catch::Contains("wrong") && !Catch::Contains("crashed"));
    const auto file = folder.path() / "out/matmul/f32/opencl/M32_N32_K16.json";
    if (std::filesystem::exists(file))
        CHECK(generator({"generate", "matmul", "--target", "opencl", "--schedule", file.string(), "--shape", "M=32", "N=32", "K=16", "--out", (folder.path() / "kernel").string()}).code == 0);
}

TEST_CASE("of a GPU's space tune says what it can, and what it cannot") {
    const Outcome o = generator({"tune", "matmul", "--target", "cuda-sm80", "--quiet", "--shape", "M=256", "N=256", "K=256", "--dry-run"});
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("y.block.M") && Catch::Contains("y.pack.w") && Catch::Contains("y.k.K") && Catch::Contains("decisions; about 10^"));
    check_refused({"tune", "matmul", "--target", "cuda-sm80", "--quiet", "--shape", "M=8", "N=8", "K=8"},
                  {"error[tune.gpu]: target 'cuda-sm80': expected a target whose kernels tune can run, got one for CUDA. --dry-run lists its space; --target opencl measures on the same device, where its driver has OpenCL."});
    check_refused({"tune", "matmul", "--target", "opencl", "--quiet", "--shape", "M=8", "N=8", "K=8", "--deterministic"},
                  {"error[command.arguments]: tune: target 'opencl': --deterministic chooses by the cost model, which does not know a GPU's blocks. Leave it out, so that candidates are measured."});
    check_refused({"tune", "matmul", "--target", "opencl", "--quiet", "--shape", "M=8", "N=8", "K=8", "--threads", "2"},
                  {"error[command.arguments]: tune: target 'opencl': --threads is of processors; a GPU's threads come from the schedule. Leave it out."});
    const TemporaryFolder none;
    const Outcome alone = shell("OCL_ICD_VENDORS='" + none.path().string() + "' '" TESSERA_GENERATOR "' tune matmul --target opencl --quiet --shape M=8 N=8 K=8");
    CHECK(alone.code == 2);
    CHECK_THAT(alone.err, Catch::Contains("error[tune.device]: target 'opencl': expected an OpenCL device to measure on, got none") &&
                              Catch::Contains("Install a device's driver (Debian's pocl-opencl-icd has one for the CPU), or name a --runner on a machine that has one."));
}

TEST_CASE("tune makes code or workspace small where that is the metric, under a name of its own") {
    const TemporaryFolder folder;
    const auto packed = folder.path() / "packed.json";
    write_file(packed, Schedule("matmul/packed").stage("y", StageKnobs().micro({{"M", 8}, {"N", 8}}).vector({{"N", 4}}).pack("w", "root")).text());
    for (const std::string metric : {"code-size", "workspace"}) {
        std::vector<std::string> words = tune(folder, {"--trials", "10", "--shape", "M=48", "N=64", "K=32", "--metric", metric, "--least-speed", "0.05"});
        *std::find(words.begin(), words.end(), (folder.path() / "slow.json").string()) = packed.string();
        const Outcome o = generator(words);
        INFO(o.out << o.err);
        REQUIRE(o.code == 0);
        CHECK_THAT(o.out, Catch::Contains(metric + "  ") && Catch::Contains(" times less "));
        const auto measured = read_schedule(folder.path() / ("out/matmul/f32/x86-64/M48_N64_K32_" + metric + ".json")).document()["measured"];
        CHECK(measured["metric"]["name"] == metric);
        CHECK(measured["metric"]["bytes"] < measured["metric"]["bytes_of_base"]);
    }
    // What is small is not what a kernel takes that wants to be fast.
    const Outcome o = generator({"show", "matmul", "--target", "x86-64", "--shape", "M=48", "N=64", "K=32", "--schedule-dir", (folder.path() / "out").string(), "--what", "tiles"});
    CHECK_THAT(o.err, !Catch::Contains("tuned for this shape"));
    check_refused(tune(folder, {"--metric", "size"}), {"error[command.arguments]", "--metric: expected latency or code-size or workspace, got 'size';"});
    check_refused(tune(folder, {"--metric", "1"}), {"--metric: expected latency or code-size or workspace, got '1';"});
    check_refused(tune(folder, {"--least-speed", "nan"}), {"--least-speed: expected a number in 0.01 ..= 10, got 'nan'"});
    check_refused(tune(folder, {"--least-speed", "0.5"}), {"error[command.arguments]: tune: --least-speed bounds the time where bytes are to be small"});
    check_refused(tune(folder, {"--trials", "0"}), {"--trials: expected an integer in 1 ..= 1000000, got '0'"});
    check_refused(tune(folder, {"--seed", "-1"}), {"--seed: expected an integer in 0 ..= 9223372036854775807, got '-1'"});
    check_refused(tune(folder, {"--dry-run", "--json"}), {"error[command.arguments]: tune: --dry-run lists the decisions as text only; leave out --json."});
    check_refused({"tune", "matmul", "--metric", "code-size", "--deterministic"}, {"error[command.arguments]: tune: --metric code-size is for one kernel that is measured; leave out --deterministic."});
}

TEST_CASE("a dry run lists the decisions of any algorithm's space") {
    const TemporaryFolder folder;
    const Outcome o = generator(tune(folder, {"--dry-run", "--shape", "M=48", "N=64", "K=32"}));
    CHECK(o.code == 0);
    CHECK_THAT(o.out, Catch::Contains("y.micro.N") && Catch::Contains("y.pack.w") && Catch::Contains("decisions; about 10^"));
    CHECK(!std::filesystem::exists(folder.path() / "tune.db"));
}

TEST_CASE("mistakes of tune's are refused with words") {
    const TemporaryFolder folder;
    const std::vector<std::string> shape = {"--shape", "M=48", "N=64", "K=32"};
    auto refuse = [&](std::vector<std::string> more, const std::vector<std::string> &parts) {
        more.insert(more.end(), shape.begin(), shape.end());
        check_refused(tune(folder, more), parts);
    };
    refuse({"--space", "y.micro.Q=4"}, {"error[tune.space]", "no decision has that answer", "Did you mean 'y.micro."});
    for (const char *seconds : {"inf", "nan", "0", "soon"}) refuse({"--measure-s", seconds}, {"error[command.arguments]", "expected seconds, in 0.000001 ..= 1e9, got '" + std::string(seconds) + "'"});
    refuse({"--report", "/proc/none/out.html"}, {"error[output.folder]", "/proc/none"});
    refuse({"--report", folder.path().string()}, {"error[output.write]: --report '" + folder.path().string() + "': expected a file to write, got a folder. Name a file in it."});
    refuse({"--cc", ""}, {"error[command.cc]: --cc '': expected the name of a C compiler"});
    check_refused(tune(folder, {"--extents", "M=x"}), {"error[command.shape]: --extents 'M=x': expected <dim>=<extent>", "go before --extents"});
    check_refused(tune(folder, {"--extents", "M=4", "M=5"}), {"error[command.shape]: --extents 'M=5': dim M is given twice"});
    check_refused({"records", "prune", (folder.path() / "none.db").string()}, {"error[records.open]", "none.db'"});
    CHECK(!std::filesystem::exists(folder.path() / "none.db"));
    refuse({"--space", "nonsense"}, {"error[tune.space]", "expected <decision>=<value>"});
    check_refused({"tune", "layernorm", "--target", "avx2", "--shape", "M=64", "N=64", "--space", "z.block.Q=4", "--quiet"}, {"error[tune.space]", "and ", " more."});
    check_refused({"tune", "matmul", "--target", "x86-64", "--records", "/proc/none/tune.db", "--quiet", "--shape", "M=48", "N=64", "K=32"}, {"error[records.open]"});
    check_refused(tune(folder, {"--shape", "M=48"}), {"error[command.extents]", "dim N has no extent"});
    check_refused({"tune", "matmul", "--target", "arm64", "--shape", "M=4", "N=4", "K=4"}, {"error[command.target]", "To tune for it from here, name a command that runs its programs with --runner", "with --cc."});
    check_refused({"tune", "matmul", "--target", "x86-64", "--model", "/no/such/model.json", "--quiet", "--shape", "M=48", "N=64", "K=32"}, {"error[model.file]"});
    check_refused({"cost-model", "train", "-"}, {"error[command.arguments]", "--out"});
    check_refused({"cost-model", "judge", "/no/such/file"}, {"error[examples.file]"});
    check_refused({"records", "list", "/no/such/file"}, {"error[records.open]"});
    check_refused({"records", "merge", (folder.path() / "a.db").string()}, {"error[command.arguments]", "name one or more"});
}

TEST_CASE("a campaign that is told to end leaves nothing behind") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() / "tmp");
    std::string command = "TMPDIR=" + (folder.path() / "tmp").string() + " " + TESSERA_GENERATOR;
    for (const std::string &word : tune(folder, {"--trials", "1000", "--budget-s", "100", "--shape", "M=48", "N=64", "K=32"})) command += " " + word;
    const auto until = [&](int trials) {
        return " & until [ \"$(" TESSERA_GENERATOR " records list " + (folder.path() / "tune.db").string() + " 2> /dev/null | awk 'NR > 1 { n = $3 } END { print n + 0 }')\" -ge " + std::to_string(trials) +
               " ] || ! kill -0 $! 2> /dev/null; do sleep 0.1; done; kill -TERM $!; ";
    };
    const Outcome once = shell(command + until(4) + "wait $!");
    INFO(once.out << once.err);
    CHECK(once.code == 0);
    CHECK_THAT(once.out, Catch::Contains("trials in "));
    CHECK(std::filesystem::is_empty(folder.path() / "tmp"));
    const Outcome twice = shell(command + " --resume" + until(8) + "sleep 0.3; kill -TERM $!; wait $!");
    INFO(twice.out << twice.err);
    CHECK(twice.code == 0);
    CHECK_THAT(twice.out, Catch::Contains("stopped before the best was measured again; no artifact is written, and --resume goes on from here"));
    CHECK(std::filesystem::is_empty(folder.path() / "tmp"));
}
