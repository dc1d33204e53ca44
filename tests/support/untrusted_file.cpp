#include "support/files/untrusted_file.h"

#include <fstream>

#include "tests/support/words.h"

namespace tessera::test_untrusted_file {

using test::check_words;
namespace fs = std::filesystem;

TEST_CASE("a regular file is read as it is, and errors carry the caller's words") {
    const fs::path folder = fs::temp_directory_path() / ("tessera-regular-" + std::to_string(getpid()));
    fs::create_directories(folder / "in");
    const Handed note{"note", "note file", "Write less."};
    std::ofstream(folder / "in/a", std::ios::binary) << std::string("x\0y\n", 4);
    CHECK(read_regular(folder / "in/a", note) == std::string("x\0y\n", 4));
    CHECK(read_beneath(folder, "in/a", "a", note).size() == 4);
    fs::create_symlink("a", folder / "in/link");
    CHECK(read_regular(folder / "in/link", note).size() == 4);
    check_words([&] { read_beneath(folder, "in/link", "the link", note); },
                {"error[note.file]: note file 'the link': expected a regular file; opening it failed:"});
    check_words([&] { read_regular(folder / "in", note); },
                {"error[note.file]: note file '", "it is a folder, a device, a pipe or a socket. Put the file itself there."});
    check_words([&] { read_regular(folder / "none", note); },
                {"opening it failed: No such file or directory. Check its path and its permissions."});
    fs::resize_file(folder / "in/a", (1 << 20) + 1);
    check_words([&] { read_regular(folder / "in/a", note); },
                {"error[note.too-large]: note file '", "expected at most 1048576 bytes; got more. Write less."});
    fs::remove_all(folder);
}

}  // namespace tessera::test_untrusted_file
