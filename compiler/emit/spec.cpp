#include "compiler/emit/spec.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/rewrite/prepack.h"
#include "runtime/abi/kernel.h"
#include "schedules/knobs/notation.h"
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
    case DType::f8e4m3fn: return TESS_F8E4M3FN;
    case DType::f8e4m3: return TESS_F8E4M3;
    case DType::f8e4m3fnuz: return TESS_F8E4M3FNUZ;
    case DType::f8e5m2: return TESS_F8E5M2;
    case DType::f8e5m2fnuz: return TESS_F8E5M2FNUZ;
    case DType::f8e8m0fnu: return TESS_F8E8M0FNU;
    case DType::f6e2m3fn: return TESS_F6E2M3FN;
    case DType::f6e3m2fn: return TESS_F6E3M2FN;
    case DType::f4e2m1fn: return TESS_F4E2M1FN;
    case DType::i4: return TESS_I4;
    case DType::u4: return TESS_U4;
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
static std::vector<int64_t> layout_record(const Argument &argument, uint64_t features) {
    const Packing &packing = *argument.packed;
    std::vector<int64_t> record = {static_cast<int64_t>(features), static_cast<int64_t>(layout_hash(packing)),
                                   static_cast<int64_t>(packing.layout.size())};
    for (const LayoutAxis &axis : packing.layout) {
        const int64_t of = operand_axis(packing, axis);
        // The runtime counts elements, of which a byte along the last axis has two.
        const bool in_bytes = argument.half_bytes && of + 1 == static_cast<int64_t>(packing.operand.dims.size());
        const int64_t quotient = in_bytes ? 2 * std::max<int64_t>(axis.factor, 1) : axis.factor;
        record.insert(record.end(), {of, axis.positions() ? -axis.positions() : quotient});
    }
    record.resize(TESS_SPEC_LAYOUT_WORDS);
    return record;
}

ParameterLayout parameter_layout(const TileProgram &program) {
    ParameterLayout layout;
    int64_t widest = 1;
    auto aligned = [](int64_t n, int64_t to) { return (n + to - 1) / to * to; };
    for (const Parameter &p : program.parameters) {
        const int64_t size = size_of(p.dtype);
        widest = std::max(widest, size);
        layout.offsets.push_back(aligned(layout.bytes, size));
        layout.bytes = layout.offsets.back() + size;
    }
    layout.bytes = aligned(layout.bytes, widest);
    return layout;
}

namespace {

// As the runtime finds a parameter's value in the frame.
int64_t frame_bits(const Scalar &value) {
    const uint64_t bits = stored_bits(value);
    return size_of(value.type) == 4 ? static_cast<int32_t>(static_cast<uint32_t>(bits)) : static_cast<int64_t>(bits);
}

std::vector<int64_t> range_words(const Parameter &p) {
    if (!p.range) return {0, 0, 0};
    const ParameterRange &r = *p.range;
    const int64_t flags = TESS_RANGE_DECLARED | (r.has_least() ? TESS_RANGE_LEAST : 0) | (r.has_most() ? TESS_RANGE_MOST : 0) |
                          (r.above ? TESS_RANGE_ABOVE : 0) | (r.below ? TESS_RANGE_BELOW : 0);
    return {flags, frame_bits(r.least), frame_bits(r.most)};
}

// Zero-terminated texts in words, equal ones once.
class Texts {
public:
    int64_t add(const std::string &text) {
        auto [it, fresh] = known_.emplace(text, static_cast<int64_t>(bytes_.size()));
        if (fresh) bytes_ += text + '\0';
        return it->second;
    }
    std::vector<int64_t> words() const {
        std::vector<int64_t> all((bytes_.size() + 7) / 8);
        for (size_t i = 0; i < bytes_.size(); i++)
            all[i / 8] |= static_cast<int64_t>(uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * (i % 8)));
        return all;
    }

private:
    std::string bytes_;
    std::map<std::string, int64_t> known_;
};

int64_t device_of(const Target &target) {
    return target.arch == Arch::cuda ? TESS_CUDA : target.arch == Arch::opencl ? TESS_OPENCL : TESS_HOST;
}

std::string text_of(const std::vector<Condition> &when) {
    std::string text;
    for (const Condition &c : when) text += (text.empty() ? "" : " and ") + to_string(c);
    return text;
}

