#include "support/files/npz.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "support/text/error.h"
#include "tests/support/npz_file.h"

using namespace tessera;
using namespace tessera::test;

namespace {

std::string refused(const std::string &content) {
    try {
        const Npz arrays(content, "f.npz");
    } catch (const UserError &e) { return e.what(); }
    return "";
}

std::string refused_header(const std::string &header, const std::string &data = std::string(4, 'x')) {
    return refused(zip_of({{"x.npy", npy(header, data)}}));
}

}  // namespace

TEST_CASE("npz: arrays by name, with types and shapes") {
    const Npz arrays(zip_of({{"w.npy", floats("(2, 3)", 6)},
                             {"b.npy", floats("(3,)", 3)},
                             {"s.npy", npy("{'shape': (), 'descr': '|b1', 'fortran_order': False}", "\1", 2)},
                             {"none.npy", floats("(0, 5)", 0)}}),
                     "f.npz");
    REQUIRE(arrays.arrays().size() == 4);
    const NpyArray &b = arrays.arrays()[0], &none = arrays.arrays()[1], &s = arrays.arrays()[2], &w = arrays.arrays()[3];
    CHECK((b.name == "b" && b.type == "<f4" && b.extents == std::vector<int64_t>{3} && b.bytes == std::string(12, '\x3f')));
    CHECK((none.extents == std::vector<int64_t>{0, 5} && none.bytes.empty()));
    CHECK((s.type == "|b1" && s.extents.empty() && s.bytes == "\1"));
    CHECK((w.name == "w" && w.extents == std::vector<int64_t>{2, 3}));
}

TEST_CASE("npz: what is no such file is refused in words") {
    const std::string good = zip_of({{"x.npy", floats("(2,)", 2)}});
    CHECK(refused(good).empty());
    CHECK_THAT(refused("no zip"),
               Catch::StartsWith("error[npz.zip]: file of arrays 'f.npz': expected a zip; it has no end of a directory."));
    CHECK_THAT(refused(zip_of({{"x.npy", floats("(2,)", 2), 8}})),
               Catch::StartsWith("error[npz.compressed]") && Catch::Contains("numpy.savez"));
    std::string damaged = good;
    damaged[good.find('\x3f')] = 0;
    CHECK_THAT(refused(damaged), Catch::StartsWith("error[npz.checksum]"));
    CHECK_THAT(refused(zip_of({{"x.txt", "words"}})), Catch::StartsWith("error[npz.array]"));
    CHECK_THAT(refused(zip_of({{"x.npy", floats("(2,)", 2)}, {"x.npy", floats("(2,)", 2)}})), Catch::StartsWith("error[npz.repeated]"));
    CHECK_THAT(refused(zip_of({{"x.npy", floats("(3,)", 2)}})), Catch::Contains("type and shape ask for 12 bytes; it has 8."));
    CHECK_THAT(refused_header("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}"), Catch::Contains("column-major"));
    CHECK_THAT(refused_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), Catch::Contains("its type is '|O'"));
    CHECK_THAT(refused_header("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}"), Catch::Contains("its type is '>f4'"));
    for (const char *header :
         {"", "{", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "{'descr': '<f4', 'shape': (1,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (1}", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} more",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"})
        CHECK_THAT(refused_header(header), Catch::Contains("its header is none of an array of plain numbers"));
    CHECK_THAT(refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}"),
               Catch::Contains("more bytes than fit in 64 bits"));
}

TEST_CASE("npz: a file that is cut or changed anywhere is read or refused, and nothing else") {
    const std::string good = zip_of({{"x.npy", floats("(2,)", 2)}, {"y.npy", floats("(1, 1)", 1)}});
    for (size_t size = 0; size < good.size(); size++) CHECK(refused(good.substr(0, size)) != "");
    std::mt19937 random(1);
    for (int i = 0; i < 20000; i++) {
        std::string changed = good;
        for (uint32_t n = random() % 3 + 1; n > 0; n--)
            changed[random() % changed.size()] = static_cast<char>(random() % 4 ? random() : 0xff);
        refused(changed);
    }
}
