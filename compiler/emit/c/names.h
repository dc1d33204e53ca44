// Names of a tile program as C identifiers.
#pragma once
#include <set>
#include <string>

namespace tessera::emit_c {

// "y.acc" -> "y_acc"; never a word of C, nor the name of an operation (operations.h) or of what every function has.
std::string identifier(const std::string &name);

// The table of a program's constant, which no function of the file is called.
std::string constant_name(const std::string &stem, const std::string &constant);

// The identifiers that are in scope. A name that is taken gets a number.
class Identifiers {
public:
    std::string take(const std::string &name);
    void release(const std::string &identifier) { taken_.erase(identifier); }

private:
    std::set<std::string> taken_;
};

}  // namespace tessera::emit_c
