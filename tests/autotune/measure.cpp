#include "autotune/measure/measure.h"

#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "algorithms/library/library.h"
#include "autotune/measure/worker_client.h"
#include "autotune/space/search_space.h"
#include "compiler/lower/lower.h"
#include "compiler/rewrite/split.h"
#include "support/files/output_folder.h"
#include "tests/support/shell.h"
#include "tests/support/words.h"

namespace tessera::test_measure {

using namespace tessera::test;

static const Extents shape = {{"M", 60}, {"N", 96}, {"K", 64}};

static MeasurementTask measurement_task(const std::string &target) {
    return {bind_extents(library::matmul({}), shape), target_named(target), {}, 1, 5};
}

static TileProgram program(const MeasurementTask &s, int64_t m, int64_t n) {
    Knobs k;
    k.micro = {{"M", m}, {"N", n}}, k.vector = {{"N", s.target.vector_bytes / 4}};
    return lower(s.algorithm, {{"y", k}}, s.target);
}

static MeasureOptions quick() {
    MeasureOptions o;
    o.seconds = 0.05, o.run_limit_s = 10;
    return o;
}

static std::vector<Measurement> measured(const MeasurementTask &s, const MeasureOptions &options,
                                         const std::vector<TileProgram> &programs) {
    std::vector<Measurement> all(programs.size());
    Measurer(s, options, program(s, 1, s.target.vector_bytes / 4)).measure(programs, 0, [&](size_t i, const Measurement &m) {
        all[i] = m;
    });
    return all;
}

TEST_CASE("a candidate is timed beside the base, and is right") {
    const MeasurementTask s = measurement_task("x86-64");
    const auto all = measured(s, quick(), {lower(s.algorithm, {}, s.target), program(s, 4, 8)});
    for (const Measurement &m : all) {
        INFO(m.message);
        CHECK(m.verdict == Verdict::measured);
        CHECK(m.seconds > 0);
        CHECK(m.lower <= m.ratio);
        CHECK(m.ratio <= m.upper);
        CHECK(m.code_bytes > 200);
        CHECK(m.code_bytes < 5000);
        CHECK(m.compile_s > 0);
    }
}

TEST_CASE("programs are measured by two runners side by side") {
    const MeasurementTask s = measurement_task("x86-64");
    MeasureOptions options = quick();
    options.runners = {"env ONE=1", "nice -n 1"}, options.jobs = 2;
    for (const Measurement &m : measured(s, options, {program(s, 1, 4), program(s, 2, 4), program(s, 4, 4), program(s, 4, 8)}))
        CHECK(m.verdict == Verdict::measured);
}

// A runner that is a script, which finds the program in $1.
static std::string script(const TemporaryFolder &folder, const std::string &name, const std::string &text) {
    const auto file = folder.path() / name;
    write_file(file, "#!" + text + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
}

TEST_CASE("a candidate's program has the same bytes wherever it stands in a batch") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    const auto sums = folder.path() / "sums";
    MeasureOptions options = quick();
    options.runners = {script(folder, "hash", "/bin/sh\nsha256sum <\"$1\" >>'" + sums.string() + "'\nexec \"$1\"")};
    const TileProgram same = program(s, 2, 4);
    for (const Measurement &m : measured(s, options, {program(s, 4, 8), same, same, same})) CHECK(m.verdict == Verdict::measured);
    std::map<std::string, int> times;
    std::ifstream stream(sums);
    for (std::string sum; std::getline(stream, sum);) times[sum]++;
    CHECK(times.size() == 2);
}

TEST_CASE("a candidate that crashes, hangs, lies or says nothing never wins and never stops the measuring") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    auto verdict = [&](const std::string &text) {
        MeasureOptions options = quick();
        options.run_limit_s = 1,
        options.runners = {script(folder, "runner", "/bin/sh\ncase \"$1\" in */base) exec \"$1\";; esac\n" + text)};
        return measured(s, options, {program(s, 1, 4)})[0];
    };
    CHECK(verdict("exec \"$1\"").verdict == Verdict::measured);
    CHECK_THAT(verdict("kill -SEGV $$").message, Catch::Contains("signal 11"));
    CHECK_THAT(verdict("trap '' TERM; sleep 60").message, Catch::Contains("did not answer in time"));
    CHECK_THAT(verdict("cat > /dev/null; echo fast and sure").message, Catch::Contains("it"));
    CHECK_THAT(verdict("echo garbage; cat > /dev/null").message, Catch::Contains("it answered 'garbage' to 'protocol 3'"));
    CHECK_THAT(verdict("echo protocol 1; cat > /dev/null").message, Catch::Contains("it answered 'protocol 1' to 'protocol 3'"));
    CHECK(verdict("exit 0").verdict == Verdict::crashed);
}

