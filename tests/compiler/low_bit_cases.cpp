// Products with weights of 4 and 8 bits: codes that are decoded in the register tile, and ahead of it; sums of integers inside of sums of
// floats.
#include "algorithms/library/library.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

std::vector<Case> low_bit_cases(int64_t lanes) {
    const int64_t L = lanes;
    std::vector<Case> all;
    // 32: whole groups of dot4; 6: three bytes, which are no such group.
    auto add = [&](const std::string &name, auto make, const Numerics &n, int64_t group, int64_t half_scale = 0) -> Case & {
        const Options options{{"group", group}, {"half_scale", half_scale}, {"zeros", group == 6 && half_scale == 0}};
        Case &c = all.emplace_back(Case{name, make(n, options), {}, {}});
        for (const std::vector<int64_t> &v : std::vector<std::vector<int64_t>>{
                 {0, 3, 1}, {3, 0, 1}, {2, 3, 0}, {1, 1, 1}, {1, 2 * L + 1, 2}, {5, 3 * L - 1, 3}, {7, L, 1}, {4, 4 * L, 2}})
            c.shapes.push_back({{"M", v[0]}, {"N", v[1]}, {"K", group * v[2]}});
        return c;
    };
    const Place in_group{Place::Kind::at, "y", "G"}, at_panel{Place::Kind::at, "y", "micro.N"};
    Knobs y;
    y.micro = {{"M", 2}, {"N", 2 * L}}, y.vector = {{"N", L}}, y.loops = {"micro.N", "micro.M"}, y.tail = {{"M", Tail::narrow}};
    Knobs inner = y;
    inner.loops = {"micro.N", "micro.M", "G", "P", "H"}, inner.unroll = {{"H", 2}}, inner.place = in_group, inner.tail.clear();
    Knobs inlined;
    inlined.place = Place{Place::Kind::inlined, "", ""};
    const std::vector<LayoutAxis> panels = {{"N", 2 * L, false}, {"K.bytes", 0, false}, {"N", 2 * L, true}};
    for (int64_t group : {32, 6})
        for (bool decoded_once : {false, true}) {
            const std::string name = std::to_string(group) + (decoded_once ? "_panels" : "");
            Case &c = add("qint4_" + name, library::matmul_qint4, numerics_named(decoded_once ? "bf16" : "f32"), group, decoded_once);
            c.stages["y"] = y, c.stages["inner"] = inner, c.stages["weights"] = inlined;
            if (!decoded_once) {
                c.stages["inner"].pack["codes"] = {"micro.N", panels};
                c.stages["inner.codes.packed"].place = at_panel;
                continue;
            }
            Knobs &weights = c.stages["weights"];
            weights.place = at_panel, weights.micro = {{"N", 2 * L}}, weights.loops = {"micro.N", "G", "P", "H"};
            weights.vector = {{"N", L}};
            weights.layout = {{"N", 2 * L, false}, {"G", 0, false}, {"P", 0, false}, {"H", 0, false}, {"N", 2 * L, true}};
        }
    add("dynamic_qint4_plain", library::matmul_dynamic_qint4, {}, 6);
    // Block floats: codes decoded ahead of the register tile, by the arithmetic of their formats.
    auto add_blocks = [&](const std::string &name, const Algorithm &algorithm, int64_t block, const std::vector<std::string> &inside) {
        for (bool scheduled : {false, true}) {
            Case &c = all.emplace_back(Case{name + (scheduled ? "_panels" : "_plain"), algorithm, {}, {}});
            for (const std::vector<int64_t> &v : std::vector<std::vector<int64_t>>{{0, 3, 1}, {2, 3, 0}, {1, 1, 1}, {5, 3 * L - 1, 2}})
                c.shapes.push_back({{"M", v[0]}, {"N", v[1]}, {"K", block * v[2]}});
            if (!scheduled) continue;
            c.stages["y"] = y, c.stages["inner"] = inner;
            c.stages["inner"].loops = {"micro.N", "micro.M", "G"}, c.stages["inner"].unroll.clear();
            Knobs &weights = c.stages["weights"], &scales = c.stages["scales"];
            weights.place = scales.place = at_panel, weights.micro = scales.micro = {{"N", 2 * L}};
            weights.loops = scales.loops = {"micro.N", "G"}, weights.vector = scales.vector = {{"N", L}};
            weights.layout = scales.layout = {{"N", 2 * L, false}, {"G", 0, false}};
            for (const std::string &dim : inside) {
                c.stages["inner"].loops.push_back(dim), weights.loops.push_back(dim);
                weights.layout.push_back({dim, 0, false});
            }
            weights.layout.push_back({"N", 2 * L, true}), scales.layout.push_back({"N", 2 * L, true});
        }
    };
    add_blocks("mxfp8", library::matmul_mxfp8({}, Options{{"e5m2", 0}}), 32, {"C"});
    add_blocks("mxfp8_e5m2", library::matmul_mxfp8({}, Options{{"e5m2", 1}}), 32, {"C"});
    add_blocks("mxfp4", library::matmul_mxfp4({}), 32, {"P", "H"});
    add_blocks("nvfp4", library::matmul_nvfp4({}), 16, {"P", "H"});
    const auto add_rows = [&](const std::string &name, const Algorithm &algorithm) -> Case & {
        Case &c = all.emplace_back(Case{name, algorithm, {}, {}});
        for (const std::vector<int64_t> &v :
             std::vector<std::vector<int64_t>>{{0, 3, 4}, {3, 0, 4}, {2, 3, 0}, {1, 1, 1}, {5, 3 * L - 1, 13}, {4, 2 * L, 2 * L}})
            c.shapes.push_back({{"M", v[0]}, {"N", v[1]}, {"K", v[2]}});
        return c;
    };
    add_rows("dynamic_qint8_plain", library::linear_dynamic_qint8({}));
    if (L < 8) return all;  // no dot4 where vectors are that short
    {
        Case &c = add_rows("dynamic_qint8_dot4", library::matmul_dynamic_qint8({}));
        c.stages["y"] = y, c.stages["weights"] = inlined;
        Knobs &acc = c.stages["acc"];
        acc.micro = y.micro, acc.vector = y.vector, acc.place = Place{Place::Kind::at, "y", "micro.M"}, acc.instruction = "dot4";
        acc.pack["w"] = {"micro.N", {{"N", 2 * L, false}, {"K", 4, false}, {"N", 2 * L, true}, {"K", 4, true}}};
        c.stages["acc.w.packed"].place = at_panel;
    }
    for (int64_t group : {32, 6, 8}) {
        Case &c = add("dynamic_qint4_" + std::to_string(group), library::matmul_dynamic_qint4, {}, group, group == 8);
        c.stages["y"] = y, c.stages["inner"] = inner, c.stages["weights"] = inlined;
        c.stages["rows"].layout = {{"M", 0, false}, {"G", 0, false}, {"C", 2, true}, {"C", 2, false}};
        Knobs &k = c.stages["inner"];
        k.instruction = "dot4", k.levels = {{"dot", {{"P", 4}}}}, k.loops = {"micro.N", "micro.M", "G", "dot.P", "H", "P"};
        k.pack["codes"] = {"micro.N", {{"N", 2 * L, false}, {"K.bytes", 4, false}, {"N", 2 * L, true}, {"K.bytes", 4, true}}};
        c.stages["inner.codes.packed"].place = at_panel;
    }
    return all;
}

}  // namespace tessera::test
