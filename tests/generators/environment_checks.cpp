#include "generators/doctor/environment_checks.h"

#include "tests/generators/harness.h"
#include "tests/support/fake_path.h"

namespace tessera::test_environment_checks {

using namespace tessera::test;

static const EnvironmentCheck &named(const std::vector<EnvironmentCheck> &all, const std::string &what) {
    for (const EnvironmentCheck &f : all)
        if (f.what == what) return f;
    FAIL("there is no check " + what);
    throw 0;
}

TEST_CASE("every check says what needs it, and how to get it when it is missing") {
    const std::vector<EnvironmentCheck> all = environment_checks();
    for (const EnvironmentCheck &f : all) {
        INFO(f.what);
        CHECK(!f.needed_for.empty());
        CHECK((f.found.has_value() || !f.remedy.empty()));
        if (f.required) CHECK(f.found);  // where the tests run, all of it is there
    }
    CHECK_THAT(*named(all, "Halide").found, Catch::StartsWith("21.") && Catch::Contains("libHalide"));
    CHECK_THAT(*named(all, "a kernel").found, Catch::StartsWith("right, in "));
}

TEST_CASE("programs are found on the PATH, and nowhere else") {
    FakePath path;
    path.add("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'");
    path.add("qemu-aarch64", "echo 'qemu-aarch64 version 7.2.9'");
    const std::vector<EnvironmentCheck> all = environment_checks();
    CHECK(*named(all, "nvcc").found == "12.4, " + (path.folder() / "nvcc").string());
    CHECK(*named(all, "qemu-aarch64").found == "7.2.9, " + (path.folder() / "qemu-aarch64").string());
    CHECK(!named(all, "ptxas").found);
    CHECK(named(all, "node").remedy == "Install Debian's nodejs.");
    CHECK(named(all, "wasm-ld").remedy == "Install Debian's clang, lld, wasi-libc and libclang-rt-14-dev-wasm32.");
    CHECK(named(all, "ptxas").remedy == "Install the CUDA toolkit and add its bin folder to the PATH.");
    CHECK(!named(all, "cc").found);
    CHECK(named(all, "cc").remedy == "Install a C compiler: Debian's gcc.");
    CHECK_THAT(*named(all, "a kernel").found, Catch::StartsWith("right, in "));  // which needs no other program
}

}  // namespace tessera::test_environment_checks
