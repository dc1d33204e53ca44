#include "generators/cost_model_command.h"

#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "algorithms/error.h"
#include "costmodel/examples.h"

namespace tessera {

namespace {

struct ModelOptions {
    std::string what, examples, out;
};

std::vector<Example> examples_of(const ModelOptions &options) {
    if (options.examples.empty()) throw UserError("command.arguments", "cost-model " + options.what + ": expected a file of examples, or '-' for standard input; `records export` writes them.");
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

// Each task is judged by a model of all others whose algorithm and shape differ from it.
int judge(const ModelOptions &options) {
    const auto tasks = by_task(examples_of(options));
    const bool trainable = tasks.size() > 1;
    std::cout << fmt::format("{:52} {:>5}  {:>16}  {:>31}\n", "task left out", "rows", "rank correlation", "best of the top 1, 8, 16, 64");
    auto print = [](const std::string &name, size_t rows, const char *model, const Ranking &r) {
        std::cout << fmt::format("{:52} {:5}  {:8} {:7.3f}  {:7.3f} {:7.3f} {:7.3f} {:7.3f}\n", name, rows, model, r.correlation, r.best_of[0], r.best_of[1], r.best_of[2], r.best_of[3]);
    };
    Ranking sums[2];
    for (const auto &[name, rows] : tasks) {
        std::vector<Featured> features;
        for (const Example &e : rows) features.push_back(e.features);
        std::vector<Example> others;
        for (const auto &[other, more] : tasks)
            if (other != name) others.insert(others.end(), more.begin(), more.end());
        const auto trained = boosted_model();
        if (trainable) trained->update(others);
        for (int m = 0; m < (trainable ? 2 : 1); m++) {
            const Ranking ranking = ranking_of(m ? trained->predict(features) : roofline_model()->predict(features), rows);
            print(m ? "" : name, rows.size(), m ? "trained" : "draft", ranking);
            sums[m].correlation += ranking.correlation / static_cast<double>(tasks.size());
            for (int k = 0; k < 4; k++) sums[m].best_of[k] += ranking.best_of[k] / static_cast<double>(tasks.size());
        }
    }
    print("mean", tasks.size(), "draft", sums[0]);
    if (trainable) print("", tasks.size(), "trained", sums[1]);
    else std::cout << "no model was trained: that takes examples of a second task\n";
    return exit_ok;
}

int train(const ModelOptions &options) {
    if (options.out.empty()) throw UserError("command.arguments", "cost-model train: expected --out with the file to write.");
    const std::vector<Example> all = examples_of(options);
    const auto model = boosted_model();
    model->update(all);
    model->save(options.out);
    std::cout << fmt::format("wrote {}: learnt from {} candidates of {} tasks\n", options.out, all.size(), by_task(all).size());
    return exit_ok;
}

}  // namespace

Command cost_model_command(CLI::App &app) {
    auto options = std::make_shared<ModelOptions>();
    CLI::App *line = app.add_subcommand("cost-model", "Show what cost models see, train one, or judge how well it orders tasks that it has not seen");
    line->add_option("what", options->what, "features, train or judge")->required()->check(CLI::IsMember({"features", "train", "judge"}));
    line->add_option("examples", options->examples, "Measurements, as `records export` writes them; '-' is standard input")->type_name("FILE");
    line->add_option("--out", options->out, "The model's file")->type_name("FILE");
    return {line, [=] { return options->what == "features" ? features() : options->what == "judge" ? judge(*options) : train(*options); }};
}

}  // namespace tessera
