// For as long as it lives, a first SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal is gone) asks for an end in order and a second one for
// an end at once; a third ends the program. Where SIGHUP is ignored (nohup), it stays so.
#pragma once
#include <atomic>

namespace tessera {

class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption &) = delete;
    Interruption &operator=(const Interruption &) = delete;
    const std::atomic<bool> *asked() const;
    const std::atomic<bool> *asked_again() const;

private:
    void (*interrupt_)(int), (*terminate_)(int), (*hangup_)(int);
};

}  // namespace tessera
