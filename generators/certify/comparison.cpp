#include "generators/certify/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "algorithms/evaluate/reference.h"
#include "autotune/measure/sampled.h"
#include "compiler/interpret/interpret.h"
#include "compiler/tile/arguments.h"
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

Arrays interpreted(const TileProgram &program, const Inputs &inputs, const Extents &extents, bool checked = true) {
    Arrays arrays = arguments_before(program, inputs, extents);
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : arrays) views[name] = array.view(name);
    InterpretOptions options;
    options.checked = checked;
    interpret(program, views, extents, inputs.parameters, options);
    return arrays;
}

// Takes operands from `packed`, and puts there what the kernel packs.
Arrays run(const TileProgram &program, const LoadedKernel &kernel, const Inputs &inputs, const Extents &extents, int32_t threads,
           Packed &packed, std::string &difference) {
    Arrays arrays = arguments_before(program, inputs, extents);
    std::vector<Guarded> memory;
    std::vector<TessTensor> arguments;
    std::list<std::vector<int64_t>> shapes;
    std::list<uint64_t> sizes;
    for (const Argument &a : program.arguments) {
        const std::vector<std::byte> &data = arrays.at(a.tensor.name).data;
        if (!a.packed) {
            memory.emplace_back(data);
            const Tensor tensor = declared_tensor(a);
            arguments.push_back(descriptor_of(tensor.dtype, shapes.emplace_back(shape_of(tensor, extents)), memory.back().data()));
            continue;
        }
        memory.emplace_back(a.read ? packed.at(a.tensor.name) : std::vector<std::byte>(TESS_PACKED_HEADER_BYTES + data.size(), poison),
                            TESS_PACKED_ALIGNMENT);
        arguments.push_back(tess_packed(memory.back().data(), &sizes.emplace_back(memory.back().contents().size())));
    }
    const std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool(threads > 1 ? tess_pool_create(threads) : nullptr,
                                                                       tess_pool_destroy);
    TessContext context = tess_context();
    context.threads = threads, context.pool = pool.get();
    int status = kernel.workspace(arguments, context, context.workspace_bytes);
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

// For integers, that of f32, in which they are compared.
double epsilon(DType type) { return std::ldexp(1.0, -traits_of(is_float(type) ? type : DType::f32).mantissa); }

using PlaceText = std::function<std::string(size_t)>;  // of the element at that position of the arrays: "[1, 5]"

// Judges one result of `what`, such as "the kernel", against the algorithm in double and in its own types.
void judge(const std::string &name, const std::string &what, const Array &got, const Array &exact, const Array &declared,
           const PlaceText &place, Comparison &comparison) {
    const std::vector<double> values = got.values(), truth = exact.values(), own = declared.values();
    double largest = 0, far = 0, own_far = 0;
    size_t worst = 0;
    std::string wrong;
    comparison.elements += static_cast<int64_t>(values.size());
    for (size_t i = 0; i < values.size(); i++) {
        const bool finite = std::isfinite(truth[i]) && std::isfinite(own[i]);
        const bool alike =
            finite ? std::isfinite(values[i]) : std::isnan(own[i]) == std::isnan(values[i]) && std::isinf(own[i]) == std::isinf(values[i]);
        if (!alike || (!is_float(got.dtype) && values[i] != own[i])) {
            if (wrong.empty()) wrong = fmt::format("{}{}: the algorithm gives {:.9g}, {} {:.9g}", name, place(i), own[i], what, values[i]);
            continue;
        }
        if (std::isnan(values[i]) && comparison.nans++ == 0) comparison.first_nan = name + place(i);
        if (!finite) continue;
        largest = std::max(largest, std::abs(truth[i]));
        own_far = std::max(own_far, std::abs(own[i] - truth[i]));
        if (std::abs(values[i] - truth[i]) > far) far = std::abs(values[i] - truth[i]), worst = i;
    }
    if (wrong.empty() && far > 8 * own_far + 4 * epsilon(got.dtype) * largest)
        wrong = fmt::format("{}{}: the exact result is {:.9g}, {} gives {:.9g}; the declared order of operations errs by at most {:.3g}",
                            name, place(worst), truth[worst], what, values[worst], own_far);
    if (comparison.difference.empty()) comparison.difference = wrong;
    if (largest == 0) return;
    if (far / largest > comparison.error || comparison.output.empty())
        comparison.error = std::max(comparison.error, far / largest), comparison.output = name, comparison.largest = largest,
        comparison.is_near_zero = far / largest > std::max(1e-3, 16 * epsilon(got.dtype));
    comparison.declared_error = std::max(comparison.declared_error, own_far / largest);
}

}  // namespace

