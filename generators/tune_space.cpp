#include "generators/tune_space.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "algorithms/error.h"

namespace tessera {

void show_space(const CampaignTask &task) {
    RandomNumbers random(1);
    std::map<std::string, std::map<std::string, int>> decisions;
    std::vector<std::string> order;
    double size = 0;
    constexpr int walks = 400;
    for (int i = 0; i < walks; i++) {
        Trace trace;
        std::vector<Decision> asked;
        try {
            realize(task.space,
                    recording([&](const Decision &d) { return static_cast<size_t>(random.below(static_cast<int64_t>(d.answers.size()))); },
                              trace, &asked));
        } catch (const UserError &) {  // a restriction that these answers do not go with
            continue;
        }
        double ways = 1;
        for (const Decision &d : asked) {
            ways *= static_cast<double>(d.answers.size());
            auto [known, fresh] = decisions.try_emplace(d.name());
            if (fresh) order.push_back(d.name());
            for (const Answer &a : d.answers) known->second[a.value]++;
        }
        size += ways / walks;
    }
    for (const std::string &name : order) {
        std::vector<std::string> values;
        for (const auto &[value, count] : decisions[name]) values.push_back(value);
        std::sort(values.begin(), values.end(), [](const std::string &a, const std::string &b) {
            return std::make_pair(std::atoll(a.c_str()), a) < std::make_pair(std::atoll(b.c_str()), b);
        });
        std::cout << fmt::format("{:40} {}\n", name, join(values, " "));
    }
    std::cout << fmt::format("{} decisions; about 10^{:.0f} schedules\n", order.size(), std::log10(size));
}

void check_restrictions(const CampaignTask &task) {
    if (task.space.restrictions.empty()) return;
    RandomNumbers random(1);
    std::map<std::string, bool> met;
    std::vector<std::string> names;
    for (int i = 0; i < 200; i++) {
        Trace trace;
        std::vector<Decision> asked;
        SearchSpace open = task.space;
        open.restrictions.clear();
        realize(open, recording(sampling(random), trace, &asked));
        for (const Decision &d : asked) {
            if (std::find(names.begin(), names.end(), d.name()) == names.end()) names.push_back(d.name());
            for (const std::string &name : {d.name(), d.knob})
                if (auto r = task.space.restrictions.find(name); r != task.space.restrictions.end())
                    for (const Answer &a : d.answers)
                        met[name] |= std::find(r->second.begin(), r->second.end(), a.value) != r->second.end();
        }
    }
    constexpr size_t shown = 12;
    std::string known = join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), shown))});
    if (names.size() > shown) known += " and " + std::to_string(names.size() - shown) + " more";
    for (const auto &[name, values] : task.space.restrictions)
        if (!met[name])
            throw UserError("tune.space", "--space '" + name + "=" + join(values, ",") +
                                              "': no decision has that answer; the decisions are " + known + "." +
                                              did_you_mean(name, names) + " --dry-run lists their answers.");
}

}  // namespace tessera
