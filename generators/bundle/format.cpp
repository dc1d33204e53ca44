#include "generators/bundle/format.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/safetensors.h"
#include "support/files/stored_zip.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::ordered_json;

namespace {

constexpr int64_t max_number = int64_t{1} << 62;

// Kinds of members in their order: a path, or a folder.
const std::vector<std::string> groups = {bundle_manifest_member, "programs/", "schedules/", "records/", "code/",  "include/",
                                         bundle_weights_member,  "packed/",   "licences/",  "replay/",  "assets/"};
int bundle_groups() { return static_cast<int>(groups.size()); }

ordered_json json_of(const BundleTarget &t) { return {{"name", t.name}, {"arch", t.arch}, {"features", t.features}}; }

ordered_json json_of(const BundleLibrary &l) {
    return {{"name", l.name},       {"module", l.is_module}, {"targets", l.targets},
            {"archive", l.archive}, {"header", l.header},    {"manifest", l.manifest}};
}

ordered_json json_of(const BundleArgument &a) { return {{"name", a.name}, {"role", a.role}, {"dtype", a.dtype}, {"dims", a.dims}}; }

ordered_json json_of(const BundleParameter &p) { return {{"name", p.name}, {"dtype", p.dtype}}; }

ordered_json json_of(const BundlePacking &p) { return {{"argument", p.argument}, {"layout", p.layout}, {"function", p.function}}; }

ordered_json json_of(const BundleWeight &w) { return {{"argument", w.argument}, {"tensor", w.tensor}}; }

ordered_json json_of(const BundleTensor &t) {
    return {{"name", t.name}, {"type", t.type}, {"dims", t.dims}, {"offset", t.offset}, {"bytes", t.bytes}};
}

ordered_json json_of(const BundlePackedTensor &p) { return {{"tensor", p.tensor}, {"layout", p.layout}, {"member", p.member}}; }

ordered_json json_of(const BundleLicence &l) {
    return {{"name", l.name}, {"licence", l.licence}, {"member", l.member ? ordered_json(*l.member) : ordered_json(nullptr)}};
}

ordered_json json_of(const BundleMember &m) { return {{"path", m.path}, {"offset", m.offset}, {"bytes", m.bytes}, {"sha256", m.sha256}}; }

ordered_json json_of(const BundleCode &c);
ordered_json json_of(const BundleKernel &k);

template <typename Value>
ordered_json list_of(const std::vector<Value> &values) {
    ordered_json list = ordered_json::array();
    for (const Value &value : values) list.push_back(json_of(value));
    return list;
}

ordered_json numbers_json(const std::map<std::string, int64_t> &numbers) {
    ordered_json made = ordered_json::object();
    for (const auto &[name, number] : numbers) made[name] = number;
    return made;
}

ordered_json json_of(const BundleCode &c) {
    return {{"target", c.target}, {"library", c.library}, {"bits", c.bits}, {"schedule", c.schedule}, {"packed", list_of(c.packed)}};
}

ordered_json json_of(const BundleKernel &k) {
    ordered_json made = {{"name", k.name},
                         {"algorithm", {{"name", k.algorithm}, {"semantic", k.semantic}, {"surface", k.surface}}},
                         {"numerics", k.numerics}};
    if (k.program) made["program"] = *k.program;
    made["options"] = numbers_json(k.options), made["fixed"] = numbers_json(k.fixed);
    made["arguments"] = list_of(k.arguments), made["parameters"] = list_of(k.parameters);
    made["code"] = list_of(k.code), made["weights"] = list_of(k.weights);
    return made;
}

// A text that stands in JSON as it is.
std::string plain(const JsonReader &reader) {
    for (char c : reader.text())
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            reader.fail("bundle.manifest", "expected printable ASCII without quotes and backslashes, got '" + reader.quotable() + "'.");
    return reader.text();
}

std::string plain(const JsonReader &reader, const char *field) { return plain(reader.at(field)); }

std::string hash(const JsonReader &object, const char *field) {
    const JsonReader reader = object.at(field);
    const std::string &text = reader.text();
    const bool is_hash =
        text.size() == 71 && text.starts_with("sha256:") && text.find_first_not_of("0123456789abcdef", 7) == std::string::npos;
    if (!is_hash) reader.fail("bundle.manifest", "expected sha256: and 64 lower-case hexadecimal digits, got '" + reader.quotable() + "'.");
    return text;
}

std::string layout(const JsonReader &object) {
    const JsonReader reader = object.at("layout");
    const std::string &text = reader.text();
    const bool is_layout =
        text.size() == 18 && text.starts_with("0x") && text.find_first_not_of("0123456789abcdef", 2) == std::string::npos;
    if (!is_layout) reader.fail("bundle.manifest", "expected 0x and 16 lower-case hexadecimal digits, got '" + reader.quotable() + "'.");
    return text;
}

std::vector<std::string> plains(const JsonReader &list) {
    std::vector<std::string> texts;
    for (const JsonReader &item : list.items()) texts.push_back(plain(item));
    return texts;
}

uint64_t number(const JsonReader &object, const char *field) { return static_cast<uint64_t>(object.at(field).integer(0, max_number)); }

// A number of one of `count` others.
size_t number_of(const JsonReader &object, const char *field, size_t count, const char *what) {
    const JsonReader reader = object.at(field);
    const auto n = static_cast<size_t>(reader.integer(0, max_number));
    if (n >= count)
        reader.fail("bundle.manifest",
                    "expected the number of one of " + std::to_string(count) + " " + what + ", got " + std::to_string(n) + ".");
    return n;
}

std::map<std::string, int64_t> numbers(const JsonReader &object, int64_t least) {
    std::map<std::string, int64_t> made;
    for (const auto &[name, value] : object.fields()) made[name] = value.integer(least, max_number);
    return made;
}

// Each name once.
class Once {
public:
    explicit Once(const char *what) : what_(what) {}
    void add(const JsonReader &at, const std::string &name) {
        if (!seen_.insert(name).second)
            at.fail("bundle.manifest", std::string("expected each ") + what_ + " once, got '" + quotable(name) + "' again.");
    }

private:
    const char *what_;
    std::set<std::string> seen_;
};

class Reader {
public:
    Reader(const nlohmann::json &document, const std::string &subject) : all_(document, subject) {}

