// A formula of a thousand operations one inside another, on the small stack that a thread or a shell may give.
#include <pthread.h>
#include <catch2/catch.hpp>

#include <functional>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "tests/generators/harness.h"

namespace tessera::test_deep_expression {

using namespace tessera::test;

// A polynomial of degree n by Horner's rule.
static Algorithm horner(int n, const Numerics &numerics) {
    Builder f("horner", numerics);
    const Tile x = f.input("x", {f.dim("N")});
    Tile y = x;
    for (int i = 0; i < n; i++) y = y * x + 1.0;
    return f.output("y", y).build();
}

static void *call(void *f) {
    (*static_cast<const std::function<void()> *>(f))();
    return nullptr;
}

static void on_small_stack(const std::function<void()> &f) {
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, size_t{256} << 10) == 0);
    REQUIRE(pthread_create(&thread, &attributes, call, const_cast<std::function<void()> *>(&f)) == 0);
    pthread_attr_destroy(&attributes);
    pthread_join(thread, nullptr);
}

TEST_CASE("a formula a thousand deep becomes a kernel on a stack of 256 KiB") {
    const TemporaryFolder folder;
    for (int n : {1000, 2000}) {
        Registry registry;
        registry.add("horner", "a polynomial", [n](const Numerics &numerics) { return horner(n, numerics); });
        const std::string out = folder.path().string();
        for (const std::vector<std::string> &what : {std::vector<std::string>{"show", "--what", "tiles"},
                                                     {"generate", "--out", out + "/library"},
                                                     {"generate", "--emit", "c", "--out", out + "/source"},
                                                     {"verify"}}) {
            std::vector<std::string> arguments = {what[0], "horner", "--schedule", "none", "--target", "x86-64", "--quiet"};
            arguments.insert(arguments.end(), what.begin() + 1, what.end());
            Outcome outcome;
            on_small_stack([&] { outcome = generator(arguments, registry); });
            INFO(n << " " << what[0] << "\n" << outcome.err);
            CHECK(outcome.code == 0);
        }
    }
}

}  // namespace tessera::test_deep_expression
