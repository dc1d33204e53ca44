#include "generators/bundle/make.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/evaluate/stored_array.h"
#include "algorithms/import/weights/weights_file.h"
#include "costmodel/model/examples.h"
#include "generators/bundle/bundle.h"
#include "generators/bundle/generated.h"
#include "generators/bundle/packed_weights.h"
#include "generators/bundle/replay.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/files/safetensors.h"
#include "support/files/stored_zip.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/sha256.h"
#include "support/text/shortened.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

Handed handed(const char *what, uint64_t most) { return {"bundle", what, "Make several smaller ones.", most}; }

std::vector<fs::path> manifests_in(const fs::path &folder) {
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        if (it->path().filename().string().ends_with(".manifest.json")) files.push_back(it->path());
    std::sort(files.begin(), files.end());
    if (error || files.empty())
        throw UserError("bundle.folder", "folder '" + folder.string() + "': expected one that generate wrote to, with a *.manifest.json; " +
                                             (error ? error.message() : "it has none") + ". Name the folder of --out.");
    return files;
}

class Maker {
public:
    explicit Maker(const BundleRequest &request) : request_(request) {
        m_.name = request.name.empty() ? request.file.stem().string() : request.name;
        if (zip_path_problem(m_.name) != "" || m_.name.find('/') != std::string::npos)
            throw UserError("bundle.name", "bundle '" + printable(m_.name) +
                                               "': expected a name of letters, digits and '.', '_', '+', '-'. Say another with --name.");
    }

    MadeBundle make() {
        for (const fs::path &folder : request_.folders)
            for (const fs::path &file : manifests_in(folder)) add_library(folder, file);
        order_targets();
        if (!request_.weights.empty()) add_weights(one_file_of_weights());
        else if (!request_.bindings.empty())
            throw UserError("bundle.weight",
                            "--weight " + request_.bindings[0] + ": expected --weights with it, the file that has the tensor.");
        else if (request_.floats)
            throw UserError("bundle.weight",
                            std::string("--floats ") + name_of(*request_.floats) +
                                ": expected --weights with it, the file whose floats are converted. Add that, or leave it out.");
        for (const fs::path &file : request_.records) add_records(file);
        for (const fs::path &file : request_.licences) add_file("licences/" + file.filename().string(), file, bundle_max_text);
        for (const fs::path &file : request_.assets) add_file("assets/" + file.filename().string(), file, bundle_max_archive);
        add_licences();
        if (request_.replay) add_replay(*request_.replay);
        write();
        return {std::move(m_), std::move(notes_)};
    }

private:
    const BundleRequest &request_;
    BundleManifest m_;
    std::map<std::pair<int, std::string>, ZipContent> contents_;                                     // in the order of the file
    std::map<std::string, std::map<std::pair<std::string, std::string>, GeneratedLayout>> layouts_;  // by kernel
    std::map<std::string, std::string> linked_, licence_texts_;
    std::vector<uint64_t> tensor_places_;  // in the member
    std::vector<std::string> notes_;
    std::optional<TemporaryFolder> scratch_;

    void add(ZipContent content) {
        const auto key = bundle_order(content.path);
        const auto [known, fresh] = contents_.emplace(key, content);
        if (!fresh && (known->second.file || known->second.text != content.text))
            throw UserError("bundle.repeated",
                            "member '" + content.path + "': expected one content, got two that differ. Give one of them another name.");
    }

    void add_file(const std::string &path, const fs::path &file, uint64_t most) { add({path, read_regular(file, handed("file", most))}); }

    void add_records(const fs::path &file) {
        std::string text = read_regular(file, handed("file of records", bundle_max_archive));
        std::istringstream lines(text);
        read_examples(lines, file.string());
        add({"records/" + file.filename().string(), std::move(text)});
    }

    // ---- libraries

