#include <algorithm>

#include <fmt/format.h>

#include "algorithms/evaluate/stored_array.h"
#include "generators/bundle/check.h"
#include "generators/bundle/generated.h"
#include "generators/bundle/packed_weights.h"
#include "generators/commands/generate.h"
#include "generators/kernel/kernel_bits.h"
#include "generators/output/emitted.h"
#include "generators/registry/versions.h"
#include "support/files/output_folder.h"
#include "support/files/safetensors.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

class Rebuilder {
public:
    Rebuilder(const Registry &registry, const Bundle &bundle, const Limits &limits)
        : registry_(registry), b_(bundle), m_(bundle.manifest()), limits_(limits) {}

    BundleCheck rebuild() {
        if (m_.tessera != tessera_version() || m_.halide != halide_version()) {
            problem("bundle.version",
                    fmt::format("Tessera {} with Halide {} has made its code, and this is {} with {}: other bytes would say nothing. "
                                "Rebuild it with that version.",
                                m_.tessera, m_.halide, tessera_version(), halide_version()));
            return done_;
        }
        for (const BundleMember &m : m_.members)
            if (m.path.starts_with("programs/") || m.path.starts_with("schedules/")) {
                fs::create_directories((folder_.path() / m.path).parent_path());
                write_into(folder_.path() / m.path, b_.read(m.path, bundle_max_text));
            }
        for (size_t i = 0; i < m_.libraries.size(); i++) attempt([&] { rebuild_library(i); });
        attempt([&] { repack(); });
        return done_;
    }

private:
    const Registry &registry_;
    const Bundle &b_;
    const BundleManifest &m_;
    const Limits &limits_;
    const TemporaryFolder folder_;
    BundleCheck done_;

    void problem(const std::string &id, const std::string &words) {
        done_.problems.emplace_back(UserError(id, "bundle '" + b_.subject() + "': " + words).what());
    }

    template <typename F>
    void attempt(F run) {
        try {
            run();
        } catch (const UserError &error) { done_.problems.emplace_back(error.what()); }
    }

    // The kernels of a library in the order in which they were generated, each with its code for every target.
    std::vector<const BundleKernel *> kernels_of(const BundleLibrary &library) const {
        const GeneratedLibrary made = read_generated(b_.read(library.manifest, bundle_max_text), b_.subject() + ": " + library.manifest);
        std::vector<const BundleKernel *> kernels;
        for (const GeneratedKernel &g : made.kernels)
            for (const BundleKernel &k : m_.kernels)
                if (k.name == g.kernel.name) kernels.push_back(&k);
        return kernels;
    }

    Module module_of(const BundleLibrary &library, size_t number) const {
        Module module{library.is_module ? library.name : "", {}};
        for (const BundleKernel *k : kernels_of(library)) {
            if (!k->program)
                throw UserError("bundle.program",
                                "bundle '" + b_.subject() + "': kernel '" + k->name +
                                    "': expected what it was made from, to make it again, and it is not in the bundle. Make the bundle of "
                                    "folders that generate --sources wrote.");
            ModuleKernel kernel{k->name, {}, {}};
            kernel.options.algorithm = (folder_.path() / *k->program).string();
            kernel.options.target = join(library.targets, ",");
            kernel.options.schedule_dirs = {(folder_.path() / "schedules").string()};
            kernel.options.quiet = true;
            for (const auto &[dim, extent] : k->fixed) kernel.options.shape.push_back(dim + "=" + std::to_string(extent));
            for (const BundleCode &code : k->code)
                if (code.library == number)
                    kernel.schedules.push_back(code.target + "=" + (code.schedule.empty() ? "none" : code.schedule));
            module.kernels.push_back(std::move(kernel));
        }
        return module;
    }

    void rebuild_library(size_t number) {
        const BundleLibrary &l = m_.libraries[number];
        fs::create_directories(folder_.path() / "schedules");
        PreparedLibrary library = prepare_library(registry_, module_of(l, number));
        for (std::vector<PreparedKernel> &targets : library.kernels)
            for (PreparedKernel &p : targets)
                for (const BundleKernel &k : m_.kernels)
                    if (k.name == p.compiled.kernel.name) {
                        p.request.options = Options(k.options.begin(), k.options.end());  // which the header tells
                        check_bits(k, p);
                    }
        const OutputFolder out(folder_.path() / "made" / std::to_string(number));
        const std::map<std::string, std::string> files = library_files(registry_, library, limits_, out);
        for (const auto &[member, file] : {std::pair(l.archive, "lib" + library.name + ".a"), std::pair(l.header, library.name + ".h")})
            if (files.at(file) != b_.read(member, bundle_max_archive))
                problem("bundle.rebuild",
                        "member '" + member +
                            "' does not come again from programs and schedules: other bytes come out. Was it made from them?");
            else done_.passed.push_back(member + " comes again, byte for byte");
    }

    void check_bits(const BundleKernel &k, const PreparedKernel &p) {
        for (const BundleCode &code : k.code)
            if (code.target == p.request.target.name && bits_of(p.request, p.choice).hash != code.bits)
                problem("bundle.rebuild",
                        "kernel '" + k.name + "' for " + code.target + " has another order of operations than its hash of bits says.");
    }

    void repack() {
        if (m_.packed.empty()) return;
        const Safetensors weights(b_.read(bundle_weights_member, uint64_t{1} << 40), b_.subject() + ": " + bundle_weights_member);
        size_t same = 0;
        for (const BundlePackedTensor &p : m_.packed)
            if (b_.read(p.member, uint64_t{1} << 40) == packed_again(p, weights)) same++;
            else problem("bundle.rebuild", "member '" + p.member + "' does not come again from its tensor: other bytes come out.");
        if (same == m_.packed.size()) done_.passed.push_back(fmt::format("{} packed weights come again, byte for byte", same));
    }

    // Packed for the first kernel that takes it so.
    std::string packed_again(const BundlePackedTensor &p, const Safetensors &weights) const {
        const SafeTensor &t = weights.tensors().at(p.tensor);
        for (const BundleLibrary &l : m_.libraries)
            for (const GeneratedKernel &g : read_generated(b_.read(l.manifest, bundle_max_text), l.manifest).kernels)
                for (const BundleKernel &k : m_.kernels)
                    for (const BundleWeight &w : k.weights) {
                        const auto layout = g.layouts.find({w.argument, p.layout});
                        if (k.name != g.kernel.name || w.tensor != p.tensor || layout == g.layouts.end()) continue;
                        const DType type = dtype_of_safetensors(t.type).value();
                        return packed_bytes({layout->second.dims, layout->second.layout, std::stoull(p.layout, nullptr, 16), type},
                                            t.extents, t.bytes, p.member);
                    }
        throw UserError("bundle.packed", "bundle '" + b_.subject() + "': no kernel takes '" + p.member + "'.");
    }
};

}  // namespace

BundleCheck rebuild_bundle(const Registry &registry, const Bundle &bundle, const Limits &limits) {
    return Rebuilder(registry, bundle, limits).rebuild();
}

}  // namespace tessera
