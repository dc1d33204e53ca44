// A temporary folder that names its owner, so that leftovers of a killed process can be told from folders in use.
#pragma once
#include "support/files/output_folder.h"

namespace tessera {

// Marks `folder` as owned by this process. Removes the folders beside it whose names begin with `prefix` and whose owner no longer
// runs; an owner from before this machine's last start does not.
void own_folder(const std::filesystem::path &folder, const std::string &prefix);

class OwnedFolder {
public:
    OwnedFolder();
    const std::filesystem::path &path() const { return folder_.path(); }

private:
    TemporaryFolder folder_;
};

}  // namespace tessera
