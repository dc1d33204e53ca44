// What a call's UserError says.
#pragma once
#include <catch2/catch.hpp>
#include <string>

#include "support/text/error.h"

namespace tessera::test {

template <typename Call>
std::string words(Call call) {
    try {
        call();
    } catch (const UserError &error) { return error.words(); }
    return "no error";
}

// The message has each of these parts.
template <typename Call>
void check_words(Call call, const std::vector<std::string> &parts) {
    const std::string message = words(call);
    for (const std::string &part : parts) CHECK_THAT(message, Catch::Contains(part));
}

}  // namespace tessera::test
