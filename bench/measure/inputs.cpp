#include "bench/measure/inputs.h"

#include <algorithm>
#include <set>

#include "algorithms/transform/given_extents.h"
#include "compiler/tile/arguments.h"
#include "runtime/abi/extent_words.h"
#include "schedules/knobs/condition.h"
#include "support/text/error.h"

namespace tessera {

uint64_t RandomNumbers::next() { return random_number(seed_, made_++); }
int64_t RandomNumbers::below(int64_t limit) { return static_cast<int64_t>(next() % static_cast<uint64_t>(std::max<int64_t>(limit, 1))); }
double RandomNumbers::unit() { return static_cast<double>(next() >> 11) / 9007199254740992.0; }
double RandomNumbers::signed_unit() { return static_cast<double>(next() >> 40) / (1 << 23) - 1; }

static void add_derived(const std::vector<Dim> &dims, Extents &extents) {
    for (const Dim &d : dims) {
        if (d.kind == DimKind::fixed) extents[d.name] = d.value;
        if (d.kind != DimKind::derived) continue;
        const Expr size = rewrite(d.size, [&](const Expr &e) -> Expr {
            return e.kind() == ExprKind::extent && extents.count(e->name) ? Expr(extents.at(e->name)) : Expr();
        });
        if (size.is_constant()) extents[d.name] = std::max<int64_t>(0, size->value.integer);
    }
}

Extents all_extents(const TileProgram &program, const Extents &extents) {
    Extents all = extents;
    add_derived(program.dims, all);
    return all;
}

// A dim may be declared equal to one that follows from others.
static void check_equal_to_derived(const Algorithm &algorithm, const Extents &extents) {
    for (const Dim &d : algorithm.dims) {
        if (d.equals.empty() || !extents.count(d.equals) || extents.at(d.equals) == extents.at(d.name)) continue;
        refuse_extent(algorithm, d, TESS_WORDS_EXTENT_EQUAL + d.equals + ", " + std::to_string(extents.at(d.equals)), extents.at(d.name));
    }
}

Extents all_extents(const Algorithm &algorithm, const Extents &symbolic) {
    Extents extents = given_extents(algorithm, symbolic);
    add_derived(algorithm.dims, extents);
    for (size_t chain = 0; chain < algorithm.dims.size(); chain++)  // those that are equal to a derived one
        for (const Dim &d : algorithm.dims)
            if (!d.equals.empty() && extents.count(d.equals)) extents.emplace(d.name, extents.at(d.equals));
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::symbolic && !extents.count(d.name))
            throw UserError("command.extents",
                            algorithm.name + ": dim " + d.name +
                                " has no extent; give one with --shape, which fixes it in the kernel, or --extents, which does not.");
    add_derived(algorithm.dims, extents);
    check_equal_to_derived(algorithm, extents);
    return extents;
}

bool is_empty(const Algorithm &algorithm, const Extents &symbolic) {
    const Extents all = all_extents(algorithm, symbolic);
    return std::any_of(all.begin(), all.end(), [](const auto &extent) { return extent.second == 0; });
}

std::vector<Extents> awkward_shapes(const Algorithm &algorithm, int count, uint64_t seed) {
    static const int64_t awkward[] = {1, 2, 3, 7, 13, 16, 17, 31, 33, 47, 49, 64, 65, 97, 127};
    constexpr double max_points = 1 << 22;
    std::vector<Dim> dims;
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::symbolic && d.equals.empty()) dims.push_back(d);
    RandomNumbers random(seed);
    std::vector<Extents> shapes;
    std::set<Extents> seen;
    auto add = [&](const std::vector<int64_t> &wanted) {
        Extents shape;
        for (size_t i = 0; i < dims.size(); i++) shape[dims[i].name] = allowed_extent(algorithm, dims[i], wanted[i]);
        if (static_cast<int>(shapes.size()) < count && seen.insert(shape).second) shapes.push_back(shape);
    };
    auto any = [&] {
        std::vector<int64_t> extents;
        double points = 1;
        for (size_t i = 0; i < dims.size(); i++)
            extents.push_back(awkward[random.below(std::size(awkward))]), points *= static_cast<double>(extents.back());
        for (; points > max_points; points /= 2) *std::max_element(extents.begin(), extents.end()) /= 2;
        return extents;
    };
    // What is derived, such as the windows that fit into an image, is not empty either.
    auto pick = [&] {
        std::vector<int64_t> extents = any();
        for (int tries = 0; tries < 200; tries++, extents = any()) {
            Extents shape;
            for (size_t i = 0; i < dims.size(); i++) shape[dims[i].name] = allowed_extent(algorithm, dims[i], extents[i]);
            if (!is_empty(algorithm, shape)) break;
        }
        return extents;
    };
    add(std::vector<int64_t>(dims.size(), 1));
    for (size_t empty = 0; empty < dims.size(); empty++) {
        std::vector<int64_t> extents = pick();
        add(extents);
        extents[empty] = 0;
        add(extents);
    }
    for (int64_t i = 0; i < 4 * int64_t{count}; i++) add(pick());
    return shapes;
}

