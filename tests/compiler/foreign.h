// Kernels for another kind of processor, run by an emulator in a process of their own, which is fed through a socket.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/tessera.h"

namespace tessera::test {

struct Layout;

// How kernels for an architecture are linked and run here.
struct Toolchain {
    std::string compiler;  // a C compiler, by path
    std::string emulator;  // runs what it links
    std::string missing;   // "" or the Debian packages that are not installed
};
Toolchain toolchain_for(const std::string &arch);

// Bytes of one tensor from its lowest to its highest element.
struct Span {
    std::byte *data;
    size_t bytes, gap;  // gap: bytes between it and the page that nobody may touch
};

class Foreign {
public:
    // Links glue.c, which defines `entries` of foreign_main.c, and libkernels.a in `folder`, and starts the emulator.
    Foreign(const std::filesystem::path &folder, const Toolchain &tools);
    ~Foreign();
    Foreign(const Foreign &) = delete;
    Foreign &operator=(const Foreign &) = delete;

    // Calls entry `kernel` on copies of the spans, laid out as here, and brings them back. Gives a status. Throws
    // std::runtime_error when the process ends or memory beside a span has changed.
    int call(size_t kernel, const std::vector<TessTensorDesc> &tensors, const std::vector<Span> &spans, const std::vector<int64_t> &parameters,
             const Layout &layout);

private:
    int socket_ = -1;
    int child_ = 0;
    void send_bytes(const void *data, size_t n);
    void receive(void *data, size_t n);
    [[noreturn]] void ended();
};

}  // namespace tessera::test