    BundleManifest read() {
        if (all_.at("format").text() != bundle_format || all_.at("version").integer(0) != bundle_version)
            all_.fail("bundle.version", std::string("expected format ") + bundle_format + " and version " + std::to_string(bundle_version) +
                                            ", got another. Another version of Tessera reads it; or make the bundle again.");
        all_.only({"format", "version", "tessera", "halide", "name", "targets", "libraries", "kernels", "tensors", "packed", "licences",
                   "replay", "members", "end"});
        m_.tessera = plain(all_, "tessera"), m_.halide = plain(all_, "halide"), m_.name = plain(all_, "name");
        read_members();
        read_targets();
        read_libraries();
        read_tensors();
        Once kernels("kernel");
        for (const JsonReader &k : all_.at("kernels").items()) {
            m_.kernels.push_back(kernel(k));
            kernels.add(k, m_.kernels.back().name);
        }
        if (m_.kernels.empty()) all_.at("kernels").fail("bundle.manifest", "expected at least one kernel.");
        for (const JsonReader &l : all_.at("licences").items()) {
            l.only({"name", "licence", "member"});
            BundleLicence made{plain(l, "name"), plain(l, "licence"), {}};
            if (!l.at("member").value().is_null()) made.member = member(l, "member");
            m_.licences.push_back(made);
        }
        if (all_.find("replay")) m_.replay = member(all_, "replay");
        return std::move(m_);
    }

private:
    JsonReader all_;
    BundleManifest m_;
    std::set<std::string> paths_;

    // The path of a member that is listed.
    std::string member(const JsonReader &object, const char *field) const {
        const std::string path = plain(object, field);
        if (!paths_.count(path)) object.at(field).fail("bundle.manifest", "no member '" + quotable(path) + "' is listed in members.");
        return path;
    }

    void read_members() {
        uint64_t end = 0;
        for (const JsonReader &r : all_.at("members").items()) {
            r.only({"path", "offset", "bytes", "sha256"});
            BundleMember made{plain(r, "path"), number(r, "offset"), number(r, "bytes"), hash(r, "sha256")};
            if (const std::string problem = zip_path_problem(made.path); !problem.empty()) r.at("path").fail("bundle.manifest", problem);
            if (made.path == bundle_manifest_member || made.path == bundle_signature_member)
                r.at("path").fail("bundle.manifest", "'" + made.path + "' is not listed: it is known by its name.");
            if (bundle_order(made.path) >= std::pair(bundle_groups(), std::string()))
                r.at("path").fail("bundle.manifest", "'" + made.path + "' is no member that a bundle has.");
            if (!m_.members.empty() && !(bundle_order(m_.members.back().path) < bundle_order(made.path)))
                r.at("path").fail("bundle.manifest", "'" + made.path + "' comes before '" + m_.members.back().path + "', and once.");
            if (made.offset % zip_alignment != 0 || made.offset < end)
                r.at("offset").fail("bundle.manifest", "expected a multiple of 64 behind byte " + std::to_string(end) + ", got " +
                                                           std::to_string(made.offset) + ".");
            if (made.bytes > zip_max_bytes - made.offset)
                r.at("bytes").fail("bundle.manifest", "expected at most 2^62 bytes in all; got more.");
            end = made.offset + made.bytes;
            paths_.insert(made.path);
            m_.members.push_back(std::move(made));
        }
        m_.end = number(all_, "end");
        if (m_.members.empty() || m_.end != end)
            all_.at("end").fail("bundle.manifest",
                                "expected the end of the last member, " + std::to_string(end) + ", got " + std::to_string(m_.end) + ".");
    }

