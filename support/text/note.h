// What somebody who asked for something may want to know of what came out, though nothing is wrong. Libraries give notes as values, and
// whoever talks to people prints them.
#pragma once
#include <string>
#include <vector>

namespace tessera {

struct Note {
    std::string id;  // what kind it is, "schedule.register-tile", as errors have one
    std::string text;
    friend bool operator==(const Note &, const Note &) = default;
};

}  // namespace tessera