    void add_library(const fs::path &folder, const fs::path &file) {
        const std::string text = read_regular(file, handed("manifest", bundle_max_text)), subject = file.string();
        const GeneratedLibrary made = read_generated(text, subject);
        if (file.filename() != made.manifest())
            throw UserError("bundle.generated", "'" + subject + "': expected the name of its library, " + printable(made.manifest()) + ".");
        if (m_.tessera.empty()) m_.tessera = made.tessera, m_.halide = made.halide;
        if (m_.tessera != made.tessera || m_.halide != made.halide)
            throw UserError("bundle.version",
                            fmt::format("'{}': expected Tessera {} and Halide {} as of the libraries before it, got {} and {}. "
                                        "Generate all with one version.",
                                        subject, m_.tessera, m_.halide, printable(made.tessera), printable(made.halide)));
        const auto file_text = [&](const std::string &name, uint64_t most) {
            std::string content = read_regular(folder / name, handed("file of a library", most));
            check_generated_file(made, name, content, subject);
            return content;
        };
        const std::vector<std::string> targets = made.target_names();
        const std::string code = folder_of_targets("code", targets), include = folder_of_targets("include", targets);
        BundleLibrary library{
            made.name, made.is_module, targets, code + "/" + made.archive(), include + "/" + made.header(), code + "/" + made.manifest()};
        if (contents_.count(bundle_order(library.archive)))
            throw UserError("bundle.repeated", "'" + subject + "': expected one library '" + made.name + "' for the targets " +
                                                   join(targets) + ", got two. Name its folder once, or give one of them another name.");
        add({library.archive, file_text(made.archive(), bundle_max_archive)});
        add({library.header, file_text(made.header(), bundle_max_text)});
        add({library.manifest, text});
        for (const BundleTarget &target : made.targets) add_target(target, subject);
        for (const GeneratedKernel &kernel : made.kernels) add_kernel(kernel, m_.libraries.size(), subject);
        m_.libraries.push_back(std::move(library));
        for (const auto &[name, licence] : made.linked) linked_[name] = licence;
        licence_texts_.insert(made.licence_texts.begin(), made.licence_texts.end());
        if (made.hashes.count(made.sources()))
            add_sources(made, file_text(made.sources(), bundle_max_text), (folder / made.sources()).string());
    }

    void add_target(const BundleTarget &target, const std::string &subject) {
        for (const BundleTarget &known : m_.targets) {
            if (known == target) return;
            if (known.name == target.name)
                throw UserError("bundle.target", "'" + subject + "': target '" + target.name +
                                                     "' has other features than in the libraries before it. Generate all for one of them.");
        }
        m_.targets.push_back(target);
    }

    void add_kernel(const GeneratedKernel &made, size_t library, const std::string &subject) {
        BundleKernel kernel = made.kernel;
        for (BundleCode &code : kernel.code) code.library = library;
        layouts_[kernel.name].insert(made.layouts.begin(), made.layouts.end());
        const auto known = std::find_if(m_.kernels.begin(), m_.kernels.end(), [&](const BundleKernel &k) { return k.name == kernel.name; });
        if (known == m_.kernels.end()) return m_.kernels.push_back(std::move(kernel));
        const auto same = [](const BundleKernel &a, const BundleKernel &b) {
            return std::tie(a.algorithm, a.semantic, a.surface, a.numerics, a.options, a.fixed, a.arguments, a.parameters) ==
                   std::tie(b.algorithm, b.semantic, b.surface, b.numerics, b.options, b.fixed, b.arguments, b.parameters);
        };
        if (!same(*known, kernel))
            throw UserError(
                "bundle.kernel",
                "'" + subject + "': kernel '" + kernel.name +
                    "' is of another algorithm, policy or extents than in the libraries before it. Give one of them another name.");
        for (const BundleCode &code : kernel.code) {
            for (const BundleCode &other : known->code)
                if (other.target == code.target)
                    throw UserError("bundle.kernel", "'" + subject + "': kernel '" + kernel.name + "' is there for target '" + code.target +
                                                         "' already. Name one folder for each target.");
            known->code.push_back(code);
        }
    }

    void add_sources(const GeneratedLibrary &made, const std::string &text, const std::string &subject) {
        const nlohmann::json document = parse_json(text, subject);
        const JsonReader all(document, subject);
        if (all.at("format").text() != "tessera-sources" || all.at("version").integer() != 1)
            all.fail("bundle.generated", "expected format tessera-sources, version 1. Generate the library again.");
        const JsonReader programs = all.at("programs");
        for (const GeneratedKernel &k : made.kernels) {
            const std::string path = "programs/" + k.kernel.name + ".json";
            add({path, json_text(programs.at(k.kernel.name).value()) + "\n"});
            for (BundleKernel &kernel : m_.kernels)
                if (kernel.name == k.kernel.name) kernel.program = path;
        }
        for (const auto &[name, schedule] : all.at("schedules").fields())
            add({"schedules/" + name + ".json", json_text(schedule.value(), 2) + "\n"});
    }

    void order_targets() {
        std::sort(m_.targets.begin(), m_.targets.end(), is_better_target);
        const auto place = [&](const BundleCode &code) {
            return std::find_if(m_.targets.begin(), m_.targets.end(), [&](const BundleTarget &t) { return t.name == code.target; });
        };
        for (BundleKernel &kernel : m_.kernels)
            std::sort(kernel.code.begin(), kernel.code.end(),
                      [&](const BundleCode &a, const BundleCode &b) { return place(a) < place(b); });
    }

