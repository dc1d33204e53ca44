// Every algorithm of the library, with each of its parameters just outside of its range, at its ends, and at what no range holds.
#include <catch2/catch.hpp>
#include <cmath>
#include <list>
#include <nlohmann/json.hpp>

#include "bench/measure/inputs.h"
#include "compiler/tile/arguments.h"
#include "generators/certify/comparison.h"
#include "generators/kernel/prepare.h"
#include "generators/output/loaded_kernel.h"
#include "support/files/output_folder.h"
#include "tests/generators/harness.h"

using namespace tessera;
using namespace tessera::test;

namespace {

// A number of bits and a place where a sequence begins mean something whatever they are.
const std::vector<std::string> without_range = {"seed", "begin"};

struct CallResult {
    int status;
    std::string message;
    bool is_number;  // every float of the results
};

class RangedKernel {
public:
    explicit RangedKernel(const std::string &words)
        : prepared_(prepared(words)),
          loaded_(library_to_load(prepared_, {}, folder_), prepared_),
          program_(prepared_.compiled.kernel.general()) {
        Extents symbolic;
        for (const Dim &d : prepared_.request.declared.dims)
            if (d.kind == DimKind::symbolic)
                symbolic[d.name] = (std::max<int64_t>(d.min, 4) + d.multiple_of - 1) / d.multiple_of * d.multiple_of;
        extents_ = all_extents(program_, all_extents(prepared_.request.bound, symbolic));
        inputs_ = random_inputs(program_, extents_, 1);
        // Variances and second moments are not negative.
        for (auto &[name, array] : inputs_.tensors)
            if (is_float(array.dtype))
                for (int64_t i = 0; i < array.size(); i++) array.set(i, Scalar::of_real(array.dtype, std::fabs(array.get(i).real)));
    }

    const std::vector<Parameter> &parameters() const { return prepared_.request.declared.parameters; }

    CallResult call(const std::string &parameter, const Scalar &value) const {
        std::map<std::string, Scalar> parameters = inputs_.parameters;
        parameters[parameter] = value;
        std::map<std::string, Array> arrays = arguments_before(program_, inputs_, extents_);
        std::vector<TessTensor> tensors;
        std::list<std::vector<int64_t>> shapes;
        for (const Argument &a : program_.arguments) {
            const Tensor declared = declared_tensor(a);
            shapes.push_back(shape_of(declared, extents_));
            tensors.push_back(descriptor_of(declared.dtype, shapes.back(), arrays.at(a.tensor.name).data.data()));
        }
        TessContext context = tess_context();
        uint64_t bytes = 0;
        REQUIRE(loaded_.kernel.workspace(tensors, context, bytes) == TESS_OK);
        std::vector<uint64_t> room(bytes / 8 + 16);
        context.workspace = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
        context.workspace_bytes = bytes;
        const int status = loaded_.kernel.run(tensors, parameters, context);
        bool is_number = true;
        for (const Argument &a : program_.arguments)
            if (a.written && is_float(a.tensor.dtype))
                for (int64_t i = 0; i < arrays.at(a.tensor.name).size(); i++)
                    is_number = is_number && !std::isnan(arrays.at(a.tensor.name).get(i).real);
        return {status, status == TESS_OK ? "" : loaded_.kernel.message(status), is_number};
    }

private:
    PreparedKernel prepared(const std::string &words) const {
        const Outcome json = stock_generator("show " + words + " --json");
        REQUIRE(json.code == 0);
        const auto file = folder_.path() / "algorithm.json";
        write_file(file, json.out);
        KernelOptions options;
        options.algorithm = file.string(), options.schedule = "none", options.target = "x86-64";
        return prepare(Registry(), options);
    }

    TemporaryFolder folder_;
    PreparedKernel prepared_;
    LoadedKernels loaded_;
    const TileProgram &program_;
    Extents extents_;
    Inputs inputs_;
};

// The values on both sides of an end.
Scalar beside(const Scalar &end, int way) {
    if (!is_float(end.type)) return Scalar::of_integer(end.type, end.integer + way);
    if (end.type == DType::f64) return Scalar::of_real(end.type, std::nextafter(end.real, way * INFINITY));
    return Scalar::of_real(end.type, std::nextafter(static_cast<float>(end.real), static_cast<float>(way) * INFINITY));
}

std::vector<Scalar> values_of(const Parameter &p) {
    std::vector<Scalar> values;
    if (is_float(p.dtype)) {
        for (double v : {double(NAN), double(INFINITY), -double(INFINITY), 0.0, -0.0, 1.0, -1.0})
            values.push_back(Scalar::of_real(p.dtype, v));
    } else {
        for (int64_t v : {traits_of(p.dtype).lowest, traits_of(p.dtype).highest, int64_t{0}, int64_t{-1}})
            values.push_back(Scalar::of_integer(p.dtype, v));
    }
    if (!p.range) return values;
    if (p.range->has_least())
        for (int way : {-1, 1}) values.push_back(beside(p.range->least, way));
    if (p.range->has_most())
        for (int way : {-1, 1}) values.push_back(beside(p.range->most, way));
    values.push_back(p.range->least), values.push_back(p.range->most);
    return values;
}

std::vector<std::string> algorithms_with_parameters() {
    std::vector<std::string> found = {"gemm --option scale=1", "attention_grouped --option causal=1 --option window=3"};
    const Outcome list = stock_generator("list --json");
    REQUIRE(list.code == 0);
    const nlohmann::json all = nlohmann::json::parse(list.out);
    for (const nlohmann::json &a : all.at("algorithms"))
        if (!a.at("parameters").empty()) found.push_back(a.at("name").get<std::string>());
    return found;
}

}  // namespace

TEST_CASE("each algorithm of the library refuses what is outside of a parameter's range, by its name, and computes with what is inside") {
    const std::vector<std::string> all = algorithms_with_parameters();
    CHECK(all.size() >= 14);
    for (const std::string &words : all) {
        const RangedKernel kernel(words);
        for (const Parameter &p : kernel.parameters()) {
            const bool is_free = std::count(without_range.begin(), without_range.end(), p.name) > 0;
            INFO(words << " " << p.name);
            CHECK(p.range.has_value() != is_free);
            for (const Scalar &value : values_of(p)) {
                INFO(value_text(value));
                const CallResult result = kernel.call(p.name, value);
                const bool is_inside = !p.range || p.range->contains(value);
                CHECK((result.status == TESS_OK) == is_inside);
                if (is_inside) CHECK(result.is_number);
                else
                    CHECK_THAT(result.message,
                               Catch::Contains("('" + p.name + "'): parameter must be ") && Catch::EndsWith(", not " + value_text(value)));
            }
        }
    }
}
