// While an Interruption lives, the first SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal is gone) asks for an orderly end, the
// second for an end at once, and the third ends the program. A signal that is ignored stays ignored: SIGHUP under nohup, SIGINT in
// the background of a script.
#pragma once
#include <array>
#include <atomic>
#include <string>

namespace tessera {

class Interruption {
public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption &) = delete;
    Interruption &operator=(const Interruption &) = delete;
    const std::atomic<bool> *asked() const;
    const std::atomic<bool> *asked_again() const;
    // What stderr is told at once when the first signal comes, and when the second does; of each at most 1000 bytes. Of one thread.
    void say(const std::string &at_first, const std::string &at_second);

private:
    std::array<void (*)(int), 3> before_{};  // what the signals did
};

}  // namespace tessera
