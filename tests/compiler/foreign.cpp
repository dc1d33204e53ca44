#include "tests/compiler/foreign.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/compiler/foreign_call.h"
#include "tests/compiler/harness.h"

extern char **environ;

namespace tessera::test {

static bool found(const std::string &path) { return !path.empty() && path.find("NOTFOUND") == std::string::npos; }

static Toolchain arm64() {
    Toolchain tools{TESSERA_ARM64_CC, "-static -pthread", {TESSERA_ARM64_EMULATOR}, ""};
    if (!found(TESSERA_ARM64_CC)) tools.missing += " gcc-aarch64-linux-gnu libc6-dev-arm64-cross";
    if (!found(TESSERA_ARM64_EMULATOR)) tools.missing += " qemu-user";
    if (!tools.missing.empty()) tools.missing += "; ./tessera setup installs what tests need";
    return tools;
}

// Kernels keep arrays on the stack, of which a WebAssembly program has 64 KiB unless it asks for more.
static Toolchain wasm32() {
    Toolchain tools{std::string(TESSERA_WASM_CC) + " --target=wasm32-wasi -msimd128",
                    "-Wl,-z,stack-size=1048576",
                    {TESSERA_NODE, "--no-warnings", "--experimental-wasi-unstable-preview1", TESSERA_SOURCE_DIR "/tests/compiler/wasi.mjs"},
                    ""};
    if (!found(TESSERA_WASM_CC)) tools.missing += " clang";
    if (!found(TESSERA_WASM_LINKER)) tools.missing += " lld";
    if (!found(TESSERA_WASM_LIBC)) tools.missing += " wasi-libc";
    if (!found(TESSERA_WASM_BUILTINS)) tools.missing += " libclang-rt-14-dev-wasm32";
    if (!found(TESSERA_NODE)) tools.missing += " nodejs";
    if (!tools.missing.empty()) tools.missing += "; install these Debian packages to test WebAssembly";
    return tools;
}

Toolchain toolchain_for(Arch arch) {
    if (arch == Arch::arm64) return arm64();
    if (arch == Arch::wasm32) return wasm32();
    throw std::runtime_error("there is no toolchain for " + std::string(name_of(arch)));
}

Foreign::Foreign(const std::filesystem::path &folder, const std::string &code, const Toolchain &tools) {
    const std::string at = folder.string();
    std::string command = tools.compiler + " -std=gnu11 -O1 -I'" TESSERA_SOURCE_DIR "/runtime/abi' -I'" TESSERA_SOURCE_DIR "' -o '" + at +
                          "/kernels' '" + at + "/glue.c' '" TESSERA_SOURCE_DIR "/tests/compiler/foreign_main.c' " TESSERA_RUNTIME_SOURCES;
    command += " '" + code + "' " + tools.linking + " -lm > '" + at + "/log' 2>&1";
    if (std::system(command.c_str()) != 0) {
        std::ifstream log(folder / "log");
        throw std::runtime_error("the library does not link: " + std::string(std::istreambuf_iterator<char>(log), {}));
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no socket");
    socket_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    std::vector<std::string> words = tools.emulator;
    words.push_back(at + "/kernels");
    std::vector<char *> argv;
    for (std::string &word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error = posix_spawn(&child_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) throw std::runtime_error("no process for " + words[0]);
}

Foreign::~Foreign() {
    close(socket_);
    if (child_) waitpid(child_, nullptr, 0);
}

void Foreign::ended() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    throw std::runtime_error("the kernel's process ended with " +
                             (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : std::to_string(WEXITSTATUS(status))));
}

void Foreign::send_bytes(const void *data, size_t n) {
    const char *at = static_cast<const char *>(data);
    while (n) {
        const ssize_t sent = send(socket_, at, n, MSG_NOSIGNAL);
        if (sent <= 0) ended();
        at += sent, n -= static_cast<size_t>(sent);
    }
}

void Foreign::receive(void *data, size_t n) {
    char *at = static_cast<char *>(data);
    while (n) {
        const ssize_t got = recv(socket_, at, n, 0);
        if (got <= 0) ended();
        at += got, n -= static_cast<size_t>(got);
    }
}

int Foreign::call(size_t kernel, const std::vector<TessTensor> &tensors, const std::vector<Span> &spans,
                  const std::vector<int64_t> &parameters, const Layout &layout) {
    if (!child_) throw std::runtime_error("the kernel's process has ended before");
    ForeignCall head{};
    head.kernel = static_cast<int32_t>(kernel), head.threads = layout.threads, head.at_end = layout.at_end;
    head.tensors = static_cast<int32_t>(tensors.size()), head.parameters = static_cast<int32_t>(parameters.size());
    send_bytes(&head, sizeof head);
    send_bytes(parameters.data(), parameters.size() * sizeof(int64_t));
    for (size_t i = 0; i < tensors.size(); i++) {
        ForeignTensor t{};
        std::copy_n(tensors[i].extents, tensors[i].rank, t.extents);
        t.strided = tensors[i].strides != nullptr;
        if (t.strided) std::copy_n(tensors[i].strides, tensors[i].rank, t.strides);
        t.byte_offset = tensors[i].byte_offset;
        t.dtype = tensors[i].type.code | tensors[i].type.bits << 8, t.rank = tensors[i].rank, t.bytes = spans[i].bytes,
        t.gap = spans[i].gap;
        send_bytes(&t, sizeof t);
        send_bytes(spans[i].data, spans[i].bytes);
    }
    ForeignReply reply{};
    receive(&reply, sizeof reply);
    for (const Span &span : spans) receive(span.data, span.bytes);
    if (reply.damaged >= 0) throw std::runtime_error("the kernel writes beside tensor " + std::to_string(reply.damaged));
    return reply.status;
}

}  // namespace tessera::test
