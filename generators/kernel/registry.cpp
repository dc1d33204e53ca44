#include "generators/kernel/registry.h"

#include <algorithm>
#include <exception>
#include <new>

#include "support/text/error.h"

namespace tessera {

Registry &Registry::add(const std::string &name, const std::string &summary, std::function<Algorithm(const Numerics &)> make) {
    return add(name, summary, {}, [make = std::move(make)](const Numerics &numerics, const Options &) { return make(numerics); });
}

Registry &Registry::add(const std::string &name, const std::string &summary, std::vector<Option> options,
                        std::function<Algorithm(const Numerics &, const Options &)> make) {
    entries_.push_back({name, summary, std::move(options), std::move(make)});
    return *this;
}

Registry &Registry::add_schedule(std::function<Schedule()> make) {
    schedules_.push_back(std::move(make));
    return *this;
}

void Registry::check() const {
    const std::vector<Entry> sorted = entries();
    for (size_t i = 1; i < sorted.size(); i++)
        if (sorted[i].name == sorted[i - 1].name)
            throw UserError(
                "generator.duplicate",
                "algorithm '" + sorted[i].name + "': expected one registration of each name; got two. Give one of them another name.");
}

static constexpr const char *unknown_algorithm = "generator.unknown-algorithm", *what_there_is = "; the algorithms are ";

std::string told_again(const UserError &error) {
    const std::string all = error.what();
    return error.id() == unknown_algorithm ? all.substr(0, all.find(what_there_is)) + "." : all;
}

const Registry::Entry &Registry::find(const std::string &name) const {
    std::vector<std::string> names;
    for (const Entry &entry : entries_) {
        if (entry.name == name) return entry;
        names.push_back(entry.name);
    }
    std::sort(names.begin(), names.end());
    throw UserError(unknown_algorithm, "there is no algorithm '" + name + "'" + what_there_is + join(names) + "." +
                                           did_you_mean(name, names) + " One of your own is registered in a generator of your own.");
}

// What `make` gives. It is the author's code, so what it throws is a mistake there, unless Tessera says that it is its own.
template <typename Make>
static auto built(const std::string &what, Make make) {
    auto fail = [&](const std::string &words) {
        return UserError("generator.builder",
                         what + ": expected the function that builds it to return it or to throw a tessera::UserError; it threw " + words +
                             ". Correct it in the generator's source.");
    };
    try {
        return make();
    } catch (const UserError &) { throw; } catch (const InternalError &) {
        throw;
    } catch (const std::bad_alloc &) { throw; } catch (const std::exception &error) {
        throw fail(std::string("'") + error.what() + "'");
    } catch (...) { throw fail("what is no std::exception"); }
}

Algorithm Registry::make(const std::string &name, const Numerics &numerics, const Options &options) const {
    const Entry &entry = find(name);
    const Options complete = complete_options(name, entry.options, options);
    Algorithm algorithm = built("algorithm '" + name + "'", [&] { return entry.make(numerics, complete); });
    if (algorithm.name != name)
        throw UserError("generator.name", "algorithm '" + name + "': expected it to carry the name that it is registered by; got '" +
                                              algorithm.name + "'. Register it by that name, or build it with the other.");
    return algorithm;
}

std::vector<Registry::Entry> Registry::entries() const {
    std::vector<Entry> sorted = entries_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Entry &a, const Entry &b) { return a.name < b.name; });
    return sorted;
}

Library Registry::library(const std::vector<std::filesystem::path> &folders) const {
    Library library;
    for (const auto &make : schedules_) library.add(built("a registered schedule", make));
    for (const std::filesystem::path &folder : folders) library.add_folder(folder);
    return library;
}

}  // namespace tessera
