// Debian's libgloo-dev has headers that include this one, and not this one. engine_gloo.cpp looks at members of a class that stand before
// those of these types, and makes no object of it, so what is in them does not matter. Where Gloo has its own, that one is found first.
#pragma once

namespace gloo {

template <class T>
class NonOwningPtr {};
template <class T>
class WeakNonOwningPtr {
public:
    template <class U>
    explicit WeakNonOwningPtr(const U &) {}
};
template <class T>
class ShareableNonOwningPtr {};

}  // namespace gloo
