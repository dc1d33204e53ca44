#include "algorithms/ir/numerics.h"

#include <algorithm>

#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

const char *name_of(Denormals denormals) {
    switch (denormals) {
    case Denormals::gradual: return "gradual";
    case Denormals::any: return "any";
    case Denormals::flushed: return "flushed";
    }
    throw InternalError("denormals of no kind");
}

const char *name_of(WeightFormat format) {
    switch (format) {
    case WeightFormat::storage: return "storage";
    case WeightFormat::i8: return "i8";
    case WeightFormat::f8e4m3fn: return "f8e4m3fn";
    case WeightFormat::nvfp4: return "nvfp4";
    }
    throw InternalError("weights of no format");
}

const char *name_of(Multiply multiply) {
    switch (multiply) {
    case Multiply::full: return "full";
    case Multiply::tf32: return "tf32";
    case Multiply::bf16: return "bf16";
    }
    throw InternalError("products of no kind");
}

const char *name_of(Licence licence) {
    switch (licence) {
    case Licence::contraction: return "contraction";
    case Licence::reassociation: return "reassociation";
    case Licence::reciprocals: return "reciprocals";
    case Licence::functions: return "functions";
    }
    throw InternalError("a licence without a name");
}

const char *name_of(Products products) {
    switch (products) {
    case Products::exact: return "exact";
    case Products::machine: return "machine";
    }
    throw InternalError("products of no promise");
}

static Numerics narrow(const std::string &name, DType storage) {
    Numerics n;
    n.name = name, n.storage = storage;
    return n;
}

static const std::vector<Numerics> &all_numerics() {
    static const std::vector<Numerics> all = [] {
        Numerics f64 = narrow("f64", DType::f64), bf16 = narrow("bf16", DType::bf16);
        f64.compute = f64.accumulate = DType::f64;
        bf16.denormals = Denormals::any;  // for dot2, which flushes numbers below 2^-126
        Numerics training = bf16, inference = bf16, nvfp4 = bf16, int8;
        training.name = "training", training.states = DType::f32;
        inference.name = "inference", inference.weights = WeightFormat::f8e4m3fn;
        nvfp4.name = "nvfp4", nvfp4.weights = WeightFormat::nvfp4;
        int8.name = "int8", int8.weights = WeightFormat::i8;
        Numerics tf32 = narrow("tf32", DType::f32), fast_bf16 = narrow("fast_bf16", DType::f32), bf16_products = bf16;
        tf32.multiply = Multiply::tf32, fast_bf16.multiply = bf16_products.multiply = Multiply::bf16;
        fast_bf16.denormals = Denormals::any, bf16_products.name = "bf16_products";
        Numerics bf16_machine = bf16, f16_machine = narrow("f16_machine", DType::f16);
        bf16_machine.name = "bf16_machine", bf16_machine.products = f16_machine.products = Products::machine;
        return std::vector<Numerics>{
            {},           f64,        bf16, narrow("f16", DType::f16), training, inference, int8, nvfp4, tf32, fast_bf16, bf16_products,
            bf16_machine, f16_machine};
    }();
    return all;
}

std::vector<std::string> numerics_names() {
    std::vector<std::string> names;
    for (const Numerics &n : all_numerics()) names.push_back(n.name);
    return names;
}

std::vector<std::string> numerics_words() {
    std::vector<std::string> words;
    for (const Licence l : licences) words.emplace_back(name_of(l));
    words.emplace_back(name_of(Denormals::flushed));
    return words;
}

std::string base_name(const std::string &name) { return name.substr(0, name.find('+')); }

Numerics with_words(Numerics policy, const std::vector<std::string> &words) {
    const std::vector<std::string> known = numerics_words();
    for (const std::string &word : words)
        if (std::find(known.begin(), known.end(), word) == known.end())
            throw UserError("numerics.unknown-word", "numerics policy '" + printable(policy.name) + "' has no word '" + printable(word) +
                                                         "'; the words after '+' are " + join(known) + "." + did_you_mean(word, known));
    const auto has = [&](const char *word) { return std::find(words.begin(), words.end(), word) != words.end(); };
    policy.name = base_name(policy.name);
    policy.licensed.clear();
    for (const Licence l : licences)
        if (has(name_of(l))) policy.licensed.insert(l), policy.name += std::string("+") + name_of(l);
    if (has(name_of(Denormals::flushed)))
        policy.denormals = Denormals::flushed, policy.name += std::string("+") + name_of(Denormals::flushed);
    return policy;
}

std::vector<std::string> words_of(const std::string &name) {
    std::vector<std::string> words;
    for (size_t plus = name.find('+'); plus != std::string::npos;) {
        const size_t next = name.find('+', plus + 1);
        words.push_back(name.substr(plus + 1, next == std::string::npos ? next : next - plus - 1));
        plus = next;
    }
    return words;
}

Numerics numerics_named(const std::string &name) {
    const std::string base = base_name(name);
    for (const Numerics &n : all_numerics())
        if (n.name == base) return name == base ? n : with_words(n, words_of(name));
    throw UserError("numerics.unknown", "there is no numerics policy '" + base + "'; the policies are " + join(numerics_names()) + "." +
                                            did_you_mean(base, numerics_names()) +
                                            " One of your own is a file (*.json), or registered in a generator of your own.");
}

