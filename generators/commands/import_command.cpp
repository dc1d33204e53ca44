#include "generators/commands/import_command.h"

#include <charconv>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/evaluate/stored_array.h"
#include "algorithms/import/onnx/import.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "compiler/abi/c_names.h"
#include "generators/example/model_example.h"
#include "generators/registry/options.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct ImportLine {
    std::string file, out, name;
    std::vector<std::string> shape, multiple, max, bind, until;
    bool json = false;
};

// "sr=16000" or "axes=1,2": numbers in the type and shape of the model's input.
std::pair<std::string, Array> bound(const std::string &word, const onnx::Model &model) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
        throw UserError("onnx.bind", "--bind " + word + ": expected <input>=<number>, or numbers with commas between them.");
    const std::string name = word.substr(0, equals), list = word.substr(equals + 1);
    std::vector<double> values;
    for (size_t from = 0; from < list.size();) {
        const size_t comma = std::min(list.find(',', from), list.size());
        double value = 0;
        const auto [end, error] = std::from_chars(list.data() + from, list.data() + comma, value);
        if (error != std::errc() || end != list.data() + comma)
            throw UserError("onnx.bind", "--bind " + word + ": '" + list.substr(from, comma - from) + "' is no number.");
        values.push_back(value);
        from = comma + 1;
    }
    std::vector<std::string> names;
    for (const onnx::ValueInfo &info : model.graph.inputs) {
        names.push_back(info.name);
        if (info.name != name) continue;
        const std::optional<DType> type = onnx::dtype_of(info.type);
        if (!type) throw UserError("onnx.type", "--bind " + name + ": the input is of " + onnx::type_name(info.type) + ".");
        const size_t rank = info.extents ? info.extents->size() : 0;
        if (rank > 1 || (rank == 0 && values.size() != 1))
            throw UserError("onnx.bind", "--bind " + name + ": expected an input of no or one axis, and as many numbers.");
        const auto count = static_cast<int64_t>(values.size());
        return {name, Array(*type, rank ? std::vector<int64_t>{count} : std::vector<int64_t>{}, values)};
    }
    throw UserError("onnx.bind",
                    "--bind " + name + ": the model has no such input; it has " + join(names) + "." + did_you_mean(name, names));
}

int run(const ImportLine &o) {
    const auto model = onnx::read_model(o.file);
    onnx::ImportOptions options;
    options.name = o.name;
    for (const auto &[dim, extent] : parse_shape(o.shape)) options.shape[dim] = extent;
    for (const auto &[dim, of] : parse_shape(o.multiple, "--multiple")) options.multiples[dim] = of;
    for (const auto &[dim, most] : parse_shape(o.max, "--max")) options.most[dim] = most;
    for (const std::string &word : o.bind)
        if (!options.bind.insert(bound(word, *model)).second)
            throw UserError("onnx.bind", "--bind " + word + ": the input is bound twice; bind it once.");
    options.until = o.until;
    const onnx::Imported made = onnx::import_model(*model, options);
    check_c_name(made.program.name);

    const std::string file = std::filesystem::path(o.file).filename().string();
    ordered_json report = {{"format", "tessera-import"}, {"version", 1}, {"model", file}};
    report["producer"] = model->producer;
    report["opsets"] = model->opsets;
    report["metadata"] = model->metadata;
    report["program"] = {{"name", made.program.name}, {"semantic_hash", semantic_hash(made.program)}};
    for (const auto &[own, name] : made.inputs) report["inputs"][own] = name;
    for (const auto &[own, name] : made.outputs) report["outputs"][own] = name;
    report["dims"] = ordered_json::array();
    for (const onnx::ImportedDim &d : made.dims)
        report["dims"].push_back(
            {{"name", d.name}, {"stands_for", d.origin}, {"min", d.multiple_of}, {"multiple_of", d.multiple_of}, {"max", d.max}});
    report["bound"] = o.bind;
    report["shape"] = o.shape;
    report["operators"] = made.operators;
    report["folded"] = made.folded;
    report["fixed_defaults"] = made.fixed_defaults;
    size_t bytes = 0;
    std::vector<SafeTensor> tensors;
    for (const onnx::Weight &w : made.weights) {
        tensors.push_back(safe_tensor(w.name, w.array));
        bytes += w.array.data.size();
    }
    report["weights"] = {{"tensors", tensors.size()}, {"bytes", bytes}};

    OutputFolder folder(o.out);
    const OutputFolder example(std::filesystem::path(o.out) / "example");
    std::vector<std::string> example_files;
    for (const auto &[name, text] : model_example(made.program, file, !tensors.empty())) {
        example.write(name, text);
        example_files.push_back(name);
    }
    folder.write("program.json", to_json(made.program).dump() + "\n");
    write_safetensors(folder.staged("weights.safetensors"), tensors, {{"program", made.program.name}});
    folder.write("import.json", report.dump(2) + "\n");
    folder.publish_together({"weights.safetensors", "program.json", "import.json"});
    example.publish_together(example_files);
    if (o.json) {
        std::cout << report.dump(2) << "\n";
        return exit_ok;
    }
    int64_t nodes = 0;
    for (const auto &[name, count] : made.operators) nodes += count;
    std::cout << fmt::format("{}: {} nodes, of which {} follow from constants and shapes; {} stages and calls; {} weights, {:.1f} MB\n",
                             made.program.name, nodes, made.folded, made.program.steps.size(), tensors.size(),
                             static_cast<double>(bytes) / 1e6);
    if (!made.fixed_defaults.empty())
        std::cout << "  note: the program computes with the model's defaults of " << printable(join(made.fixed_defaults))
                  << "; they are no inputs\n";
    for (const onnx::ImportedDim &d : made.dims)
        std::cout << fmt::format("  dim {}: {}, {}{}\n", d.name, d.origin,
                                 d.multiple_of > 1 ? fmt::format("a multiple of {}", d.multiple_of) : "at least 1",
                                 d.max < onnx::most_extent ? fmt::format(", at most {}", d.max) : "");
    std::cout << fmt::format("wrote program.json, weights.safetensors, import.json and the folder example to {}\n", o.out);
    return exit_ok;
}

}  // namespace

Command import_command(ProgramLine &program) {
    auto o = std::make_shared<ImportLine>();
    const CommandLine line =
        program.command("import", "Read an ONNX model: write it as a program that other commands take, with its weights and a report");
    line.option("file", o->file, "The model, an ONNX file").required();
    line.option("-o,--out", o->out, "The folder to write to").takes("DIR").required();
    line.option("--name", o->name, "Name of the program. Default: that of the file").takes("NAME");
    line.option("--shape", o->shape, "Extent of a dynamic dim, by the model's name of it or as <input>.<axis>").takes("DIM=N");
    line.option("--multiple", o->multiple, "A dynamic dim that is always a multiple of N, as networks that halve pictures want it")
        .takes("DIM=N");
    line.option("--max", o->max, "The greatest extent of a dynamic dim, as tables of positions want it").takes("DIM=N");
    line.option("--bind", o->bind, "An input that becomes a constant, with its numbers").takes("INPUT=N,…").one_value_each();
    line.option("--until", o->until, "A value of the graph that is an output, in place of the model's outputs")
        .takes("VALUE")
        .one_value_each();
    line.flag("--json", o->json, "Print the report as JSON");
    return {line, [=] {
                if (o->name.empty())
                    for (const char c : std::filesystem::path(o->file).stem().string())
                        o->name += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
                if (o->name.empty() || std::isdigit(static_cast<unsigned char>(o->name[0]))) o->name = "model_" + o->name;
                return run(*o);
            }};
}

}  // namespace tessera