// The header and the records of dims, tensors and parameters.
std::vector<int64_t> arguments_of(const TileProgram &program, Texts &texts) {
    const std::vector<Dim> dims = spec_dims(program);
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
    constexpr size_t many = 1 << 16;  // what the runtime takes for a kernel
    limit(dims.size(), many, "dims");
    limit(program.arguments.size(), many, "tensors");
    limit(program.parameters.size(), many, "parameters");
    std::vector<int64_t> spec(TESS_SPEC_HEADER);
    const bool ranged =
        std::any_of(program.parameters.begin(), program.parameters.end(), [](const Parameter &p) { return p.range.has_value(); });
    spec[TESS_SPEC_VERSION] = ranged ? TESS_SPEC_ABI2_RANGES : TESS_SPEC_ABI2;
    spec[TESS_SPEC_N_DIMS] = static_cast<int64_t>(dims.size());
    spec[TESS_SPEC_N_TENSORS] = static_cast<int64_t>(program.arguments.size());
    spec[TESS_SPEC_N_PARAMETERS] = static_cast<int64_t>(program.parameters.size());
    spec[TESS_SPEC_DEVICE] = TESS_HOST;
    for (const Dim &d : dims) {
        bool fixed = d.kind == DimKind::fixed;
        int64_t equal = d.equals.empty() ? -1 : position(d.equals);
        spec.insert(spec.end(), {fixed ? d.value : -1, d.min, d.max, d.multiple_of, equal, texts.add(d.name)});
    }
    auto slot = static_cast<int64_t>(dims.size());
    for (const Argument &a : program.arguments) {
        limit(a.tensor.dims.size(), TESS_MAX_RANK, "axes in '" + a.tensor.name + "'");
        const std::vector<std::string> &axes = carried_dims(a);
        int64_t role = !a.written ? TESS_ROLE_INPUT : a.read ? TESS_ROLE_INOUT : TESS_ROLE_OUTPUT;
        int64_t flags = TESS_FLAG_LAST_STRIDE_1 | (a.packed ? TESS_FLAG_PACKED : 0) | (a.large ? TESS_FLAG_LARGE : 0);
        if (a.packed) spec[TESS_SPEC_N_PACKED]++;
        spec.insert(spec.end(), {role, abi_dtype(a.packed ? a.tensor.dtype : declared_tensor(a).dtype), static_cast<int64_t>(axes.size()),
                                 flags, texts.add(a.tensor.name), slot});
        for (size_t axis = 0; axis < TESS_MAX_RANK; axis++) spec.push_back(axis < axes.size() ? position(axes[axis]) : -1);
        slot += 1 + static_cast<int64_t>(axes.size());
    }
    const ParameterLayout layout = parameter_layout(program);
    for (size_t i = 0; i < program.parameters.size(); i++) {
        const Parameter &p = program.parameters[i];
        spec.insert(spec.end(), {abi_dtype(p.dtype), layout.offsets[i], texts.add(p.name)});
        if (!ranged) continue;
        const std::vector<int64_t> range = range_words(p);
        spec.insert(spec.end(), range.begin(), range.end());
    }
    spec[TESS_SPEC_PARAMETER_BYTES] = layout.bytes;
    spec[TESS_SPEC_FRAME_WORDS] = slot + static_cast<int64_t>(program.parameters.size()) + TESS_TAIL_WORDS;
    return spec;
}

// The runtime takes extents from tensors.
void check_told(const TileProgram &program) {
    std::set<std::string> told;
    for (const Argument &a : program.arguments) told.insert(carried_dims(a).begin(), carried_dims(a).end());
    for (const Dim &d : spec_dims(program))
        if (d.kind == DimKind::symbolic && d.equals.empty() && !told.count(d.name))
            throw UserError("emit.abi", program.name + ": none of its tensors has the dim '" + d.name +
                                            "', and its extent is taken from a tensor; give it to an input, or fix it.");
}

void put_on_device(std::vector<int64_t> &spec, const Target &target) {
    spec[TESS_SPEC_DEVICE] = device_of(target);
    if (spec[TESS_SPEC_DEVICE] == TESS_OPENCL) spec[TESS_SPEC_FRAME_WORDS] += spec[TESS_SPEC_N_TENSORS];
}

}  // namespace

std::vector<int64_t> spec_of(const TileProgram &program) {
    Texts texts;
    return arguments_of(program, texts);
}

std::vector<int64_t> spec_of(const TileProgram &program, const Target &target) {
    std::vector<int64_t> spec = spec_of(program);
    put_on_device(spec, target);
    return spec;
}

std::vector<int64_t> spec_of(const std::vector<TargetKernels> &targets, size_t number) {
    const Kernel &kernel = targets.back().kernels.at(number);
    const TileProgram &program = kernel.general();
    check_told(program);
    Texts texts;
    const int64_t name = texts.add(kernel.name);
    std::vector<int64_t> spec = arguments_of(program, texts), layouts;
    spec[TESS_SPEC_NAME] = name;
    spec[TESS_SPEC_CPU_FEATURES] = static_cast<int64_t>(feature_mask(targets.back().target.features));
    put_on_device(spec, targets.back().target);
    for (const TargetKernels &of : targets)
        for (const KernelVariant &v : of.kernels.at(number).variants) {
            spec[TESS_SPEC_N_CODE]++;
            spec.insert(spec.end(), {static_cast<int64_t>(feature_mask(of.target.features)), texts.add(of.target.name),
                                     texts.add(text_of(v.when)), texts.add(resolved_hash(v.program))});
        }
    if (spec[TESS_SPEC_N_PACKED] > 0) spec[TESS_SPEC_N_LAYOUTS] = static_cast<int64_t>(targets.size());
    for (size_t i = 0; i < program.arguments.size(); i++) {
        if (!program.arguments[i].packed) continue;
        for (const TargetKernels &of : targets) {
            const Argument &argument = of.kernels.at(number).general().arguments.at(i);
            require(argument.packed.has_value(), "targets of one library pack the same operands");
            const std::vector<int64_t> record = layout_record(argument, feature_mask(of.target.features));
            spec.insert(spec.end(), record.begin(), record.end());
        }
    }
    const std::vector<int64_t> words = texts.words();
    spec.insert(spec.end(), words.begin(), words.end());
    return spec;
}

int32_t stream_vector_bytes(const TileProgram &program) {
    auto has = [&](const char *feature) { return std::count(program.features.begin(), program.features.end(), feature) > 0; };
    return has("avx512f") ? 64 : has("avx") ? 32 : 16;
}

}  // namespace tessera
