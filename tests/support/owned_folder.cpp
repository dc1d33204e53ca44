#include "support/processes/owned_folder.h"

#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "support/processes/owner.h"
#include "tests/support/shell.h"

namespace tessera::test_owned_folder {

using namespace tessera::test;

namespace fs = std::filesystem;

// The folder of a process that was killed while it had one.
static fs::path abandoned() {
    int said[2];
    REQUIRE(pipe(said) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const OwnedFolder folder;
        const std::string text = folder.path().string() + "\n";
        if (write(said[1], text.data(), text.size()) < 0) _exit(1);
        while (true) pause();
    }
    std::string path;
    for (char c; read(said[0], &c, 1) == 1 && c != '\n';) path += c;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(said[0]), close(said[1]);
    return path;
}

TEST_CASE("what a killed process left behind is removed, and nothing else") {
    const char *before = std::getenv("TMPDIR");
    const std::string given = before ? before : "";
    const TemporaryFolder place;
    setenv("TMPDIR", place.path().c_str(), 1);

    const OwnedFolder alive;
    const TemporaryFolder of_nobody;
    fs::create_directory(place.path() / "tessera-torn");
    write_file(place.path() / "tessera-torn/owner", "host\nboot\n");
    fs::create_directory(place.path() / "else");
    const fs::path left = abandoned();
    REQUIRE(fs::exists(left / "owner"));
    fs::copy(left, place.path() / "else", fs::copy_options::recursive);
    fs::create_directory_symlink(place.path() / "else", place.path() / "tessera-link");
    write_file(left / "candidate0", "a program");

    const OwnedFolder next;
    CHECK(!fs::exists(left));
    for (const fs::path &stays :
         {alive.path(), of_nobody.path(), place.path() / "tessera-torn", place.path() / "else", place.path() / "tessera-link", next.path()})
        CHECK(fs::exists(stays));
    CHECK(fs::exists(place.path() / "else/owner"));

    before ? setenv("TMPDIR", given.c_str(), 1) : unsetenv("TMPDIR");
}

}  // namespace tessera::test_owned_folder
