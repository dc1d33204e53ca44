#include "autotune/space/knob_decisions.h"

#include <catch2/catch.hpp>

namespace tessera::test_knob_decisions {

TEST_CASE("a decision makes the knob of its first word") {
    CHECK(knob_made_by("micro.N") == Knob::micro);
    CHECK(knob_made_by("tile.K.o") == Knob::levels);
    CHECK(knob_made_by("inline") == Knob::place);
    CHECK(knob_made_by("order.k") == Knob::loops);
    CHECK(knob_made_by("k.K") == Knob::k);
    CHECK_FALSE(knob_made_by("call"));
    CHECK_FALSE(knob_made_by("colour"));
}

}  // namespace tessera::test_knob_decisions