TEST_CASE("a candidate that is too slow to be timed is slow, and did not crash") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.run_limit_s = 1;
    for (const char *slowly : {"/bin/sh\ncase \"$1\" in */base) exec \"$1\";; esac\nsleep 60",
                               "/bin/sh\ncase \"$1\" in */base) exec \"$1\";; esac\nkill -ALRM $$"}) {
        options.runners = {script(folder, "runner", slowly)};
        const Measurement m = measured(s, options, {program(s, 1, 4)})[0];
        CHECK(m.verdict == Verdict::timed_out);
        CHECK(name_of(m.verdict) == std::string("timed out"));
        CHECK_THAT(m.message, Catch::StartsWith("it did not answer in time") && Catch::EndsWith("; --run-limit-s gives it 1 s"));
    }
}

// Passes on what a program says, line by line, with `change(line, data)` applied to it where `when` holds. `data` is a part of a result.
static std::string proxy(const TemporaryFolder &folder, const std::string &name, const std::string &when, const std::string &change) {
    return script(folder, name,
                  "/usr/bin/env python3\n"
                  R"(import os, subprocess, sys
here = os.path.dirname(sys.argv[0])
program = subprocess.Popen([sys.argv[1]], stdout=subprocess.PIPE)
while True:
    line = program.stdout.readline()
    if not line: break
    data = bytearray(program.stdout.read(int(line.split()[1])) if line.startswith(b"part ") else b"")
    if )" + when + ":\n        " +
                      change + R"(
    sys.stdout.buffer.write(line + data)
    sys.stdout.buffer.flush()
)");
}
static const char *flip = "data = bytes(b ^ (i % 4 == 0) for i, b in enumerate(data))";

TEST_CASE("kernels for OpenCL are measured on a device of this machine, and are right") {
#if TESSERA_HAS_OPENCL
    setenv("POCL_DEVICES", "basic", 0);  // PoCL's default device gives wrong results where shared memory is filled inside a loop
    const MeasurementTask s = measurement_task("opencl");
    Knobs staged;
    staged.block = {{"M", 16}, {"N", 32}}, staged.micro = {{"M", 4}, {"N", 4}}, staged.vector = {{"N", 4}}, staged.k = {{"K", 16}};
    staged.pack["x"] = {"k", {{"K", 0, false}, {"M", 0, false}}}, staged.pack["w"] = {"k", {}};
    const auto all = measured(s, quick(), {lower(s.algorithm, {}, s.target), lower(s.algorithm, {{"y", staged}}, s.target)});
    for (const Measurement &m : all) {
        INFO(m.message);
        CHECK(m.verdict == Verdict::measured);
        CHECK(m.seconds > 0);
        CHECK(m.code_bytes > 1000);
    }
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.runners = {proxy(folder, "flip", "'candidate' in sys.argv[1]", flip)};
    const Measurement wrong = measured(s, options, {lower(s.algorithm, {{"y", staged}}, s.target)})[0];
    CHECK(wrong.verdict == Verdict::wrong);
    CHECK_THAT(wrong.message, Catch::Contains("its tile program gives"));
#else
    WARN("built without OpenCL (ocl-icd-opencl-dev, pocl-opencl-icd): not run");
#endif
}

TEST_CASE("what could not be compared is not measured") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.run_limit_s = 1;
    options.runners = {proxy(folder, "late", "'candidate' in sys.argv[1] and data", "import time; time.sleep(60)")};
    const Measurement m = measured(s, options, {program(s, 4, 8)})[0];
    CHECK(m.verdict == Verdict::timed_out);
    CHECK_THAT(m.message, Catch::StartsWith("it did not answer in time"));
}

