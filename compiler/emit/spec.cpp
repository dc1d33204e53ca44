#include "compiler/emit/spec.h"

#include "compiler/rewrite/prepack.h"
#include "runtime/kernel.h"
#include "support/text/error.h"

namespace tessera {

int32_t abi_dtype(DType type) {
    switch (type) {
    case DType::f32: return TESS_F32;
    case DType::f64: return TESS_F64;
    case DType::bf16: return TESS_BF16;
    case DType::f16: return TESS_F16;
    case DType::i8: return TESS_I8;
    case DType::u8: return TESS_U8;
    case DType::i32: return TESS_I32;
    case DType::i64: return TESS_I64;
    case DType::boolean: return TESS_BOOL;
    case DType::index: break;
    }
    throw InternalError("an index is never stored");
}

uint64_t feature_mask(const std::vector<std::string> &features) {
    uint64_t mask = 0;
    for (int bit = 0; bit < TESS_CPU_FEATURE_COUNT; bit++)
        for (const std::string &f : features)
            if (f == tess_cpu_feature_name(bit)) mask |= uint64_t{1} << bit;
    return mask;
}

// One argument's record for one target.
static std::vector<int64_t> layout_record(const Packing &packing, uint64_t features) {
    std::vector<int64_t> record = {static_cast<int64_t>(features), static_cast<int64_t>(layout_hash(packing)),
                                   static_cast<int64_t>(packing.layout.size())};
    for (const LayoutAxis &axis : packing.layout)
        record.insert(record.end(), {operand_axis(packing, axis), axis.remainder ? -axis.factor : axis.factor});
    record.resize(TESS_SPEC_LAYOUT_WORDS);
    return record;
}

std::vector<int64_t> spec_of(const TileProgram &program, uint64_t required_features, const std::vector<TargetLayouts> &targets) {
    std::vector<Dim> dims = spec_dims(program);
    auto position = [&](const std::string &name) -> int64_t {
        for (size_t i = 0; i < dims.size(); i++)
            if (dims[i].name == name) return static_cast<int64_t>(i);
        throw InternalError("no dim " + name + " in " + program.name);
    };
    auto limit = [&](size_t n, size_t most, const std::string &what) {
        if (n > most)
            throw UserError("emit.abi", program.name + ": it has " + std::to_string(n) + " " + what + "; a kernel may have " +
                                            std::to_string(most) + ".");
    };
    limit(dims.size(), TESS_MAX_DIMS, "dims");
    limit(program.arguments.size(), TESS_MAX_TENSORS, "tensors");
    limit(program.parameters.size(), TESS_MAX_PARAMETERS, "parameters");
    std::vector<int64_t> spec = {TESS_SPEC_ABI1, static_cast<int64_t>(required_features), static_cast<int64_t>(dims.size()),
                                 static_cast<int64_t>(program.arguments.size()), static_cast<int64_t>(program.parameters.size())};
    for (const Dim &d : dims) {
        bool fixed = d.kind == DimKind::fixed;
        int64_t equal = d.equals.empty() ? -1 : position(d.equals);
        spec.insert(spec.end(), {fixed ? d.value : -1, d.min, d.max, d.multiple_of, equal});
    }
    bool any_packed = false;
    for (const Argument &a : program.arguments) {
        limit(a.tensor.dims.size(), TESS_MAX_RANK, "axes in '" + a.tensor.name + "'");
        any_packed |= a.packed.has_value();
        const std::vector<std::string> &axes = carried_dims(a);
        int64_t role = !a.written ? TESS_ROLE_INPUT : a.read ? TESS_ROLE_INOUT : TESS_ROLE_OUTPUT;
        int64_t flags = TESS_FLAG_LAST_STRIDE_1 | (a.packed ? TESS_FLAG_PACKED : 0);
        spec.insert(spec.end(), {role, abi_dtype(a.tensor.dtype), static_cast<int64_t>(axes.size()), flags});
        for (size_t axis = 0; axis < TESS_MAX_RANK; axis++) spec.push_back(axis < axes.size() ? position(axes[axis]) : -1);
    }
    if (!any_packed) return spec;
    const std::vector<TargetLayouts> all = targets.empty() ? std::vector<TargetLayouts>{{0, &program}} : targets;
    spec[TESS_SPEC_VERSION] = TESS_SPEC_PACKED;
    spec.push_back(static_cast<int64_t>(all.size()));
    for (size_t i = 0; i < program.arguments.size(); i++)
        for (const TargetLayouts &target : all)
            if (program.arguments[i].packed) {
                require(target.program->arguments.at(i).packed.has_value(), "targets of one library pack the same operands");
                const std::vector<int64_t> record = layout_record(*target.program->arguments[i].packed, target.features);
                spec.insert(spec.end(), record.begin(), record.end());
            }
    return spec;
}

}  // namespace tessera
