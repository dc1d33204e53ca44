// Where an artifact's figures are from, as its `measured` says: for which kernel, of which tile program, made of what. The figures
// hold as long as the artifact resolves to that program; the rest explains why it no longer does.
//
//   "measured": { "task": {"algorithm", "numerics", "options", "fixed", "extents", "target", "threads"}, "resolved": hash, "bits": hash,
//                 "from": {"semantic": hash, "stated": hash, "ancestors": [[name, hash]], "tessera": version},
//                 "predicted": {"draft_s", "score", "model": hash, "features": hash}, "counts": {name: number}, anything }
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/artifact/artifact.h"

namespace tessera {

class JsonReader;

// One kernel as it is tuned, checked and looked up.
struct KernelTask {
    std::string algorithm, numerics = "f32";
    std::map<std::string, int64_t> options;  // that the algorithm is declared with
    Extents fixed;                           // dims that the kernel fixes
    Extents extents;                         // of the dims that it leaves dynamic: what it was measured with
    std::string target;
    int64_t threads = 1;
    std::vector<std::string> transforms = {};  // what was made of the algorithm: "grad x w"; `algorithm` is then named linear.grad
    friend bool operator==(const KernelTask &, const KernelTask &) = default;
};

// What a cost model said of the program.
struct Prediction {
    double draft_s = 0;           // seconds by the roofline
    double score = 0;             // log2 of a speed, comparable where model and features are the same
    std::string model, features;  // hashes
};

struct Provenance {
    KernelTask task;
    std::string resolved;                                        // of the tile program, or of several variants' together
    std::string bits;                                            // of what decides the bits of results; "" where nothing was said
    std::string semantic;                                        // of the algorithm as its author declared it
    std::string stated;                                          // stated_hash of the artifact
    std::vector<std::pair<std::string, std::string>> ancestors;  // names with their stated_hash, nearest first; then those of callees
    std::string version;                                         // of Tessera
    std::optional<Prediction> predicted;                         // nothing where no extents are known
    std::map<std::string, double> counts;                        // of the program: instructions, bytes
};

// The hash of what a schedule states: its document without `measured`.
std::string stated_hash(const Schedule &schedule);

nlohmann::ordered_json json_of(const KernelTask &task);
KernelTask task_from_json(const nlohmann::json &document, const std::string &subject);  // UserError json.*

// As fields of `measured`, and back. UserError json.* for a field of another type; nothing if there is no task or no resolved hash.
nlohmann::ordered_json json_of(const Provenance &provenance);
std::optional<Provenance> provenance_from_json(const nlohmann::json &measured, const std::string &subject);
std::optional<Provenance> provenance_of(const Schedule &schedule);

// Calls `read` on a schedule's `measured`, if it has one. An error of `read` is thrown with a remedy added.
void read_measured(const Schedule &schedule, const std::function<void(const JsonReader &)> &read);

// "matmul/f32 M=512 N=768 on avx512"
std::string to_string(const KernelTask &task);

// How unlike two shapes are: the length of the vector of log2 of the ratios of their extents, by dim; infinite if their dims
// differ, or if one of two extents is 0.
double shape_distance(const Extents &a, const Extents &b);

}  // namespace tessera
