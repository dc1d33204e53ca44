// Algorithms as ONNX models, with data to run them on: export.py runs the models and judges what they give.
//
//     onnx_export <folder> <algorithm.json>...
//     onnx_export <folder> --random <count>
//
// For an algorithm it writes <folder>/<its name>/model.onnx, and for each shape a folder with the inputs, the exact results (double), those
// of the algorithm in its own types, and how far each element may be from the exact one. What is refused has refused.txt. It fails where a
// model that is imported again has another semantic hash. The second form writes JSON of random algorithms.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include "algorithms/export/onnx/export.h"
#include "algorithms/export/onnx/write_model.h"
#include "algorithms/import/onnx/exported.h"
#include "algorithms/import/onnx/import.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "bench/measure/inputs.h"
#include "compiler/interpret/running_error.h"
#include "compiler/lower/lower.h"
#include "compiler/tile/arguments.h"
#include "generators/certify/comparison.h"
#include "generators/kernel/prepare.h"
#include "schedules/target/target.h"
#include "support/text/error.h"
#include "tests/compiler/random_case.h"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

void write(const fs::path &file, const std::string &content) { std::ofstream(file, std::ios::binary) << content; }

void write_array(const fs::path &file, const Array &array) {
    onnx::TensorData tensor;
    // Elements of four bits have a byte each here.
    const DType type = !is_in_half_bytes(array.dtype) ? array.dtype : is_float(array.dtype) ? DType::f32 : DType::i8;
    Array wide(type, array.extents);
    for (int64_t i = 0; i < array.size(); i++) {
        Scalar s = array.get(i);
        s.type = type;
        wide.set(i, s);
    }
    tensor.type = onnx::type_number(type), tensor.extents = array.extents;
    tensor.raw = {reinterpret_cast<const char *>(wide.data.data()), wide.data.size()};
    write(file, onnx::write_tensor(tensor));
}

Array numbers(const std::vector<double> &values, const std::vector<int64_t> &extents) { return {DType::f64, extents, values}; }

// Two shapes with points, small enough for a reference in Python: the smallest that is found, and one of the largest.
std::vector<Extents> shapes_of(const Algorithm &algorithm) {
    std::vector<std::pair<int64_t, Extents>> all;
    for (const Extents &e : awkward_shapes(algorithm, 24, 7)) {
        if (is_empty(algorithm, e)) continue;
        int64_t points = 1;
        for (const auto &[dim, extent] : all_extents(algorithm, e))
            if (algorithm.find_dim(dim)->kind == DimKind::symbolic) points *= extent;
        all.emplace_back(points, e);
    }
    std::sort(all.begin(), all.end());
    while (all.size() > 1 && all.back().first > 20000) all.pop_back();
    if (all.size() > 2) all.erase(all.begin() + 1, all.end() - 1);
    std::vector<Extents> shapes;
    for (const auto &[points, e] : all) shapes.push_back(e);
    return shapes;
}

// What the certificate of the plain program allows each element, or infinity where it cannot say.
std::map<std::string, std::vector<double>> bounds_of(const PreparedKernel &p, const Inputs &inputs, const Extents &extents) {
    const TileProgram program = lower(p.request.bound, {}, p.request.target, {}, FunctionForm::named);
    std::map<std::string, Array> values = arguments_before(program, inputs, extents);
    std::map<std::string, TensorView> views;
    for (auto &[name, array] : values) views[name] = array.view(name);
    return running_errors(program, views, extents, inputs.parameters).bounds;
}

