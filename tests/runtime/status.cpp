#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_status {

using namespace tessera::test;

namespace {

constexpr int64_t none = TESS_NO_NUMBER;

TessFault fault_of(int32_t kind, int32_t argument, int32_t dimension, int64_t expected, int64_t got = none, int32_t other = -1,
                   int32_t other_dimension = -1) {
    TessFault fault = tess_fault();
    fault.kind = kind, fault.argument = argument, fault.dimension = dimension, fault.expected = expected, fault.got = got;
    fault.other_argument = other, fault.other_dimension = other_dimension;
    return fault;
}

std::string say(const TessFault &fault, const std::vector<const char *> &names = {}) {
    return words(tess_abi2_status(fault.kind, fault.argument), names, &fault);
}

std::string plain(int32_t kind, int32_t argument = -1) { return words(tess_abi2_status(kind, argument), {}, nullptr); }

std::string reason(int32_t kind, int64_t expected, int64_t got = none) { return say(fault_of(kind, -1, -1, expected, got)); }

const std::vector<int32_t> kinds = {0x101, 0x102, 0x103, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x10a, 0x10b, 0x10c, 0x10d,
                                    0x201, 0x202, 0x203, 0x204, 0x205, 0x206, 0x207, 0x208, 0x209, 0x301, 0x302, 0x303, 0x304,
                                    0x305, 0x401, 0x402, 0x403, 0x404, 0x405, 0x406, 0x407, 0x408, 0x409, 0x40a, 0x40b, 0x40c,
                                    0x40d, 0x40e, 0x40f, 0x410, 0x501, 0x502, 0x601, 0x602, 0x603, 0x604, 0x605, 0x606, 0x701,
                                    0x702, 0x703, 0x704, 0x705, 0x706, 0x707, 0x708, 0x801, 0x802, 0x803, 0x804, 0x805, 0x901,
                                    0x902, 0x903, 0x904, 0x905, 0x906, 0x907, 0x908, 0x909, 0x90a, 0x90b, 0x90c, 0x90d, 0x90e,
                                    0xa01, 0xa02, 0xa03, 0xa04, 0xa05, 0xa06, 0xa07, 0xa08, 0xa09, 0xa0a, 0xa0b, 0xa0c, 0xb01,
                                    0xb02, 0xb03, 0xb04, 0xb05, 0xb06, 0xb07, 0xb08, 0xb09, 0xb0a, 0xb0b, 0xb0c, 0xb0d, 0xb0e, 0xb0f};

}  // namespace

TEST_CASE("a message names the argument and the dimension") {
    const TessFault fault = fault_of(TESS_EXTENT_MULTIPLE, 2, 1, 16, 40);
    CHECK(say(fault, {"x", "b", "w"}) == "argument 2 ('w'), dimension 1: extent must be a multiple of 16, not 40");
    CHECK(say(fault) == "argument 2, dimension 1: extent must be a multiple of 16, not 40");
    CHECK(say(fault, {"x", "b", nullptr}) == "argument 2, dimension 1: extent must be a multiple of 16, not 40");
    CHECK(words(tess_abi2_status(TESS_EXTENT_MULTIPLE, 2), {"x", "b", "w"}, nullptr) ==
          "argument 2 ('w'): an extent must be a multiple of the declared factor");
}

TEST_CASE("a message names the parameter, and prints the values as their type has them") {
    const auto bits = [](float value) { return int64_t(std::bit_cast<int32_t>(value)); };
    const TessFault low = fault_of(TESS_PARAMETER_ABOVE, 1, TESS_F32, bits(0), bits(-0.1F));
    CHECK(say(low, {"x", "epsilon"}) == "argument 1 ('epsilon'): parameter must be above 0, not -0.1");
    CHECK(words(tess_abi2_status(TESS_PARAMETER_ABOVE, 1), {"x", "epsilon"}, nullptr) ==
          "argument 1 ('epsilon'): a parameter is not above its declared bound");
    CHECK(say(fault_of(TESS_PARAMETER_BELOW, 0, TESS_F64, std::bit_cast<int64_t>(1.0), std::bit_cast<int64_t>(1e300))) ==
          "argument 0: parameter must be below 1, not 1e+300");
    CHECK(say(fault_of(TESS_PARAMETER_MIN, 0, TESS_I64, 0, INT64_MIN)) ==
          "argument 0: parameter must be at least 0, not -9223372036854775808");
    CHECK(say(fault_of(TESS_PARAMETER_MAX, 0, TESS_F32, bits(1), bits(NAN))) == "argument 0: parameter must be at most 1, not nan");
    CHECK(say(fault_of(TESS_PARAMETER_FINITE, 0, TESS_F32, none, bits(-INFINITY))) == "argument 0: parameter must be finite, not -inf");
}

