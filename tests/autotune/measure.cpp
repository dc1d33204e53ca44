#include "autotune/measure.h"

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "autotune/search_space.h"
#include "compiler/lower.h"
#include "compiler/split.h"
#include "tests/bench/shell.h"
#include "tests/schedules/words.h"

using namespace tessera;
using namespace tessera::test;

static const DimExtents shape = {{"M", 60}, {"N", 96}, {"K", 64}};

static Subject subject(const std::string &target) { return {bind_extents(library::matmul({}), shape), target_named(target), {}, 1, 5}; }

static TileProgram program(const Subject &s, int64_t m, int64_t n) {
    Knobs k;
    k.micro = {{"M", m}, {"N", n}}, k.vector = {{"N", s.target.vector_bytes / 4}};
    return lower(s.algorithm, {{"y", k}}, s.target);
}

static MeasureOptions quick() {
    MeasureOptions o;
    o.seconds = 0.05, o.run_limit_s = 10;
    return o;
}

static std::vector<Measurement> measured(const Subject &s, const MeasureOptions &options, const std::vector<TileProgram> &programs) {
    std::vector<Measurement> all(programs.size());
    Measurer(s, options, program(s, 1, s.target.vector_bytes / 4)).measure(programs, 0, [&](size_t i, const Measurement &m) { all[i] = m; });
    return all;
}

TEST_CASE("a candidate is timed beside the base, and is right") {
    const Subject s = subject("x86-64");
    const auto all = measured(s, quick(), {lower(s.algorithm, {}, s.target), program(s, 4, 8)});
    for (const Measurement &m : all) {
        INFO(m.message);
        CHECK(m.verdict == Verdict::measured);
        CHECK(m.seconds > 0);
        CHECK(m.lower <= m.ratio);
        CHECK(m.ratio <= m.upper);
        CHECK(m.code_bytes > 1000);
        CHECK(m.compile_s > 0);
    }
    CHECK(all[1].ratio > all[0].ratio);
}

TEST_CASE("programs are measured by two runners side by side") {
    const Subject s = subject("x86-64");
    MeasureOptions options = quick();
    options.runners = {"env ONE=1", "nice -n 1"}, options.jobs = 2;
    for (const Measurement &m : measured(s, options, {program(s, 1, 4), program(s, 2, 4), program(s, 4, 4), program(s, 4, 8)})) CHECK(m.verdict == Verdict::measured);
}

TEST_CASE("a runner that crashes, hangs, lies or says nothing never wins and never stops the measuring") {
    const Subject s = subject("x86-64");
    const TemporaryFolder folder;
    auto verdict = [&](const std::string &script) {
        write_file(folder.path() / "runner", "#!/bin/sh\n" + script + "\n");
        std::filesystem::permissions(folder.path() / "runner", std::filesystem::perms::owner_all);
        MeasureOptions options = quick();
        options.run_limit_s = 1, options.runners = {(folder.path() / "runner").string()};
        return measured(s, options, {program(s, 1, 4)})[0];
    };
    CHECK(verdict("exec \"$1\"").verdict == Verdict::measured);
    CHECK_THAT(verdict("kill -SEGV $$").message, Catch::Contains("signal 11"));
    CHECK_THAT(verdict("trap '' TERM; sleep 60").message, Catch::Contains("did not answer in time"));
    CHECK_THAT(verdict("cat > /dev/null; echo fast and sure").message, Catch::Contains("it"));
    CHECK_THAT(verdict("echo garbage; cat > /dev/null").message, Catch::Contains("it answered 'garbage'"));
    CHECK(verdict("exit 0").verdict == Verdict::crashed);
}

TEST_CASE("what a candidate computes wrongly is found") {
    const Subject s = subject("x86-64");
    const TemporaryFolder folder;
    write_file(folder.path() / "flip.py", R"(import subprocess, sys
program = subprocess.Popen([sys.argv[1]], stdout=subprocess.PIPE)
while True:
    line = program.stdout.readline()
    if not line: break
    sys.stdout.buffer.write(line)
    if line.startswith(b"tensor "):
        data = bytearray(program.stdout.read(int(line.split()[2])))
        for i in range(0, len(data), 4): data[i] ^= 1
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
)");
    MeasureOptions options = quick();
    options.runners = {"python3 " + (folder.path() / "flip.py").string()};
    const Measurement m = measured(s, options, {program(s, 4, 8)})[0];
    CHECK(m.verdict == Verdict::wrong);
    CHECK_THAT(m.message, Catch::Contains("its tile program gives"));
}

TEST_CASE("a base that takes too long to compile, or whose compiler is missing, is the user's to mend") {
    const Subject s = subject("x86-64");
    MeasureOptions hasty = quick(), missing = quick();
    hasty.compile.seconds = 0.01, missing.cc = "no-such-compiler";
    check_words([&] { Measurer(s, hasty, program(s, 4, 8)); }, {"error[compile.limit]", "raise --compile-limit-s"});
    check_words([&] { Measurer(s, missing, program(s, 4, 8)); }, {"error[command.cc]", "no-such-compiler"});
}

TEST_CASE("a kernel for 64-bit ARM is measured under an emulator", "[.][arm64]") {
    if (std::string(TESSERA_ARM64_CC).ends_with("NOTFOUND") || std::string(TESSERA_ARM64_EMULATOR).ends_with("NOTFOUND")) {
        WARN("skipped: not installed: gcc-aarch64-linux-gnu, qemu-user");
        return;
    }
    const Subject s = subject("arm64");
    MeasureOptions options = quick();
    options.runners = {TESSERA_ARM64_EMULATOR}, options.cc = std::string(TESSERA_ARM64_CC) + " -static";
    for (const Measurement &m : measured(s, options, {program(s, 4, 8), program(s, 1, 4)})) {
        INFO(m.message);
        CHECK(m.verdict == Verdict::measured);
    }
}
