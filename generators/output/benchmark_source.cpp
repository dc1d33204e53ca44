#include "generators/output/benchmark_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/measure/inputs.h"
#include "bench/measure/work.h"
#include "compiler/abi/c_names.h"
#include "compiler/emit/spec.h"
#include "compiler/tile/arguments.h"
#include "costmodel/features/roofline.h"
#include "support/text/error.h"

namespace tessera {

namespace {

std::string listed(const std::vector<int64_t> &numbers) {
    std::string text;
    for (int64_t n : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
    return "{" + text + "}";
}

std::string functions_of(const Kernel &kernel) {
    const TileProgram &p = kernel.general();
    const std::string &name = kernel.name;
    std::string values;
    for (size_t i = 0; i < p.arguments.size(); i++) values += fmt::format("t[{}], ", i);
    const bool parameters = !p.parameters.empty();
    return fmt::format(
        "int32_t run_kernel(const TessTensor *const *t, const void *{0}, const TessContext *c) {{ return {1}_table(t, {2}c); }}\n"
        "int32_t workspace(const TessTensor *const *t, const TessContext *c, uint64_t *bytes) {{ return {1}_workspace({3}c, bytes); }}\n"
        "const tessera_benchmark::Kernel kernel = {{run_kernel, workspace, {1}_argument_names}};\n",
        parameters ? "p" : "", name, parameters ? fmt::format("static_cast<const {}_parameters *>(p), ", name) : "",
        has_named_tensors(p) ? values : "t, ");
}

std::string parameters_text(const TileProgram &program, const InputPlan &plan) {
    std::string text;
    for (const Parameter &p : program.parameters) {
        const Scalar &value = plan.parameters.at(p.name);
        text += fmt::format("{}static_cast<{}>({})", text.empty() ? "" : ", ", c_parameter_type(p.dtype),
                            is_float(p.dtype) ? fmt::format("{:.17g}", value.real) : fmt::format("INT64_C({})", value.integer));
    }
    return text;
}

std::string tensor_text(const Argument &a, const Extents &extents, const InputPlan &plan, size_t &packings) {
    const Tensor declared = declared_tensor(a);
    const bool read = a.read || a.packed;
    const std::string &name = a.packed ? a.packed->operand.name : a.tensor.name;
    const Tensor &t = a.packed ? a.packed->operand : a.tensor;
    InputTensor input;
    if (read) input = plan.tensors.at(name);
    const std::vector<int64_t> shape = shape_of(t, extents);
    int64_t elements = 1;
    for (int64_t extent : shape) elements *= extent;
    std::vector<int64_t> given;
    for (int64_t i = 0; input.given && i < input.given->size(); i++) given.push_back(input.given->get(i).integer);
    return fmt::format(
        "        {{static_cast<TessDType>({}), {}, {}, {}, static_cast<RandomKind>({}), UINT64_C({}), {}, {}, {}}},  // {}\n",
        abi_dtype(declared.dtype), listed(shape_of(declared, extents)), elements * size_of(t.dtype), read,
        read ? static_cast<int>(input.kind()) : 0, input.seed, elements, listed(given),
        a.packed ? fmt::format("&packing_{}", packings++) : "nullptr", name);
}

}  // namespace

std::string benchmark_source(const std::vector<PreparedKernel> &targets, const std::vector<Extents> &shapes) {
    const auto best = std::find_if(targets.begin(), targets.end(), [](const PreparedKernel &p) { return runs_here(p.request.target); });
    const PreparedKernel &p = best == targets.end() ? targets.back() : *best;
    const Target &target = p.request.target;
    if (target.is_gpu())
        throw UserError("command.target", "target '" + target.name +
                                              "': --benchmark expected one whose kernels run on the processor, got a GPU. Choose one that "
                                              "is not a GPU, for example host.");
    const std::string &name = p.compiled.kernel.name;
    std::string text = fmt::format("#include \"bench/google/kernel_benchmark.h\"\n#include \"{}.h\"\n\nnamespace {{\n\n", name);
    text += functions_of(p.compiled.kernel);
    for (size_t i = 0; i < p.compiled.packings.size(); i++)
        text += fmt::format("const tessera_benchmark::Packing packing_{0} = {{{1}_size, {1}}};\n", i, p.compiled.packings[i].name);
    std::string all;
    for (size_t s = 0; s < shapes.size(); s++) {
        const Extents extents = all_extents(p.request.bound, shapes[s]);
        const TileProgram &program = variant_for(p.compiled.kernel, extents).program;
        const InputPlan plan = planned_inputs(program, extents, 1);
        const Work work = work_of(p.request.bound, program, extents);
        std::string called = name;
        for (const auto &[dim, extent] : shapes[s]) called += fmt::format("/{}:{}", dim, extent);
        const bool parameters = !program.parameters.empty();
        if (parameters) text += fmt::format("const {}_parameters parameters_{} = {{{}}};\n", name, s, parameters_text(program, plan));
        std::string tensors;
        size_t packings = 0;
        for (const Argument &a : program.arguments) tensors += tensor_text(a, extents, plan, packings);
        all += fmt::format("    {{\"{}\", {{\n{}    }}, {}, {}, {:.17g}, {:.17g}, {:.17g}}},\n", called, tensors,
                           parameters ? fmt::format("&parameters_{}", s) : "nullptr", work.operations.has_value(),
                           work.operations.value_or(0), work.bytes, bound_seconds(work, target, 1));
    }
    return text + fmt::format(
                      "const std::vector<tessera_benchmark::Shape> shapes = {{\n{}}};\n\n}}  // namespace\n\n"
                      "int main(int argc, char **argv) {{ return tessera_benchmark::run(argc, argv, kernel, shapes, \"{}, {}\"); }}\n",
                      all, target.name, target.measured ? "measured" : "assumed of the fastest processors of its kind");
}

}  // namespace tessera
