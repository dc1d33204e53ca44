#include "generators/bundle/replay.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/safetensors.h"

namespace tessera {

namespace {

const BundleKernel &kernel_of(const BundleManifest &bundle, const JsonReader &run) {
    const JsonReader name = run.at("kernel");
    for (const BundleKernel &k : bundle.kernels)
        if (k.name == name.text()) return k;
    name.fail("replay.run", "the bundle has no kernel '" + name.quotable() + "'.");
}

const BundleArgument &argument_of(const BundleKernel &kernel, const JsonReader &entry) {
    const JsonReader name = entry.at("argument");
    for (const BundleArgument &a : kernel.arguments)
        if (a.name == name.text()) return a;
    name.fail("replay.run", "kernel '" + kernel.name + "' has no argument '" + name.quotable() + "'.");
}

bool is_weight(const BundleKernel &kernel, const std::string &argument) {
    return std::any_of(kernel.weights.begin(), kernel.weights.end(), [&](const BundleWeight &w) { return w.argument == argument; });
}

// A number or, of any 64 bits, its digits as a text.
void check_seed(const JsonReader &seed) {
    if (!seed.is_text()) return static_cast<void>(seed.integer(0));
    const std::string &digits = seed.text();
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
        seed.fail("replay.run", "expected an integer of 64 bits without a sign, got '" + seed.quotable() + "'.");
}

void check_inputs(const BundleKernel &kernel, const JsonReader &run, const std::optional<Safetensors> &tensors) {
    std::set<std::string> given;
    for (const JsonReader &entry : run.at("inputs").items()) {
        const BundleArgument &a = argument_of(kernel, entry);
        if (a.role == "output" || is_weight(kernel, a.name) || !given.insert(a.name).second)
            entry.fail("replay.run", "argument '" + quotable(a.name) + "' is an output, a weight, or there already.");
        if (!entry.find("tensor")) {
            entry.only({"argument", "seed", "step"});
            check_seed(entry.at("seed")), entry.at("step").integer(0, 0xffffffff);
            continue;
        }
        entry.only({"argument", "tensor"});
        const std::string &name = entry.at("tensor").text();
        const bool is_there = tensors && std::any_of(tensors->tensors().begin(), tensors->tensors().end(), [&](const SafeTensor &t) {
                                  return t.name == name && t.extents.size() == a.dims.size();
                              });
        if (!is_there)
            entry.at("tensor").fail("replay.run", std::string(bundle_replay_inputs_member) + " has no tensor '" + quotable(name) + "' of " +
                                                      std::to_string(a.dims.size()) + " dims.");
    }
    for (const BundleArgument &a : kernel.arguments)
        if (a.role != "output" && !is_weight(kernel, a.name) && !given.count(a.name))
            run.at("inputs").fail("replay.run", "argument '" + quotable(a.name) + "' of kernel '" + kernel.name + "' is missing.");
}

void check_hash(const JsonReader &hash) {
    const std::string &text = hash.text();
    if (text.size() != 71 || !text.starts_with("sha256:") || text.find_first_not_of("0123456789abcdef", 7) != std::string::npos)
        hash.fail("replay.run", "expected sha256: and 64 lower-case hexadecimal digits, got '" + hash.quotable() + "'.");
}

void check_run(const BundleManifest &bundle, const JsonReader &run, const std::optional<Safetensors> &tensors) {
    run.only({"kernel", "extents", "inputs", "parameters", "outputs"});
    const BundleKernel &kernel = kernel_of(bundle, run);
    for (const auto &[dim, extent] : run.at("extents").fields()) extent.integer(0, INT32_MAX);
    check_inputs(kernel, run, tensors);
    std::set<std::string> parameters;
    for (const JsonReader &p : run.at("parameters").items()) {
        p.only({"name", "value"});
        p.at("value").text();
        const bool is_known = std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                          [&](const BundleParameter &known) { return known.name == p.at("name").text(); });
        if (!is_known || !parameters.insert(p.at("name").text()).second)
            p.at("name").fail("replay.run",
                              "kernel '" + kernel.name + "' has no parameter '" + p.at("name").quotable() + "', or it is there already.");
    }
    if (parameters.size() != kernel.parameters.size())
        run.at("parameters").fail("replay.run", "expected all parameters of kernel '" + kernel.name + "'.");
    for (const JsonReader &entry : run.at("outputs").items()) {
        entry.only({"argument", "bits", "sha256"});
        check_hash(entry.at("bits")), check_hash(entry.at("sha256"));
        if (const BundleArgument &a = argument_of(kernel, entry); a.role == "input")
            entry.at("argument").fail("replay.run", "argument '" + quotable(a.name) + "' is an input.");
    }
}

}  // namespace

void check_replay(const BundleManifest &bundle, const std::string &text, const std::string *inputs, const std::string &subject) {
    const nlohmann::json document = parse_json(text, subject);
    const JsonReader all(document, subject);
    if (all.at("format").text() != "tessera-replay" || all.at("version").integer(0) != 1)
        all.fail("replay.version", "expected format tessera-replay and version 1, got another. Record it again.");
    all.only({"format", "version", "runs"});
    std::optional<Safetensors> tensors;
    if (inputs) tensors.emplace(*inputs, bundle_replay_inputs_member);
    for (const JsonReader &run : all.at("runs").items()) check_run(bundle, run, tensors);
}

}  // namespace tessera
