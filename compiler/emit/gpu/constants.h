// The tables of an algorithm, such as the factors of a Fourier transform, as one memory that the host uploads once. Program-scope
// tables were rejected: OpenCL 1.2 has them in __constant memory only, of which there may be no more than 64 KiB.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/emit/emit_library.h"

namespace tessera::emit_gpu {

class Constants {
public:
    // The tables of all variants of the kernels and of what they invoke, equal ones once. UserError emit.constant where one has no values.
    explicit Constants(const std::vector<Kernel> &kernels);

    // Where a table begins, in bytes; a multiple of 64.
    int64_t at(const Tensor &table) const;
    bool empty() const { return bytes_.empty(); }
    // The memory as the definition of a C array of 32-bit words, of a little-endian machine, as all are that have GPUs.
    std::string definition(const std::string &name) const;

private:
    void add(const TileProgram &program, const std::string &kernel);
    std::string bytes_;
    std::map<std::string, int64_t> where_;  // by the bytes of a table
};

}  // namespace tessera::emit_gpu
