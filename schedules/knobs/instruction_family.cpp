#include "schedules/knobs/instruction_family.h"

namespace tessera {

const std::vector<std::string> &instruction_families() {
    static const std::vector<std::string> names(instruction_family_names.begin(), instruction_family_names.end());
    return names;
}

}  // namespace tessera
