#include "algorithms/ir/dtype.h"

#include "support/text/error.h"

namespace tessera {

struct Row {
    DType type;
    const char *name;
    int bytes;
};
static constexpr Row table[] = {
    {DType::f32, "f32", 4}, {DType::f64, "f64", 8}, {DType::bf16, "bf16", 2}, {DType::f16, "f16", 2},      {DType::i8, "i8", 1},
    {DType::u8, "u8", 1},   {DType::i32, "i32", 4}, {DType::i64, "i64", 8},   {DType::boolean, "bool", 1}, {DType::index, "index", 0},
};

static const Row &row(DType type) { return table[static_cast<size_t>(type)]; }

int size_of(DType type) {
    require(type != DType::index, "an index is never stored");
    return row(type).bytes;
}

const char *name_of(DType type) { return row(type).name; }

DType dtype_named(const std::string &name) {
    std::vector<std::string> names;
    for (const Row &r : table) {
        if (name == r.name) return r.type;
        names.push_back(r.name);
    }
    throw UserError("dtype.unknown",
                    "there is no element type '" + name + "'; the types are " + join(names) + "." + did_you_mean(name, names));
}

}  // namespace tessera
