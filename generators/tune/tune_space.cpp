#include "generators/tune/tune_space.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include <fmt/format.h>

#include "autotune/space/decisions_from_schedule.h"
#include "support/text/error.h"
#include "support/text/shortened.h"

namespace tessera {

// Every answer as likely as any other.
static Choose uniform(RandomNumbers &random) {
    return [&random](const Decision &d) { return static_cast<size_t>(random.below(static_cast<int64_t>(d.answers.size()))); };
}

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
            realize(task.space, recording(uniform(random), trace, &asked));
        } catch (const UserError &error) {  // a restriction that these answers do not go with
            if (is_authors(error)) throw;
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

static std::string text_of(const Restrictions &restrictions) {
    std::vector<std::string> all;
    for (const auto &[name, values] : restrictions) all.push_back(name + "=" + join(values, ","));
    return join(all, " ");
}

// Those that begin with it, and otherwise the one that is nearest.
static std::string meant_by(const std::string &name, const std::set<std::string> &called) {
    std::vector<std::string> longer;
    for (const std::string &one : called)
        if (one.starts_with(name + ".")) longer.push_back("'" + one + "'");
    return longer.empty() ? did_you_mean(name, {called.begin(), called.end()}) : fmt::format(" Did you mean {}?", join(longer, " or "));
}

// What one says may leave another without an answer. The walks are those of a search: its samples, and the base.
static void check_contradictions(const CampaignTask &task) {
    RandomNumbers random(1);
    std::vector<Choose> walks = {most_likely};
    if (task.base) walks.push_back(decisions_from_schedule(*task.base, most_likely));
    for (int i = 0; i < 400; i++) walks.push_back(i % 2 ? uniform(random) : sampling(random));
    std::string last;
    for (const Choose &walk : walks) try {
            realize(task.space, walk);
            return;
        } catch (const UserError &error) {
            if (is_authors(error)) throw;
            last = error.message();
        }
    throw UserError(
        "tune.space",
        fmt::format("--space '{}': no schedule satisfies all of these. Of the last one that was tried: {} Allow more answers, or leave a "
                    "restriction out; --dry-run lists the answers.",
                    text_of(task.space.restrictions), last));
}

void check_restrictions(const CampaignTask &task) {
    if (task.space.restrictions.empty()) return;
    RandomNumbers random(1);
    std::map<std::string, bool> met;
    std::vector<std::string> names;
    std::set<std::string> called;
    SearchSpace open = task.space;
    open.restrictions.clear();
    // As --dry-run walks, and as a search does. Some answers come up only after what another restriction says.
    constexpr int walks = 600;
    for (int i = 0; i < walks; i++) {
        Trace trace;
        std::vector<Decision> asked;
        try {
            realize(i < walks / 3 ? task.space : open, recording(i % 2 ? uniform(random) : sampling(random), trace, &asked));
        } catch (const UserError &error) {  // what was asked before counts
            if (is_authors(error)) throw;
        }
        for (const Decision &d : asked) {
            if (std::find(names.begin(), names.end(), d.name()) == names.end()) names.push_back(d.name());
            called.insert({d.name(), d.knob});
            for (const std::string &name : {d.name(), d.knob})
                if (auto r = task.space.restrictions.find(name); r != task.space.restrictions.end())
                    for (const Answer &a : d.answers)
                        met[name] |= std::find(r->second.begin(), r->second.end(), a.value) != r->second.end();
        }
    }
    const std::string known = first_of(names, 12);
    for (const auto &[name, values] : task.space.restrictions)
        if (!met[name])
            throw UserError("tune.space",
                            fmt::format("--space '{}={}': no decision {}; the decisions are {}.{} --dry-run lists their answers.", name,
                                        join(values, ","), called.count(name) ? "has that answer" : "is called so", known,
                                        called.count(name) ? "" : meant_by(name, called)));
    check_contradictions(task);
}

}  // namespace tessera