    void read_targets() {
        Once names("target");
        for (const JsonReader &t : all_.at("targets").items()) {
            t.only({"name", "arch", "features"});
            m_.targets.push_back({plain(t, "name"), plain(t, "arch"), plains(t.at("features"))});
            names.add(t, m_.targets.back().name);
        }
        if (!std::is_sorted(m_.targets.begin(), m_.targets.end(), is_better_target))
            all_.at("targets").fail("bundle.manifest", "expected targets by arch, those of more features first, then by name.");
    }

    size_t target_number(const JsonReader &at, const std::string &name) const {
        for (size_t i = 0; i < m_.targets.size(); i++)
            if (m_.targets[i].name == name) return i;
        at.fail("bundle.manifest", "no target '" + quotable(name) + "' is listed in targets.");
    }

    void read_libraries() {
        Once archives("archive");
        for (const JsonReader &l : all_.at("libraries").items()) {
            l.only({"name", "module", "targets", "archive", "header", "manifest"});
            m_.libraries.push_back({plain(l, "name"), l.at("module").truth(), plains(l.at("targets")), member(l, "archive"),
                                    member(l, "header"), member(l, "manifest")});
            const BundleLibrary &made = m_.libraries.back();
            archives.add(l, made.archive);
            for (const std::string &target : made.targets) target_number(l.at("targets"), target);
            if (made.targets.empty()) l.at("targets").fail("bundle.manifest", "expected at least one target.");
        }
    }

    void read_tensors() {
        const BundleMember *weights = m_.find(bundle_weights_member);
        for (const JsonReader &t : all_.at("tensors").items()) {
            t.only({"name", "type", "dims", "offset", "bytes"});
            BundleTensor made{t.at("name").text(), plain(t, "type"), {}, number(t, "offset"), number(t, "bytes")};
            for (const JsonReader &dim : t.at("dims").items()) made.dims.push_back(dim.integer(0, max_number));
            if (!m_.tensors.empty() && !(m_.tensors.back().name < made.name))
                t.at("name").fail("bundle.manifest", "expected tensors by the bytes of their names, each once.");
            if (!weights) t.fail("bundle.manifest", std::string("there are tensors and no member ") + bundle_weights_member + ".");
            if (made.offset < weights->offset || made.offset > weights->offset + weights->bytes ||
                made.bytes > weights->offset + weights->bytes - made.offset)
                t.fail("bundle.manifest", std::string("its bytes lie outside of ") + bundle_weights_member + ".");
            const int bits = made.is_in_half_bytes() ? 4 : safetensors_bits(made.type);
            if (made.is_in_half_bytes() && (made.dims.empty() || made.dims.back() % 2))
                t.at("dims").fail("bundle.manifest", "expected an even number of elements of 4 bits in each row.");
            if (!bits) t.at("type").fail("bundle.manifest", "there is no element type '" + t.at("type").quotable() + "'.");
            if (made.bytes > 0 && made.offset % static_cast<uint64_t>(std::max(1, bits / 8)) != 0)
                t.at("offset").fail("bundle.manifest", "expected a multiple of the element's size.");
            m_.tensors.push_back(std::move(made));
        }
        for (const JsonReader &p : all_.at("packed").items()) {
            p.only({"tensor", "layout", "member"});
            m_.packed.push_back({number_of(p, "tensor", m_.tensors.size(), "tensors"), layout(p), member(p, "member")});
        }
    }

