// The alternatives of a std::variant, each with a case of its own.
//
//   std::visit(Overloaded{[&](const Loop &n) { … }, [&](const Compute &n) { … }, …}, node);
//
// A closed set stays closed where there is a case for every alternative and none for `auto`: an alternative that a pass
// forgets does not compile.
#pragma once
#include <concepts>
#include <type_traits>

namespace tessera {

// One function of several, by the type of its argument.
template <typename... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};

// `Is<Loop> auto &`: a Loop, const or to be changed, for what serves both.
template <typename T, typename Alternative>
concept Is = std::same_as<std::remove_const_t<T>, Alternative>;

}  // namespace tessera
