// A generated function by its description: what it takes and gives, by name.
#pragma once
#include <tessera.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

class Kernel {
public:
    struct Argument {
        std::string name;
        TessDType type;
        std::vector<int64_t> extents;
        int64_t size() const;  // elements
    };

    // `extents` are those of dims that were not fixed when it was generated.
    Kernel(int32_t (*describe)(TessKernel *), const std::map<std::string, int64_t> &extents, int32_t threads);

    const std::vector<Argument> &arguments() const { return arguments_; }
    const Argument &argument(const std::string &name) const;  // std::runtime_error where there is none
    // Every argument and every parameter by its name. std::runtime_error with the function's words where it fails.
    void run(const std::map<std::string, void *> &data, const std::map<std::string, double> &parameters = {});

private:
    void check(int32_t status) const;

    TessKernel kernel_ = tess_kernel();
    TessFault fault_ = tess_fault();
    TessContext context_ = tess_context();
    std::vector<Argument> arguments_;
    std::vector<TessParameterInfo> parameters_;
    std::unique_ptr<void, void (*)(void *)> workspace_;
    std::unique_ptr<TessPool, void (*)(TessPool *)> pool_;
    uint64_t parameter_bytes_ = 0;
};