// A scan of one row is nothing that blocks could be sampled of, and too long to interpret; its first elements are small beside its last.
TEST_CASE("what is compared with the base is compared with what lies around it") {
    const Extents row = {{"M", 1}, {"N", 40000000}};
    const MeasurementTask s = {bind_extents(library::cumulative_sum({}), row), target_named("x86-64"), {}, 1, 5};
    const TileProgram plain = lower(s.algorithm, {}, s.target);
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.run_limit_s = 100;
    options.runners = {proxy(folder, "zeros", "'candidate' in sys.argv[1] and data",
                             "n = globals().get('n', 0) + 1; data[:64 * (n == 1)] = bytes(64 * (n == 1))")};
    Measurement of;
    Measurer(s, options, plain).measure({plain}, 0, [&](size_t, const Measurement &m) { of = m; });
    CHECK(of.verdict == Verdict::wrong);
    CHECK_THAT(of.message, Catch::Contains("of y is 0; the base gives "));
}

TEST_CASE("times that no call takes are not believed") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    for (const char *times : {"inf inf", "1e-310 1", "nan 1", "1 0", "-1 1"}) {
        MeasureOptions options = quick();
        options.runners = {proxy(folder, "lies", "'candidate' in sys.argv[1] and line.startswith(b'took ')",
                                 "line = b'took " + std::string(times) + "\\n'")};
        const Measurement m = measured(s, options, {program(s, 4, 8)})[0];
        CHECK(m.verdict == Verdict::crashed);
        CHECK_THAT(m.message, Catch::Contains("it answered 'took "));
    }
}

TEST_CASE("what a candidate computes wrongly is found") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.runners = {proxy(folder, "flip", "'candidate' in sys.argv[1]", flip)};
    const Measurement m = measured(s, options, {program(s, 4, 8)})[0];
    CHECK(m.verdict == Verdict::wrong);
    CHECK_THAT(m.message, Catch::Contains("its tile program gives"));
}

TEST_CASE("an operand that is packed ahead of time is packed once, for whichever of the two kernels takes it so") {
    const MeasurementTask s = measurement_task("x86-64");
    auto ahead = [&](int64_t m, int64_t n) {
        Knobs k;
        k.micro = {{"M", m}, {"N", n}}, k.vector = {{"N", 4}};
        k.pack["w"] = {"prepack", {{"N", n, false}, {"K", 0, false}, {"N", n, true}}};
        return lower(s.algorithm, {{"y", k}}, s.target);
    };
    auto check_all = [](const std::vector<Measurement> &all, Verdict verdict) {
        for (const Measurement &m : all) {
            INFO(m.message);
            CHECK(m.verdict == verdict);
        }
    };
    const std::vector<TileProgram> programs = {ahead(4, 8), program(s, 4, 8), ahead(2, 40)};  // 40 does not divide 96
    check_all(measured(s, quick(), programs), Verdict::measured);
    std::vector<Measurement> beside(programs.size());
    Measurer(s, quick(), ahead(1, 12)).measure(programs, 0, [&](size_t i, const Measurement &m) { beside[i] = m; });
    check_all(beside, Verdict::measured);

    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.runners = {proxy(folder, "flip", "'candidate' in sys.argv[1]", flip)};
    check_all(measured(s, options, {ahead(4, 8)}), Verdict::wrong);
}

TEST_CASE("several callers are timed side by side, each with data of its own") {
    MeasurementTask s = measurement_task("x86-64");
    s.callers = 3;
    Knobs ahead;
    ahead.micro = {{"M", 4}, {"N", 8}}, ahead.vector = {{"N", 4}};
    ahead.pack["w"] = {"prepack", {{"N", 8, false}, {"K", 0, false}, {"N", 8, true}}};
    Knobs packed = ahead;
    packed.pack["w"].at = "root";  // in a workspace
    const std::vector<TileProgram> programs = {program(s, 4, 8), lower(s.algorithm, {{"y", ahead}}, s.target),
                                               lower(s.algorithm, {{"y", packed}}, s.target)};
    for (const Measurement &m : measured(s, quick(), programs)) {
        INFO(m.message);
        CHECK(m.verdict == Verdict::measured);
        CHECK(m.seconds > 0);
    }
}

