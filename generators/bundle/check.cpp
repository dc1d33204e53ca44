#include "generators/bundle/check.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "algorithms/text/hash.h"
#include "algorithms/transform/half_bytes.h"
#include "generators/bundle/generated.h"
#include "generators/bundle/replay.h"
#include "generators/registry/algorithm_file.h"
#include "runtime/abi/tessera.h"
#include "schedules/artifact/artifact.h"
#include "support/files/json_parse.h"
#include "support/files/output_folder.h"
#include "support/files/safetensors.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class Checker {
public:
    Checker(const Bundle &bundle, const std::optional<KeyBytes> &wanted) : b_(bundle), m_(bundle.manifest()), wanted_(wanted) {}

    BundleCheck check() {
        each("hashes of {} members", m_.members, [&](const BundleMember &m) { b_.check_hash(m); });
        if (!done_.problems.empty()) return done_;  // what is damaged is not looked into
        each("{} libraries", m_.libraries, [&](const BundleLibrary &l) { check_library(l); });
        const std::vector<BundleMember> schedules = members_in("schedules/"), programs = members_in("programs/");
        std::vector<BundleKernel> told;
        for (const BundleKernel &k : m_.kernels)
            if (k.program) told.push_back(k);
        each("{} algorithms", told, [&](const BundleKernel &k) { check_program(k); });
        if (programs.size() != told.size()) problem("bundle.members", "there is an algorithm in programs/ of no kernel.");
        each("{} schedules", schedules, [&](const BundleMember &m) { check_schedule(m); });
        if (!m_.tensors.empty() || m_.find(bundle_weights_member))
            each("{} file of weights", std::vector<int>{1}, [&](int) { check_tensors(); });
        each("{} packed weights", m_.packed, [&](const BundlePackedTensor &p) { check_packed(p); });
        if (m_.replay) each("{} file of runs to replay", std::vector<int>{1}, [&](int) { check_runs(); });
        check_signed();
        return done_;
    }

