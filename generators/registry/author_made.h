// What a generator's author wrote is called with care: what it throws is a mistake there, unless Tessera says that it is its own.
#pragma once
#include <exception>
#include <new>
#include <string>

#include "support/text/error.h"

namespace tessera {

// What `make` gives. UserError generator.builder where it throws anything but Tessera's errors; `what` is "algorithm 'mine'".
template <typename Make>
auto author_made(const std::string &what, Make make) {
    auto fail = [&](const std::string &words) {
        return UserError("generator.builder",
                         what + ": expected the function that builds it to return it or to throw a tessera::UserError; it threw " + words +
                             ". Correct it in the generator's source.");
    };
    try {
        return make();
    } catch (const UserError &) { throw; } catch (const InternalError &) {
        throw;
    } catch (const std::bad_alloc &) { throw; } catch (const std::exception &error) {
        throw fail(std::string("'") + error.what() + "'");
    } catch (...) { throw fail("what is no std::exception"); }
}

}  // namespace tessera