// Says that the candidate is as many times as fast as the base as there were processes.
static const char *divided = R"(w = line.split()
        if w[0] == b'protocol': open(sys.argv[0] + '.count', 'a').write('.')
        else: line = b'took %.9g %s\n' % (float(w[2]) / os.path.getsize(sys.argv[0] + '.count'), w[2]))";

TEST_CASE("confirmed intervals hold from one process to the next") {
    const MeasurementTask s = measurement_task("x86-64");
    const TileProgram base = program(s, 1, s.target.vector_bytes / 4);
    const TemporaryFolder folder;
    auto confirmed = [&](const std::string &runner) {
        MeasureOptions options = quick();
        options.runners = {runner};
        Measurement of;
        Measurer(s, options, base).confirm({base}, 1, [&](size_t, const Measurement &m) { of = m; });
        INFO(of.message);
        CHECK(of.verdict == Verdict::measured);
        return of;
    };
    const Measurement fair = confirmed("");
    CHECK(fair.lower < fair.ratio);
    CHECK(fair.ratio < fair.upper);

    const std::string uneven = proxy(folder, "uneven", "line.startswith((b'protocol ', b'took '))", divided);
    const Measurement wide = confirmed(uneven);
    CHECK(wide.ratio > 1.8);
    CHECK(wide.upper / wide.lower > 3);
    CHECK(wide.lower < wide.ratio / 1.3);
}

// A gain that the first five processes leave open is looked at in five more.
TEST_CASE("processes that disagree are asked once more") {
    const MeasurementTask s = measurement_task("x86-64");
    const TileProgram base = program(s, 1, s.target.vector_bytes / 4);
    const TemporaryFolder folder;
    int number = 0;
    // How often a runner ran, whose processes say these ratios, one after the other.
    auto confirmed = [&](const std::string &ratios, Measurement &of) {
        const std::string runs = (folder.path() / ("runs" + std::to_string(number++))).string();
        MeasureOptions options = quick();
        options.runners = {
            proxy(folder, "says", "line.startswith((b'ran ', b'took '))",
                  "runs = '" + runs +
                      "'\n        if line.startswith(b'ran ') and not globals().get('began'): began = open(runs, 'a').write('.')\n"
                      "        if line.startswith(b'took '): line = b'took %.9g 1\\n' % (1 / (" +
                      ratios + ")[os.path.getsize(runs) - 1])")};
        Measurer(s, options, base).confirm({base}, 1, [&](size_t, const Measurement &m) { of = m; });
        INFO(of.message);
        CHECK(of.verdict == Verdict::measured);
        return std::filesystem::file_size(runs);
    };
    Measurement of;
    CHECK(confirmed("[1, 1.04] * 5", of) == 10);
    CHECK(of.lower > 1);
    CHECK(confirmed("[1.03, 1.04] * 5", of) == 5);  // surely faster
    CHECK(confirmed("[0.99, 1.01] * 5", of) == 5);  // no gain that is worth it
    CHECK(confirmed("[1, 1.04] * 2 + [1.02] + [0.5, 2] * 3", of) == 10);
    CHECK(of.lower < 1);
}

// The sum of two rows that lie in a cache takes less time than to fetch them.
TEST_CASE("calls are timed with cold caches", "[.time]") {
    const MeasurementTask s = {bind_extents(library::column_sum({}), {{"M", 2}, {"N", 32768}}), target_named("x86-64"), {}, 1, 5};
    Knobs vector;
    vector.vector = {{"N", 4}};
    const TileProgram rows = lower(s.algorithm, {{"y", vector}}, s.target);
    MeasureOptions options = quick();
    auto seconds = [&](bool cold) {
        options.cold = cold;
        Measurement of;
        Measurer(s, options, rows).measure({rows}, 0, [&](size_t, const Measurement &m) { of = m; });
        INFO(of.message);
        CHECK(of.verdict == Verdict::measured);
        return of.seconds;
    };
    CHECK(seconds(true) > 1.2 * seconds(false));
}

