#include "support/processes/interruption.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "support/files/output_folder.h"

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

TEST_CASE("the first signal and the second are answered at once, each with the words that hold then") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "said";
    const int before = dup(2), said = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    {
        Interruption interruption;
        dup2(said, 2);
        interruption.say("old", "old");
        interruption.say("first\n", "second\n" + std::string(2000, 'x'));
        raise(SIGINT);
        interruption.say("late", "again\n");
        raise(SIGTERM);
    }
    {
        const Interruption silent;
        raise(SIGINT);
    }
    dup2(before, 2), close(before), close(said);
    CHECK(read_file(file) == "first\nagain\n");
}

}  // namespace tessera::test_interruption
