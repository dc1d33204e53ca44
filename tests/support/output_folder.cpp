#include "support/files/output_folder.h"

#include <cstdlib>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/shell.h"
#include "tests/support/words.h"

namespace tessera::test_output_folder {

using namespace tessera::test;

TEST_CASE("files appear when they are published, and what is not published is gone") {
    const TemporaryFolder folder;
    const auto place = folder.path() / "a" / "b";
    {
        const OutputFolder out(place);
        out.write("one", "1");
        out.write("two", "2");
        CHECK(out.read("two") == "2");
        out.publish("one");
        CHECK(read_file(place / "one") == "1");
        CHECK(!std::filesystem::exists(place / "two"));
        out.write("one", "new");
        out.publish("one", folder.path() / "elsewhere");
    }
    CHECK(files_in(place) == "one");
    CHECK(read_file(folder.path() / "elsewhere") == "new");
}

TEST_CASE("links are followed, pipes and devices written to, and stay what they are") {
    namespace fs = std::filesystem;
    const TemporaryFolder folder;
    const fs::path pipe = folder.path() / "pipe", link = folder.path() / "link", full = folder.path() / "full",
                   none = folder.path() / "none";
    const OutputFolder out(folder.path() / "out");
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    const int reader = open(pipe.c_str(), O_RDWR);
    out.write("a", "words");
    out.publish("a", pipe);
    char got[6] = {};
    CHECK(read(reader, got, 5) == 5);
    close(reader);
    CHECK(std::string(got) == "words");
    CHECK(fs::is_fifo(pipe));

    write_file(folder.path() / "file", "old");
    fs::create_symlink("file", link), fs::create_symlink("link", folder.path() / "again");
    out.publish("a", folder.path() / "again");
    CHECK(fs::is_symlink(link));
    CHECK(read_file(folder.path() / "file") == "words");
    fs::create_symlink("made", none);
    out.write("a", "words");
    out.publish("a", none);
    CHECK(fs::is_symlink(none));
    CHECK(read_file(folder.path() / "made") == "words");

    // Through links, so that a mistake would cost no device.
    fs::create_symlink("/dev/null", folder.path() / "null"), fs::create_symlink("/dev/full", full);
    out.write("a", "words");
    out.publish("a", folder.path() / "null");
    check_words(
        [&] { out.publish("a", full); },
        {"error[output.write]: file '", "full': expected to write it; No space left on device. Choose another place, or make room."});
    CHECK(fs::is_symlink(full));
    CHECK(fs::is_character_file("/dev/full"));

    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = (folder.path() / "socket").string();
    REQUIRE(name.size() < sizeof address.sun_path);
    name.copy(address.sun_path, name.size());
    const int socket_there = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(socket_there, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
    check_words([&] { out.publish("a", name); }, {"error[output.write]", "it is a socket. Choose another place."});
    close(socket_there);
}

TEST_CASE("a temporary folder is removed") {
    std::filesystem::path path;
    {
        const TemporaryFolder folder;
        path = folder.path();
        write_file(path / "deep" / "file", "");
    }
    CHECK(!std::filesystem::exists(path));
}

TEST_CASE("a temporary folder's errors") {
    const char *before = getenv("TMPDIR");
    const std::string saved = before ? before : "";
    for (const char *none : {"/nowhere", "/proc"}) {
        setenv("TMPDIR", none, 1);
        check_words([] { TemporaryFolder folder; },
                    {std::string("error[output.temporary]: folder '") + none + "', which TMPDIR names: expected one for temporary files; ",
                     "Set TMPDIR to a folder that can be written to."});
    }
    if (before) setenv("TMPDIR", saved.c_str(), 1);
    else unsetenv("TMPDIR");
}

TEST_CASE("files that belong together change together") {
    const TemporaryFolder folder;
    const std::filesystem::path place = folder.path() / "out";
    const OutputFolder out(place);
    write_file(place / "a", "old");
    std::filesystem::create_directories(place / "b");
    for (const char *file : {"a", "b", "c"}) out.write(file, "new");
    check_words([&] { out.publish_together({"a", "b"}); }, {"error[output.write]", "/b': expected to write it", "it is a folder"});
    check_words(
        [&] {
            out.publish_together({"a", "c"}, {{"c", place / "none" / "c"}});
        },
        {"error[output.write]", "/none/c': expected to write it"});
    CHECK(read_file(place / "a") == "old");
    out.publish_together({"a", "c"}, {{"c", folder.path() / "c"}});
    CHECK(read_file(place / "a") == "new");
    CHECK(read_file(folder.path() / "c") == "new");
}

TEST_CASE("an output folder's errors") {
    const TemporaryFolder folder;
    write_file(folder.path() / "file", "");
    check_words([&] { OutputFolder out(folder.path() / "file"); },
                {"error[output.folder]: folder '", "/file': expected one to write to; ", "Choose another, or correct its permissions."});
    const OutputFolder out(folder.path() / "out");
    out.write("a", "");
    std::filesystem::create_directories(folder.path() / "out" / "taken" / "inside");
    check_words([&] { out.publish("a", folder.path() / "out" / "taken"); },
                {"error[output.write]: file '",
                 "/taken': expected to write it, or a pipe or a character device to write to; it is a folder. Choose another place."});
    check_words([&] { out.write("no/such/folder", ""); }, {"error[output.write]", "no/such/folder"});
}

}  // namespace tessera::test_output_folder