Comparison compare(const PreparedKernel &p, const LoadedKernels &loaded, const Extents &symbolic, uint64_t seed,
                   const std::vector<int32_t> &threads, const StatedInputs &stated) {
    Comparison result;
    result.extents = symbolic;
    const Extents extents = all_extents(p.request.bound, symbolic);
    const TileProgram &program = variant_for(p.compiled.kernel, extents).program;
    const Inputs inputs = random_inputs(program, extents, seed, stated);
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
    for (const Kernel &packing : p.compiled.packings) {
        const TileProgram &one = packing.general();
        if (!agrees(one, *loaded_packing++, "the tile program of " + packing.name)) return result;
        const std::string &name = one.arguments.back().tensor.name;
        given.tensors.emplace(name, expected.at(name));
    }
    if (!agrees(program, loaded.kernel, "the tile program")) return result;
    const Arrays declared = reference_results(p, inputs, {Precision::policy, extents, false}),
                 truth = reference_results(p, inputs, {Precision::f64, extents, false});
    for (const Argument &a : program.arguments)
        if (const std::string &name = a.tensor.name; a.written) {
            const Array got = as_declared(a, expected.at(name), extents);
            const auto place = [&](size_t i) { return position_text(static_cast<int64_t>(i), got.extents); };
            judge(name, "the kernel", got, truth.at(name), declared.at(name), place, result);
        }
    return result;
}

namespace {

constexpr double most_steps = 3e8;    // of an interpreter: seconds
constexpr double few_steps = 1e6;     // where all points are looked at
constexpr size_t enough_points = 16;  // for the errors of the declared order to show how large they are
constexpr int most_rounds = 16;

// Points of one output, and what each side gives there.
struct ComparedPoints {
    DType dtype = DType::f32;
    std::vector<Scalar> got, exact, declared;
    std::vector<std::string> places;
};

bool is_untouched(const Array &array, int64_t position) {
    const auto size = static_cast<size_t>(size_of(array.dtype));
    const auto at = array.data.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(position) * size);
    return std::all_of(at, at + static_cast<ptrdiff_t>(size), [](std::byte b) { return b == poison; });
}

std::vector<int64_t> index_at(int64_t position, const std::vector<int64_t> &shape) {
    std::vector<int64_t> index(shape.size());
    for (size_t axis = shape.size(); axis-- > 0; position /= shape[axis]) index[axis] = position % shape[axis];
    return index;
}

// Some neighbours from an element on that a sampled program wrote; nothing where it wrote none.
std::optional<Box> written_box(const Array &array, RandomNumbers &random) {
    std::vector<int64_t> written;
    for (int64_t i = 0; i < array.size(); i++)
        if (!is_untouched(array, i)) written.push_back(i);
    if (written.empty()) return std::nullopt;
    const std::vector<int64_t> first =
        index_at(written[static_cast<size_t>(random.below(static_cast<int64_t>(written.size())))], array.extents);
    Box box(first.size());
    int64_t left = 2 * static_cast<int64_t>(enough_points);
    for (size_t axis = box.size(); axis-- > 0;) {
        const int64_t side = std::min(array.extents[axis] - first[axis], left);
        box[axis] = {first[axis], first[axis] + side - 1};
        left = std::max<int64_t>(left / side, 1);
    }
    return box;
}

// A box of what is stored, as one of what a caller sees: two of four bits for each byte.
Box as_declared(const Argument &argument, Box stored, const Extents &extents) {
    if (argument.half_bytes && !stored.empty()) {
        const int64_t extent = shape_of(declared_tensor(argument), extents).back();
        stored.back() = {2 * stored.back().lo, std::min(2 * stored.back().hi + 1, extent - 1)};
    }
    return stored;
}

// Adds the elements of the box that were written; of four bits, as their bytes in `stored` were.
void add_points(const Array &stored, const Array &got, const Array &exact, const Array &declared, const Box &box, ComparedPoints &points) {
    points.dtype = got.dtype;
    const bool is_half = is_in_half_bytes(got.dtype);
    for (int64_t i = 0; i < declared.size(); i++) {
        const std::vector<int64_t> inside = index_at(i, declared.extents);
        int64_t position = 0, at = 0;
        for (size_t axis = 0; axis < box.size(); axis++) {
            const int64_t here = inside[axis] + box[axis].lo;
            position = position * got.extents[axis] + here;
            at = at * stored.extents[axis] + (is_half && axis + 1 == box.size() ? here / 2 : here);
        }
        if (is_untouched(stored, at)) continue;
        points.got.push_back(got.get(position)), points.exact.push_back(exact.get(i)), points.declared.push_back(declared.get(i));
        points.places.push_back(position_text(position, got.extents));
    }
}

}  // namespace

