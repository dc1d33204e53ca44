#include "schedules/artifact/library.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "schedules/artifact/merge.h"
#include "tests/support/words.h"

namespace tessera::test_library {

using test::check_words;
using test::words;
namespace fs = std::filesystem;

namespace {

// A folder that goes away with the test.
class Folder {
public:
    Folder() {
        std::string pattern = (fs::temp_directory_path() / "tessera-library-XXXXXX").string();
        path_ = fs::canonical(mkdtemp(pattern.data()));
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() { fs::remove_all(path_); }

    const fs::path &path() const { return path_; }
    fs::path write(const std::string &file, const std::string &text) const {
        fs::create_directories((path_ / file).parent_path());
        std::ofstream(path_ / file, std::ios::binary) << text;
        return path_ / file;
    }
    void write(const Schedule &schedule) const { write(schedule.name() + ".json", schedule.text()); }
    Library library() const {
        Library library;
        library.add_folder(path_);
        return library;
    }

private:
    fs::path path_;
};

}  // namespace

TEST_CASE("a schedule is found by the path of its file, the first folder first") {
    const Folder one, two;
    one.write(Schedule("sgemm/avx512").stage("acc", block({{"M", 1}})));
    two.write(Schedule("sgemm/avx512").stage("acc", block({{"M", 2}})));
    two.write(Schedule("sgemm/avx2"));
    two.write("notes.txt", "");
    two.write("tessera-schedule.schema.json", "{}");
    Library library = one.library();
    library.add_folder(two.path());
    library.add(Schedule("registered"));
    CHECK(library.find("sgemm/avx512").document()["stages"]["acc"]["block"]["M"] == 1);
    CHECK(library.find("sgemm/avx2").file() == two.path() / "sgemm/avx2.json");
    CHECK_FALSE(library.find("registered").file());
    CHECK(library.names() == std::vector<std::string>{"registered", "sgemm/avx512", "sgemm/avx2"});  // one's own come first
}

TEST_CASE("what machines wrote lies in a folder of its own, under the same names") {
    const Folder folder;
    folder.write(Schedule("gemm/avx2"));
    folder.write("tuned/gemm/f32/avx2/M1.json", Schedule("gemm/f32/avx2/M1").extends("gemm/avx2").text());
    folder.write("tuned/gemm/avx2.json", Schedule("gemm/avx2").text());
    const Library library = folder.library();
    CHECK(library.names() == std::vector<std::string>{"gemm/avx2", "gemm/f32/avx2/M1"});
    CHECK(library.find("gemm/f32/avx2/M1").file() == folder.path() / "tuned/gemm/f32/avx2/M1.json");
    CHECK(library.find("gemm/avx2").file() == folder.path() / "gemm/avx2.json");  // what a person wrote comes first
    CHECK_THAT(words([&] { library.find("tuned/gemm/avx2"); }), Catch::Contains("error[schedule.name-mismatch]"));
}

TEST_CASE("the files of an ancestry are those that were read") {
    const Folder folder;
    folder.write(Schedule("a"));
    folder.write(Schedule("b/b").extends("a"));
    Library library = folder.library();
    library.add(Schedule("c").extends("b/b"));
    CHECK(library.files(Schedule("d").extends("c")) == std::vector<fs::path>{folder.path() / "b/b.json", folder.path() / "a.json"});
    const fs::path own = folder.write("elsewhere.json", Schedule("e").extends("a").text());
    CHECK(library.files(read_schedule(own)) == std::vector<fs::path>{own, folder.path() / "a.json"});
}

TEST_CASE("a link inside the folder is followed, one out of it is refused") {
    const Folder folder, outside;
    folder.write(Schedule("real/a"));
    folder.write("alias.json", Schedule("alias").text());
    fs::create_symlink(folder.path() / "alias.json", folder.path() / "link.json");
    fs::create_directory_symlink("real", folder.path() / "linked");
    CHECK_THAT(words([&] { folder.library().find("link"); }), Catch::Contains("error[schedule.name-mismatch]"));
    CHECK_THAT(words([&] { folder.library().find("linked/a"); }), Catch::Contains("error[schedule.name-mismatch]"));

    outside.write(Schedule("b"));
    fs::create_symlink(outside.path() / "b.json", folder.path() / "b.json");
    fs::create_directory_symlink(outside.path(), folder.path() / "out");
    fs::create_symlink("/etc/passwd", folder.path() / "passwd.json");
    fs::create_symlink("/dev/zero", folder.path() / "zero.json");
    fs::create_symlink("../nowhere.json", folder.path() / "dangling.json");
    fs::create_symlink("loop.json", folder.path() / "loop.json");
    for (const char *name : {"b", "out/b", "passwd", "zero"})
        check_words([&] { folder.library().find(name); },
                    {"error[schedule.outside]: schedule '" + std::string(name) + "': its file '",
                     "is a link that leaves the folder; expected one inside the schedule folders. Copy it there, or name another."});
    for (const char *name : {"dangling", "loop"})
        check_words([&] { folder.library().find(name); }, {"error[schedule.file]", "it leads nowhere"});
}

TEST_CASE("names that lead out of the folders are refused before any file is touched") {
    const Folder folder;
    for (const std::string &name : {std::string("../../etc/passwd"), std::string("/etc/passwd"), std::string("a/../../b"),
                                    std::string("a\0b", 3), std::string(""), std::string("a b"), std::string(5000, 'a')})
        check_words([&] { folder.library().find(name); }, {"error[schedule.outside]", "it is no schedule's name"});
}

TEST_CASE("what is no regular file is refused and never waited for") {
    const Folder folder;
    REQUIRE(mkfifo((folder.path() / "pipe.json").c_str(), 0600) == 0);
    fs::create_directory(folder.path() / "folder.json");
    for (const char *name : {"pipe", "folder"})
        check_words([&] { folder.library().find(name); },
                    {"error[schedule.file]: schedule file '",
                     "expected a regular file; it is a folder, a device, a pipe or a socket. Put the file itself there."});
    check_words([&] { read_schedule(folder.path() / "pipe.json"); }, {"error[schedule.file]"});
    check_words([] { read_schedule("/dev/zero"); }, {"error[schedule.file]"});
    check_words([&] { read_schedule(folder.path() / "none.json"); },
                {"opening it failed: No such file or directory. Check its path and its permissions."});
}

TEST_CASE("a file of more than a mebibyte is refused before it is read whole") {
    const Folder folder;
    const fs::path file = folder.write("big.json", "");
    fs::resize_file(file, uintmax_t{1} << 30);
    check_words([&] { folder.library().find("big"); },
                {"error[schedule.too-large]: schedule file '", "expected at most 1048576 bytes; got more."});
    const std::string text = Schedule("big").text();
    folder.write("big.json", text + std::string((1 << 20) - text.size(), ' '));
    CHECK(folder.library().find("big").name() == "big");
}

TEST_CASE("missing schedules, parents and folders: the words") {
    const Folder folder;
    folder.write(Schedule("sgemm/avx512"));
    Library library = folder.library();
    check_words([&] { library.find("sgemm/avx521"); },
                {"error[schedule.missing]: there is no schedule 'sgemm/avx521'; there are sgemm/avx512. Did you mean 'sgemm/avx512'? Add "
                 "it, or the folder that has it, to the schedule folders."});
    check_words([] { Library().find("a"); }, {"there are none."});
    library.add(Schedule("b").extends("sgemm/avx51"));
    check_words([&] { library.ancestry(Schedule("a").extends("b")); },
                {"error[schedule.missing-parent]: schedule 'b' at /extends: there is no schedule 'sgemm/avx51' (a -> b -> sgemm/avx51); "
                 "there are b, sgemm/avx512. Did you mean 'sgemm/avx512'?"});
    check_words([&] { library.add_folder(folder.path() / "none"); },
                {"error[schedule.folder]: schedule folder '", "none': expected a folder; there is none. Make it or correct the path."});
    check_words([&] { library.add_folder(folder.path() / "sgemm/avx512.json"); }, {"error[schedule.folder]"});
    folder.write("x.json", Schedule("y").text());
    check_words([&] { library.find("x"); }, {"error[schedule.name-mismatch]: schedule file '",
                                             "expected \"name\": \"x\", as its path says; got 'y'. Rename the one or the other."});
}

TEST_CASE("two schedules of one name: the words") {
    Library library;
    library.add(Schedule("a"));
    CHECK_NOTHROW(library.add(Schedule("a")));
    check_words(
        [&] { library.add(Schedule("a").extends("b")); },
        {"error[schedule.duplicate]: schedule 'a': another schedule is registered under this name. Give one of them another name."});
}

TEST_CASE("a cycle is refused with its chain") {
    Library library;
    library.add(Schedule("a").extends("b"));
    library.add(Schedule("b").extends("c"));
    library.add(Schedule("c").extends("a"));
    check_words([&] { library.ancestry(library.find("a")); },
                {"error[schedule.cycle]: schedule 'a': it extends itself: a -> b -> c -> a. Let one of them extend something else."});
    check_words([&] { library.ancestry(Schedule("d").extends("b")); }, {"d -> b -> c -> a -> b."});
    check_words([] { Library().ancestry(Schedule("s").extends("s")); }, {"s -> s."});
}

TEST_CASE("64 ancestors are enough; a chain of 1000 is refused, by name, by file and by value") {
    Library library;
    const Folder folder;
    Schedule value("v0");
    for (int i = 1; i < 1000; i++) {
        const std::string self = std::to_string(i), parent = std::to_string(i - 1);
        library.add(Schedule("n" + self).extends("n" + parent));
        if (i <= 100) folder.write(Schedule("f" + self).extends("f" + parent));
        value = Schedule("v" + self).extends(value);
    }
    library.add(Schedule("n0"));
    CHECK(library.ancestry(library.find("n64")).size() == 65);
    check_words([&] { library.ancestry(library.find("n65")); }, {"error[schedule.depth]: schedule 'n65': expected at most 64 ancestors; "
                                                                 "got more: n65 -> n64 -> … -> n1 -> n0. Flatten one of them."});
    check_words([&] { library.ancestry(library.find("n999")); }, {"n999 -> n998 -> … -> n935 -> n934."});
    check_words([&] { folder.library().ancestry(Schedule("x").extends("f100")); }, {"error[schedule.depth]"});
    check_words([&] { resolve(value, library); }, {"error[schedule.depth]"});
}

TEST_CASE("an error in a parent's file names that file or schedule") {
    const Folder folder;
    folder.write("p.json", "{\"format\": ");
    check_words([&] { folder.library().ancestry(Schedule("c").extends("p")); }, {"p.json"});
    folder.write("p.json", R"({"format": "tessera-schedule", "version": 1, "name": "p", "stages": {"acc": {"blok": {}}}})");
    check_words([&] { folder.library().ancestry(Schedule("c").extends("p")); },
                {"error[schedule.unknown-knob]: schedule 'p' at /stages/acc/blok"});
}

}  // namespace tessera::test_library
