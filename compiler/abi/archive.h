// Static libraries in the format of GNU's ar, read and written in memory.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

// The members of a static library, name to bytes.
std::map<std::string, std::string> members_of(const std::string &archive);

// A static library of these members, name and bytes, in this order, with the index of their symbols that linkers look into. Equal
// members give equal bytes: no times, owners or permissions of a machine. Names have no '/' and are unlike; members are 4 GiB at most.
std::string archive_of(const std::vector<std::pair<std::string, std::string>> &members);

}  // namespace tessera
