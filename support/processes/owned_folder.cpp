#include "support/processes/owned_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "support/processes/owner.h"

namespace tessera {

namespace fs = std::filesystem;

static constexpr const char *owner_name = "owner";

// Nothing for a folder that says of no owner, or not all of it.
static std::optional<Owner> owner_of(const fs::path &folder) {
    std::ifstream in(folder / owner_name);
    Owner owner;
    std::string process, end;
    for (std::string *line : {&owner.host, &owner.boot, &process, &owner.started, &end})
        if (!std::getline(in, *line)) return std::nullopt;
    if (end != "." || process.empty() || process.size() > 18 || process.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    owner.process = std::stoll(process);
    return owner;
}

// A folder of this user's own, and no link to one.
static bool is_own(const fs::path &folder) {
    struct stat status {};
    return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

static void remove_abandoned(const fs::path &beside, const std::string &prefix) {
    std::error_code error;
    for (fs::directory_iterator it(beside.parent_path(), error), end; !error && it != end; it.increment(error)) {
        if (!it->path().filename().string().starts_with(prefix) || !is_own(it->path())) continue;
        const std::optional<Owner> owner = owner_of(it->path());
        std::error_code ignored;
        if (owner && !is_alive(*owner)) fs::remove_all(it->path(), ignored);
    }
}

void own_folder(const fs::path &folder, const std::string &prefix) {
    const Owner here = this_process();
    std::ofstream(folder / owner_name) << here.host << "\n" << here.boot << "\n" << here.process << "\n" << here.started << "\n.\n";
    remove_abandoned(folder, prefix);
}

OwnedFolder::OwnedFolder() { own_folder(path(), "tessera-"); }

}  // namespace tessera
