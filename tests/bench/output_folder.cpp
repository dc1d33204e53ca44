#include "bench/output_folder.h"

#include <catch2/catch.hpp>

#include <unistd.h>

#include "tests/bench/shell.h"
#include "tests/schedules/words.h"

using namespace tessera;
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
        check_words([] { TemporaryFolder folder; }, {std::string("error[output.temporary]: folder '") + none + "', which TMPDIR names: expected one for temporary files; ", "Set TMPDIR to a folder that can be written to."});
    }
    if (before) setenv("TMPDIR", saved.c_str(), 1);
    else unsetenv("TMPDIR");
}

TEST_CASE("an output folder's errors") {
    const TemporaryFolder folder;
    write_file(folder.path() / "file", "");
    check_words([&] { OutputFolder out(folder.path() / "file"); }, {"error[output.folder]: folder '", "/file': expected one to write to; ", "Choose another, or correct its permissions."});
    const OutputFolder out(folder.path() / "out");
    out.write("a", "");
    std::filesystem::create_directories(folder.path() / "out" / "taken" / "inside");
    check_words([&] { out.publish("a", folder.path() / "out" / "taken"); }, {"error[output.write]: file '", "/taken': expected to write it; ", "Choose another place, or make room."});
    check_words([&] { out.write("no/such/folder", ""); }, {"error[output.write]", "no/such/folder"});
}