    // ---- weights

    void add_weights(const fs::path &file) {
        const fs::path used = aligned_weights(file);
        auto stored = std::make_shared<RegularFile>(
            used, Handed{"safetensors", "file of tensors", "Cut the model into several files.", size_t{1} << 40});
        const Safetensors weights(used);
        for (const SafeTensor &t : weights.tensors()) {
            m_.tensors.push_back({t.name, t.type, t.extents, 0, t.bytes.size()});
            tensor_places_.push_back(weights.offset(t));
        }
        add({bundle_weights_member, {}, stored, 0, stored->bytes()});
        bind_weights(weights);
        note_unbound();
        pack_weights(weights);
    }

    // The file that was named or, of several, where it is named with a kernel or where its tensors change, one with the tensors of all.
    fs::path one_file_of_weights() {
        std::vector<std::pair<std::string, fs::path>> files;  // of "<kernel>=<file>", else of ""
        for (const std::string &word : request_.weights) {
            const size_t equals = word.find('=');
            const std::string kernel = equals == std::string::npos ? "" : word.substr(0, equals);
            const auto is_it = [&](const BundleKernel &k) { return k.name == kernel; };
            if (equals == std::string::npos) files.emplace_back("", word);
            else if (std::any_of(m_.kernels.begin(), m_.kernels.end(), is_it)) files.emplace_back(kernel, word.substr(equals + 1));
            else throw UserError("bundle.weight", "--weights " + word + ": there is no kernel '" + kernel + "'; " + kernels_text());
        }
        std::vector<std::unique_ptr<WeightsFile>> read;
        std::vector<SafeTensor> tensors;
        for (const auto &[kernel, file] : files) {
            read.push_back(std::make_unique<WeightsFile>(file, request_.floats));
            if (files.size() == 1 && kernel.empty() && read.back()->as_stored()) return file;
            for (const std::string &words : read.back()->notes()) notes_.push_back("'" + file.string() + "': " + words);
            for (SafeTensor tensor : read.back()->tensors()) {
                if (!kernel.empty()) tensor.name = kernel + "." + tensor.name;
                tensors.push_back(std::move(tensor));
            }
        }
        scratch_.emplace();
        const fs::path all = scratch_->path() / bundle_weights_member;
        write_safetensors(all, std::move(tensors), {});
        return all;
    }

    std::string kernels_text() const {
        std::vector<std::string> names;
        for (const BundleKernel &k : m_.kernels) names.push_back(k.name);
        return "there are " + join(names) + ".";
    }

    // The file itself or, where a tensor in it is not aligned to its elements, one with the same tensors that are.
    fs::path aligned_weights(const fs::path &file) {
        const Safetensors weights(file);
        if (std::all_of(weights.tensors().begin(), weights.tensors().end(), [&](const SafeTensor &t) {
                const auto element = static_cast<uint64_t>(std::max(1, safetensors_bits(t.type) / 8));
                return t.bytes.empty() || weights.offset(t) % element == 0;
            }))
            return file;
        scratch_.emplace();
        const fs::path again = scratch_->path() / bundle_weights_member;
        write_safetensors(again, weights.tensors(), weights.metadata());
        notes_.push_back("the tensors of '" + file.string() + "' are not aligned to their elements; the bundle has them aligned");
        return again;
    }

    size_t tensor_number(const std::string &name) const {
        const auto it = std::lower_bound(m_.tensors.begin(), m_.tensors.end(), name,
                                         [](const BundleTensor &t, const std::string &n) { return t.name < n; });
        return it != m_.tensors.end() && it->name == name ? static_cast<size_t>(it - m_.tensors.begin()) : m_.tensors.size();
    }

    void bind_weights(const Safetensors &weights) {
        std::map<std::pair<std::string, std::string>, std::string> said;  // by kernel and argument
        for (const std::string &word : request_.bindings) {
            const size_t equals = word.find('=');
            if (equals == std::string::npos || equals == 0)
                throw UserError("bundle.weight", "--weight " + word + ": expected [<kernel>.]<argument>=<tensor>.");
            weights.tensor(word.substr(equals + 1));  // it is there
            bool is_used = false;
            for (const BundleKernel &k : m_.kernels)
                for (const BundleArgument &a : k.arguments)
                    if (const std::string left = word.substr(0, equals); left == a.name || left == k.name + "." + a.name)
                        is_used = true, said[{k.name, a.name}] = word.substr(equals + 1);
            if (!is_used) throw UserError("bundle.weight", "--weight " + word + ": no kernel has such an argument; " + arguments_text());
        }
        for (BundleKernel &k : m_.kernels)
            for (const BundleArgument &a : k.arguments) {
                if (a.role != "input") continue;
                const auto named = said.find({k.name, a.name});
                size_t tensor = named != said.end() ? tensor_number(named->second) : tensor_number(k.name + "." + a.name);
                if (tensor == m_.tensors.size()) tensor = tensor_number(a.name);
                if (tensor == m_.tensors.size()) continue;
                see_half_bytes(a, m_.tensors[tensor]);
                check_weight(k, a, m_.tensors[tensor]);
                k.weights.push_back({a.name, tensor});
            }
    }