TEST_CASE("a runner on which the base fails too is given up, and its trials are given to another") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    for (const std::string &broken : {std::string("false"), proxy(folder, "flip", "True", flip)}) {
        std::vector<std::string> said;
        MeasureOptions options = quick();
        options.runners = {"", broken}, options.jobs = 2, options.warn = [&](const std::string &text) { said.push_back(text); };
        for (const Measurement &m : measured(s, options, {program(s, 1, 4), program(s, 2, 4), program(s, 4, 4), program(s, 4, 8)})) {
            INFO(m.message);
            CHECK(m.verdict == Verdict::measured);
        }
        REQUIRE(said.size() == 1);
        CHECK_THAT(said[0], Catch::Contains("runner '" + broken + "': ") && Catch::Contains("it is given up, and 1 of 2 measure on"));
    }
    MeasureOptions options = quick();
    options.runners = {"false"};
    check_words([&] { measured(s, options, {program(s, 4, 8)}); },
                {"error[tune.runner]: matmul: expected a runner that runs the schedule to beat; runner 'false': it ended with code 1. Fix "
                 "it and go on with --resume, or name another with --runner."});
}

TEST_CASE("what fails of the tuner itself ends the measuring with words, and is no candidate's fault") {
    const MeasurementTask s = measurement_task("x86-64");
    MeasureOptions options = quick();
    options.runners.assign(4, "env");
    Measurer measurer(s, options, program(s, 1, 4));
    int told = 0;
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    // Enough to build one program after the other, and not to run four side by side.
    const rlimit few{static_cast<rlim_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})) + 6, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    const std::string said = words([&] {
        measurer.measure({program(s, 1, 4), program(s, 2, 4), program(s, 4, 4), program(s, 4, 8)}, 0,
                         [&](size_t, const Measurement &m) { told += m.verdict != Verdict::measured; });
    });
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_THAT(said, Catch::Contains("error[machine.exhausted]") && Catch::Contains("Too many open files. Let less run at a time"));
    CHECK(told == 0);
}

TEST_CASE("a disk that is full is not a candidate's fault") {
    const MeasurementTask s = measurement_task("x86-64");
    for (const std::string name : {"candidate0", "code0/candidate.code", "bytes0"}) {
        const TemporaryFolder folder;
        const std::string before = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp";
        setenv("TMPDIR", folder.path().c_str(), 1);
        Measurer measurer(s, quick(), program(s, 1, 4));
        // A folder stands where a file is to be written.
        for (const auto &own : std::filesystem::directory_iterator(folder.path())) std::filesystem::create_directories(own.path() / name);
        CHECK_THAT(
            words([&] { measurer.measure({program(s, 4, 8)}, 0, [](size_t, const Measurement &) { FAIL("nothing is measured"); }); }),
            Catch::Contains("error[output.write]: file '") && Catch::Contains(name + "': expected to write it; "));
        setenv("TMPDIR", before.c_str(), 1);
    }
}

TEST_CASE("a disk that is full while a C compiler links is not a candidate's fault") {
#if TESSERA_HAS_OPENCL
    const MeasurementTask s = measurement_task("opencl");
    const TemporaryFolder folder;
    const auto built = [&](const std::string &text) {
        MeasureOptions options = quick();
        options.cc =
            script(folder, "cc", "/bin/sh\nhere=$(dirname \"$2\")\ncase \"$2\" in */candidate0) " + text + ";; esac\nexec cc \"$@\"\n");
        Verdict verdict = Verdict::uncompiled;
        const TileProgram plain = lower(s.algorithm, {}, s.target);
        const std::string said =
            words([&] { Measurer(s, options, plain).measure({plain}, 0, [&](size_t, const Measurement &m) { verdict = m.verdict; }); });
        CHECK(verdict == Verdict::uncompiled);
        return said;
    };
    CHECK_THAT(built("mkdir \"$here/room\"; exit 1"),
               Catch::Contains("error[output.write]: file '") && Catch::Contains("room': expected to write it; "));
    CHECK(built("exit 1") == "no error");
#else
    WARN("built without OpenCL (ocl-icd-opencl-dev, pocl-opencl-icd): not run");
#endif
}

