#include "generators/kernel/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "algorithms/evaluate/reference.h"
#include "compiler/interpret/interpret.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Arrays = std::map<std::string, Array>;

constexpr auto poison = std::byte{0xfb};  // an unlikely value of every type
constexpr size_t zone = 256;              // bytes on either side of an argument that a kernel must leave alone

// An argument's memory between two zones.
class Guarded {
public:
    explicit Guarded(const std::vector<std::byte> &data, size_t alignment = 1)
        : size_(data.size()), memory_(data.size() + 2 * zone + alignment, poison) {
        void *at = memory_.data() + zone;
        size_t space = size_ + alignment;
        begin_ = static_cast<std::byte *>(std::align(alignment, size_, at, space)) - memory_.data();
        std::copy(data.begin(), data.end(), memory_.begin() + begin_);
    }
    std::byte *data() { return memory_.data() + begin_; }
    bool is_intact() const {
        auto kept = [](std::byte b) { return b == poison; };
        return std::all_of(memory_.begin(), memory_.begin() + begin_, kept) &&
               std::all_of(memory_.begin() + begin_ + static_cast<ptrdiff_t>(size_), memory_.end(), kept);
    }
    std::vector<std::byte> contents() const { return {memory_.begin() + begin_, memory_.begin() + begin_ + static_cast<ptrdiff_t>(size_)}; }

private:
    size_t size_;
    ptrdiff_t begin_ = 0;
    std::vector<std::byte> memory_;
};

// A packed operand as its kernel wrote it, header and all, by the name of its tensor.
using Packed = std::map<std::string, std::vector<std::byte>>;

// What the arguments hold before a run.
Arrays before(const TileProgram &program, const Inputs &inputs, const Extents &extents) {
    Arrays arrays;
    const Extents all = all_extents(program, extents);
    for (const Argument &a : program.arguments) {
        Array array(a.tensor.dtype, shape_of(a.tensor, all));
        std::fill(array.data.begin(), array.data.end(), poison);
        arrays.emplace(a.tensor.name, a.read ? inputs.tensors.at(a.tensor.name) : array);
    }
    return arrays;
}

Arrays interpreted(const TileProgram &program, const Inputs &inputs, const Extents &extents) {
    Arrays arrays = before(program, inputs, extents);
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : arrays) views[name] = array.view(name);
    interpret(program, views, extents, inputs.parameters);
    return arrays;
}

// Takes operands from `packed`, and puts there what the kernel packs.
Arrays run(const TileProgram &program, const LoadedKernel &kernel, const Inputs &inputs, const Extents &extents, int32_t threads,
           Packed &packed, std::string &difference) {
    Arrays arrays = before(program, inputs, extents);
    std::vector<Guarded> memory;
    std::vector<TessTensorDesc> arguments;
    for (const Argument &a : program.arguments) {
        const std::vector<std::byte> &data = arrays.at(a.tensor.name).data;
        if (!a.packed) {
            memory.emplace_back(data);
            arguments.push_back(descriptor_of(a.tensor.dtype, shape_of(a.tensor, extents), memory.back().data()));
            continue;
        }
        memory.emplace_back(a.read ? packed.at(a.tensor.name) : std::vector<std::byte>(TESS_PACKED_HEADER_BYTES + data.size(), poison),
                            TESS_PACKED_ALIGNMENT);
        arguments.push_back(tess_packed(memory.back().data(), memory.back().contents().size()));
    }
    const std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool(threads > 1 ? tess_pool_create(threads) : nullptr,
                                                                       tess_pool_destroy);
    TessContext context = tess_context();
    context.threads = threads, context.pool = pool.get();
    int status = kernel.workspace(arguments, inputs.parameters, context, context.workspace_bytes);
    std::vector<std::byte> workspace(context.workspace_bytes + TESS_WORKSPACE_ALIGNMENT, poison);
    void *aligned = workspace.data();
    size_t space = workspace.size();
    context.workspace = context.workspace_bytes ? std::align(TESS_WORKSPACE_ALIGNMENT, context.workspace_bytes, aligned, space) : nullptr;
    if (status == TESS_OK) status = kernel.run(arguments, inputs.parameters, context);
    if (status != TESS_OK) difference = "the kernel refuses its arguments: " + kernel.message(status);
    for (size_t i = 0; i < memory.size(); i++) {
        const Argument &a = program.arguments[i];
        if (!memory[i].is_intact()) difference = "the kernel writes outside '" + a.tensor.name + "'";
        std::vector<std::byte> contents = memory[i].contents();
        uint64_t bytes = 0;
        if (a.packed && a.written && (kernel.size(arguments, context, bytes) != TESS_OK || bytes != contents.size()))
            difference = fmt::format("the kernel says that '{}' has {} bytes, of {}", a.tensor.name, bytes, contents.size());
        if (a.packed && a.written) packed[a.tensor.name] = contents;
        if (a.packed) contents.erase(contents.begin(), contents.begin() + TESS_PACKED_HEADER_BYTES);
        arrays.at(a.tensor.name).data = contents;
    }
    return arrays;
}

bool is_nan(const Scalar &value) { return is_float(value.type) && std::isnan(value.real); }

std::string text_of(const Scalar &value) {
    return is_float(value.type) ? fmt::format("{:a} ({:.9g})", value.real, value.real) : std::to_string(value.integer);
}

