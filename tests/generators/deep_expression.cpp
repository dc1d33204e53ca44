// A formula of a thousand operations one inside another, on the small stack that a shell may give.
#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/text/json.h"
#include "support/files/json_text.h"
#include "tests/generators/harness.h"

namespace tessera::test_deep_expression {

using namespace tessera::test;

// A polynomial of degree n by Horner's rule.
static Algorithm horner(int n) {
    Builder f("horner", {});
    const Tile x = f.input("x", {f.dim("N")});
    Tile y = x;
    for (int i = 0; i < n; i++) y = y * x + 1.0;
    return f.output("y", y).build();
}

TEST_CASE("a formula a thousand deep becomes a kernel on a stack of 256 KiB") {
    const TemporaryFolder folder;
    for (int n : {1000, 2000}) {
        write_file(folder.path() / "horner.json", json_text(to_json(horner(n))));
        const std::string shell = "cd '" + folder.path().string() + "' && ulimit -s 256 && ";
        for (const char *arguments : {"show horner.json --what tiles --schedule none --target avx2 --quiet",
                                      "generate horner.json --schedule none --target avx2 --quiet --out library",
                                      "generate horner.json --schedule none --target avx2 --quiet --emit c --out source",
                                      "verify horner.json --schedule none --target x86-64 --quiet"}) {
            const Outcome outcome = stock_generator(arguments, shell);
            INFO(n << " " << arguments << "\n" << outcome.err);
            CHECK(outcome.code == 0);
        }
    }
}

}  // namespace tessera::test_deep_expression