    // Tensors of no argument stay in the bundle, where a program may look for them by name; more often a name is wrong.
    void note_unbound() {
        std::set<size_t> bound;
        std::vector<std::string> free;
        for (const BundleKernel &k : m_.kernels) {
            std::set<std::string> has;
            for (const BundleWeight &w : k.weights) bound.insert(w.tensor), has.insert(w.argument);
            for (const BundleArgument &a : k.arguments)
                if (a.role == "input" && !has.count(a.name)) free.push_back(k.name + "." + a.name);
        }
        std::vector<std::string> names;
        for (size_t t = 0; t < m_.tensors.size(); t++)
            if (!bound.count(t)) names.push_back(m_.tensors[t].name);
        if (names.empty()) return;
        notes_.push_back(
            fmt::format("{} of {} tensors fit no argument: {}. Inputs without a tensor: {}. Rename the tensors, or say "
                        "--weight <kernel>.<argument>=<tensor>",
                        names.size(), m_.tensors.size(), few_of(names), few_of(free)));
    }

    static std::string few_of(const std::vector<std::string> &names) { return printable(first_of(names, 8)); }

    std::string arguments_text() const {
        std::vector<std::string> names;
        for (const BundleKernel &k : m_.kernels)
            for (const BundleArgument &a : k.arguments)
                if (a.role == "input") names.push_back(k.name + "." + a.name);
        return "there are " + join(names) + ".";
    }

    // Bytes for an argument of 4 bits are pairs of its elements, for all kernels that take them.
    static void see_half_bytes(const BundleArgument &a, BundleTensor &t) {
        const char *type = stored_half_type(a.dtype);
        if (!type || t.type != "U8" || t.dims.empty()) return;
        t.type = type;
        t.dims.back() *= 2;
    }

    // What manifests call a type of 4 bits; null for others.
    static const char *stored_half_type(const std::string &dtype) {
        return dtype == name_of(DType::u4) ? "U4" : dtype == name_of(DType::i4) ? "I4" : dtype == name_of(DType::f4e2m1fn) ? "F4" : nullptr;
    }

    static void check_weight(const BundleKernel &k, const BundleArgument &a, const BundleTensor &t) {
        const std::optional<DType> type = dtype_of_safetensors(t.type);
        const char *half = stored_half_type(a.dtype);
        bool fits = (half ? t.type == half : type && a.dtype == name_of(*type)) && t.dims.size() == a.dims.size();
        std::string wanted;
        for (size_t d = 0; d < a.dims.size(); d++) {
            const auto fixed = k.fixed.find(a.dims[d]);
            if (fixed != k.fixed.end()) fits = fits && t.dims[d] == fixed->second;
            wanted += (d ? ", " : "") + a.dims[d] + (fixed != k.fixed.end() ? "=" + std::to_string(fixed->second) : "");
        }
        if (!fits)
            throw UserError("bundle.weight",
                            fmt::format("tensor '{}' for argument '{}' of kernel '{}': expected {}[{}], got {}[{}]. Choose another with "
                                        "--weight {}.{}=<tensor>, or rename the tensor.",
                                        printable(t.name), printable(a.name), k.name, a.dtype, printable(wanted), t.type,
                                        fmt::join(t.dims, ", "), k.name, printable(a.name)));
    }

    void pack_weights(const Safetensors &weights) {
        std::set<std::pair<size_t, std::string>> made;
        for (const BundleKernel &k : m_.kernels)
            for (const BundleCode &code : k.code)
                for (const BundlePacking &p : code.packed) {
                    const auto weight =
                        std::find_if(k.weights.begin(), k.weights.end(), [&](const BundleWeight &w) { return w.argument == p.argument; });
                    if (weight == k.weights.end() || !made.emplace(weight->tensor, p.layout).second) continue;
                    pack_one(k, p, weights, weight->tensor);
                }
        std::sort(m_.packed.begin(), m_.packed.end(),
                  [](const BundlePackedTensor &a, const BundlePackedTensor &b) { return bundle_order(a.member) < bundle_order(b.member); });
    }

