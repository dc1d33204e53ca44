// A temporary folder that says whose it is, so that what a process leaves behind that was killed can be told from what is in use.
#pragma once
#include "bench/output_folder.h"

namespace tessera {

class OwnedFolder {
public:
    // Also removes those beside it whose owner no longer runs, or that one of this machine before its last start had.
    OwnedFolder();
    const std::filesystem::path &path() const { return folder_.path(); }

private:
    TemporaryFolder folder_;
};

}  // namespace tessera
