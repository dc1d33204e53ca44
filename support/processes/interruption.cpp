#include "support/processes/interruption.h"

#include <signal.h>

namespace tessera {

static std::atomic<bool> once{false}, twice{false};

static void interrupt(int signal_number) {
    if (twice) signal(signal_number, SIG_DFL);
    if (once) twice = true;
    once = true;
}

static constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGHUP};

Interruption::Interruption() {
    for (size_t i = 0; i < signals.size(); i++) {
        before_[i] = signal(signals[i], interrupt);
        if (before_[i] == SIG_IGN) signal(signals[i], SIG_IGN);
    }
    once = twice = false;
}
Interruption::~Interruption() {
    for (size_t i = 0; i < signals.size(); i++) signal(signals[i], before_[i]);
}
const std::atomic<bool> *Interruption::asked() const { return &once; }
const std::atomic<bool> *Interruption::asked_again() const { return &twice; }

}  // namespace tessera
