// Random algorithms × random schedules: reference, tile program and emitted code agree. TESSERA_RANDOM_PROGRAMS,
// TESSERA_RANDOM_C_PROGRAMS, TESSERA_RANDOM_OPENCL_PROGRAMS and TESSERA_RANDOM_SEED make it run longer and elsewhere.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "algorithms/transform/inline_calls.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/random_case.h"

namespace tessera::test_random {

using namespace tessera::test;

// Compiling takes many times longer under the sanitizers, whose allocator Halide uses too.
#ifdef __SANITIZE_ADDRESS__
constexpr unsigned slower = 10;
#else
constexpr unsigned slower = 1;
#endif

// For programs whose sums may round another way: some last places of the coarsest float that values are stored in.
static double tolerance_of(const Algorithm &a) {
    double tolerance = 2e-4;
    const Algorithm whole = inline_calls(a);
    for (const Stage &s : whole.stages())
        for (const Expr &e : expressions_of(s))
            walk(e, [&](const Expr &n) {
                if (is_narrow_float(n.type())) tolerance = std::max(tolerance, std::ldexp(6.4, -traits_of(n.type()).mantissa));
            });
    return tolerance;
}

// NaN, infinities, -0 and subnormal numbers among the inputs: what overflows by itself does so in one order of additions only.
static Arrays special_inputs(const Algorithm &algorithm, const Extents &shape) {
    const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-42};
    Arrays all = make_inputs(algorithm, shape, 8);
    std::mt19937 random(8);
    for (auto &[name, array] : all)
        for (int64_t i = 0; is_float(array.dtype) && i < array.size(); i++)
            if (random() % 29 == 0) array.set(i, Scalar::of_real(array.dtype, special[random() % 5]));
    return all;
}

// "" where both are NaN or infinite at the same places, and near each other elsewhere. An infinity may be NaN in another order.
static std::string differ_in_kind(const Arrays &got, const Arrays &expected, double tolerance) {
    for (const auto &[name, want] : expected)
        for (int64_t i = 0; i < want.size(); i++) {
            const Scalar g = got.at(name).get(i), w = want.get(i);
            if (g == w || (is_float(w.type) && !std::isfinite(g.real) && !std::isfinite(w.real))) continue;
            if (!is_float(w.type) || !(std::fabs(g.real - w.real) <= tolerance * (1 + std::fabs(w.real))))
                return name + " at " + std::to_string(i) + " is " + to_string(constant(g)) + ", not " + to_string(constant(w));
        }
    return "";
}

// "" when the tile program is right, "refused" when the schedule does not fit, "unproved" when it may, otherwise what is wrong.
static std::string check_program(const Case &c, const Target &target) {
    TileProgram program;
    try {
        program = lowered(c, target);
    } catch (const UserError &e) { return e.id() == "schedule.unproved" ? "unproved" : "refused"; } catch (const std::exception &e) {
        return e.what();
    }
    for (const Extents &shape : c.shapes) try {
            Arrays inputs = make_inputs(c.algorithm, shape, 7);
            Arrays reference = run_reference(c.algorithm, shape, inputs, {});
            std::string wrong = differ(run_interpreter(program, shape, inputs, {}), reference, tolerance_of(c.algorithm));
            if (!wrong.empty()) return "differs from the reference: " + wrong;
            inputs = special_inputs(c.algorithm, shape);
            reference = run_reference(c.algorithm, shape, inputs, {});
            wrong = differ_in_kind(run_interpreter(program, shape, inputs, {}), reference, tolerance_of(c.algorithm));
            if (!wrong.empty()) return "differs from the reference where inputs are special: " + wrong;
        } catch (const std::exception &e) { return e.what(); }
    return "";
}

