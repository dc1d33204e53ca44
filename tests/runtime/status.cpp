#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>

#include "runtime/gpu.h"
#include "tests/runtime/toy_kernel.h"

namespace tessera::test_status {

using namespace tessera::test;

namespace {

std::string reason(int kind, int64_t detail = -1) { return words(tess_abi1_status(kind, -1, -1, detail)); }

}  // namespace

TEST_CASE("a message names the argument and the dimension") {
    const int status = tess_abi1_status(TESS_EXTENT_MULTIPLE, 2, 1, 16);
    CHECK(words(status, {"x", "b", "w"}) == "argument 2 ('w'), dimension 1: extent must be a multiple of 16");
    CHECK(words(status) == "argument 2, dimension 1: extent must be a multiple of 16");
    CHECK(words(status, {"x", "b", nullptr}) == "argument 2, dimension 1: extent must be a multiple of 16");
    CHECK(words(tess_abi1_status(TESS_RANK, 0, -1, 2), {"x"}) == "argument 0 ('x'): rank must be 2");
}

TEST_CASE("every kind has a word of its own") {
    std::set<std::string> kinds;
    for (int kind = 1; kind < TESS_STATUS_KIND_COUNT; ++kind) {
        const int status = tess_abi1_status(kind, -1, -1, -1);
        kinds.insert(tess_status_kind(status));
        CHECK_FALSE(words(status).empty());
    }
    CHECK(kinds.size() == TESS_STATUS_KIND_COUNT - 1);
    CHECK(kinds.count("unknown") == 0);
    CHECK(std::string(tess_status_kind(tess_abi1_status(TESS_KERNEL, -1, -1, -1))) == "kernel");
    CHECK(std::string(tess_status_kind(tess_abi1_status(TESS_EXTENT_MULTIPLE, -1, -1, -1))) == "extent-multiple");
    CHECK(std::string(tess_status_kind(tess_abi1_status(TESS_WORKSPACE_MISALIGNED, 0, 0, 0))) == "workspace-misaligned");
}

TEST_CASE("zero is ok, and an int that is no status says so") {
    CHECK(words(0) == "ok");
    CHECK(std::string(tess_status_kind(0)) == "ok");
    CHECK(tess_status_code(0) == TESS_OK);
    CHECK(tess_status_argument(0) == -1);
    CHECK(tess_status_dimension(0) == -1);
    for (int alien : {-1, 1, 65535, TESS_STATUS_KIND_COUNT << 26, INT32_MAX, INT32_MIN}) {
        CHECK(tess_status_code(alien) == TESS_STATUS_KIND_COUNT);
        CHECK(std::string(tess_status_kind(alien)) == "unknown");
        CHECK(words(alien) == "no status of a kernel: " + std::to_string(alien));
    }
}

TEST_CASE("the words of every kind") {
    CHECK(reason(TESS_NULL_ARGUMENT) == "a pointer for the result is null");
    CHECK(words(tess_abi1_status(TESS_NULL_ARGUMENT, 1, -1, -1)) == "argument 1: the descriptor is null");
    CHECK(reason(TESS_NULL_DATA) == "data is null, but the tensor has elements");
    CHECK(reason(TESS_RANK, 0) == "rank must be 0");
    CHECK(reason(TESS_RANK) == "rank is not the declared one");
    CHECK(reason(TESS_DTYPE, TESS_BF16) == "dtype must be bf16");
    CHECK(reason(TESS_DTYPE, TESS_BOOL) == "dtype must be bool");
    CHECK(reason(TESS_DTYPE, 77) == "dtype must be the declared one");
    CHECK(reason(TESS_DEVICE) == "device must be TESS_HOST");
    CHECK(reason(TESS_RESERVED) == "'reserved' must be 0; make the descriptor with tess_dense");
    CHECK(reason(TESS_EXTENT_NEGATIVE) == "extent must not be negative");
    CHECK(reason(TESS_EXTENT_FIXED, 768) == "extent must be 768");
    CHECK(reason(TESS_EXTENT_FIXED, 151936) == "extent must be the one that the kernel fixes");
    CHECK(words(tess_abi1_status(TESS_EXTENT_MISMATCH, 1, 0, tess_abi1_place(0, 1)), {"x", "w"}) ==
          "argument 1 ('w'), dimension 0: extent must equal that of argument 0 ('x'), dimension 1");
    CHECK(reason(TESS_EXTENT_MISMATCH) == "extent must equal that of the same dim elsewhere");
    CHECK(reason(TESS_EXTENT_MULTIPLE) == "extent must be a multiple of the declared factor");
    CHECK(reason(TESS_EXTENT_MIN, 1) == "extent must be at least 1");
    CHECK(reason(TESS_EXTENT_MIN) == "extent is below the declared minimum");
    CHECK(reason(TESS_EXTENT_MAX, 4096) == "extent must be at most 4096");
    CHECK(reason(TESS_EXTENT_MAX) == "extent is above the declared maximum");
    CHECK(reason(TESS_STRIDE_LAST) == "stride must be 1; copy the tensor to rows without gaps");
    CHECK(reason(TESS_STRIDE_NEGATIVE) == "stride must not be negative in the last dimension");
    CHECK(reason(TESS_MISALIGNED, 4) == "data must be aligned to its element size in bytes, 4");
    CHECK(reason(TESS_MISALIGNED) == "data must be aligned to its element size");
    CHECK(words(tess_abi1_status(TESS_OVERLAP, 2, -1, tess_abi1_place(0, -1)), {"x", "w", "y"}) ==
          "argument 2 ('y'): memory is shared with argument 0 ('x'); an output needs an address "
          "range of its own");
    CHECK(reason(TESS_OVERLAP) == "memory is shared with another argument; an output needs an address range of its own");
    CHECK(reason(TESS_SELF_OVERLAP) == "strides are too small: elements of an output would share memory");
    CHECK(reason(TESS_TOO_LARGE) == "more than 2147418111 elements, or as many from the lowest to the highest address");
    CHECK(reason(TESS_WORKSPACE_MISSING, 12) ==
          "the kernel needs a workspace, and the context has none; 12 KiB are enough; ask the "
          "kernel's workspace query, with the same arguments and context");
    CHECK(reason(TESS_WORKSPACE_SMALL) ==
          "the workspace is too small; ask the kernel's workspace query, with the same arguments "
          "and context");
    CHECK(reason(TESS_WORKSPACE_MISALIGNED) == "the workspace must be aligned to 64 bytes");
    CHECK(reason(TESS_WORKSPACE_OVERLAP) == "memory is shared with the workspace");
    CHECK(reason(TESS_CPU, TESS_CPU_FMA) ==
          "the processor, the operating system or the context lacks fma, which the kernel was compiled for; "
          "compile it for a lesser target too");
    CHECK(reason(TESS_CONTEXT, TESS_CONTEXT_SIZE) == "the context has too small a 'size'; set it to sizeof(TessContext)");
    CHECK(reason(TESS_CONTEXT, TESS_CONTEXT_THREADS) == "the context has negative 'threads'; 0 or 1 means the caller only");
    CHECK(reason(TESS_CONTEXT, TESS_CONTEXT_PARALLEL_FOR) == "the context has a pool without 'parallel_for'");
    CHECK(reason(TESS_CONTEXT, TESS_CONTEXT_WORKER) == "the context has a pool that gave a worker outside [0, workers)");
    CHECK(reason(TESS_CONTEXT) == "the context is malformed");
    CHECK(reason(TESS_TASK, 5) == "the kernel's code or the pool failed with code 5");
    CHECK(reason(TESS_TASK) == "the kernel's code or the pool failed");
    CHECK(words(tess_abi1_status(TESS_INDEX, 0, -1, -1)) == "argument 0: an index in its data is out of bounds");
    CHECK(reason(TESS_KERNEL) == "the kernel does not fit this runtime library; link the one that came with it");
    CHECK(reason(TESS_GPU, TESS_GPU_NONE) == "there is no device; install a driver for one (clinfo or nvidia-smi lists what there is)");
    CHECK(reason(TESS_GPU, TESS_GPU_PRECISION) ==
          "the device does not round as IEEE 754 says, flushes denormals or has no f64; use another");
    CHECK(reason(TESS_GPU, TESS_GPU_BUILD) == "the device's compiler refuses the kernel; update its driver");
    CHECK(reason(TESS_GPU, TESS_GPU_MEMORY) == "the device has no room for the arguments");
    CHECK(reason(TESS_GPU, TESS_GPU_LAUNCH) == "the device cannot run the kernel");
    CHECK(reason(TESS_PACKED) == "not an operand packed for this kernel; pack it with this kernel's packing function");
}

TEST_CASE("a message is cut where the buffer ends, and its whole length is returned") {
    const int status = tess_abi1_status(TESS_RANK, 0, -1, 2);
    const std::string whole = "argument 0: rank must be 2";
    CHECK(tess_status_message(status, nullptr, nullptr, 0) == whole.size());
    CHECK(tess_status_message(status, nullptr, nullptr, 100) == whole.size());
    for (size_t n = 1; n <= whole.size() + 2; ++n) {
        std::string buffer(n, '#');
        CHECK(tess_status_message(status, nullptr, buffer.data(), n) == whole.size());
        CHECK(std::string(buffer.c_str()) == whole.substr(0, n - 1));
    }
    char untouched = '#';
    CHECK(tess_status_message(status, nullptr, &untouched, 0) == whole.size());
    CHECK(untouched == '#');
}

}  // namespace tessera::test_status
