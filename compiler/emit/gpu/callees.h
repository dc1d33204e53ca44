// The programs that the kernels of a file invoke, equal ones once.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/emit/emit_library.h"

namespace tessera::emit_gpu {

class Callees {
public:
    // The kernels must outlive it.
    explicit Callees(const std::vector<Kernel> &kernels);

    struct Callee {
        const TileProgram *program;
        std::string stem;  // of its functions' names
    };
    // Each after those that it invokes itself.
    const std::vector<Callee> &all() const { return all_; }
    // What an Invoke of `caller`, which is a variant of a kernel or a callee, runs.
    const Callee &of(const TileProgram &caller, const std::string &invoked) const { return all_[by_name_.at(&caller).at(invoked)]; }

private:
    std::vector<Callee> all_;
    std::map<std::string, size_t> known_;                                   // by what they are
    std::map<const TileProgram *, std::map<std::string, size_t>> by_name_;  // of each program that may invoke
    void add(const Kernel &kernel, const TileProgram &program, const std::vector<Kernel> &kernels);
};

}  // namespace tessera::emit_gpu