static std::string check_code(const Loaded &library, const Case &c, const TileProgram &program) {
    uint32_t seed = 0;
    for (const Extents &shape : c.shapes)
        for (const Layout &layout : {Layout{true, 0, 0, 1}, Layout{false, 1, 3, 2, 0, false, true}}) try {
                seed++;
                Arrays inputs = make_inputs(c.algorithm, shape, seed, seed % 2 == 0);
                std::string wrong =
                    differ_in_bits(library.run(program, shape, inputs, {}, layout), run_interpreter(program, shape, inputs, {}));
                if (!wrong.empty()) return "emitted code differs: " + wrong;
            } catch (const std::exception &e) { return e.what(); }
    return "";
}

// Runs all cases as one library in a process of its own, for at most so many seconds. The first failure: its case, which is -1
// where there is no library, and what is wrong.
static std::pair<int64_t, std::string> check_codes(const std::vector<Case> &cases, const Target &target, const Build &by,
                                                   unsigned seconds) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) throw std::runtime_error("no pipe");
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        setpgid(0, 0);
        alarm(seconds);
        auto say = [&](int64_t at, const std::string &what) {
            std::string line = std::to_string(at) + " " + what;
            std::replace(line.begin(), line.end(), '\n', ' ');
            line += "\n";
            if (write(ends[1], line.data(), line.size()) < 0) _exit(3);
        };
        try {
            std::vector<TileProgram> programs;
            for (const Case &c : cases) programs.push_back(lowered(c, target));
            Loaded library(programs, target, by);
            for (size_t i = 0; i < cases.size(); i++) {
                say(static_cast<int64_t>(i), "");
                std::string wrong = check_code(library, cases[i], programs[i]);
                if (!wrong.empty()) say(static_cast<int64_t>(i), wrong), _exit(1);
            }
        } catch (const std::exception &e) {
            say(-1, e.what());
            _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    kill(-child, SIGKILL);  // a compiler that does not end
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {0, ""};
    if (said.empty()) said = "-1 it says nothing\n";
    const std::string last = said.substr(said.rfind('\n', said.size() - 2) + 1);
    std::string wrong = last;
    if (WIFSIGNALED(status))
        wrong =
            WTERMSIG(status) == SIGALRM ? "it takes over " + std::to_string(seconds) + " s" : "signal " + std::to_string(WTERMSIG(status));
    return {std::stoll(last), wrong};
}

static Case built_for(const RandomCase &c, const Target &target) {
    Case built = build(c);
    if (target.is_gpu()) built.stages = for_gpu(built.stages);
    return built;
}

// What is wrong with one case, tile program first; then its code, made `by` something.
static std::string wrong_with(const RandomCase &c, const Target &target, const Build *by) {
    try {
        Case built = built_for(c, target);
        std::string wrong = check_program(built, target);
        if (!wrong.empty()) return wrong == "refused" || wrong == "unproved" ? "" : wrong;
        return by ? check_codes({built}, target, *by, 30 * slower).second : "";
    } catch (const std::exception &) { return ""; }
}

static void report(RandomCase c, const Target &target, const Build *by) {
    std::string wrong = wrong_with(c, target, by);
    for (bool smaller_found = true; smaller_found;) {
        smaller_found = false;
        for (const RandomCase &less : smaller(c)) {
            std::string still = wrong_with(less, target, by);
            if (still.empty()) continue;
            c = less, wrong = still, smaller_found = true;
            break;
        }
    }
    FAIL_CHECK(wrong << "\n" << to_cpp(c));
}

static int64_t number(const char *name, int64_t otherwise) {
    const char *value = std::getenv(name);
    return value ? std::atoll(value) : otherwise;
}

