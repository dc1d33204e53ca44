#include "support/processes/interruption.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tessera {

namespace {

std::atomic<bool> once{false}, twice{false};

// A handler may not wait for a lock, so words are written where it does not look, and then it is told to look there.
struct Words {
    std::array<char, 1000> text[2];  // at the first signal, and at the second
    size_t size[2] = {0, 0};
};
std::array<Words, 2> words;
std::atomic<size_t> current{0};

void tell(size_t which) {
    const Words &w = words[current];
    const int error = errno;
    if (w.size[which] > 0 && write(2, w.text[which].data(), w.size[which]) < 0) errno = error;  // there is nobody else to tell
    errno = error;
}

void interrupt(int signal_number) {
    if (twice) signal(signal_number, SIG_DFL);
    else tell(once ? 1 : 0);
    if (once) twice = true;
    once = true;
}

}  // namespace

static constexpr std::array<int, 3> signals = {SIGINT, SIGTERM, SIGHUP};

Interruption::Interruption() {
    for (size_t i = 0; i < signals.size(); i++) {
        before_[i] = signal(signals[i], interrupt);
        if (before_[i] == SIG_IGN) signal(signals[i], SIG_IGN);
    }
    once = twice = false;
    say("", "");
}

void Interruption::say(const std::string &at_first, const std::string &at_second) {
    const size_t next = 1 - current;
    for (const auto &[which, text] : {std::pair<size_t, const std::string &>(0, at_first), {1, at_second}}) {
        words[next].size[which] = std::min(text.size(), words[next].text[which].size());
        std::copy_n(text.begin(), words[next].size[which], words[next].text[which].begin());
    }
    current = next;
}

Interruption::~Interruption() {
    for (size_t i = 0; i < signals.size(); i++) signal(signals[i], before_[i]);
}
const std::atomic<bool> *Interruption::asked() const { return &once; }
const std::atomic<bool> *Interruption::asked_again() const { return &twice; }

}  // namespace tessera