private:
    const Bundle &b_;
    const BundleManifest &m_;
    const std::optional<KeyBytes> &wanted_;
    BundleCheck done_;

    void problem(const std::string &id, const std::string &words) {
        done_.problems.push_back(UserError(id, "bundle '" + b_.subject() + "': " + words).what());
    }

    template <typename Value, typename Check>
    void each(const char *passed, const std::vector<Value> &all, Check check) {
        const size_t before = done_.problems.size();
        for (const Value &one : all) {
            try {
                check(one);
            } catch (const UserError &error) { done_.problems.emplace_back(error.what()); }
        }
        if (done_.problems.size() == before && !all.empty()) done_.passed.push_back(fmt::format(fmt::runtime(passed), all.size()));
    }

    std::vector<BundleMember> members_in(const std::string &folder) const {
        std::vector<BundleMember> found;
        for (const BundleMember &m : m_.members)
            if (m.path.starts_with(folder)) found.push_back(m);
        return found;
    }

    // What generate wrote of it says the same of its kernels.
    void check_library(const BundleLibrary &l) {
        const std::string text = b_.read(l.manifest, bundle_max_text), subject = b_.subject() + ": " + l.manifest;
        const GeneratedLibrary made = read_generated(text, subject);
        const auto same = [&](bool is_same, const char *what) {
            if (!is_same)
                throw UserError("bundle.generated",
                                subject + ": it states other " + what + " than the bundle's manifest. Make the bundle again.");
        };
        same(made.name == l.name && made.is_module == l.is_module, "names");
        same(made.target_names() == l.targets, "targets");
        same(made.tessera == m_.tessera && made.halide == m_.halide, "versions");
        for (const BundleTarget &t : made.targets) same(std::find(m_.targets.begin(), m_.targets.end(), t) != m_.targets.end(), "targets");
        const std::string code = folder_of_targets("code", l.targets), include = folder_of_targets("include", l.targets);
        same(l.archive == code + "/" + made.archive() && l.header == include + "/" + made.header() &&
                 l.manifest == code + "/" + made.manifest(),
             "files");
        check_generated_file(made, made.archive(), b_.read(l.archive, bundle_max_archive), subject);
        check_generated_file(made, made.header(), b_.read(l.header, bundle_max_text), subject);
        const auto number = static_cast<size_t>(&l - m_.libraries.data());
        for (const GeneratedKernel &g : made.kernels) {
            const auto k =
                std::find_if(m_.kernels.begin(), m_.kernels.end(), [&](const BundleKernel &known) { return known.name == g.kernel.name; });
            same(k != m_.kernels.end(), "kernels");
            const BundleKernel &a = *k, &b = g.kernel;
            same(std::tie(a.algorithm, a.semantic, a.surface, a.numerics, a.options, a.fixed) ==
                     std::tie(b.algorithm, b.semantic, b.surface, b.numerics, b.options, b.fixed),
                 "algorithms");
            same(a.arguments == b.arguments && a.parameters == b.parameters, "arguments");
            for (const BundleCode &code_of : b.code) {
                const auto there = std::find_if(a.code.begin(), a.code.end(),
                                                [&](const BundleCode &c) { return c.target == code_of.target && c.library == number; });
                same(there != a.code.end() && there->bits == code_of.bits && there->schedule == code_of.schedule, "bits or schedules");
                same(std::equal(there->packed.begin(), there->packed.end(), code_of.packed.begin(), code_of.packed.end(),
                                [](const BundlePacking &x, const BundlePacking &y) {
                                    return std::tie(x.argument, x.layout, x.function) == std::tie(y.argument, y.layout, y.function);
                                }),
                     "layouts");
            }
        }
        for (const BundleKernel &k : m_.kernels)
            for (const BundleCode &c : k.code)
                if (c.library == number)
                    same(std::any_of(made.kernels.begin(), made.kernels.end(),
                                     [&](const GeneratedKernel &g) { return g.kernel.name == k.name; }),
                         "kernels");
    }

    void check_program(const BundleKernel &k) {
        const TemporaryFolder folder;
        write_into(folder.path() / "program.json", b_.read(*k.program, bundle_max_text));
        const Algorithm algorithm = read_algorithm(folder.path() / "program.json");
        if (*k.program != "programs/" + k.name + ".json" || algorithm.name != k.algorithm ||
            semantic_hash(in_bytes(algorithm)) != k.semantic)
            throw UserError("bundle.program", b_.subject() + ": " + *k.program + ": expected the algorithm '" + k.algorithm +
                                                  "' of kernel '" + k.name + "' with its semantic hash, got another.");
    }

    void check_schedule(const BundleMember &m) {
        const std::string subject = b_.subject() + ": " + m.path;
        const Schedule schedule = Schedule::parse(b_.read(m.path, bundle_max_text), subject);
        if ("schedules/" + schedule.name() + ".json" != m.path)
            throw UserError("bundle.schedule", subject + ": expected its name to be that of its path.");
    }

    void check_tensors() {
        const std::string subject = b_.subject() + ": " + bundle_weights_member;
        const BundleMember &member = *m_.find(bundle_weights_member);
        const Safetensors weights(b_.read(bundle_weights_member, uint64_t{1} << 40), subject);
        bool is_same = weights.tensors().size() == m_.tensors.size();
        for (size_t i = 0; is_same && i < m_.tensors.size(); i++) {
            const SafeTensor &stored = weights.tensors()[i];
            const BundleTensor &t = m_.tensors[i];
            is_same = stored.name == t.name && t.is_stored_as(stored.type, stored.extents) && stored.bytes.size() == t.bytes &&
                      member.offset + weights.offset(stored) == t.offset;
        }
        if (!is_same) throw UserError("bundle.weight", subject + ": it has other tensors than the manifest says. Make the bundle again.");
    }

    void check_packed(const BundlePackedTensor &p) {
        const std::string subject = b_.subject() + ": " + p.member;
        const BundleMember &member = *m_.find(p.member);
        const BundleTensor &tensor = m_.tensors[p.tensor];
        const std::string expected = "packed/" + p.layout.substr(2) + "/" + std::to_string(p.tensor);
        if (p.member != expected) throw UserError("bundle.packed", subject + ": expected the path " + expected + ".");
        std::string head;
        if (member.bytes >= TESS_PACKED_HEADER_BYTES) head = b_.zip().file()->read(member.offset, TESS_PACKED_HEADER_BYTES);
        const auto word = [&](size_t at, size_t bytes) {
            uint64_t value = 0;
            for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(head[at + i]);
            return value;
        };
        bool fits = head.starts_with("TESSPACK") && word(8, 4) == TESS_PACKED_VERSION &&
                    word(16, 8) == std::stoull(p.layout, nullptr, 16) && word(28, 4) == tensor.dims.size() &&
                    word(32, 8) == member.bytes - TESS_PACKED_HEADER_BYTES;
        for (size_t d = 0; fits && d < tensor.dims.size(); d++)
            fits = d < TESS_MAX_RANK && word(48 + 8 * d, 8) == static_cast<uint64_t>(tensor.dims[d]);
        if (!fits)
            throw UserError("bundle.packed",
                            subject + ": its head is not that of tensor '" + quotable(tensor.name) + "' in the layout " + p.layout + ".");
    }

    void check_runs() {
        const bool has_inputs = m_.find(bundle_replay_inputs_member) != nullptr;
        const std::string inputs = has_inputs ? b_.read(bundle_replay_inputs_member, bundle_max_archive) : "";
        check_replay(m_, b_.read(*m_.replay, bundle_max_text), has_inputs ? &inputs : nullptr, b_.subject() + ": " + *m_.replay);
    }

    void check_signed() {
        if (!b_.signature_text()) {
            if (wanted_)
                problem("bundle.signature", "expected a signature, and there is none. Do not trust it, or leave out --public-key.");
            return;
        }
        try {
            const Signature s =
                check_signature(*b_.signature_text(), b_.manifest_text(), wanted_, b_.subject() + ": " + bundle_signature_member);
            done_.passed.push_back("the signature of key '" + s.key + "', " + hexadecimal(s.public_key.data(), s.public_key.size()) +
                                   (wanted_ ? ", which is trusted" : ""));
        } catch (const UserError &error) { done_.problems.emplace_back(error.what()); }
    }
};

}  // namespace

BundleCheck check_bundle(const Bundle &bundle, const std::optional<KeyBytes> &wanted) { return Checker(bundle, wanted).check(); }

}  // namespace tessera