// Whether each number of the one is one of the other.
static bool holds(DType wide, DType stored) {
    const DTypeTraits &w = traits_of(wide), &s = traits_of(stored);
    return w.mantissa >= s.mantissa && w.exponent >= s.exponent;
}

void check(const Numerics &n) {
    auto fail = [&](const std::string &why) { throw UserError("numerics.policy", "numerics policy '" + printable(n.name) + "': " + why); };
    const auto is_in_words = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    const std::string base = base_name(n.name);
    if (base.empty() || base.size() > 48 || !std::all_of(base.begin(), base.end(), is_in_words))
        fail("expected a name of at most 48 lower-case letters, digits and '_', after which folders of schedules are called. Rename it.");
    if (const std::vector<std::string> words = words_of(n.name); !words.empty()) {
        const Numerics named = with_words(n, words);
        if (named.name != n.name || named.licensed != n.licensed || named.denormals != n.denormals)
            fail("expected what its name says after '+', in the order " + join(numerics_words()) + "; got " + text_of(n) +
                 ". Leave the words out of the name.");
    }
    for (const auto &[what, type] : {std::pair("storage", n.storage), {"outputs", n.output_type()}, {"states", n.state_type()}})
        if (!is_float(type) || !traits_of(type).is_signed)
            fail(std::string("expected a float with a sign as ") + what + ", got " + name_of(type) + ".");
    for (const auto &[what, type] : {std::pair("compute", n.compute), {"accumulate", n.accumulate}}) {
        if (type != DType::f32 && type != DType::f64)
            fail(std::string("expected f32 or f64 as ") + what + ", in which there are operations, got " + name_of(type) +
                 ". Narrower types are for storage, outputs and states.");
        for (DType stored : {n.storage, n.state_type()})
            if (!holds(type, stored))
                fail(std::string(what) + " in " + name_of(type) + " does not hold every number of " + name_of(stored) +
                     ", in which values are kept, and nothing narrows by itself. Compute and accumulate in f64.");
    }
    if (n.accumulate != n.compute)
        fail(std::string("it computes in ") + name_of(n.compute) + " and accumulates in " + name_of(n.accumulate) +
             ", and nothing widens or narrows by itself. Do both in f64.");
    if (n.multiply != Multiply::full && n.accumulate != DType::f32)
        fail(std::string("expected to accumulate in f32 where products are of ") + name_of(n.multiply) + ", got " + name_of(n.accumulate) +
             ". Leave \"multiply\" out.");
    if (n.rounding != Rounding::nearest_even || n.saturate)
        for (DType kept : {n.output_type(), n.state_type()})
            if (kept == DType::f32 && n.accumulate == DType::f64)
                fail(std::string(
                         "expected rounding to nearest even without saturation where f64 becomes f32, the only cast there is; got ") +
                     name_of(n.rounding) + (n.saturate ? ", saturated" : "") +
                     ". Keep outputs and states in f64 or a narrower type than f32.");
}

Numerics inside(Numerics policy) {
    policy.outputs.reset();
    return policy;
}

std::string weaker_in(const Numerics &inner, const Numerics &outer) {
    std::vector<std::string> all;
    const auto narrower = [&](const char *what, DType of_inner, DType of_outer) {
        if (size_of(of_inner) < size_of(of_outer))
            all.push_back(std::string(what) + " in " + name_of(of_inner) + ", not " + name_of(of_outer));
    };
    narrower("computes", inner.compute, outer.compute);
    narrower("accumulates", inner.accumulate, outer.accumulate);
    if (inner.multiply > outer.multiply) all.push_back(std::string("multiplies in ") + name_of(inner.multiply));
    for (const Licence l : inner.licensed)
        if (!outer.licensed.count(l)) all.push_back(std::string("licenses ") + name_of(l));
    if (outer.denormals == Denormals::gradual && inner.denormals != Denormals::gradual)
        all.push_back(std::string("has denormals '") + name_of(inner.denormals) + "', not 'gradual'");
    if (outer.denormals == Denormals::flushed && inner.denormals != Denormals::flushed)
        all.push_back(std::string("has denormals '") + name_of(inner.denormals) + "', not 'flushed'");
    if (inner.products == Products::machine && outer.products == Products::exact)
        all.push_back("has products of the machine, whose bits are not promised");
    return all.empty() ? "" : join(all);
}

std::string text_of(const Numerics &n) {
    std::string text = std::string("storage ") + name_of(n.storage);
    if (n.outputs) text += std::string(", outputs ") + name_of(*n.outputs);
    if (n.states) text += std::string(", states ") + name_of(*n.states);
    if (n.weights != WeightFormat::storage) text += std::string(", weights ") + name_of(n.weights);
    text += std::string(", compute ") + name_of(n.compute) + ", accumulate " + name_of(n.accumulate) + ", " + name_of(n.rounding);
    if (n.saturate) text += ", saturate";
    if (n.multiply != Multiply::full) text += std::string(", multiply ") + name_of(n.multiply);
    if (!n.licensed.empty()) {
        std::vector<std::string> words;
        for (const Licence l : n.licensed) words.emplace_back(name_of(l));
        text += ", licensed " + join(words, " and ");
    }
    if (n.denormals != Denormals::gradual) text += std::string(", denormals ") + name_of(n.denormals);
    if (n.products != Products::exact) text += std::string(", products ") + name_of(n.products);
    return text;
}

}  // namespace tessera