// Batches go round targets, and then round what makes their code.
static void check_random(const std::vector<Target> &all, int64_t count, const std::vector<Build> &builds = {{}},
                         const std::vector<std::string> &policies = {"f32"}) {
    int64_t seed = number("TESSERA_RANDOM_SEED", 1);
    constexpr size_t batch = 20;
    Target target = all.back();
    std::mt19937 random(static_cast<uint32_t>(seed));
    int64_t made = 0, refused = 0, unproved = 0;
    size_t batches = all.size() - 1;
    std::vector<RandomCase> waiting;
    auto run_code = [&] {
        const Build &by = builds[batches / all.size() % builds.size()];
        while (!waiting.empty()) {
            std::vector<Case> cases;
            for (const RandomCase &c : waiting) cases.push_back(built_for(c, target));
            auto [at, wrong] = check_codes(cases, target, by, 240 * slower);
            if (wrong.empty()) break;
            INFO(wrong);
            // Where there is no library, the case that cannot be compiled alone.
            for (at = std::max<int64_t>(at, 0); at + 1 < static_cast<int64_t>(waiting.size()); at++)
                if (!wrong_with(waiting[static_cast<size_t>(at)], target, &by).empty()) break;
            report(waiting[static_cast<size_t>(at)], target, &by);
            waiting.erase(waiting.begin() + at);
        }
        waiting.clear();
        target = all[++batches % all.size()];
    };
    while (made < count) {
        RandomCase c;
        Case built;
        try {
            c = random_case("random_" + std::to_string(made + refused + unproved), random, target);
            c.numerics = policies[static_cast<size_t>(made) % policies.size()];
            built = built_for(c, target);
        } catch (const UserError &) { continue; }
        std::string wrong = check_program(built, target);
        if (wrong == "refused" || wrong == "unproved") {
            (wrong == "refused" ? refused : unproved)++;
            continue;
        }
        made++;
        if (!wrong.empty()) report(c, target, nullptr);
        else waiting.push_back(c);
        if (waiting.size() == batch) run_code();
    }
    run_code();
    std::printf("%lld random programs; %lld schedules do not fit, %lld are beyond the prover\n", static_cast<long long>(made),
                static_cast<long long>(refused), static_cast<long long>(unproved));
    CHECK(unproved * 8 <= made);
}

TEST_CASE("random schedules of random algorithms keep their meaning", "[random]") {
    check_random(targets(), number("TESSERA_RANDOM_PROGRAMS", 60));
}

TEST_CASE("random schedules of random algorithms keep their meaning: opencl", "[.][gpu][random]") {
    if (has_opencl()) check_random({target_named("opencl")}, number("TESSERA_RANDOM_OPENCL_PROGRAMS", 20));
}

TEST_CASE("random schedules of random algorithms keep their meaning: arm64", "[.][arm64][random]") {
    if (Target target = target_named("arm64"); can_emulate(target)) check_random({target}, number("TESSERA_RANDOM_PROGRAMS", 40));
}

TEST_CASE("random schedules of random algorithms keep their meaning: wasm32", "[.][wasm32][random]") {
    if (Target target = target_named("wasm32"); can_emulate(target)) check_random({target}, number("TESSERA_RANDOM_PROGRAMS", 40));
}

// Each word that a policy may have, and all of them.
static std::vector<std::string> policies_with_words() {
    std::vector<std::string> all = {"f32"};
    for (const std::string &word : numerics_words()) all.push_back("f32+" + word), all[0] += "+" + word;
    return all;
}

TEST_CASE("random programs keep their meaning under each word of a policy", "[random]") {
    check_random(targets(), number("TESSERA_RANDOM_LICENSED_PROGRAMS", 40), {{}}, policies_with_words());
}

TEST_CASE("random programs as C keep their meaning under each word of a policy", "[random]") {
    check_random(targets(), number("TESSERA_RANDOM_LICENSED_PROGRAMS", 40), c_builds("-O2"), policies_with_words());
}

TEST_CASE("random programs as C keep their meaning", "[random]") {
    check_random(targets(), number("TESSERA_RANDOM_C_PROGRAMS", 40), c_builds("-O2"));
}

TEST_CASE("random programs as C keep their meaning: wasm32", "[.][wasm32][random]") {
    if (Target target = target_named("wasm32"); can_emulate(target))
        check_random({target}, number("TESSERA_RANDOM_C_PROGRAMS", 20), {{"clang", "-O1"}});  // at -O2 clang 14 hangs on some
}

}  // namespace tessera::test_random
