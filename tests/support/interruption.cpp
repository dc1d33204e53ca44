#include "support/processes/interruption.h"

#include <signal.h>
#include <catch2/catch.hpp>

namespace tessera::test_interruption {

TEST_CASE("a terminal that is gone asks for an end in order, unless that is ignored") {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        const Interruption interruption;
        raise(number);
        CHECK(*interruption.asked());
        CHECK(!*interruption.asked_again());
        raise(number);
        CHECK(*interruption.asked_again());
    }
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        const auto before = signal(number, SIG_IGN);
        {
            const Interruption interruption;
            raise(number);
            CHECK(!*interruption.asked());
        }
        CHECK(signal(number, before) == SIG_IGN);
    }
}

}  // namespace tessera::test_interruption