namespace {

bool runs_at(const std::vector<Condition> &when, const Extents &shape) {
    return std::all_of(when.begin(), when.end(), [&](const Condition &c) { return shape.count(c.dim) && holds(c, shape.at(c.dim)); });
}

size_t first_that_runs(const std::vector<std::vector<Condition>> &variants, const Extents &shape) {
    size_t v = 0;
    while (v < variants.size() && !runs_at(variants[v], shape)) v++;
    return v;
}

// The dims that conditions speak of, each with extents on every side of all of them, within its constraints.
std::vector<std::pair<std::string, std::vector<int64_t>>> telling_dims(const Algorithm &algorithm,
                                                                       const std::vector<std::vector<Condition>> &variants) {
    std::vector<Condition> all;
    for (const std::vector<Condition> &when : variants) all.insert(all.end(), when.begin(), when.end());
    std::vector<std::pair<std::string, std::vector<int64_t>>> dims;
    for (const Dim &d : algorithm.dims) {
        if (std::none_of(all.begin(), all.end(), [&](const Condition &c) { return c.dim == d.name; })) continue;
        dims.emplace_back(d.name, telling_extents(all, with_constraints_of_equals(algorithm, d)));
        std::erase(dims.back().second, 0);
    }
    return dims;
}

}  // namespace

ShapeOfVariant shape_that_meets(const Algorithm &algorithm, const std::vector<std::vector<Condition>> &variants, size_t variant,
                                uint64_t seed) {
    constexpr int max_tries = 64;
    constexpr int64_t max_others = 17;  // of dims without a condition, since those with one may be large
    const std::vector<Extents> shapes = awkward_shapes(algorithm, max_tries, seed);
    const auto with_small_others = [&](Extents shape, const std::set<std::string> &chosen) {
        for (auto &[dim, extent] : shape)
            if (!chosen.count(dim)) extent = allowed_extent(algorithm, algorithm.dim(dim), std::min(extent, max_others));
        return shape;
    };
    int tries = 0;
    for (Extents shape : shapes) {
        std::set<std::string> chosen;
        for (const Condition &c : variants[variant])
            if (shape.count(c.dim) && chosen.insert(c.dim).second) {
                std::vector<int64_t> extents =
                    extents_that_meet(variants[variant], with_constraints_of_equals(algorithm, algorithm.dim(c.dim)));
                std::erase(extents, 0);
                if (extents.empty()) return {{}, "no extent of '" + c.dim + "' meets its conditions"};
                shape[c.dim] = extents[std::min(extents.size() - 1, static_cast<size_t>(tries))];
            }
        tries++;
        shape = with_small_others(shape, chosen);
        if (first_that_runs(variants, shape) == variant && !is_empty(algorithm, shape)) return {shape, ""};
    }
    // All combinations of extents that tell variants apart.
    constexpr double max_combinations = 1 << 18;
    const auto dims = telling_dims(algorithm, variants);
    double combinations = 1;
    std::set<std::string> chosen;
    for (const auto &[dim, extents] : dims) combinations *= static_cast<double>(extents.size()), chosen.insert(dim);
    const bool is_whole = combinations <= max_combinations;
    RandomNumbers random(seed);
    bool is_met = false;
    const Extents others = with_small_others(shapes.back(), chosen);
    for (int64_t i = 0; i < static_cast<int64_t>(std::min(combinations, max_combinations)); i++) {
        Extents shape = others;
        int64_t rest = i;
        for (const auto &[dim, extents] : dims) {
            const auto count = static_cast<int64_t>(extents.size());
            shape[dim] = extents[static_cast<size_t>(is_whole ? rest % count : random.below(count))];
            rest /= count;
        }
        if (first_that_runs(variants, shape) != variant) continue;
        is_met = true;
        if (!is_empty(algorithm, shape)) return {shape, ""};
    }
    if (is_met) return {{}, "all shapes that were found have a dim without points"};
    return {{}, is_whole ? "an earlier variant runs wherever its conditions hold" : "none was found by chance"};
}

std::vector<int64_t> shape_of(const Tensor &tensor, const Extents &extents) {
    std::vector<int64_t> shape;
    for (const std::string &d : tensor.dims) {
        require(extents.count(d), "an argument's dims have extents that no data decides");
        shape.push_back(extents.at(d));
    }
    return shape;
}

// Whether the sizes of ragged dims are read from this tensor, or from what is made of its elements.
static bool has_offsets(const TileProgram &program, const std::string &tensor) {
    bool found = false;
    for (const Ascending &made : program.ascending) found |= made.given == tensor;
    for (const Dim &d : program.dims)
        if (d.kind == DimKind::derived)
            walk(d.size, [&](const Expr &e) { found = found || (e.kind() == ExprKind::load && e->name == tensor); });
    return found;
}

