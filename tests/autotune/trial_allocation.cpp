#include "autotune/search/trial_allocation.h"

#include <catch2/catch.hpp>

namespace tessera::test_trial_allocation {

TEST_CASE("a budget goes to the task that promises most") {
    const AllocatedTask fresh{1, {0.1}, {1}}, slow{1, {1.0, 1.0}, {1, 8}}, fast{1, {0.1, 0.1}, {1, 8}};
    CHECK(next_task({slow, fresh, fresh}) == 1);
    CHECK(next_task({fast, slow}) == 1);
    AllocatedTask often = fast;
    often.weight = 20;
    CHECK(next_task({slow, often}) == 1);
    CHECK(next_task({fast, fast}) == 0);
    AllocatedTask closed = slow;
    closed.is_open = false;
    CHECK(next_task({fast, closed}) == 0);
    CHECK(!next_task({closed}));
    CHECK(!next_task({}));
}

TEST_CASE("what was not searched yet comes first, the heaviest first") {
    std::vector<AllocatedTask> tasks = {{0.001, {0.5}, {1}}, {1000, {0.001}, {1}}, {1000, {0.002}, {1}}};
    std::vector<size_t> order;
    for (int i = 0; i < 4; i++) {
        order.push_back(*next_task(tasks));
        AllocatedTask &task = tasks[order.back()];
        task.best.push_back(task.best.back()), task.trials.push_back(task.trials.back() + 8);
    }
    CHECK(order == std::vector<size_t>{2, 1, 0, 2});  // the light one has its first batch too
    tasks[1].best.clear(), tasks[1].trials.clear();
    CHECK(next_task(tasks) == 1);
}

TEST_CASE("what gets better goes on, what stands still gives way") {
    const AllocatedTask still{1, {1, 1, 1}, {8, 16, 24}}, moving{1, {1, 0.9, 0.8}, {8, 16, 24}};
    CHECK(expected_gain(moving) > expected_gain(still));
    AllocatedTask tried = still;
    tried.trials = {80, 160, 240};
    CHECK(expected_gain(still) > expected_gain(tried));
}

}  // namespace tessera::test_trial_allocation
