// Numerics policies: in what types a kernel keeps, computes and adds up its numbers, and how it rounds them. A policy is a value that an
// algorithm is declared with; what it asks for is in the algorithm as casts and functions, and what a schedule could weaken is checked.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera {

// Subnormal numbers of tensors: kept; kept, though a schedule may use instructions that take them for zeros (dot2); or
// taken for zeros of their sign, where operands are read from tensors and where results are written, after rounding. What is between
// reading and writing keeps its subnormals, but in such instructions.
enum class Denormals : uint8_t { gradual, any, flushed };
constexpr Denormals denormals_all[] = {Denormals::gradual, Denormals::any, Denormals::flushed};
const char *name_of(Denormals denormals);  // "gradual", "any", "flushed"

// How the weights of products are kept, where an algorithm declares them as such (weights.h): as other inputs; as codes of i8 or f8e4m3fn
// with a scale in f32 for each column; or as NVFP4, codes of f4e2m1fn in groups of 16 with a scale in f8e4m3fn, and one scale for all.
enum class WeightFormat : uint8_t { storage, i8, f8e4m3fn, nvfp4 };
constexpr WeightFormat weight_formats[] = {WeightFormat::storage, WeightFormat::i8, WeightFormat::f8e4m3fn, WeightFormat::nvfp4};
const char *name_of(WeightFormat format);  // "storage", "i8", "f8e4m3fn", "nvfp4"

// How operands of products are rounded where a fold adds them up in f32, as matrix instructions take them: not at all, to the 10 bits of
// mantissa of TF32 (round_tf32), or to bf16.
enum class Multiply : uint8_t { full, tf32, bf16 };
constexpr Multiply multiplies[] = {Multiply::full, Multiply::tf32, Multiply::bf16};
const char *name_of(Multiply multiply);  // "full", "tf32", "bf16"

// What a policy licenses beyond what is declared, each by itself. The Builder rewrites what it made (transform/licensed.h): the algorithm,
// its text, JSON and hashes say what is computed, and everything below computes that.
//   contraction   a product that is added to is one fma, rounded once; a sum of products is a fold by dot
//   reciprocals   quotients by what other points share, or by constants, are products with reciprocals; 1 / sqrt(x) by Newton's steps
//   reassociation a factor that no term of a sum varies multiplies the sum, where stages read it; constants are multiplied first
//   functions     exp, log, tanh, sigmoid, erf, gelu and silu of f32 with 12 bits (functions/functions.h)
// In which order a fold takes its elements is the schedule's to say in each policy: monoids are associative, tile programs state trees.
enum class Licence : uint8_t { contraction, reassociation, reciprocals, functions };
constexpr Licence licences[] = {Licence::contraction, Licence::reassociation, Licence::reciprocals, Licence::functions};
const char *name_of(Licence licence);  // "contraction", "reassociation", "reciprocals", "functions"

// What folds of products of floats promise: the bits of what is declared, on every processor; or, where a schedule asks for instructions
// whose vendor does not publish what they round (mma_bf16), those of the machine, within a bound on errors.
enum class Products : uint8_t { exact, machine };
constexpr Products products_all[] = {Products::exact, Products::machine};
const char *name_of(Products products);  // "exact", "machine"

struct Numerics {
    std::string name = "f32";
    DType storage = DType::f32;     // of inputs, and of outputs and states where these are not given
    DType compute = DType::f32;     // f32 or f64
    DType accumulate = DType::f32;  // the narrowest that folds may add up in: f32 or f64
    // For casts to outputs and states that are integers, or floats that are only stored: f32 and f64 have no other than to nearest.
    Rounding rounding = Rounding::nearest_even;
    bool saturate = false;
    std::optional<DType> outputs = {}, states = {};
    WeightFormat weights = WeightFormat::storage;
    Denormals denormals = Denormals::gradual;
    Multiply multiply = Multiply::full;  // in folds by dot; attention's weights are all of one fold where they are rounded to bf16
    std::set<Licence> licensed = {};
    Products products = Products::exact;

    DType output_type() const { return outputs.value_or(storage); }
    DType state_type() const { return states.value_or(storage); }
    friend bool operator==(const Numerics &, const Numerics &) = default;
};

// f32, f64, bf16, f16: storage of that type. training: bf16, with states (master weights, moments) in f32. inference: bf16, with weights in
// f8e4m3fn. nvfp4: bf16, with weights in NVFP4. tf32, fast_bf16: f32, with products of operands in TF32 or in bf16.
// bf16_products: bf16, with all products of operands in it. bf16_machine, f16_machine: bf16 and f16, with products of the machine.
// Words follow after '+': "f32+contraction+functions" licenses these two, "f32+flushed" takes subnormal numbers for zeros. The name has
// them in the order of numerics_words(), whatever the order they are given in. UserError numerics.unknown, numerics.unknown-word.
Numerics numerics_named(const std::string &name);
std::vector<std::string> numerics_names();
std::vector<std::string> numerics_words();
// The policy with these words, "contraction" and "flushed", and without the licences that it has. UserError numerics.unknown-word.
Numerics with_words(Numerics policy, const std::vector<std::string> &words);
// A policy's name less the words: "f32" of "f32+functions". Schedules that are made for it fit those with words, which change no stages.
std::string base_name(const std::string &name);
std::vector<std::string> words_of(const std::string &name);  // "functions" of "f32+functions"

// UserError numerics.policy: no name for folders and files; a type that is no float; computing or adding up in others than f32 and f64,
// in two, or in one that does not hold every stored value; operands narrowed for sums in f64; rounding that a cast of f64 to f32 has not.
void check(const Numerics &policy);

// For a callee whose results other callees take: they are kept as inputs are.
Numerics inside(Numerics policy);

// What of a policy `inner` is weaker than in `outer`, in words: "accumulates in f32, not f64". Empty where a kernel of the one may be
// called by a kernel of the other.
std::string weaker_in(const Numerics &inner, const Numerics &outer);

// "storage bf16, compute f32, accumulate f32, nearest_even"; what is not given is left out.
std::string text_of(const Numerics &policy);

}  // namespace tessera
