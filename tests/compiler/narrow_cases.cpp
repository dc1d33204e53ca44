// Partial register tiles in bodies of their own: rows and vectors, decided by extents and not, and what is placed in them.
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

namespace {

class NarrowCases {
public:
    explicit NarrowCases(int64_t lanes) : L(lanes) { products(), placed(), convolutions(); }
    std::vector<Case> all;

private:
    int64_t L;

    Case &add(const std::string &name, const Algorithm &algorithm, const std::vector<std::string> &dims,
              const std::vector<std::vector<int64_t>> &values) {
        Case &c = all.emplace_back(Case{name, algorithm, {}, {}});
        for (const std::vector<int64_t> &v : values)
            for (size_t i = 0; i < dims.size(); i++) (i == 0 ? c.shapes.emplace_back() : c.shapes.back())[dims[i]] = v[i];
        return c;
    }
    static Place at(const std::string &stage, const std::string &loop) { return {Place::Kind::at, stage, loop}; }
    void products();
    void placed();
    void convolutions();
};

void NarrowCases::products() {
    Knobs tile;
    tile.micro = {{"M", 4}, {"N", 3 * L}}, tile.vector = {{"N", L}}, tile.tail = {{"M", Tail::narrow}, {"N", Tail::narrow}};
    const std::vector<std::string> mnk = {"M", "N", "K"};
    const std::vector<std::vector<int64_t>> any = {{0, 5, 3},      {3, 0, 2},         {1, 1, 1},         {4, 3 * L, 2}, {5, 3 * L + 1, 5},
                                                   {6, 4 * L, 17}, {7, 5 * L - 1, 3}, {9, 6 * L - 1, 4}, {3, 2 * L, 0}};
    const Algorithm matmul = library::matmul({});
    add("matmul_narrow", matmul, mnk, any).stages["y"] = tile;
    Knobs rows = tile;
    rows.tail.erase("N");
    add("matmul_narrow_rows", matmul, mnk, any).stages["y"] = rows;
    // More bodies than may be made.
    Knobs many = tile;
    many.micro["M"] = 13;
    add("matmul_narrow_many", matmul, mnk, any).stages["y"] = many;
    Knobs packed = tile;
    packed.block = {{"N", 6 * L}}, packed.k = {{"K", 3}}, packed.parallel = {"block.N"};
    packed.pack["w"] = {"block.N", {{"N", 3 * L, false}, {"K", 0, false}, {"N", 3 * L, true}}};
    add("matmul_narrow_packed", matmul, mnk, any).stages["y"] = packed;
    Knobs apart = packed;
    apart.block["N"] = 4 * L + 1, apart.pack.clear();
    add("matmul_narrow_apart", matmul, mnk, any).stages["y"] = apart;
    for (int64_t n : {2 * L, 3 * L + 1, 7 * L - 1})
        add("matmul_narrow_" + std::to_string(n), bind_extents(matmul, {{"M", 6}, {"N", n}}), {"K"}, {{0}, {7}}).stages["y"] = packed;
    if (L < 8) return;  // no such instruction where vectors are that short
    Case &bytes = add("matmul_narrow_bytes", library::matmul_u8s8({}), mnk, {{1, 1, 1}, {3, L + 1, 8}, {6, 5 * L - 1, 7}});
    bytes.stages["y"] = tile, bytes.stages["y"].instruction = "dot4";
}

void NarrowCases::placed() {
    Case &linear = add("linear_gelu_narrow", library::linear_gelu({}), {"M", "N", "K"},
                       {{0, 5, 3}, {3, 0, 2}, {1, 1, 1}, {4, 3 * L, 0}, {5, 3 * L + 1, 5}, {7, 5 * L - 1, 3}});
    linear.stages["y"].micro = {{"N", 2 * L}}, linear.stages["y"].levels["tile"] = {{"M", 4}}, linear.stages["y"].vector = {{"N", L}};
    linear.stages["y"].loops = {"micro.N", "tile.M"}, linear.stages["y"].tail = {{"N", Tail::narrow}};
    linear.stages["acc"].place = at("y", "tile"), linear.stages["acc"].micro = {{"M", 4}, {"N", 2 * L}};
    linear.stages["acc"].vector = {{"N", L}}, linear.stages["acc"].tail = {{"M", Tail::narrow}};
    linear.stages["acc"].pack["w"] = {"root", {{"N", 2 * L, false}, {"K", 0, false}, {"N", 2 * L, true}}};
    linear.stages["acc.w.packed"].place = at("y", "micro.N");
    Case &heads = add("attention_narrow", library::attention({}), {"H", "S", "T", "D", "E"},
                      {{1, 1, 1, 1, 1}, {2, 0, 3, 2, 2}, {1, 2 * L + 1, 7, 3, 2}, {1, 5 * L - 1, 17, 3, L - 1}, {2, 13, 9, 4, L + 1}});
    const std::string softmax = "online_softmax";
    heads.stages["o"].block = {{"S", 3 * L}}, heads.stages["o"].vector = {{"E", L}};
    heads.stages[softmax].place = at("o", "block"), heads.stages[softmax].split["T"] = {Split::How::online, 8};
    heads.stages[softmax].micro = {{"S", 3 * L}}, heads.stages[softmax].vector = {{"S", L}, {"E", L}};
    heads.stages[softmax].tail = {{"S", Tail::narrow}};
    heads.stages["scaled"].place = at("o", "block"), heads.stages["scaled"].layout = {{"D"}, {"S"}};
    heads.stages["scores"].micro = {{"S", 3 * L}, {"T", 3}}, heads.stages["scores"].layout = {{"T"}, {"S"}};
    heads.stages["scores"].tail = {{"T", Tail::narrow}};
    heads.stages[softmax + ".chunk.acc"].micro = {{"S", 5}, {"E", 2 * L}};
    heads.stages[softmax + ".chunk.acc"].tail = {{"S", Tail::narrow}, {"E", Tail::narrow}};
    for (const std::string stage : {"scores", "chunk.m", "chunk.p", "chunk.l", "chunk.acc"}) {
        const std::string name = stage == "scores" ? stage : softmax + "." + stage;
        heads.stages[name].place = at(softmax, "T.o");
        heads.stages[name].vector = {{stage == "chunk.acc" ? "E" : "S", L}};
    }
}

void NarrowCases::convolutions() {
    const Options same{{"stride", 1}, {"padding", 1}, {"dilation", 1}};
    Case &image = add("conv2d_narrow", library::conv2d_nhwc({}, same), {"N", "H", "W", "C", "R", "S", "O"},
                      {{1, 1, 1, 1, 1, 1, 1}, {1, 3, 4, 2, 3, 3, L + 1}, {2, 5, 9, 3, 3, 3, 2 * L - 1}, {1, 7, 8, 0, 3, 3, 3 * L}});
    image.stages["y"].micro = {{"P", 2}, {"Q", 5}, {"O", 2 * L}}, image.stages["y"].vector = {{"O", L}};
    for (const char *dim : {"P", "Q", "O"}) image.stages["y"].tail[dim] = Tail::narrow;
    image.stages["padded"].place = Place{Place::Kind::inlined, "", ""};
}

}  // namespace

std::vector<Case> narrow_cases(int64_t lanes) { return NarrowCases(lanes).all; }

}  // namespace tessera::test