Arrays arguments_before(const TileProgram &program, const Inputs &inputs, const Extents &extents) {
    Arrays arrays;
    const Extents all = all_extents(program, extents);
    for (const Argument &a : program.arguments) {
        Array array(a.tensor.dtype, shape_of(a.tensor, all));
        std::fill(array.data.begin(), array.data.end(), poison);
        arrays.emplace(a.tensor.name, a.read ? inputs.tensors.at(a.tensor.name) : array);
    }
    return arrays;
}

Array as_declared(const Argument &argument, const Array &stored, const Extents &extents) {
    if (!argument.half_bytes) return stored;
    const Tensor declared = declared_tensor(argument);
    return from_bytes(stored, declared.dtype, shape_of(declared, extents));
}

Arrays reference_results(const PreparedKernel &p, const Inputs &inputs, const EvaluationOptions &options) {
    Arrays given = inputs.tensors;
    for (auto &[name, array] : given)
        if (const auto half = p.request.bound.half_bytes.find(name); half != p.request.bound.half_bytes.end()) {
            const Tensor *declared = p.request.elements.find_tensor(name);
            array = from_bytes(array, declared->dtype, shape_of(*declared, options.extents));
        }
    EvaluationOptions over_elements = options;
    std::erase_if(over_elements.extents, [&](const auto &extent) { return !p.request.elements.find_dim(extent.first); });
    return evaluate(p.request.elements, given, inputs.parameters, over_elements);
}

Inputs with_packed(const PreparedKernel &p, Inputs inputs, const Extents &extents) {
    for (const Kernel &packing : p.compiled.packings) {
        const std::string &name = packing.general().arguments.back().tensor.name;
        inputs.tensors.emplace(name, interpreted(packing.general(), inputs, extents, false).at(name));
    }
    return inputs;
}

std::string difference_from_algorithm(const PreparedKernel &p, const Extents &symbolic, const StatedInputs &stated) {
    const Extents extents = all_extents(p.request.bound, symbolic);
    const TileProgram &program = variant_for(p.compiled.kernel, extents).program;
    const bool is_whole = p.request.bound.updates_state || steps_of(program, extents) <= few_steps;
    std::map<std::string, ComparedPoints> all;
    auto has_enough = [&] {
        return !all.empty() && std::all_of(all.begin(), all.end(), [](const auto &one) { return one.second.got.size() >= enough_points; });
    };
    for (int round = 0; round < most_rounds && !has_enough(); round++) {
        const auto seed = static_cast<uint64_t>(round) + 1;
        RandomNumbers random(seed);
        const TileProgram some = is_whole ? program : sampled(program, extents, seed);
        if (steps_of(some, extents) > most_steps) return "";
        const Inputs inputs = random_inputs(program, extents, seed, stated);
        const Inputs given = with_packed(p, inputs, extents);
        const Arrays got = interpreted(some, given, extents, false);
        EvaluationOptions own{Precision::policy, extents, false}, exact{Precision::f64, extents, false};
        for (const Argument &a : program.arguments)
            if (a.written && !is_whole)
                if (const auto box = written_box(got.at(a.tensor.name), random))
                    own.boxes.emplace(a.tensor.name, as_declared(a, *box, extents));
        if (!is_whole && own.boxes.empty()) return "";
        exact.boxes = own.boxes;
        const Arrays declared = reference_results(p, inputs, own), truth = reference_results(p, inputs, exact);
        for (const Argument &a : program.arguments) {
            const std::string &name = a.tensor.name;
            if (!a.written || !declared.count(name)) continue;
            const auto box = own.boxes.find(name);
            add_points(got.at(name), as_declared(a, got.at(name), extents), truth.at(name), declared.at(name),
                       box == own.boxes.end() ? Box(got.at(name).extents.size(), Interval{0, 0}) : box->second, all[name]);
        }
    }
    Comparison result;
    for (const auto &[name, points] : all) {
        if (points.got.empty()) continue;
        const std::vector<int64_t> shape = {static_cast<int64_t>(points.got.size())};
        const auto place = [&places = points.places](size_t i) { return places[i]; };
        judge(name, "the tile program", Array::of(shape, points.got), Array::of(shape, points.exact), Array::of(shape, points.declared),
              place, result);
    }
    return result.difference;
}

std::string to_string(const Extents &extents) {
    std::string text;
    for (const auto &[dim, extent] : extents) text += (text.empty() ? "" : " ") + dim + "=" + std::to_string(extent);
    return text.empty() ? "its only shape" : text;
}

}  // namespace tessera
