// Names of a tile program as identifiers of the kernel languages.
#pragma once
#include <map>
#include <set>
#include <string>

namespace tessera::emit_gpu {

class Names {
public:
    // An identifier made of `name` that nothing else has: "y.acc" -> "y_acc".
    std::string take(const std::string &name);
    // Binds a name of the program, for good; names are bound once, or one after the other.
    const std::string &bind(const std::string &kind, const std::string &name);
    const std::string &of(const std::string &kind, const std::string &name) const;

private:
    std::set<std::string> taken_;
    std::map<std::pair<std::string, std::string>, std::string> bound_;
};

}  // namespace tessera::emit_gpu
