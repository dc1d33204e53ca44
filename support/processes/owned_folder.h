// A temporary folder that says whose it is, so that what a process leaves behind that was killed can be told from what is in use.
#pragma once
#include "support/files/output_folder.h"

namespace tessera {

// Says in `folder` that this process has it, and removes those folders beside it whose names begin with `prefix` and whose owner
// no longer runs, or that one of this machine before its last start had.
void own_folder(const std::filesystem::path &folder, const std::string &prefix);

class OwnedFolder {
public:
    OwnedFolder();
    const std::filesystem::path &path() const { return folder_.path(); }

private:
    TemporaryFolder folder_;
};

}  // namespace tessera
