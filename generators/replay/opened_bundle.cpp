#include "generators/replay/opened_bundle.h"

#include <memory>

#include "runtime/crypto/ed25519.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

// The id of a status: "bundle.hash" of bundle-hash. That of a kernel is of a run.
[[noreturn]] static void fail(int32_t status, const TessBundleError &error) {
    std::string id = tess_status_kind(status);
    id = id.starts_with("bundle-") ? "bundle." + id.substr(7) : "bundle.replay";
    throw UserError(id, printable(error.text));
}

static void expect_ok(int32_t status, const TessBundleError &error) {
    if (status != TESS_OK) fail(status, error);
}

OpenedBundle::OpenedBundle(const std::string &file, const std::optional<KeyBytes> &public_key, uint64_t features) : file_(file) {
    TessBundleError error{};
    uint64_t bytes = 0;
    expect_ok(tess_bundle_bytes(file.c_str(), &bytes, &error), error);
    memory_.resize(bytes / 8 + 1);
    TessBundleOptions options = tess_bundle_options();
    options.features_off = ~features;
    if (public_key) options.public_key = public_key->data(), options.verify = tess_ed25519_verify;
    expect_ok(tess_bundle_open(file.c_str(), &options, memory_.data(), bytes, &bundle_, &error), error);
}

OpenedBundle::~OpenedBundle() { tess_bundle_close(bundle_); }

static TessBundleInfo info_of(const TessBundle *bundle) {
    TessBundleInfo info{};
    info.size = sizeof info;
    if (tess_bundle_info(bundle, &info) != TESS_OK) throw InternalError("an open bundle tells what is in it");
    return info;
}

std::string OpenedBundle::name() const { return info_of(bundle_).name; }
bool OpenedBundle::has_record() const { return info_of(bundle_).replay != nullptr; }

std::vector<BundledTarget> OpenedBundle::targets() const {
    std::vector<BundledTarget> all;
    for (uint32_t i = 0; i < info_of(bundle_).targets; i++) {
        TessBundleTargetInfo info{};
        info.size = sizeof info;
        if (tess_bundle_target_info(bundle_, i, &info) != TESS_OK) throw InternalError("a bundle tells its targets");
        all.push_back({info.name, info.arch, info.cpu_features, info.runs_here != 0});
    }
    return all;
}

std::vector<BundledKernel> OpenedBundle::kernels() const {
    std::vector<BundledKernel> all;
    for (uint32_t i = 0; i < info_of(bundle_).kernels; i++) {
        TessBundleKernelInfo info{};
        info.size = sizeof info;
        if (tess_bundle_kernel_info(bundle_, i, &info) != TESS_OK) throw InternalError("a bundle tells its kernels");
        all.push_back({info.name, info.target ? info.target : "", info.target ? info.bits : ""});
    }
    return all;
}

TessKernel OpenedBundle::kernel(const std::string &name) const {
    TessKernel kernel = tess_kernel();
    TessBundleError error{};
    expect_ok(tess_bundle_kernel(bundle_, name.c_str(), &kernel, &error), error);
    return kernel;
}

bool OpenedBundle::is_weight(const std::string &kernel, const std::string &argument) const {
    TessTensor tensor;
    TessBundleError error{};
    const int32_t status = tess_bundle_weight(bundle_, kernel.c_str(), argument.c_str(), &tensor, &error);
    if (status == TESS_BUNDLE_TENSOR) return false;
    expect_ok(status, error);
    return true;
}

std::vector<ReplayedOutput> OpenedBundle::replay(const std::optional<std::string> &record, int threads) const {
    const std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool(threads > 1 ? tess_pool_create(threads) : nullptr,
                                                                       tess_pool_destroy);
    TessContext context = tess_context();
    context.pool = pool.get();
    context.threads = pool ? threads : 1;
    std::vector<ReplayedOutput> all;
    const auto report = [](void *state, const TessReplayOutput *o) {
        static_cast<std::vector<ReplayedOutput> *>(state)->push_back(
            {o->run, o->kernel, o->argument, o->target, o->bits, o->got, o->expected, static_cast<TessReplayOutcome>(o->outcome)});
    };
    TessBundleError error{};
    const int32_t status =
        record ? tess_bundle_replay_record(bundle_, record->data(), record->size(), nullptr, 0, &context, report, &all, &error)
               : tess_bundle_replay(bundle_, &context, report, &all, &error);
    if (status == TESS_NO_SUCH) throw UserError("bundle.replay", "file '" + quotable(file_) + "': " + error.text);
    expect_ok(status, error);
    return all;
}

}  // namespace tessera
