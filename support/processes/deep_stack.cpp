#include "support/processes/deep_stack.h"

#include <pthread.h>

namespace tessera {

namespace {

// An expression has up to 4096 levels, and the deepest walk takes some kilobytes for each. Only what is touched becomes memory.
constexpr size_t bytes = size_t{64} << 20;

struct Run {
    const std::function<int()> &f;
    int result = 0;
};

void *start(void *argument) {
    Run &run = *static_cast<Run *>(argument);
    run.result = run.f();
    return nullptr;
}

}  // namespace

int on_deep_stack(const std::function<int()> &f) {
    Run run{f};
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return f();
    pthread_t thread;
    const bool is_deep = pthread_attr_setstacksize(&attributes, bytes) == 0 && pthread_setattr_default_np(&attributes) == 0 &&
                         pthread_create(&thread, &attributes, start, &run) == 0;
    pthread_attr_destroy(&attributes);
    if (!is_deep) return f();
    pthread_join(thread, nullptr);
    return run.result;
}

}  // namespace tessera
