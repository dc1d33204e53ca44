#include "bench/measure/machine.h"

#include <catch2/catch.hpp>

#include "runtime/abi/tessera.h"

namespace tessera::test_machine {

TEST_CASE("the machine has a processor, cores, memory, and caches that grow") {
    const Machine m = this_machine();
    CHECK(!m.processor.empty());
    CHECK(!m.architecture.empty());
    CHECK((1 <= m.cores && m.cores <= m.threads));
    CHECK(m.threads >= tess_cpu_count());
    CHECK(m.memory_bytes > (64 << 20));
    for (size_t i = 0; i < m.caches.size(); i++) {
        CHECK(m.cache(m.caches[i].level) == &m.caches[i]);
        CHECK((m.caches[i].threads >= 1 && m.caches[i].threads <= m.threads));
        if (i > 0) CHECK(m.caches[i].level > m.caches[i - 1].level);
    }
    CHECK(m.cache(9) == nullptr);
}

TEST_CASE("bytes are shown in the unit they fit") {
    CHECK(bytes_text(512) == "512 B");
    CHECK(bytes_text(48 << 10) == "48 KiB");
    CHECK(bytes_text(3 << 19) == "1.5 MiB");
    CHECK(bytes_text(int64_t{1} << 40) == "1 TiB");
}

}  // namespace tessera::test_machine
