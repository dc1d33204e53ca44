#include "generators/commands/input_options.h"

#include <algorithm>
#include <cstring>

#include "support/files/npz.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// The arrays of a type of NumPy: that of the tensor itself; of a format that NumPy does not have, its codes or, of floats, f32.
std::vector<std::string> types_for(DType type) {
    switch (type) {
    case DType::f32: return {"<f4"};
    case DType::f64: return {"<f8"};
    case DType::f16: return {"<f2", "<f4"};
    case DType::bf16: return {"<V2", "|V2", "<f4"};
    case DType::i8: return {"|i1"};
    case DType::u8: return {"|u1"};
    case DType::i32: return {"<i4"};
    case DType::i64: return {"<i8"};
    case DType::boolean: return {"|b1"};
    case DType::i4: return {"|i1", "|V1"};
    case DType::u4: return {"|u1", "|V1"};
    default: return {"|V1", "|u1", "<f4"};
    }
}

// The elements of an array for a tensor of that type.
Array elements_of(const NpyArray &given, DType type, const std::string &subject) {
    const std::vector<std::string> types = types_for(type);
    if (std::find(types.begin(), types.end(), given.type) == types.end())
        throw UserError("command.inputs",
                        subject + "expected " + name_of(type) + ", which is " + join(types, " or ") + " here, got " + given.type + ".");
    Array array(type, given.extents);
    if (given.type == "<f4" && type != DType::f32) {  // rounded
        for (int64_t i = 0; i < array.size(); i++) {
            float value;
            std::memcpy(&value, given.bytes.data() + 4 * i, sizeof value);
            array.set(i, convert(type, Rounding::nearest_even, false, Scalar::of_real(DType::f32, value)));
        }
        return array;
    }
    require(array.data.size() == given.bytes.size(), "an array has a byte or more for each element");
    if (!given.bytes.empty()) std::memcpy(array.data.data(), given.bytes.data(), given.bytes.size());
    for (int64_t i = 0; i < array.size() && (type == DType::boolean || traits_of(type).in_half_bytes); i++) {
        const auto byte = static_cast<int8_t>(given.bytes[static_cast<size_t>(i)]);
        const bool is_element = type == DType::i4 ? byte >= -8 && byte <= 7 : (byte & ~(type == DType::boolean ? 1 : 15)) == 0;
        if (!is_element)
            throw UserError("command.inputs", subject + "element " + std::to_string(i) + " is " + std::to_string(byte) +
                                                  ", which no element of " + name_of(type) + " is.");
        if (type == DType::i4) array.set(i, Scalar::of_integer(type, byte));
    }
    return array;
}

}  // namespace

void add_input_options(const CommandLine &line, InputOptions &options) {
    line.option("--range", options.ranges,
                "The range in which the elements of an input, or a parameter, lie; without a name, those of all others of floats")
        .takes("NAME=LOWEST..HIGHEST");
    line.option("--inputs", options.file, "A file of numpy.savez with the inputs, and parameters as scalars, by their names").takes("FILE");
}

StatedInputs stated_inputs(const Algorithm &algorithm, const InputOptions &options) {
    StatedInputs stated = stated_ranges(algorithm, options.ranges);
    if (options.file.empty()) return stated;
    const Npz file(options.file);
    std::vector<std::string> names;
    for (const Tensor &t : algorithm.tensors)
        if (t.role != Role::constant) names.push_back(t.name);
    for (const Parameter &p : algorithm.parameters) names.push_back(p.name);
    for (const NpyArray &given : file.arrays()) {
        const std::string subject = "--inputs " + options.file + ": '" + given.name + "': ";
        const auto fail = [&](const std::string &why) { throw UserError("command.inputs", subject + why); };
        if (stated.ranges.count(given.name)) fail("--range names it too; leave one of them out.");
        const auto parameter = std::find_if(algorithm.parameters.begin(), algorithm.parameters.end(),
                                            [&](const Parameter &p) { return p.name == given.name; });
        if (parameter != algorithm.parameters.end()) {
            if (!given.extents.empty()) fail("expected a scalar for a parameter, got shape " + shape_text(given.extents) + ".");
            const Scalar value = elements_of(given, parameter->dtype, subject).get(0);
            if (parameter->range && !parameter->range->contains(value))
                fail("the parameter must be " + to_string(*parameter->range) + ", not " + value_text(value) + ".");
            stated.parameters[given.name] = value;
            continue;
        }
        const Tensor *tensor = algorithm.find_tensor(given.name);
        if (!tensor || tensor->role == Role::constant)
            fail(algorithm.name + " has no input or parameter of that name; it has " + join(names) + "." + did_you_mean(given.name, names));
        const auto half = algorithm.half_bytes.find(given.name);
        stated.arrays[given.name] = elements_of(given, half == algorithm.half_bytes.end() ? tensor->dtype : half->second.dtype, subject);
    }
    extents_in(stated, algorithm);
    return stated;
}

}  // namespace tessera
