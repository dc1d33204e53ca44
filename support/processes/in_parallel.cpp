#include "support/processes/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace tessera {

void for_each_in_parallel(size_t count, const std::function<void(size_t)> &f) {
    std::atomic<size_t> next = 0;
    std::vector<std::exception_ptr> failures(count);
    auto work = [&] {
        for (size_t i; (i = next++) < count;) {
            try {
                f(i);
            } catch (...) { failures[i] = std::current_exception(); }
        }
    };
    std::vector<std::thread> others;
    const size_t workers = std::min<size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
    try {
        while (others.size() + 1 < workers) others.emplace_back(work);
    } catch (const std::system_error &) {}  // those that there are do it
    work();
    for (std::thread &t : others) t.join();
    for (const std::exception_ptr &failure : failures)
        if (failure) std::rethrow_exception(failure);
}

}  // namespace tessera
