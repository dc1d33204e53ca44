// Kernels for another kind of processor, run by an emulator or an engine in a process of their own, which is fed through a socket.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/abi/tessera.h"
#include "schedules/target/target.h"

namespace tessera::test {

struct Layout;

// How kernels for an architecture are linked and run here.
struct Toolchain {
    std::string compiler;               // a C compiler with its options, for a shell
    std::string linking;                // more options for programs
    std::vector<std::string> emulator;  // the words that run a program whose path follows
    std::string missing;                // "" or the Debian packages that are not installed, and what to do
};
Toolchain toolchain_for(tessera::Arch arch);

// Bytes of one tensor from its lowest to its highest element.
struct Span {
    std::byte *data;
    size_t bytes, gap;  // gap: bytes between it and the page that nobody may touch
};

class Foreign {
public:
    // Links glue.c, which defines `entries` of foreign_main.c, in `folder` with `code`, a library or an object, and starts the emulator.
    Foreign(const std::filesystem::path &folder, const std::string &code, const Toolchain &tools);
    ~Foreign();
    Foreign(const Foreign &) = delete;
    Foreign &operator=(const Foreign &) = delete;

    // Calls entry `kernel` on copies of the spans, laid out as here, and brings them back. Gives a status. Throws
    // std::runtime_error when the process ends or memory beside a span has changed.
    int call(size_t kernel, const std::vector<TessTensor> &tensors, const std::vector<Span> &spans, const std::vector<int64_t> &parameters,
             const Layout &layout);

private:
    int socket_ = -1;
    int child_ = 0;
    void send_bytes(const void *data, size_t n);
    void receive(void *data, size_t n);
    [[noreturn]] void ended();
};

}  // namespace tessera::test
