#include "generators/commands/cost_model_command.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "costmodel/model/counted_samples.h"
#include "costmodel/model/examples.h"
#include "support/text/error.h"

namespace tessera {

namespace {

struct ModelOptions {
    std::string what, examples, out;
};

std::vector<Example> examples_of(const ModelOptions &options) {
    if (options.examples.empty())
        throw UserError("command.arguments", "cost-model " + options.what +
                                                 ": expected a file of examples, or '-' for standard input; `records export` writes them.");
    if (options.examples == "-") return read_examples(std::cin, "standard input");
    std::ifstream in(options.examples);
    if (!in) throw UserError("examples.file", "examples '" + options.examples + "': expected to read them. Check the path.");
    return read_examples(in, options.examples);
}

int features() {
    for (const Feature &f : feature_table()) std::cout << fmt::format("{:16} {:22} {}\n", f.name, f.unit, f.meaning);
    std::cout << feature_hash() << "\n";
    return exit_ok;
}

std::map<std::string, std::vector<Example>> by_task(const std::vector<Example> &all) {
    std::map<std::string, std::vector<Example>> tasks;
    for (const Example &e : all) tasks[e.task].push_back(e);
    return tasks;
}

// What a task is of, as campaigns name it: "<algorithm>/<numerics>/<target> <shape>", less its numerics, target, threads, and which extents
// are known ahead. Tasks that differ in those alone have much the same best schedules.
std::string subject_of(const std::string &task) {
    const size_t space = task.find(' ');
    std::string shape = space == std::string::npos ? "" : task.substr(space);
    if (const size_t threads = shape.rfind("_threads"); threads != std::string::npos) shape.resize(threads);
    for (const std::string suffix : {"_partly_fixed", "_dynamic"})
        if (shape.ends_with(suffix)) shape.resize(shape.size() - suffix.size());
    return task.substr(0, std::min(task.find('/'), space)) + shape;
}

// Each task is judged by a model of all others whose algorithm or shape differs from it.
int judge(const ModelOptions &options) {
    const auto tasks = by_task(examples_of(options));
    std::cout << fmt::format("{:52} {:>5}  {:>16}  {:>31}\n", "task left out", "rows", "rank correlation", "best of the top 1, 8, 16, 64");
    auto print = [](const std::string &name, size_t rows, const char *model, const Ranking &r) {
        std::cout << fmt::format("{:52} {:5}  {:8} {:7.3f}  {:7.3f} {:7.3f} {:7.3f} {:7.3f}\n", name, rows, model, r.correlation,
                                 r.best_of[0], r.best_of[1], r.best_of[2], r.best_of[3]);
    };
    Ranking sums[2];
    size_t counts[2] = {};
    for (const auto &[name, rows] : tasks) {
        std::vector<Featured> features;
        for (const Example &e : rows) features.push_back(e.features);
        std::vector<Example> others;
        for (const auto &[other, more] : tasks)
            if (subject_of(other) != subject_of(name)) others.insert(others.end(), more.begin(), more.end());
        const auto trained = boosted_model();
        trained->update(others);
        for (int m = 0; m < (others.empty() ? 1 : 2); m++) {
            const Ranking ranking = ranking_of(m ? trained->predict(features) : roofline_model()->predict(features), rows);
            print(m ? "" : name, rows.size(), m ? "trained" : "draft", ranking);
            counts[m]++, sums[m].correlation += ranking.correlation;
            for (int k = 0; k < 4; k++) sums[m].best_of[k] += ranking.best_of[k];
        }
    }
    for (int m = 0; m < 2; m++) {
        if (counts[m] == 0) continue;
        Ranking mean = sums[m];
        mean.correlation /= static_cast<double>(counts[m]);
        for (double &best : mean.best_of) best /= static_cast<double>(counts[m]);
        print(m ? "" : "mean", counts[m], m ? "trained" : "draft", mean);
    }
    if (counts[1] == 0) std::cout << "no model was trained: that takes examples of a second algorithm or shape\n";
    return exit_ok;
}

int train(const ModelOptions &options) {
    if (options.out.empty()) throw UserError("command.arguments", "cost-model train: expected --out with the file to write.");
    std::error_code neither_or_other;
    if (std::filesystem::equivalent(options.examples, options.out, neither_or_other))
        throw UserError("command.arguments", "cost-model train: --out '" + options.out +
                                                 "' is the file of the examples, which the model would take the place of. Name another.");
    const std::vector<Example> all = examples_of(options);
    const auto model = boosted_model();
    model->update(all);
    model->save(options.out);
    std::cout << fmt::format("wrote {}: learnt from {} candidates of {} tasks\n", options.out, all.size(), by_task(all).size());
    return exit_ok;
}

}  // namespace

Command cost_model_command(ProgramLine &program) {
    auto options = std::make_shared<ModelOptions>();
    const CommandLine line =
        program.command("cost-model", "Show what cost models see, train one, or judge how well it orders tasks that it has not seen");
    line.option("what", options->what, "features, train or judge").required().one_of({"features", "train", "judge"});
    line.option("examples", options->examples, "Measurements, as `records export` writes them; '-' is standard input").takes("FILE");
    line.option("--out", options->out, "The model's file").takes("FILE");
    return {line, [=] {
                if (options->what != "train" && line.has("--out"))
                    throw UserError("command.arguments", "cost-model " + options->what + ": --out is for train. Leave it out.");
                if (options->what == "features" && line.has("examples"))
                    throw UserError("command.arguments",
                                    "cost-model features: expected no file, got '" + options->examples + "'. Leave it out.");
                return options->what == "features" ? features() : options->what == "judge" ? judge(*options) : train(*options);
            }};
}

}  // namespace tessera