TEST_CASE("a C compiler that is named makes the program that measures, once") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.cc = script(folder, "cc", "/bin/sh\ncase \"$*\" in *-lpthread*) echo >> \"$(dirname \"$0\")/links\";; esac\nexec cc \"$@\"\n");
    for (const Measurement &m : measured(s, options, {program(s, 4, 8), program(s, 2, 8)})) {
        INFO(m.message);
        CHECK(m.verdict == Verdict::measured);
    }
    CHECK(read_file(folder.path() / "links").size() == 1);
}

TEST_CASE("a program without kernels, or with others than it can load, says what is wrong") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    // What a runner makes of a candidate's program; the base is left as it is.
    const auto said = [&](const std::string &change) {
        MeasureOptions options = quick();
        options.runners = {script(folder, "change",
                                  "/usr/bin/env python3\nimport os, sys\nif sys.argv[1].endswith('/base'): os.execv(sys.argv[1], "
                                  "sys.argv[1:])\nwhole = open(sys.argv[1], 'rb').read()\nplace = sys.argv[0] + '.program'\n"
                                  "open(place, 'wb').write(" +
                                      change + ")\nos.chmod(place, 0o700)\nos.execv(place, [place])\n")};
        const Measurement m = measured(s, options, {program(s, 4, 8)})[0];
        CHECK(m.verdict == Verdict::crashed);
        return m.message;
    };
    CHECK_THAT(said("whole[:-1]"), Catch::Contains("measuring: no kernels are behind the program"));
    CHECK_THAT(said("whole[:-24] + b'\\xff' * 16 + whole[-8:]"), Catch::Contains("measuring: no kernels are behind the program"));
    CHECK_THAT(said("(lambda at: whole[:at] + b'?' + whole[at + 1:])(len(whole) - 24 - int.from_bytes(whole[-16:-8], 'little'))"),
               Catch::Contains("measuring: library: expected a static library, which begins with '!<arch>'"));
}

TEST_CASE("a ratio that is known badly is measured again") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    // Its first program's times jump; the next one's do not.
    options.runners = {
        proxy(folder, "noisy", "line.startswith((b'took', b'placed'))",
              "if line == b'placed\\n': open(here + '/places', 'a').write('.')\n"
              "        program.n = getattr(program, 'n', 0) + 1; noise = 0 if os.path.exists(here + '/places') else program.n % 3\n"
              "        if line != b'placed\\n': line = b'took %g 0.001\\n' % (0.001 * (1 + 9 * noise))")};
    options.seconds = 10;
    const Measurement m = measured(s, options, {program(s, 4, 8)})[0];
    CHECK(m.verdict == Verdict::measured);
    CHECK(m.upper == m.lower);
    CHECK(read_file(folder.path() / "places").size() >= 2);  // as what may be the best, in two places more
}

TEST_CASE("time that is spent in the interpreter does not count on a program's limit") {
    const MeasurementTask s = measurement_task("x86-64");
    const TemporaryFolder folder;
    const TileProgram base = program(s, 4, 8);
    const auto file = folder.path() / "talk";
    write_file(file,
               "#!/bin/sh\nwhile read command rest; do case $command in protocol) echo protocol 3;; place) echo placed;; time) sleep 0.2; "
               "echo took 1 1;; esac; "
               "done\n");
    WorkerLimits limits;
    limits.seconds = 2;
    WorkerClient worker(s, base, "sh " + file.string(), limits, folder.path() / "log");
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    CHECK(worker.time(1, 1).first == 1);
    auto verdict = [&] {
        try {
            for (int n = 0; n < 20; n++) worker.time(1, 1);  // these are the program's own
        } catch (const Failed &why) { return why.verdict; }
        return Verdict::measured;
    };
    for (int place = 0; place < 3; place++) {  // each with a time of its own
        worker.place();
        for (int n = 0; n < 4; n++) worker.time(1, 1);
    }
    CHECK(verdict() == Verdict::timed_out);
}

