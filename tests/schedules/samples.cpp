#include "tests/schedules/samples.h"

#include <nlohmann/json.hpp>

#include "schedules/artifact/merge.h"

namespace tessera::test {

using nlohmann::json;

const char *const full_text = R"({
  "format": "tessera-schedule",
  "version": 1,
  "name": "linear_gelu/f32/znver5",
  "extends": "linear_gelu/f32/avx512",
  "algorithm": {"name": "linear_gelu", "surface": "sha256:00ff"},
  "requires": ["avx512f", "avx512_bf16"],
  "stages": {
    "acc": {
      "place": "y.micro",
      "block": {"M": 96, "N": 384},
      "k": {"K": 768},
      "micro": {"M": 8, "N": 48},
      "levels": {"inner": {"M": 4}},
      "loops": [
        "block.N",
        "k.K",
        "block.M",
        "inner.M",
        "micro.N",
        "micro.M",
        "some_longer_name.O",
        "some_longer_name.P"
      ],
      "vector": {"N": 16},
      "unroll": {"K": 4},
      "parallel": ["block.N"],
      "pack": {"w": {"at": "block", "layout": ["N/48", "K", "N%48"]}},
      "prefetch": {"w": {"loop": "y.block.M", "ahead": 2}, "x": {}},
      "layout": ["N/16", "M", "N%16"],
      "tail": {"M": "mask", "N": null},
      "split": {
        "K": {"how": "lanes", "size": 16},
        "L": {"how": "passes"},
        "R": {"lanes": [64, 16, 4]}
      },
      "instruction": "fma",
      "call": "once",
      "use": "linear/f32/avx512",
      "warps": 4,
      "directives": [
        {"id": "p", "after": "q", "op": "parallel", "loop": "k.K", "factor": 2},
        {"id": "q", "op": null}
      ]
    },
    "y": {
      "vector": null
    },
    "z": null
  },
  "variants": [
    {
      "when": ["M <= 16", "N % 16 == 0", "avx512_bf16"],
      "stages": {
        "acc": {
          "block": {"M": 16}
        }
      }
    }
  ],
  "measured": {"gflops": 250.5, "host": {"cpu": "znver5"}, "runs": [1, 2.5e-07, true, null]}
}
)";

Algorithm sample_algorithm() {
    const Expr x = load("x", DType::f32, {variable("M"), variable("K")}), w = load("w", DType::f32, {variable("K"), variable("N")});
    const Expr acc = load("acc", DType::f32, {variable("M"), variable("N")}), b = load("b", DType::f32, {variable("N")});
    Algorithm a;
    a.name = "linear";
    a.dims = {symbolic_dim("M"), symbolic_dim("N"), symbolic_dim("K")};
    a.tensors = {{"x", DType::f32, {"M", "K"}, Role::input, {}},
                 {"w", DType::f32, {"K", "N"}, Role::input, {}},
                 {"b", DType::f32, {"N"}, Role::input, {}}};
    a.steps = {Stage{"acc", {"M", "N"}, Reduce{dot_monoid(DType::f32), {"K"}, {x, w}, {}, {}}}, Stage{"y", {"M", "N"}, Map{acc + b}},
               Stage{"p", {"M", "N"}, Scan{sum_monoid(DType::f32), "N", true, {load("y", DType::f32, {variable("M"), variable("N")})}}}};
    a.outputs = {"p"};
    return a;
}

