#include "generators/doctor/calibrate.h"

#include "schedules/target/target_file.h"
#include "tests/generators/harness.h"

namespace tessera::test_calibrate {

TEST_CASE("a calibrated target has the machine's caches and plausible rates, and its file gives it again") {
    const Machine machine = this_machine();
    std::vector<std::string> notes;
    const Target t = calibrated(target_named("host"), machine, {0.5, 0.001, 0.02}, [&](const std::string &what) { notes.push_back(what); });
    REQUIRE(t.measured);
    const Measured &m = *t.measured;
    CHECK(m.processor == machine.processor);
    if (const Cache *l1 = machine.cache(1)) CHECK(t.l1_bytes == l1->bytes);
    CHECK((t.l1_bytes <= t.l2_bytes && t.l2_bytes <= t.l3_bytes));
    for (const char *name : {"f32", "f64"}) CHECK(m.peaks.count(name));
    for (const char *level : {"l1", "memory"}) CHECK((m.read.count(level) && m.copy.count(level)));
    for (const auto *rates : {&m.peaks, &m.read, &m.copy})
        for (const auto &[name, rate] : *rates) {
            INFO(name);
            CHECK((rate.one_thread > 1e7 && rate.one_thread < 1e15));
            CHECK(rate.all_threads > 1e7);
        }
    CHECK(m.peaks.at("f32").one_thread > m.peaks.at("f64").one_thread);
    if (m.threads > 1) CHECK((m.parallel_loop_s > 0 && m.parallel_loop_s < 0.1));
    CHECK(std::count(notes.begin(), notes.end(), "reading l1") == 1);
    const std::string text = target_text(t);
    CHECK(target_text(parse_target(text, "t.json")) == text);
}

TEST_CASE("only a target that runs here can be calibrated") {
    std::vector<std::string> known = known_features(host_arch());
    const std::vector<std::string> have = host_features();
    std::erase_if(known, [&](const std::string &f) { return std::count(have.begin(), have.end(), f) > 0; });
    if (known.empty()) return;
    const std::string target = (known[0].starts_with("avx512") ? "avx512+" : "x86-64+") + known[0];
    CHECK_THROWS_WITH(calibrated(target_named(target), {}, {}, [](const std::string &) {}),
                      Catch::StartsWith("error[command.target]: target '" + target + "': this processor lacks " + known[0] +
                                        ", so its code cannot run here; "));
}

}  // namespace tessera::test_calibrate
