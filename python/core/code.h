// Machine code of an archive that `generate` wrote, in this process.
#pragma once
#include <memory>
#include <string>

struct TessLoaded;

namespace tessera::python {

class Code {
public:
    // UserError load.* where the file is no archive that can run here.
    static std::shared_ptr<Code> load(const std::string &file);
    ~Code();
    Code(const Code &) = delete;
    Code &operator=(const Code &) = delete;

    void *symbol(const std::string &name) const;  // null where there is none

private:
    Code() = default;
    TessLoaded *loaded_ = nullptr;
};

}  // namespace tessera::python
