// A file that lies in memory and has a path all the same: for a library that writes to paths and ends its process, or gives words
// of its own, where a disk is full.
#pragma once
#include <string>

namespace tessera {

class MemoryFile {
public:
    MemoryFile();  // UserError machine.exhausted where there can be no more open files
    ~MemoryFile();
    MemoryFile(const MemoryFile &) = delete;
    MemoryFile &operator=(const MemoryFile &) = delete;

    // Shared by this process and those that it forks, while the object lives; what one writes there, all read.
    std::string path() const;
    std::string text() const;

private:
    int descriptor_;
};

}  // namespace tessera
