#include "generators/commands/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <tuple>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera {

CommandOption &CommandOption::takes(const std::string &what) {
    option_->type_name(what);
    return *this;
}

CommandOption &CommandOption::required(bool is_required) {
    option_->required(is_required);
    return *this;
}

CommandOption &CommandOption::shows_default() {
    option_->capture_default_str();
    return *this;
}

CommandOption &CommandOption::shows_default(const std::string &words) {
    option_->default_str(words);
    return *this;
}

CommandOption &CommandOption::means(const std::string &meaning) {
    option_->description(meaning);
    return *this;
}

CommandOption &CommandOption::separated_by(char separator) {
    option_->delimiter(separator);
    return *this;
}

CommandOption &CommandOption::one_value_each() {
    option_->expected(1)->take_all();
    return *this;
}

// Says what is wrong with a text that is none of the words; "" where it is one.
static std::function<std::string(std::string &)> among(const std::vector<std::string> &words) {
    return [words](const std::string &text) -> std::string {
        const bool known = std::find(words.begin(), words.end(), text) != words.end();
        return known ? "" : "expected " + join(words, " or ") + ", got '" + text + "'";
    };
}

CommandOption &CommandOption::one_of(const std::vector<std::string> &words) {
    option_->check(CLI::Validator(among(words), "{" + join(words, ",") + "}"));
    return *this;
}

CommandOption &CommandOption::in_range(int lo, int hi) {
    option_->check(CLI::Range(lo, hi));
    return *this;
}

CommandOption &CommandOption::integer_in(uint64_t lo, uint64_t hi) {
    const auto check = [lo, hi](const std::string &text) -> std::string {
        uint64_t value = 0;
        const char *end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        const bool fits = error == std::errc() && stop == end && lo <= value && value <= hi;
        return fits ? "" : fmt::format("expected an integer in {} ..= {}, got '{}'", lo, hi, text);
    };
    option_->check(CLI::Validator(check, ""));
    return *this;
}

static bool is_number_in(const std::string &text, double lo, double hi) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end != text.c_str() && *end == 0 && lo <= value && value <= hi;
}

CommandOption &CommandOption::number_in(double lo, double hi) {
    const auto check = [lo, hi](const std::string &text) -> std::string {
        return is_number_in(text, lo, hi) ? "" : fmt::format("expected a number in {} ..= {}, got '{}'", lo, hi, text);
    };
    option_->check(CLI::Validator(check, ""));
    return *this;
}

CommandOption &CommandOption::excludes(const CommandOption &other) {
    option_->excludes(other.option_);
    return *this;
}

CommandOption &CommandOption::needs(const CommandOption &other) {
    option_->needs(other.option_);
    return *this;
}

CommandOption CommandLine::option(const std::string &name, std::string &value, const std::string &meaning) const {
    return CommandOption(app_->add_option(name, value, meaning));
}

CommandOption CommandLine::option(const std::string &name, std::vector<std::string> &values, const std::string &meaning) const {
    return CommandOption(app_->add_option(name, values, meaning));
}

CommandOption CommandLine::option(const std::string &name, int &value, const std::string &meaning) const {
    return CommandOption(app_->add_option(name, value, meaning));
}

// The library takes the nearest number that there is in place of one beyond all.
CommandOption CommandLine::option(const std::string &name, int64_t &value, const std::string &meaning) const {
    const auto check = [](const std::string &text) -> std::string {
        errno = 0;
        std::ignore = std::strtoll(text.c_str(), nullptr, 10);
        return errno != ERANGE ? "" : "expected a whole number of 64 bits, got '" + text + "'";
    };
    return CommandOption(app_->add_option(name, value, meaning)->check(CLI::Validator(check, "")));
}

CommandOption CommandLine::option(const std::string &name, uint64_t &value, const std::string &meaning) const {
    return CommandOption(app_->add_option(name, value, meaning));
}

CommandOption CommandLine::option(const std::string &name, double &value, const std::string &meaning) const {
    return CommandOption(app_->add_option(name, value, meaning));
}

CommandOption CommandLine::seconds(const std::string &name, double &value, const std::string &meaning) const {
    const auto check = [](const std::string &text) -> std::string {
        return is_number_in(text, 1e-6, 1e9) ? "" : "expected seconds, in 0.000001 ..= 1e9, got '" + text + "'";
    };
    return CommandOption(app_->add_option(name, value, meaning)->check(CLI::Validator(check, ""))->capture_default_str());
}

