// Who works on something: a process, so named that another process can tell whether it still runs. A number alone does not do: it is
// given to another process sooner or later.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

struct Owner {
    std::string host, boot;  // of the machine, with the namespace that numbers its processes; which start of it
    int64_t process = 0;
    std::string started;  // clock ticks after the start of the machine, as the system tells them

    friend bool operator==(const Owner &, const Owner &) = default;
};

Owner this_process();
bool is_here(const Owner &owner);  // on this machine, or in this container, under whatever name
// Whether it runs. Of another machine's or container's nothing can be known: it is taken to run.
bool is_alive(const Owner &owner);

}  // namespace tessera