// A law for runners, which may be slow to talk to: of inputs only offsets travel, and of results only what is compared.
TEST_CASE("a trial of large arguments moves little data, and takes its time in the kernels") {
    const MeasurementTask s = {bind_extents(library::softmax({}), {{"M", 4096}, {"N", 2048}}), target_named("x86-64"), {}, 1, 5};
    const TileProgram plain = lower(s.algorithm, {}, s.target);
    const TemporaryFolder folder;
    MeasureOptions options = quick();
    options.run_limit_s = 100;
    options.runners = {proxy(folder, "counts", "line.startswith((b'part ', b'took '))",
                             "open(here + ('/took' if line[0] == 116 else '/part'), 'a').write('%d\\n' % len(data))")};
    Measurement of;
    Measurer(s, options, plain).measure({plain}, 0, [&](size_t, const Measurement &m) { of = m; });
    INFO(of.message);
    CHECK(of.verdict == Verdict::measured);
    size_t bytes = 0, rounds = 0;
    std::ifstream parts(folder.path() / "part"), took(folder.path() / "took");
    for (size_t n; parts >> n;) bytes += n;
    for (size_t n; took >> n;) rounds++;
    CHECK(bytes > 1000);
    CHECK(bytes <= (16 << 20));  // of 128 MiB: two sets of data, and the base beside each
    CHECK(rounds <= 18);         // of a call of each; with the three runs no more than 40 calls
}

TEST_CASE("what compiles or runs is ended at once when the measuring is stopped") {
    const MeasurementTask s = measurement_task("x86-64");
    for (const char *runner : {"sh -c 'sleep 100' #", ""}) {
        std::atomic<bool> stop{false};
        MeasureOptions options = quick();
        options.runners = {runner}, options.stop = &stop, options.run_limit_s = 50, options.seconds = 40, options.precision = 0;
        Measurer measurer(s, options, program(s, 1, 4));
        std::thread soon([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
            stop = true;
        });
        const auto start = std::chrono::steady_clock::now();
        measurer.measure({program(s, 4, 8), program(s, 2, 8)}, 0, [&](size_t, const Measurement &) { FAIL("nothing is measured"); });
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
        soon.join();
        check_words([&] { Measurer(s, options, program(s, 1, 4)); }, {"error[tune.stopped]: matmul: stopped before the schedule to beat "
                                                                      "was measured; nothing is written. The same command begins again."});
    }
}

TEST_CASE("a base that takes too long to compile, or whose compiler is missing, is the user's to fix") {
    const MeasurementTask s = measurement_task("x86-64");
    MeasureOptions hasty = quick(), missing = quick();
    hasty.compile.seconds = 0.001, missing.cc = "no-such-compiler";
    check_words([&] { Measurer(s, hasty, program(s, 4, 8)); }, {"error[compile.limit]", "raise --compile-limit-s"});
    MeasureOptions none = quick();
    none.cc = " ";
    check_words([&] { Measurer(s, none, program(s, 4, 8)); },
                {"error[command.cc]: --cc ' ': expected the name of a C compiler, with its options. Leave --cc out for the program that "
                 "measures on this kind of processor, and for 'cc' elsewhere."});
    check_words([&] { Measurer(s, missing, program(s, 4, 8)); }, {"error[command.cc]", "no-such-compiler"});
}

TEST_CASE("a kernel for 64-bit ARM is measured under an emulator", "[.][arm64]") {
    if (std::string(TESSERA_ARM64_CC).ends_with("NOTFOUND") || std::string(TESSERA_ARM64_EMULATOR).ends_with("NOTFOUND")) {
        WARN("skipped: not installed: gcc-aarch64-linux-gnu, qemu-user");
        return;
    }
    const MeasurementTask s = measurement_task("arm64");
    MeasureOptions options = quick();
    options.runners = {TESSERA_ARM64_EMULATOR}, options.cc = std::string(TESSERA_ARM64_CC) + " -static";
    for (const Measurement &m : measured(s, options, {program(s, 4, 8), program(s, 1, 4)})) {
        INFO(m.message);
        CHECK(m.verdict == Verdict::measured);
    }
}

}  // namespace tessera::test_measure