CommandOption CommandLine::position(const std::string &name, const std::vector<std::string> &words, const std::string &meaning,
                                    const std::function<void(size_t)> &take) const {
    const auto given = [words, take](const std::string &text) {
        take(static_cast<size_t>(std::find(words.begin(), words.end(), text) - words.begin()));
    };
    return CommandOption(app_->add_option_function<std::string>(name, given, meaning)->check(CLI::Validator(among(words), "")));
}

CommandOption CommandLine::flag(const std::string &name, bool &value, const std::string &meaning) const {
    return CommandOption(app_->add_flag(name, value, meaning));
}

CommandOption CommandLine::added(const std::string &name) const { return CommandOption(app_->get_option(name)); }

bool CommandLine::is_given() const { return app_->parsed(); }

bool CommandLine::has(const std::string &name) const { return app_->count(name) > 0; }

std::set<std::string> CommandLine::given() const {
    std::set<std::string> names;
    for (const CLI::Option *option : app_->get_options())
        if (option->count() > 0) names.insert(option->get_name());
    return names;
}

std::vector<std::string> CommandLine::given_in_order() const {
    std::vector<std::string> names;
    for (const CLI::Option *option : app_->parse_order()) names.push_back(option->get_name());
    return names;
}

void CommandLine::once_parsed(const std::function<void()> &then) const { app_->final_callback(then); }

ProgramLine::ProgramLine(const std::string &name, const std::string &about, const std::string &version, const std::string &footer)
    : app_(std::make_unique<CLI::App>(about)) {
    app_->name(name);
    app_->set_version_flag("--version", version);
    app_->footer(footer);
    app_->require_subcommand(1);
    add_errors(CommandLine(app_.get()));
}

ProgramLine::~ProgramLine() = default;

CommandLine ProgramLine::command(const std::string &name, const std::string &about) {
    const CommandLine line(app_->add_subcommand(name, about));
    add_errors(line);
    return line;
}

// What it says is read before the command line is parsed (error_form.h), whose own errors have that form too.
void ProgramLine::add_errors(const CommandLine &line) {
    line.option("--errors", *errors_, "The form of errors and notes on stderr: text, or json for programs")
        .takes("FORM")
        .one_of({"text", "json"});
}

// The first word that is not about the form of errors; "" for none.
static std::string first_word(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--errors") i++;
        else if (!word.starts_with("--errors=")) return word;
    }
    return "";
}

static std::vector<std::string> commands_of(const CLI::App &app) {
    std::vector<std::string> names;
    for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; })) names.push_back(command->get_name());
    return names;
}

static UserError unknown_command(const std::string &first, const CLI::App &app) {
    const std::vector<std::string> names = commands_of(app);
    return UserError("command.unknown",
                     app.get_name() + ": expected a command, got " + (first.empty() ? "no command" : "'" + first + "'") +
                         "; the commands are " + join(names) + "." + did_you_mean(first, names),
                     "--help describes them.");
}

// The library underneath would see --help before it finds that there is no such command.
static void check_first_is_command(int argc, char **argv, const CLI::App &app) {
    const std::string first = first_word(argc, argv);
    if (first.empty() || first.starts_with("-")) return;
    const std::vector<std::string> names = commands_of(app);
    if (std::find(names.begin(), names.end(), first) == names.end()) throw unknown_command(first, app);
}

// The library's errors in the form of all others.
static UserError command_error(const CLI::ParseError &error, const CLI::App &app, int argc, char **argv) {
    if (app.get_subcommands().empty()) return unknown_command(first_word(argc, argv), app);
    const std::string command = app.get_name() + " " + app.get_subcommands().front()->get_name();
    return UserError("command.arguments", command + ": " + error.what() + ";", command + " --help describes the arguments.");
}

// The library underneath would take the next word for the value, "--quiet" of "--out= --quiet".
static void check_values_follow(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word.starts_with("--") && word.size() > 3 && word.find('=') == word.size() - 1)
            throw UserError("command.arguments", word + ": expected a value behind '=', got nothing;",
                            "give it one, or leave the option out.");
    }
}

std::optional<int> ProgramLine::parse(int argc, char **argv) {
    check_first_is_command(argc, argv, *app_);
    check_values_follow(argc, argv);
    try {
        app_->parse(argc, argv);
    } catch (const CLI::Success &asked) {  // --help, --version
        return app_->exit(asked);
    } catch (const CLI::ParseError &error) { throw command_error(error, *app_, argc, argv); }
    return std::nullopt;
}

}  // namespace tessera
