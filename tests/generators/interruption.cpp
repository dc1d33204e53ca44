#include "generators/interruption.h"

#include <catch2/catch.hpp>
#include <signal.h>

using namespace tessera;

TEST_CASE("a terminal that is gone asks for an end in order, unless that is ignored") {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        const Interruption interruption;
        raise(number);
        CHECK(*interruption.asked());
        CHECK(!*interruption.asked_again());
        raise(number);
        CHECK(*interruption.asked_again());
    }
    const auto before = signal(SIGHUP, SIG_IGN);
    {
        const Interruption interruption;
        raise(SIGHUP);
        CHECK(!*interruption.asked());
    }
    CHECK(signal(SIGHUP, before) == SIG_IGN);
}
