#include "support/containers/small_vector.h"

#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <string>

namespace tessera::test_small_vector {

namespace {

using Counted = std::shared_ptr<int>;
using List = SmallVector<Counted, 2>;

// Vectors of each length about that which lies in the vector itself.
List list_of(const Counted &one, size_t count) {
    List list;
    for (size_t i = 0; i < count; i++) list.push_back(one);
    return list;
}

}  // namespace

TEST_CASE("a small vector: its elements live and end as a vector's do, wherever they lie") {
    const auto one = std::make_shared<int>(1);
    for (size_t count : {0, 1, 2, 3, 4, 9}) {
        CAPTURE(count);
        const long all = static_cast<long>(count) + 1;
        {
            List list = list_of(one, count);
            CHECK(list.size() == count);
            CHECK(list.empty() == (count == 0));
            CHECK(one.use_count() == all);
            List copy = list;
            CHECK(one.use_count() == 2 * all - 1);
            List moved = std::move(copy);
            CHECK(copy.empty());
            CHECK(moved.size() == count);
            CHECK(one.use_count() == 2 * all - 1);
            copy = moved;
            moved = std::move(copy);
            CHECK(one.use_count() == 2 * all - 1);
            const List &same = moved;
            moved = same;
            CHECK(moved.size() == count);
            moved.clear();
            CHECK(one.use_count() == all);
            for (size_t other : {0, 1, 3}) {
                List target = list_of(one, other);
                target = list;
                CHECK(one.use_count() == 2 * all - 1);
                target = list_of(one, other);
                CHECK(target.size() == other);
            }
            copy.push_back(one);
            CHECK(copy.back() == one);
            list = std::move(*&list);
            CHECK(list.size() == count);
        }
        CHECK(one.use_count() == 1);
    }
}

TEST_CASE("a small vector: from and to other lists") {
    std::vector<int> numbers(7);
    std::iota(numbers.begin(), numbers.end(), 0);
    const SmallVector<int, 3> list = numbers;
    CHECK(std::equal(list.begin(), list.end(), numbers.begin(), numbers.end()));
    const std::vector<int> back = list;
    CHECK(back == numbers);

    const auto one = std::make_shared<int>(1);
    std::vector<Counted> owners(3, one);
    const List taken = std::move(owners);
    CHECK(one.use_count() == 4);  // moved, not copied
    CHECK(List{one, one}.size() == 2);

    SmallVector<int, 3> more{1, 2};
    more.append(numbers.begin(), numbers.end());
    CHECK(std::vector<int>(more) == std::vector<int>{1, 2, 0, 1, 2, 3, 4, 5, 6});
    more.append(numbers.end(), numbers.end());
    CHECK(more.size() == 9);
    erase_if(more, [](int i) { return i % 2 == 0; });
    CHECK(std::vector<int>(more) == std::vector<int>{1, 1, 3, 5});
    more.pop_back();
    CHECK(more.back() == 3);
    erase_if(more, [](int) { return true; });
    CHECK(more.empty());
}

TEST_CASE("a small vector: an element of its own can be added where it grows") {
    SmallVector<std::string, 2> list{"the first one, too long to lie in the string itself", "b"};
    for (int i = 0; i < 20; i++) list.push_back(list[0]);
    CHECK(list.size() == 22);
    CHECK(list.back() == list[0]);
}

}  // namespace tessera::test_small_vector
