#include "generators/doctor/doctor.h"

#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "schedules/target/target.h"
#include "schedules/target/target_file.h"
#include "tests/generators/harness.h"
#include "tests/support/fake_path.h"

namespace tessera::test_doctor {

using namespace tessera::test;

TEST_CASE("doctor says what the machine is, and that it can generate for itself") {
    const Outcome outcome = generator({"doctor"});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    for (const std::string &line : {std::string("machine\n  processor       "), std::string("\n  caches          "),
                                    std::string("\n  features        "), "\n  target          " + target_named("host").name,
                                    std::string("\nneeded to generate, verify and time kernels for this machine\n  Halide          21."),
                                    std::string("\n  a kernel        right, in "), std::string("\nneeded for some things\n"),
                                    std::string("\n  CUDA devices    "), std::string("\n  OpenCL devices  ")})
        CHECK_THAT(outcome.out, Catch::Contains(line));
    CHECK_THAT(outcome.out, Catch::EndsWith("All that generating for this machine needs is here.\n"));
}

// Files are small while this lives, so that no kernel can be written.
class SmallFiles {
public:
    SmallFiles() {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit few{1024, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &few);
    }
    ~SmallFiles() { setrlimit(RLIMIT_FSIZE, &before_); }
    SmallFiles(const SmallFiles &) = delete;
    SmallFiles &operator=(const SmallFiles &) = delete;

private:
    rlimit before_{};
};

TEST_CASE("doctor says what is missing that some things need, and what to do") {
    FakePath path;
    path.add("clang", "echo 'clang version 17.0.1'");
    const Outcome outcome = generator({"doctor"});
    CHECK(outcome.code == 0);
    for (const std::string &line :
         {std::string("  cc              missing; for programs with kernels in them; tune, for GPUs and other machines. Install a C "
                      "compiler: Debian's gcc.\n"),
          "  clang           17.0.1, " + (path.folder() / "clang").string() + "; for a second opinion on generated C\n",
          std::string("  nvcc            missing; for compiling kernels for NVIDIA GPUs. Install the CUDA toolkit and add its bin folder "
                      "to the PATH.\n"),
          std::string("All that generating for this machine needs is here.\n")})
        CHECK_THAT(outcome.out, Catch::Contains(line));
}

TEST_CASE("doctor ends with 1 when something that generating here needs is missing") {
    const SmallFiles small;
    const Outcome outcome = generator({"doctor"});
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.out,
               Catch::Contains("  a kernel        missing; for everything: it is generated for this machine, loaded and run.") &&
                   Catch::EndsWith("Something that generating for this machine needs is missing.\n"));
}

TEST_CASE("doctor gives the same as JSON") {
    const FakePath path;
    const SmallFiles small;
    const Outcome outcome = generator({"doctor", "--json"});
    CHECK(outcome.code == 1);
    const auto all = nlohmann::json::parse(outcome.out);
    CHECK(all["format"] == "tessera-doctor");
    CHECK(all["complete"] == false);
    CHECK(all["target"] == target_named("host").name);
    CHECK(all["features"] == host_features());
    CHECK(all["machine"]["threads"] >= 1);
    for (const auto &check : all["checks"]) CHECK((check["found"].is_null() ? check["remedy"].is_string() : check["found"].is_string()));
    CHECK(all["checks"][1]["what"] == "cc");
    CHECK(all["checks"][1]["found"].is_null());
    CHECK(all["checks"][1]["required"] == false);
    CHECK(all["checks"][2]["what"] == "a kernel");
    CHECK(all["checks"][2]["found"].is_null());
    CHECK(all["checks"][2]["required"] == true);
}

TEST_CASE("doctor --calibrate writes a target file that is accepted wherever a target is") {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "machines/this.json").string();
    const Outcome outcome = generator({"doctor", "--calibrate", "--seconds", "0.02", "-o", file});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    for (const char *row : {"\npeak f32 ", "\npeak f64 ", "\nread l1 ", "\ncopy memory ", " Gop/s\n", " GB/s\n"})
        CHECK_THAT(outcome.out, Catch::Contains(row));
    CHECK(files_in(folder.path() / "machines") == "this.json");
    const Target target = read_target(file);
    CHECK(target.name == target_named("host").name);
    REQUIRE(target.measured);
    CHECK(target.measured->peaks.count("f32"));
    const Outcome by_file = generator({"show", "matmul", "--what", "tiles", "--quiet", "--target", file}),
                  by_name = generator({"show", "matmul", "--what", "tiles", "--quiet", "--target", target.name});
    CHECK(by_file.code == 0);
    CHECK(by_file.out == by_name.out);
}

TEST_CASE("doctor's errors") {
    check_refused({"doctor", "-o", "x.json"}, {"error[command.arguments]: tessera-generator doctor: --out requires --calibrate"});
    check_refused({"doctor", "--calibrate", "--json"}, {"error[command.arguments]: tessera-generator doctor: --"});
    const TemporaryFolder folder;
    for (const std::string &out : {folder.path().string(), folder.path().string() + "/", folder.path().string() + "/no/"}) {
        const Outcome refused = generator({"doctor", "--calibrate", "--out", out});
        CHECK(refused.code == 2);
        CHECK(refused.err == "error[output.write]: --out '" + out +
                                 "': expected a file to write, got a folder. Name a file in it.\n");  // nothing was measured
    }
    check_refused({"doctor", "--calibrate", "--target", "avx51"}, {"error[target.unknown]"});
    check_refused({"show", "matmul", "--what", "tiles", "--target", "none.json"},
                  {"error[target.file]: target file 'none.json': expected a regular file; opening it failed: No such file or directory."});
}

}  // namespace tessera::test_doctor
