// Names a process so that another one can tell whether it still runs. A process number alone is not enough: sooner or later another
// process gets it.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

struct Owner {
    std::string host, boot;  // the machine, with the namespace that numbers its processes; which boot of it
    int64_t process = 0;
    std::string started;  // clock ticks after the start of the machine, as the system tells them

    friend bool operator==(const Owner &, const Owner &) = default;
};

Owner this_process();
bool is_here(const Owner &owner);  // on this machine, or in this container, under whatever name
// Whether the process runs. One of another machine or container is taken to run, since nothing can be known about it.
bool is_alive(const Owner &owner);

}  // namespace tessera