void write_data(const fs::path &folder, const PreparedKernel &p, const Extents &symbolic, const onnx::Model &model) {
    fs::create_directories(folder);
    const Extents extents = all_extents(p.request.bound, symbolic);
    const TileProgram &program = p.compiled.kernel.variants.back().program;
    const Inputs inputs = random_inputs(program, extents, 11);
    const Algorithm &whole = p.request.elements;
    std::map<std::string, Array> given = inputs.tensors;
    for (const Argument &a : program.arguments)
        if (const auto it = given.find(a.tensor.name); it != given.end()) it->second = as_declared(a, it->second, extents);
    size_t next = 0;
    for (const Tensor &t : whole.tensors)
        if (t.role != Role::constant) write_array(folder / ("input_" + std::to_string(next++) + ".pb"), given.at(t.name));
    for (const Parameter &parameter : whole.parameters)
        write_array(folder / ("input_" + std::to_string(next++) + ".pb"), Array::of({}, {inputs.parameters.at(parameter.name)}));
    const std::string prefix = "extent_of_";
    for (; next < model.graph.inputs.size(); next++) {
        const std::string dim = model.graph.inputs[next].name.substr(prefix.size());
        write_array(folder / ("input_" + std::to_string(next) + ".pb"), Array::of({}, {Scalar::of_integer(DType::i64, extents.at(dim))}));
    }
    const auto exact = reference_results(p, inputs, {Precision::f64, extents, false}),
               own = reference_results(p, inputs, {Precision::policy, extents, false});
    const auto bounds = bounds_of(p, inputs, extents);
    size_t number = 0;
    for (const Tensor &t : onnx::exported_results(whole)) {
        const std::string name = std::to_string(number++) + ".pb";
        write_array(folder / ("exact_" + name), numbers(exact.at(t.name).values(), exact.at(t.name).extents));
        write_array(folder / ("own_" + name), own.at(t.name));
        if (const auto it = bounds.find(t.name); it != bounds.end() && it->second.size() == static_cast<size_t>(own.at(t.name).size()))
            write_array(folder / ("bound_" + name), numbers(it->second, own.at(t.name).extents));
    }
}

bool one(const fs::path &folder, const fs::path &file) {
    const std::string name = file.stem().string();
    const fs::path here = folder / name;
    fs::create_directories(here);
    KernelOptions options;
    options.algorithm = file.string(), options.schedule = "none", options.target = "avx2";
    const Registry registry;
    const PreparedKernel p = prepare(registry, options);
    std::string bytes;
    try {
        bytes = onnx::export_model(p.request.elements);
    } catch (const UserError &e) {
        write(here / "refused.txt", e.message());
        return true;
    }
    write(here / "model.onnx", bytes);
    const auto model = onnx::read_model(bytes, name);
    if (onnx::write_model(*model) != bytes) return std::printf("%s: what is read is written otherwise\n", name.c_str()), false;
    const std::string again = semantic_hash(onnx::import_model(*model, {}).program), before = semantic_hash(p.request.elements);
    if (again != before) return std::printf("%s: imported again it is %s, not %s\n", name.c_str(), again.c_str(), before.c_str()), false;
    int number = 0;
    for (const Extents &e : shapes_of(p.request.bound)) write_data(here / ("shape_" + std::to_string(number++)), p, e, *model);
    if (number == 0) return std::printf("%s: no shape to try it at\n", name.c_str()), false;
    return true;
}

void write_random(const fs::path &folder, int count) {
    std::mt19937 random(20);
    const Target target = target_named("avx2");
    for (int i = 0; i < count; i++) try {
            const std::string name = "random_" + std::to_string(i);
            const Algorithm algorithm = test::build(test::random_case(name, random, target)).algorithm;
            write(folder / (name + ".json"), to_json(algorithm).dump());
        } catch (const UserError &) {}  // of choices that make no legal algorithm
}

}  // namespace

int main(int argc, char **argv) {
    if (argc == 4 && std::string(argv[2]) == "--random") return write_random(argv[1], std::atoi(argv[3])), 0;
    bool good = argc > 2;
    for (int i = 2; i < argc; i++) try {
            good &= one(argv[1], argv[i]);
        } catch (const std::exception &e) { std::printf("%s: %s\n", argv[i], e.what()), good = false; }
    return good ? 0 : 1;
}
