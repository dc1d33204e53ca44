#include "costmodel/features/features.h"
#include "costmodel/model/counted_samples.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "costmodel/model/counted_samples.h"
#include "support/text/sha256.h"

namespace tessera::test_features {

TEST_CASE("every feature has a name of its own, a unit and a sentence, and a finite value for any program") {
    std::set<std::string> names;
    for (const Feature &f : feature_table()) {
        CHECK(names.insert(f.name).second);
        CHECK(!f.unit.empty());
        CHECK(f.meaning.size() > 10);
    }
    CHECK(feature_hash().starts_with("sha256:"));
    const Target target = target_named("avx2");
    for (const Extents &shape :
         {Extents{{"M", 0}, {"N", 0}, {"K", 0}}, Extents{{"M", 1}, {"N", 1}, {"K", 1}}, Extents{{"M", 4096}, {"N", 4096}, {"K", 4096}}}) {
        const Algorithm a = bind_extents(library::matmul({}), shape);
        const TileProgram program = lower(a, {}, target);
        const Featured f = features_of(profile_of(program, {}, target, 1), work_of(a, program, all_extents(a, {})), target, 1);
        REQUIRE(f.values.size() == feature_table().size());
        for (float v : f.values) CHECK(std::isfinite(v));
        CHECK(f.draft > 0);
        CHECK(f.bound > 0);
    }
}

TEST_CASE("the programs whose features are hashed give each feature several values, so that no count changes unseen") {
    const std::vector<Featured> samples = counted_samples();
    for (size_t f = 0; f < feature_table().size(); f++) {
        INFO(feature_table()[f].name);
        std::set<float> values;
        for (const Featured &s : samples) values.insert(s.values.at(f));
        CHECK(values.size() > 1);
    }
}

TEST_CASE("the hash of the features is not of their names alone") {
    std::string text;
    for (const Feature &f : feature_table()) text += f.name + "\t" + f.unit + "\t" + f.meaning + "\n";
    CHECK(feature_hash() != sha256(text));
    CHECK(feature_hash() == feature_hash());
}

}  // namespace tessera::test_features
