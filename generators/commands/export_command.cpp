#include "generators/commands/export_command.h"

#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "algorithms/export/onnx/export.h"
#include "algorithms/text/hash.h"
#include "algorithms/transform/bind_extents.h"
#include "generators/commands/kernel_line.h"
#include "generators/registry/kernel_request.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera {

Command export_command(ProgramLine &program, const Registry &registry) {
    struct ExportLine {
        KernelOptions kernel;
        std::string out;
    };
    auto o = std::make_shared<ExportLine>();
    const CommandLine line = program.command("export", "Write an algorithm as an ONNX model, which any runtime can run");
    add_algorithm_options(line, o->kernel);
    line.option("-o,--out", o->out, "The model to write").takes("FILE.onnx").required();
    return {line, [=, &registry] {
                const Algorithm bound = bind_extents(load_algorithm(registry, o->kernel), parse_shape(o->kernel.shape));
                const std::string model = onnx::export_model(bound);
                const std::filesystem::path out(o->out);
                if (out.extension() != ".onnx")
                    throw UserError("command.arguments", "export: --out " + o->out +
                                                             ": expected the name of a model, which ends in .onnx, so that nothing else is "
                                                             "written over. Name it so.");
                const OutputFolder folder(out.has_parent_path() ? out.parent_path() : ".");
                folder.write(out.filename().string(), model);
                folder.publish(out.filename().string());
                std::cout << fmt::format("{}: {} bytes, {}\nwrote {}\n", bound.name, model.size(), semantic_hash(bound), o->out);
                return exit_ok;
            }};
}

}  // namespace tessera
