// What `generate` wrote of one library, read from its manifest (generators/commands/manifest.h) as from strangers.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generators/bundle/format.h"

namespace tessera {

// The axes of a layout, by its hash as the manifest has it, and the dims of the operand, for one argument.
struct GeneratedLayout {
    std::vector<std::string> dims, layout;
};

struct GeneratedKernel {
    BundleKernel kernel;                                                     // without program and weights; `code` counts no libraries yet
    std::map<std::pair<std::string, std::string>, GeneratedLayout> layouts;  // by argument and hash
};

struct GeneratedLibrary {
    std::string tessera, halide, name;
    bool is_module = false;
    std::vector<BundleTarget> targets;
    std::vector<GeneratedKernel> kernels;
    std::vector<std::pair<std::string, std::string>> linked;  // name and licence of what it is linked with
    std::map<std::string, std::string> licence_texts;         // the file of a licence, by that name
    std::map<std::string, std::string> hashes;                // of its files

    std::string archive() const { return "lib" + name + ".a"; }
    std::string header() const { return name + ".h"; }
    std::string manifest() const { return name + ".manifest.json"; }
    std::string sources() const { return name + ".sources.json"; }
    std::vector<std::string> target_names() const;
};

// UserErrors json.*; bundle.generated for a manifest of another kind, or of what is no library of machine code; bundle.old for one without
// arguments, which an earlier version wrote.
GeneratedLibrary read_generated(const std::string &text, const std::string &subject);

// The text of one of its files has the hash that its manifest states. UserError bundle.hash.
void check_generated_file(const GeneratedLibrary &library, const std::string &file, const std::string &text, const std::string &subject);

}  // namespace tessera
