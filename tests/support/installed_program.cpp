#include "support/processes/installed_program.h"

#include "tests/generators/harness.h"
#include "tests/support/fake_path.h"

namespace tessera::test_installed_program {

using namespace tessera::test;

TEST_CASE("a version is the first number with a point in it") {
    CHECK(version_in("cc (Debian 12.2.0-14+deb12u1) 12.2.0") == "12.2.0");
    CHECK(version_in("Copyright (c) 2005-2024\nCuda compilation tools, release 12.4, V12.4.131") == "12.4");
    CHECK(version_in("no number, or 7") == "");
}

TEST_CASE("programs are looked for along the PATH, first names first") {
    FakePath path;
    CHECK(!installed_program({"tool", "other"}));
    path.add("other", "echo other 1.2");
    path.add("quiet", "exit 3");
    path.add("failing", "echo 'version 4.5.6' >&2; exit 1");
    CHECK(installed_program({"tool", "other"})->version == "1.2");
    path.add("tool", "echo \"tool 3.4 $1\"");
    CHECK(installed_program({"tool", "other"})->version == "3.4");
    CHECK(installed_program({"tool", "other"})->path.filename() == "tool");
    CHECK(installed_program({"quiet"})->version == "");
    CHECK(installed_program({"failing"})->version == "4.5.6");
}

TEST_CASE("a folder or a file that cannot be executed is no program") {
    FakePath path;
    std::filesystem::create_directories(path.folder() / "tool");
    write_file(path.folder() / "text", "text");
    CHECK(!installed_program({"tool", "text"}));
}

}  // namespace tessera::test_installed_program
