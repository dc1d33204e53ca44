// Lesson 11: extend the generator.
//
// A generator of your own knows your algorithms, and may know more: schedules, targets, cost models, decisions of the search, and
// analysers of tile programs. Each has a name, which the command line takes and `list` shows. This program is such a generator; to be
// short, it calls its own commands.
#include <cstdio>
#include <map>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "generators/generator.h"

using namespace tessera;

// y[N] = 2 x[N] + z[N]
static Algorithm doubled_add(const Numerics &numerics) {
    Builder f("doubled_add", numerics);
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), z = f.input("z", {N});  // (N), (N)
    return f.output("y", x + x + z).build();                  // (N)
}

// A target is one of Tessera's with other numbers, here the caches of a small machine. Its code is AVX2's.
static Target small_machine() {
    Target target = target_named("avx2");
    target.l2_bytes = 256 << 10, target.l3_bytes = 2 << 20;
    return target;
}

// A schedule in C++; a folder of artifacts is registered by add_schedules.
static Schedule by_eight() { return Schedule("doubled_add/avx2").stage("y", StageKnobs().vector({{"N", 8}})); }

// A cost model gives each candidate a score, the higher the faster. This one is the draft by the roofline, and learns nothing.
class ByDraft : public CostModel {
public:
    std::vector<double> predict(const std::vector<Featured> &candidates) const override {
        std::vector<double> scores;
        for (const Featured &candidate : candidates) scores.push_back(draft_score(candidate));
        return scores;
    }
    void update(const std::vector<Example> &) override {}
    void load(const std::filesystem::path &) override {}
    void save(const std::filesystem::path &) const override {}
};

// A mutator asks a decision of its own, after all others, and changes knobs by the answer.
static void on_one_thread(const Algorithm &, const Extents &, const std::function<std::string(const Decision &)> &ask,
                          KnobsByStage &stages) {
    if (ask({"y", "one_thread", {{"no", 3}, {"yes", 1}}}) == "yes") stages["y"].parallel.clear();
}

// An analyser says what somebody wants to know of a tile program.
static std::string loops_by_kind(const TileProgram &program) {
    std::map<std::string, int> counts;
    walk(program.body, [&](const TileNode &node) {
        if (const Loop *loop = std::get_if<Loop>(&node)) counts[name_of(loop->kind)]++;
    });
    std::string text;
    for (const auto &[kind, count] : counts) text += kind + " " + std::to_string(count) + "\n";
    return text;
}

// The generator's command line.
static void command(const Registry &registry, std::vector<std::string> words) {
    std::string line;
    for (const std::string &word : words) line += (line.empty() ? "" : " ") + word;
    std::printf("$ %s\n", line.c_str());
    std::fflush(stdout);
    std::vector<char *> arguments;
    for (std::string &word : words) arguments.push_back(word.data());
    const int code = generator_main(static_cast<int>(arguments.size()), arguments.data(), registry);
    std::printf("%s", code == exit_ok ? "" : "it failed\n");
}

int main() {
    Registry registry;
    registry.add("doubled_add", "y[N] = 2 x[N] + z[N]", doubled_add)
        .add_schedule(by_eight)
        .add_target("small_machine", small_machine())
        .add_cost_model("by_draft", "the roofline's order", [](const Target &) { return std::make_unique<ByDraft>(); })
        .add_mutator("one_thread", "leaves out parallel loops", on_one_thread)
        .add_analyser("loops", "loops by kind", loops_by_kind);

    // The analyser sees the tile program of the schedule that fits the target.
    command(registry, {"generator", "show", "doubled_add", "--target", "small_machine", "--quiet", "--what", "loops"});

    // The search asks the mutator's decision, after its own.
    command(registry, {"generator", "tune", "doubled_add", "--target", "small_machine", "--quiet", "--shape", "N=4096", "--model",
                       "by_draft", "--dry-run"});

    // What is wrong with a registration is said when the generator starts.
    registry.add_analyser("tiles", "a name that show knows already", loops_by_kind);
    command(registry, {"generator", "list"});
}

// Output:
// $ generator show doubled_add --target small_machine --quiet --what loops
// for 1
// vector 2
// $ generator tune doubled_add --target small_machine --quiet --shape N=4096 --model by_draft --dry-run
// y.vector                                 N none
// y.micro.N                                8 16 24 32 40 48 64
// y.block.N                                none 8 12 14 16 24 28 32 48 56 64 96 128 192 256 384 512 1024
// y.parallel                               1 2
// y.one_thread                             no yes
// y.tail.N                                 loop mask narrow
// 6 decisions; about 10^2 schedules
// $ generator list
// it failed
