// A PATH with nothing on it but what a test puts there.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/files/output_folder.h"
#include "tests/support/shell.h"

namespace tessera::test {

class FakePath {
public:
    FakePath() : saved_(std::getenv("PATH")) { setenv("PATH", folder_.path().c_str(), 1); }
    ~FakePath() { setenv("PATH", saved_.c_str(), 1); }
    FakePath(const FakePath &) = delete;
    FakePath &operator=(const FakePath &) = delete;

    const std::filesystem::path &folder() const { return folder_.path(); }
    // A program that runs these lines of shell.
    void add(const std::string &name, const std::string &script) const {
        write_file(folder() / name, "#!/bin/sh\n" + script + "\n");
        std::filesystem::permissions(folder() / name, std::filesystem::perms::owner_all);
    }

private:
    TemporaryFolder folder_;
    std::string saved_;
};

}  // namespace tessera::test