// "[1, 5]"
std::string position_text(int64_t position, const std::vector<int64_t> &shape) {
    std::string text;
    for (size_t axis = shape.size(); axis-- > 0; position /= shape[axis])
        text = std::to_string(position % shape[axis]) + (text.empty() ? "" : ", ") + text;
    return "[" + text + "]";
}

std::string first_difference(const Arrays &expected, const Arrays &got, const std::string &what) {
    for (const auto &[name, array] : expected) {
        const Array &other = got.at(name);
        if (array.data == other.data) continue;
        for (int64_t i = 0; i < array.size(); i++) {
            const Scalar a = array.get(i), b = other.get(i);
            if (a == b || (is_nan(a) && is_nan(b))) continue;
            return fmt::format("{}{}: {} gives {}, the kernel {}", name, position_text(i, array.extents), what, text_of(a), text_of(b));
        }
    }
    return "";
}

// Of integers, that of f32, in which they are compared.
double epsilon(DType type) { return std::ldexp(1.0, -traits_of(is_float(type) ? type : DType::f32).mantissa); }

// Judges one result against the algorithm in double and in its own types.
void judge(const std::string &name, const Array &got, const Array &exact, const Array &declared, Comparison &comparison) {
    const std::vector<double> values = got.values(), truth = exact.values(), own = declared.values();
    double largest = 0, far = 0, own_far = 0;
    size_t worst = 0;
    std::string wrong;
    for (size_t i = 0; i < values.size(); i++) {
        const bool finite = std::isfinite(truth[i]) && std::isfinite(own[i]);
        const bool alike =
            finite ? std::isfinite(values[i]) : std::isnan(own[i]) == std::isnan(values[i]) && std::isinf(own[i]) == std::isinf(values[i]);
        if (!alike || (!is_float(got.dtype) && values[i] != own[i])) {
            if (wrong.empty())
                wrong = fmt::format("{}{}: the algorithm gives {:.9g}, the kernel {:.9g}", name,
                                    position_text(static_cast<int64_t>(i), got.extents), own[i], values[i]);
            continue;
        }
        if (!finite) continue;
        largest = std::max(largest, std::abs(truth[i]));
        own_far = std::max(own_far, std::abs(own[i] - truth[i]));
        if (std::abs(values[i] - truth[i]) > far) far = std::abs(values[i] - truth[i]), worst = i;
    }
    if (wrong.empty() && far > 8 * own_far + 4 * epsilon(got.dtype) * largest)
        wrong = fmt::format(
            "{}{}: the exact result is {:.9g}, the kernel gives {:.9g}; the declared order of operations errs by at most {:.3g}", name,
            position_text(static_cast<int64_t>(worst), got.extents), truth[worst], values[worst], own_far);
    if (comparison.difference.empty()) comparison.difference = wrong;
    if (largest == 0) return;
    comparison.error = std::max(comparison.error, far / largest);
    comparison.declared_error = std::max(comparison.declared_error, own_far / largest);
}

}  // namespace

Comparison compare(const PreparedKernel &p, const LoadedKernels &loaded, const Extents &symbolic, uint64_t seed,
                   const std::vector<int32_t> &threads) {
    Comparison result{symbolic, "", 0, 0};
    const Extents extents = all_extents(p.bound, symbolic);
    const TileProgram &program = variant_for(p.kernel, extents).program;
    const Inputs inputs = random_inputs(program, extents, seed);
    Inputs given = inputs;  // and what is packed of them
    Arrays expected;
    Packed packed;
    // Whether the compiled kernel equals the program, whose outputs become `expected`.
    auto agrees = [&](const TileProgram &one, const LoadedKernel &kernel, const std::string &what) {
        expected = interpreted(one, given, extents);
        for (int32_t n : threads) {
            const Arrays got = run(one, kernel, given, extents, n, packed, result.difference);
            if (result.difference.empty()) result.difference = first_difference(expected, got, what);
            if (result.difference.empty()) continue;
            result.difference += fmt::format(" ({} thread{})", n, n == 1 ? "" : "s");
            return false;
        }
        return true;
    };
    auto loaded_packing = loaded.packings.begin();
    for (const Kernel &packing : p.packings) {
        const TileProgram &one = packing.general();
        if (!agrees(one, *loaded_packing++, "the tile program of " + packing.name)) return result;
        const std::string &name = one.arguments.back().tensor.name;
        given.tensors.emplace(name, expected.at(name));
    }
    if (!agrees(program, loaded.kernel, "the tile program")) return result;
    EvaluationOptions own{Precision::policy, extents, false}, exact{Precision::f64, extents, false};
    const Arrays declared = evaluate(p.bound, inputs.tensors, inputs.parameters, own),
                 truth = evaluate(p.bound, inputs.tensors, inputs.parameters, exact);
    for (const Argument &a : program.arguments)
        if (a.written) judge(a.tensor.name, expected.at(a.tensor.name), truth.at(a.tensor.name), declared.at(a.tensor.name), result);
    return result;
}

std::string to_string(const Extents &extents) {
    std::string text;
    for (const auto &[dim, extent] : extents) text += (text.empty() ? "" : " ") + dim + "=" + std::to_string(extent);
    return text.empty() ? "its only shape" : text;
}

}  // namespace tessera