RandomKind InputTensor::kind() const {
    if (of_halves) return RANDOM_HALVES;
    switch (dtype) {
    case DType::f32: return RANDOM_F32;
    case DType::f64: return RANDOM_F64;
    case DType::bf16: return RANDOM_BF16;
    case DType::f16: return RANDOM_F16;
    case DType::i8:
    case DType::u8: return RANDOM_I8;
    case DType::i32: return RANDOM_I32;
    case DType::i64: return RANDOM_I64;
    case DType::boolean: return RANDOM_BOOL;
    case DType::f8e4m3fn:
    case DType::f8e4m3: return RANDOM_F8_3_7;
    case DType::f8e4m3fnuz: return RANDOM_F8_3_8;
    case DType::f8e5m2: return RANDOM_F8_2_15;
    case DType::f8e5m2fnuz: return RANDOM_F8_2_16;
    case DType::f8e8m0fnu: return RANDOM_SCALE;
    case DType::f6e2m3fn:
    case DType::f6e3m2fn: return RANDOM_F6;
    case DType::f4e2m1fn:
    case DType::i4:
    case DType::u4:  // programs have bytes in their place
    case DType::index: break;
    }
    throw InternalError("an index is never stored");
}

void InputTensor::make(int64_t first, int64_t count, std::byte *to) const {
    if (!given) return random_elements(kind(), seed, first, count, to);
    const int64_t bytes = size_of(dtype);
    std::copy_n(given->data.begin() + first * bytes, count * bytes, to);
}

// Where the rows of ragged dims begin.
static Array random_offsets(DType type, const std::vector<int64_t> &shape, int64_t largest, uint64_t seed) {
    RandomNumbers random(seed);
    Array array(type, shape);
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < array.size(); i++) offsets.push_back(random.below(largest + 1));
    std::sort(offsets.begin(), offsets.end());
    for (int64_t i = 0; i < array.size(); i++) array.set(i, Scalar::of_integer(type, offsets[static_cast<size_t>(i)]));
    return array;
}

// What is stated of a tensor as callers pass it; nothing where nothing is. `own` is its seed.
static std::optional<Array> stated_array(const StatedInputs &stated, const Argument &argument, const Extents &extents, uint64_t own,
                                         bool is_made) {
    const Tensor declared = declared_tensor(argument);
    const std::vector<int64_t> shape = shape_of(declared, extents);
    const auto bytes = [&](const Array &array) { return argument.half_bytes ? in_bytes(array) : array; };
    if (const auto array = stated.arrays.find(declared.name); array != stated.arrays.end()) {
        if (array->second.extents == shape) return bytes(array->second);
        throw UserError("command.inputs", "--inputs: '" + declared.name + "' has shape " + shape_text(array->second.extents) +
                                              "; expected " + shape_text(shape) + ".");
    }
    const NumberRange *range = stated.range_of(declared.name, declared.dtype);
    if (!range || is_made) return {};
    return bytes(array_in(*range, declared.dtype, shape, own));
}

InputPlan planned_inputs(const TileProgram &program, const Extents &extents, uint64_t seed, const StatedInputs &stated) {
    RandomNumbers random(seed);
    InputPlan plan;
    int64_t largest = 1;
    for (const auto &[dim, extent] : extents) largest = std::max(largest, extent);
    for (const Argument &argument : program.arguments) {
        const Tensor &t = argument.packed ? argument.packed->operand : argument.tensor;
        const uint64_t own = random.next();  // also where it is not read, so that the others' do not depend on it
        if (!argument.read) continue;
        InputTensor input{t.dtype, shape_of(t, extents), own, {}, argument.half_bytes.has_value()};
        if (has_offsets(program, t.name)) input.given = random_offsets(t.dtype, input.shape, largest, own);
        if (auto given = stated_array(stated, argument, extents, own, input.given.has_value())) input.given = std::move(given);
        plan.tensors.emplace(t.name, std::move(input));
    }
    for (const Parameter &p : program.parameters) {
        const Scalar drawn = is_float(p.dtype)
                                 ? Scalar::of_real(p.dtype, 1 - std::abs(random.signed_unit()) * 0.999)
                                 : Scalar::of_integer(p.dtype, p.dtype == DType::boolean ? random.below(2) : random.below(64));
        const NumberRange *range = stated.range_of(p.name, p.dtype);
        const Scalar value = range ? number_in(*range, p.dtype, seed, plan.parameters.size()) : drawn;
        const auto given = stated.parameters.find(p.name);
        if (given != stated.parameters.end()) plan.parameters[p.name] = given->second;
        else plan.parameters[p.name] = p.range ? p.range->nearest(value) : value;
    }
    return plan;
}

Inputs random_inputs(const TileProgram &program, const Extents &extents, uint64_t seed, const StatedInputs &stated) {
    InputPlan plan = planned_inputs(program, extents, seed, stated);
    Inputs inputs{{}, std::move(plan.parameters)};
    for (const auto &[name, input] : plan.tensors) {
        Array array(input.dtype, input.shape);
        input.make(0, array.size(), array.data.data());
        inputs.tensors.emplace(name, std::move(array));
    }
    return inputs;
}

}  // namespace tessera
