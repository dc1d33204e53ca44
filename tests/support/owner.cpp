#include "support/processes/owner.h"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace tessera::test_owner {

TEST_CASE("a process is known to run, or not to") {
    const Owner here = this_process();
    CHECK(here == this_process());
    CHECK(here.process == getpid());
    CHECK(is_alive(here));

    usleep(50000);  // the child starts at a later tick of the clock than this process, by which they are told apart
    const pid_t child = fork();
    if (child == 0) {
        while (true) pause();
    }
    Owner other = here;
    other.process = child;
    CHECK(!is_alive(other));  // another process of that number
    other = here;
    other.boot = "an earlier start of the machine";
    CHECK(!is_alive(other));
    other.host = "another machine";
    CHECK(is_alive(other));
    other = here;
    other.host = here.host.substr(0, here.host.rfind(' ')) + " pid:[1]";  // another container of this machine, which may have its name
    CHECK(is_alive(other));
    CHECK(!is_here(other));
    other = here;
    other.host = "as it was called before" + here.host.substr(here.host.rfind(' '));
    CHECK(is_here(other));
    other.process = child;
    CHECK(!is_alive(other));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    other = here;
    other.process = child;
    CHECK(!is_alive(other));
}

}  // namespace tessera::test_owner
