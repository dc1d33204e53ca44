#include "generators/interruption.h"

#include <signal.h>

namespace tessera {

static std::atomic<bool> once{false}, twice{false};

static void interrupt(int signal_number) {
    if (twice) signal(signal_number, SIG_DFL);
    if (once) twice = true;
    once = true;
}

Interruption::Interruption()
    : interrupt_(signal(SIGINT, interrupt)), terminate_(signal(SIGTERM, interrupt)), hangup_(signal(SIGHUP, interrupt)) {
    if (hangup_ == SIG_IGN) signal(SIGHUP, SIG_IGN);  // under nohup
    once = twice = false;
}
Interruption::~Interruption() {
    signal(SIGINT, interrupt_);
    signal(SIGTERM, terminate_);
    signal(SIGHUP, hangup_);
}
const std::atomic<bool> *Interruption::asked() const {
    return &once;
}
const std::atomic<bool> *Interruption::asked_again() const {
    return &twice;
}

}  // namespace tessera
