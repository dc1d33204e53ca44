#include "autotune/task_share.h"

#include <catch2/catch.hpp>

using namespace tessera;

TEST_CASE("a budget goes to the task that promises most") {
    const TaskShare fresh{1, {0.1}, {1}}, slow{1, {1.0, 1.0}, {1, 8}}, fast{1, {0.1, 0.1}, {1, 8}};
    CHECK(next_task({slow, fresh, fresh}) == 1);
    CHECK(next_task({fast, slow}) == 1);
    TaskShare often = fast;
    often.weight = 20;
    CHECK(next_task({slow, often}) == 1);
    CHECK(next_task({fast, fast}) == 0);
    TaskShare closed = slow;
    closed.is_open = false;
    CHECK(next_task({fast, closed}) == 0);
    CHECK(!next_task({closed}));
    CHECK(!next_task({}));
}

TEST_CASE("what gets better goes on, what stands still gives way") {
    const TaskShare still{1, {1, 1, 1}, {8, 16, 24}}, moving{1, {1, 0.9, 0.8}, {8, 16, 24}};
    CHECK(expected_gain(moving) > expected_gain(still));
    TaskShare tried = still;
    tried.trials = {80, 160, 240};
    CHECK(expected_gain(still) > expected_gain(tried));
}