namespace {

int below(std::mt19937 &random, int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

const char *pick(std::mt19937 &random, std::initializer_list<const char *> choices) {
    return choices.begin()[below(random, static_cast<int>(choices.size()))];
}

const char *dim(std::mt19937 &random) { return pick(random, {"M", "N", "K", "a/b", "0", "~"}); }

Extents extents(std::mt19937 &random) {
    Extents result;
    for (int i = below(random, 3) + 1; i > 0; i--) result[dim(random)] = 1 + below(random, 512);
    return result;
}

StageKnobs random_knobs(std::mt19937 &random, bool inherits_vector) {
    StageKnobs s;
    for (int i = below(random, 8); i >= 0; i--) {
        switch (below(random, 18)) {
        case 0: s = s.place(pick(random, {"root", "inline", "y.micro", "y.block.N", "y.partial.K.o"})); break;
        case 1: s = s.block(extents(random)); break;
        case 2: s = s.k(extents(random)); break;
        case 3: s = s.micro(extents(random)); break;
        case 4: s = s.level(pick(random, {"inner", "outer"}), extents(random)); break;
        case 5: s = s.loops({"block.N", dim(random)}); break;
        case 6:
            if (!inherits_vector) s = s.remove("vector").vector({{dim(random), 16}});
            break;
        case 7: s = s.unroll({{dim(random), 1 + below(random, 256)}}); break;
        case 8: s = s.parallel({"block.M"}); break;
        case 9: s = s.pack(pick(random, {"w", "x"}), pick(random, {"block", "k.K", "root"}), {"N/48", "K", "N%48"}); break;
        case 10:
            s = s.prefetch(pick(random, {"w", "x"}), pick(random, {"", "y.block.M", "acc.K"}), 1 + below(random, 4))
                    .layout({"N/16", "M", "N%16"});
            break;
        case 11: s = s.tail(dim(random), static_cast<Tail>(below(random, tail_names.size()))); break;
        case 12: s = s.split(dim(random), static_cast<Split::How>(below(random, 5)), 1 + below(random, 64)); break;
        case 13: s = s.instruction(pick(random, {"fma", "mul_add", "dot2", "dot4"})); break;
        case 14: s = s.call(pick(random, {"inline", "once"})).warps(4); break;
        case 15: s = s.tree(dim(random), {32, 8, 2}); break;
        default: s = s.directive({pick(random, {"p", "q", "r", "s"}), "", "parallel", "k.K", 1 + below(random, 8)});
        }
    }
    return s;
}

const char *stage(std::mt19937 &random) { return pick(random, {"acc", "y", "y.partial", "a/b~c"}); }

}  // namespace

Schedule random_schedule(std::mt19937 &random, const std::string &name) {
    Schedule s(name);
    for (int i = below(random, 4); i >= 0; i--) {
        const std::string where = stage(random);
        s = s.unset(where, "vector").stage(where, random_knobs(random, false));
    }
    if (below(random, 2)) s = s.require({"avx2"}).for_algorithm("linear", "sha256:1");
    if (below(random, 2)) s = s.variant({"M <= 16"}, stage(random), random_knobs(random, true));
    if (below(random, 4) == 0) s = s.with_measured({{"gflops", below(random, 100)}, {"how", {{"runs", 3}}}});
    return s;
}

Schedule random_child(std::mt19937 &random, const std::string &name, const Schedule &parent, const Library &library) {
    Schedule child = Schedule(name).extends(parent);
    for (int i = below(random, 3); i > 0; i--) child = child.stage(stage(random), random_knobs(random, true));
    if (below(random, 4) == 0) child = child.variant({"avx512_bf16", "N % 16 == 0"}, stage(random), random_knobs(random, true));
    json document = child.document();
    for (const auto &[path, field] : merged(parent, library)) {
        if (path[0] != "stages" || below(random, 6)) continue;
        if (path[2] == "directives") {
            json &list = document["stages"][path[1]]["directives"];
            if (list.is_null()) list = json::array({json{{"id", path[3]}, {"op", nullptr}}});
            continue;
        }
        const size_t depth = 2 + static_cast<size_t>(below(random, static_cast<int>(path.size()) - 1));
        json *slot = &document;
        for (size_t i = 0; i < depth && slot->is_object(); i++) {
            if (!slot->contains(path[i])) (*slot)[path[i]] = i + 1 < depth ? json::object() : json();
            slot = &(*slot)[path[i]];
        }
    }
    return Schedule::from_json(document, name).extends(parent);
}

Schedule random_chain(std::mt19937 &random, int length, const Library &library) {
    Schedule last = random_schedule(random, "random/0");
    for (int i = 1; i < length; i++) last = random_child(random, "random/" + std::to_string(i), last, library);
    return last;
}

}  // namespace tessera::test