TEST_CASE("a fault of another failure, or of another version, says nothing") {
    TessFault fault = fault_of(TESS_EXTENT_MULTIPLE, 2, 1, 16, 40);
    CHECK(words(tess_abi2_status(TESS_RANK, 2), {}, &fault) == "argument 2: rank is not the declared one");
    CHECK(words(tess_abi2_status(TESS_EXTENT_MULTIPLE, 1), {}, &fault) ==
          "argument 1: an extent must be a multiple of the declared factor");
    fault.size = 8;
    CHECK(words(tess_abi2_status(TESS_EXTENT_MULTIPLE, 2), {}, &fault) ==
          "argument 2: an extent must be a multiple of the declared factor");
}

TEST_CASE("every kind has a word of its own, and something to say with and without a fault") {
    std::set<std::string> all;
    for (int32_t kind : kinds) {
        all.insert(tess_status_kind(tess_abi2_status(kind, 5)));
        CHECK(tess_status_code(tess_abi2_status(kind, -1)) == kind);
        CHECK(plain(kind).size() > 10);
        CHECK(reason(kind, 3, 4).size() > 10);
        CHECK(reason(kind, none).size() > 10);
    }
    CHECK(all.size() == kinds.size());
    CHECK(all.count("unknown") == 0);
    for (int32_t kind = 1; kind < 4096; ++kind)
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) REQUIRE(tess_status_code(kind) == TESS_UNKNOWN);
    CHECK(std::string(tess_status_kind(TESS_KERNEL)) == "kernel");
    CHECK(std::string(tess_status_kind(tess_abi2_status(TESS_WORKSPACE_MISALIGNED, 0))) == "workspace-misaligned");
}

TEST_CASE("zero is ok, and an int that is no status says so") {
    CHECK(words(0) == "ok");
    CHECK(std::string(tess_status_kind(0)) == "ok");
    CHECK(tess_status_code(0) == TESS_OK);
    CHECK(tess_status_argument(0) == -1);
    for (int32_t alien : {-1, 1, 5, 256, 1 << 12, 0xfff, INT32_MAX, INT32_MIN}) {
        CHECK(tess_status_code(alien) == TESS_UNKNOWN);
        CHECK(std::string(tess_status_kind(alien)) == "unknown");
        CHECK(words(alien) == "no status of a kernel: " + std::to_string(alien));
    }
}

