#include "algorithms/evaluate/lazy_array.h"

#include <catch2/catch.hpp>

#include <cstring>

#include "support/text/error.h"

namespace tessera::test_lazy_array {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

TEST_CASE("elements of a lazy array are made when they are first used, each chunk once") {
    Ranges made;
    LazyArray array(
        DType::i32, {5, 7},
        [&](int64_t first, int64_t count, std::byte *to) {
            made.emplace_back(first, count);
            for (int64_t i = 0; i < count; i++) {
                const auto value = static_cast<int32_t>(first + i);
                std::memcpy(to + 4 * i, &value, sizeof value);
            }
        },
        2);
    const TensorView view = array.view("x");
    CHECK(made.empty());
    auto value = [&](int64_t i, int64_t j) {
        const int64_t index[] = {i, j};
        return load_register(DType::i32, view.address(index)).integer;
    };
    CHECK(value(1, 2) == 9);
    CHECK(value(1, 4) == 11);
    CHECK(value(4, 6) == 34);
    CHECK(value(1, 5) == 12);
    CHECK(made == Ranges{{8, 4}, {32, 3}, {12, 4}});
    CHECK(array.used() == Ranges{{8, 8}, {32, 3}});
    CHECK(load_register(DType::i32, array.at(10)).integer == 10);
    CHECK_THROWS_AS(value(5, 0), InternalError);
    CHECK(made.size() == 3);
}

TEST_CASE("a tape uses the elements that it loads, and no others") {
    size_t chunks = 0;
    LazyArray array(
        DType::f32, {1 << 20},
        [&](int64_t first, int64_t count, std::byte *to) {
            chunks++;
            for (int64_t i = 0; i < count; i++) {
                const auto v = static_cast<float>(first + i);
                std::memcpy(to + 4 * i, &v, sizeof v);
            }
        },
        4);
    const TensorView view = array.view("x");
    const Tape tape({load("x", DType::f32, {variable("i")})}, {[](const Expr &) { return 0; }, [](const std::string &) { return 0; }}, 1);
    std::vector<Register> frame(static_cast<size_t>(tape.end()));
    tape.prepare(frame.data());
    for (const int64_t at : {5000, 5007, 70, (1 << 20) - 1}) {
        frame[0].integer = at;
        tape.run(frame.data(), &view);
        CHECK(frame[static_cast<size_t>(tape.result(0))].f32 == static_cast<float>(at));
    }
    CHECK(chunks == 3);
}

}  // namespace tessera::test_lazy_array