    void pack_one(const BundleKernel &k, const BundlePacking &p, const Safetensors &weights, size_t tensor) {
        const std::string subject = "argument '" + p.argument + "' of kernel '" + k.name + "'";
        const SafeTensor &t = weights.tensors()[tensor];
        const GeneratedLayout &layout = layouts_.at(k.name).at({p.argument, p.layout});
        if (m_.tensors[tensor].is_in_half_bytes()) {
            notes_.push_back(subject + ": its elements have fewer than 8 bits, so it is not packed here; whoever loads it packs it by " +
                             p.function);
            return;
        }
        const DType type = *dtype_of_safetensors(t.type);
        const std::string digits = p.layout.substr(2), member = "packed/" + digits + "/" + std::to_string(tensor);
        add({member, packed_bytes({layout.dims, layout.layout, std::stoull(digits, nullptr, 16), type}, t.extents, t.bytes, subject)});
        m_.packed.push_back({tensor, p.layout, member});
    }

    // ---- the rest

    void add_licences() {
        for (const auto &[name, licence] : linked_) {
            BundleLicence made{name, licence, {}};
            const auto text = licence_texts_.find(name);
            if (text != licence_texts_.end() && contents_.count(bundle_order("licences/" + text->second)))
                made.member = "licences/" + text->second;
            m_.licences.push_back(std::move(made));
        }
        for (const fs::path &file : request_.licences) {
            const std::string path = "licences/" + file.filename().string();
            if (std::none_of(m_.licences.begin(), m_.licences.end(), [&](const BundleLicence &l) { return l.member == path; }))
                m_.licences.push_back({m_.name, "LicenseRef-" + file.stem().string(), path});
        }
    }

    void add_replay(const fs::path &folder) {
        std::error_code error;
        add_file(bundle_replay_member, folder / "expected.json", bundle_max_text);
        if (fs::exists(folder / "inputs.safetensors", error))
            add_file(bundle_replay_inputs_member, folder / "inputs.safetensors", bundle_max_archive);
        m_.replay = bundle_replay_member;
        const auto inputs = contents_.find(bundle_order(bundle_replay_inputs_member));
        check_replay(m_, contents_.at(bundle_order(bundle_replay_member)).text, inputs == contents_.end() ? nullptr : &inputs->second.text,
                     (folder / "expected.json").string());
    }

    // The manifest states where members lie behind it, and its size depends on that: places move until nothing changes. They only grow.
    std::string place_members() {
        for (int round = 0; round < 64; round++) {
            const std::string text = text_of(m_);
            std::vector<std::pair<std::string, uint64_t>> sizes = {{bundle_manifest_member, text.size()}};
            for (const BundleMember &m : m_.members) sizes.emplace_back(m.path, m.bytes);
            const std::vector<ZipPlace> places = zip_places(sizes);
            for (size_t i = 0; i < m_.members.size(); i++) m_.members[i].offset = places[i + 1].offset;
            m_.end = places.back().offset + places.back().bytes;
            if (const BundleMember *weights = m_.find(bundle_weights_member))
                for (size_t i = 0; i < m_.tensors.size(); i++) m_.tensors[i].offset = weights->offset + tensor_places_[i];
            if (text_of(m_) == text) return text;
        }
        broken("members of a bundle find their places");
    }

    void write() {
        if (m_.libraries.empty())
            throw UserError("bundle.folder", "bundle: expected folders that generate wrote to, got none. Name them with --from.");
        std::vector<ZipContent> contents;
        for (const auto &[key, content] : contents_) {
            Sha256 hash;
            content.each([&](std::string_view part) { hash.add(part); });
            m_.members.push_back({content.path, 0, content.bytes(), hash.text()});
            contents.push_back(content);
        }
        const std::string text = place_members();
        if (text.size() > bundle_max_manifest)
            throw UserError("bundle.too-large", "bundle: expected a manifest of at most 16 MiB, got " + std::to_string(text.size()) +
                                                    " bytes. Make several bundles.");
        parse_bundle_manifest(text, request_.file.string());  // what a reader refuses is not written
        contents.insert(contents.begin(), {bundle_manifest_member, text});
        if (request_.sign) contents.push_back({bundle_signature_member, request_.sign(text)});
        write_stored_zip(request_.file, contents);
    }
};

}  // namespace

MadeBundle make_bundle(const BundleRequest &request) { return Maker(request).make(); }

}  // namespace tessera