TEST_CASE("the words of every kind") {
    CHECK(plain(TESS_NULL_ARGUMENT, 1) == "argument 1: the tensor is null");
    CHECK(plain(TESS_NULL_DATA) == "data is null, but the tensor has elements");
    CHECK(plain(TESS_NULL_PARAMETERS) == "the kernel has parameters, and none are given");
    CHECK(reason(TESS_RANK, 0, 2) == "rank must be 0, not 2");
    CHECK(reason(TESS_DTYPE, TESS_BF16) == "dtype must be bf16");
    CHECK(reason(TESS_DTYPE, TESS_BOOL, TESS_I8) == "dtype must be bool, not i8");
    CHECK(reason(TESS_DTYPE, 77) == "dtype must be the declared one");
    CHECK(plain(TESS_DTYPE) == "dtype is not the declared one");
    CHECK(say(fault_of(TESS_DEVICE, 0, -1, TESS_CUDA, TESS_HOST)) == "argument 0: the tensor must be on a CUDA device, not on the host");
    CHECK(say(fault_of(TESS_DEVICE_ID, 0, -1, 1, 0)) == "argument 0: the tensor must be on the device with number 1, not 0");
    CHECK(reason(TESS_EXTENT_FIXED, 768, 767) == "extent must be 768, not 767");
    CHECK(reason(TESS_EXTENT_FIXED, 151936) == "extent must be 151936");
    CHECK(say(fault_of(TESS_EXTENT_MISMATCH, 1, 0, 4, 5, 0, 1), {"x", "w"}) ==
          "argument 1 ('w'), dimension 0: extent must equal that of argument 0 ('x'), dimension 1, 4, not 5");
    CHECK(plain(TESS_EXTENT_MISMATCH) == "an extent must equal that of the same dim elsewhere");
    CHECK(reason(TESS_EXTENT_MIN, 1, 0) == "extent must be at least 1, not 0");
    CHECK(plain(TESS_EXTENT_MIN) == "an extent is below the declared minimum");
    CHECK(reason(TESS_EXTENT_MAX, 4096, 5000) == "extent must be at most 4096, not 5000");
    CHECK(reason(TESS_STRIDE_LAST, 1, 2) == "stride must be 1, not 2; copy the tensor to rows without gaps");
    CHECK(plain(TESS_STRIDE_LAST) == "the last stride must be 1; copy the tensor to rows without gaps");
    CHECK(plain(TESS_STRIDE_ODD) == "stride must be even, as a row of elements of 4 bits begins at a byte");
    CHECK(plain(TESS_STRIDE_NEGATIVE) == "stride must not be negative in the last dimension");
    CHECK(reason(TESS_MISALIGNED, 4) == "data must be aligned to its element size in bytes, 4");
    CHECK(plain(TESS_MISALIGNED) == "data must be aligned to its element size");
    CHECK(say(fault_of(TESS_OVERLAP, 2, -1, none, none, 0), {"x", "w", "y"}) ==
          "argument 2 ('y'): memory is shared with argument 0 ('x'); an output needs an address range of its own");
    CHECK(plain(TESS_OVERLAP) == "memory is shared with another argument; an output needs an address range of its own");
    CHECK(plain(TESS_TOO_LARGE) == "more than 2147418111 elements, or as many from the lowest to the highest address");
    CHECK(reason(TESS_WORKSPACE_MISSING, 12345) ==
          "the kernel needs a workspace, and the context has none; 12345 bytes are enough; ask the kernel's workspace query, with the same "
          "arguments and context");
    CHECK(plain(TESS_WORKSPACE_SMALL) ==
          "the workspace is too small; ask the kernel's workspace query, with the same arguments and context");
    CHECK(reason(TESS_CPU, TESS_CPU_FMA) ==
          "the processor, the operating system or the context lacks fma, which the kernel was compiled for; "
          "compile it for a lesser target too");
    CHECK(reason(TESS_TASK, none, 5) == "the kernel's code or the pool failed with code 5");
    CHECK(plain(TESS_TASK) == "the kernel's code or the pool failed");
    CHECK(plain(TESS_KERNEL) == "the kernel does not fit this runtime library; link the one that came with it");
    CHECK(reason(TESS_PLAN_SMALL, 640, 100) == "too few bytes for the plan; ask tess_plan_bytes; 640 are enough, not 100");
    CHECK(plain(TESS_GPU_NONE) == "there is no such device; install a driver for one (clinfo or nvidia-smi lists what there is)");
    CHECK(plain(TESS_GPU_STREAM) == "OpenCL needs a command queue; give the context one as 'stream'");
    CHECK(reason(TESS_MESH_ORDER, 7, 1) == "rank 1 runs another program, or another operation, in place of operation 7");
    CHECK(reason(TESS_MESH_LATE, 7, 1) == "rank 1 was silent until the deadline of operation 7");
    CHECK(reason(TESS_MESH_LOST, 7, 1) == "rank 1 is lost, which ended operation 7");
    CHECK(reason(TESS_MESH_BROKEN, 7, 1) == "rank 1 broke the mesh in operation 7; make another one");
    CHECK(reason(TESS_PROGRAM_BUSY, 7, 1) ==
          "an operation touches what a collective in flight reads or writes; wait for it first: operation 7, buffer 1");
    CHECK(reason(TESS_PROGRAM_RESULT, none, 1) == "an output is not written whole: buffer 1");
    CHECK(reason(TESS_PROGRAM_DEADLOCK, 7, 1) == "ranks wait for each other, or for a message that nobody sends: operation 7, rank 1");
    CHECK(plain(TESS_MESH_BROKEN) == "the mesh failed before; make another one");
    CHECK(reason(TESS_MESH_CHUNKS, 16, 3) ==
          "the number of ranks must divide the number of chunks, 16, not 3; take chunks = ranks times a power of two");
    CHECK(plain(TESS_PACKED_MAGIC) == "the bytes are no packed operand; pack it with this kernel's packing function");
}

TEST_CASE("a message is cut where the buffer ends, and its whole length is returned") {
    const TessFault fault = fault_of(TESS_RANK, 0, -1, 2);
    const int32_t status = tess_abi2_status(TESS_RANK, 0);
    const std::string whole = "argument 0: rank must be 2";
    CHECK(tess_status_message(status, &fault, nullptr, nullptr, 0) == whole.size());
    CHECK(tess_status_message(status, &fault, nullptr, nullptr, 100) == whole.size());
    for (size_t n = 1; n <= whole.size() + 2; ++n) {
        std::string buffer(n, '#');
        CHECK(tess_status_message(status, &fault, nullptr, buffer.data(), n) == whole.size());
        CHECK(std::string(buffer.c_str()) == whole.substr(0, n - 1));
    }
    char untouched = '#';
    CHECK(tess_status_message(status, &fault, nullptr, &untouched, 0) == whole.size());
    CHECK(untouched == '#');
}

}  // namespace tessera::test_status
