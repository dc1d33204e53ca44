#include "algorithms/expr/op.h"

#include <vector>

#include "support/text/error.h"

namespace tessera {

Op op_named(const std::string &name) {
    std::vector<std::string> names;
    for (const OpRow &row : op_table) {
        if (name == row.name) return row.op;
        names.emplace_back(row.name);
    }
    throw UserError("op.unknown",
                    "there is no operation '" + name + "'; the operations are " + join(names) + "." + did_you_mean(name, names));
}

void undefined_on(Op op, const char *operands) { throw InternalError(std::string(name_of(op)) + " is not defined on " + operands); }

}  // namespace tessera