    BundleKernel kernel(const JsonReader &k) const {
        k.only({"name", "algorithm", "numerics", "program", "options", "fixed", "arguments", "parameters", "code", "weights"});
        BundleKernel made;
        made.name = plain(k, "name"), made.numerics = plain(k, "numerics");
        const JsonReader algorithm = k.at("algorithm");
        algorithm.only({"name", "semantic", "surface"});
        made.algorithm = plain(algorithm, "name"), made.semantic = hash(algorithm, "semantic"), made.surface = hash(algorithm, "surface");
        if (k.find("program")) made.program = member(k, "program");
        made.options = numbers(k.at("options"), -max_number), made.fixed = numbers(k.at("fixed"), 0);
        Once arguments("argument");
        for (const JsonReader &a : k.at("arguments").items()) {
            a.only({"name", "role", "dtype", "dims"});
            made.arguments.push_back({a.at("name").text(), plain(a, "role"), plain(a, "dtype"), a.at("dims").texts()});
            arguments.add(a, made.arguments.back().name);
            const std::string &role = made.arguments.back().role;
            if (role != "input" && role != "output" && role != "inout")
                a.at("role").fail("bundle.manifest", "expected input, output or inout, got '" + a.at("role").quotable() + "'.");
        }
        for (const JsonReader &p : k.at("parameters").items()) {
            p.only({"name", "dtype"});
            made.parameters.push_back({p.at("name").text(), plain(p, "dtype")});
        }
        const auto check_argument = [&](const JsonReader &at, const std::string &name) {
            if (std::none_of(made.arguments.begin(), made.arguments.end(), [&](const BundleArgument &a) { return a.name == name; }))
                at.at("argument").fail("bundle.manifest", "the kernel has no argument '" + quotable(name) + "'.");
        };
        size_t least = 0;
        for (const JsonReader &c : k.at("code").items()) {
            c.only({"target", "library", "bits", "schedule", "packed"});
            BundleCode code{
                plain(c, "target"), number_of(c, "library", m_.libraries.size(), "libraries"), hash(c, "bits"), plain(c, "schedule"), {}};
            const std::vector<std::string> &targets = m_.libraries[code.library].targets;
            if (std::find(targets.begin(), targets.end(), code.target) == targets.end())
                c.at("library").fail("bundle.manifest", "its library is not for the target '" + code.target + "'.");
            const size_t target = target_number(c.at("target"), code.target);
            if (target < least) c.at("target").fail("bundle.manifest", "expected code in the order of targets, each once.");
            least = target + 1;
            for (const JsonReader &p : c.at("packed").items()) {
                p.only({"argument", "layout", "function"});
                code.packed.push_back({p.at("argument").text(), layout(p), plain(p, "function")});
                check_argument(p, code.packed.back().argument);
            }
            made.code.push_back(std::move(code));
        }
        if (made.code.empty()) k.at("code").fail("bundle.manifest", "expected code for at least one target.");
        Once weights("argument");
        for (const JsonReader &w : k.at("weights").items()) {
            w.only({"argument", "tensor"});
            made.weights.push_back({w.at("argument").text(), number_of(w, "tensor", m_.tensors.size(), "tensors")});
            check_argument(w, made.weights.back().argument);
            weights.add(w, made.weights.back().argument);
        }
        return made;
    }
};

}  // namespace

bool BundleTensor::is_stored_as(const std::string &stored, const std::vector<int64_t> &extents) const {
    if (stored == type && extents == dims) return true;
    if (!is_in_half_bytes() || stored != "U8" || extents.empty()) return false;
    std::vector<int64_t> elements = extents;
    elements.back() *= 2;
    return elements == dims;
}

const BundleMember *BundleManifest::find(std::string_view path) const {
    const auto it = std::find_if(members.begin(), members.end(), [&](const BundleMember &m) { return m.path == path; });
    return it == members.end() ? nullptr : &*it;
}

std::string text_of(const BundleManifest &m) {
    ordered_json document = {
        {"format", bundle_format}, {"version", bundle_version}, {"tessera", m.tessera}, {"halide", m.halide}, {"name", m.name}};
    document["targets"] = list_of(m.targets), document["libraries"] = list_of(m.libraries), document["kernels"] = list_of(m.kernels);
    document["tensors"] = list_of(m.tensors), document["packed"] = list_of(m.packed), document["licences"] = list_of(m.licences);
    if (m.replay) document["replay"] = *m.replay;
    document["members"] = list_of(m.members), document["end"] = m.end;
    return json_text(document, 1) + "\n";
}

BundleManifest parse_bundle_manifest(std::string_view text, const std::string &subject) {
    const nlohmann::json document = parse_json(text, subject);
    return Reader(document, subject).read();
}

std::pair<int, std::string> bundle_order(const std::string &path) {
    for (size_t i = 0; i < groups.size(); i++)
        if (groups[i].back() == '/' ? path.starts_with(groups[i]) : path == groups[i]) return {static_cast<int>(i), path};
    return {bundle_groups(), path};
}

std::string folder_of_targets(const std::string &first, const std::vector<std::string> &targets) {
    return first + "/" + join(targets, ",");
}

bool is_better_target(const BundleTarget &a, const BundleTarget &b) {
    const auto key = [](const BundleTarget &t) { return std::tuple(t.arch, -static_cast<int64_t>(t.features.size()), t.name); };
    return key(a) < key(b);
}

}  // namespace tessera
