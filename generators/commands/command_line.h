// What the command line is made of: commands, their options, and what was given. The one file that sees the library underneath (CLI11)
// is command_line.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tessera {

// An option or an argument of a command. Each call says one more thing of it.
class CommandOption {
public:
    explicit CommandOption(CLI::Option *option) : option_(option) {}

    // What the help calls its value: "FILE".
    CommandOption &takes(const std::string &what);
    CommandOption &required(bool is_required = true);
    // Shows the variable's present value in the help, or these words.
    CommandOption &shows_default();
    CommandOption &shows_default(const std::string &words);
    // Replaces the meaning that it was added with.
    CommandOption &means(const std::string &meaning);
    // Several values in one word: "stride=2,padding=3".
    CommandOption &separated_by(char separator);
    // One value each time that it is given.
    CommandOption &one_value_each();
    // Refusals of what is given. The help shows the words of one_of and the limits of in_range.
    CommandOption &one_of(const std::vector<std::string> &words);
    CommandOption &in_range(int lo, int hi);
    CommandOption &integer_in(uint64_t lo, uint64_t hi);
    CommandOption &number_in(double lo, double hi);  // which excludes nan
    CommandOption &excludes(const CommandOption &other);
    CommandOption &needs(const CommandOption &other);

private:
    CLI::Option *option_;
};

// A command's part of the command line. Variables outlive the parsing.
class CommandLine {
public:
    explicit CommandLine(CLI::App *app) : app_(app) {}

    // `name` is "--threads", "-o,--out", or of an argument "schedule".
    CommandOption option(const std::string &name, std::string &value, const std::string &meaning) const;
    CommandOption option(const std::string &name, std::vector<std::string> &values, const std::string &meaning) const;
    CommandOption option(const std::string &name, int &value, const std::string &meaning) const;
    CommandOption option(const std::string &name, int64_t &value, const std::string &meaning) const;
    CommandOption option(const std::string &name, uint64_t &value, const std::string &meaning) const;
    CommandOption option(const std::string &name, double &value, const std::string &meaning) const;
    // Seconds, in 0.000001 ..= 1e9; the help shows the present value.
    CommandOption seconds(const std::string &name, double &value, const std::string &meaning) const;
    // An enum by the words for its values, in their order.
    template <typename Enum>
    CommandOption choice(const std::string &name, Enum &value, const std::vector<std::string> &words, const std::string &meaning) const {
        return position(name, words, meaning, [&value](size_t taken) { value = static_cast<Enum>(taken); });
    }
    // "--json", or "!--unseeded" for one that sets false.
    CommandOption flag(const std::string &name, bool &value, const std::string &meaning) const;
    // One that was added before.
    CommandOption added(const std::string &name) const;

    // Once the command line was parsed: whether it names this command, and what it gives of it.
    bool is_given() const;
    bool has(const std::string &name) const;
    std::set<std::string> given() const;
    // The names of what was given, in the order of the line; one that was given twice is there twice.
    std::vector<std::string> given_in_order() const;
    // Calls this once all variables have their values, if the line names this command.
    void once_parsed(const std::function<void()> &then) const;

private:
    CommandOption position(const std::string &name, const std::vector<std::string> &words, const std::string &meaning,
                           const std::function<void(size_t)> &take) const;
    CLI::App *app_;
};

// All commands of a program.
class ProgramLine {
public:
    ProgramLine(const std::string &name, const std::string &about, const std::string &version, const std::string &footer);
    ~ProgramLine();

    CommandLine command(const std::string &name, const std::string &about);
    // Gives an exit code where --help or --version was asked for, which is answered; nothing where a command is given. UserError
    // command.unknown, command.arguments.
    std::optional<int> parse(int argc, char **argv);

private:
    std::unique_ptr<CLI::App> app_;
    std::unique_ptr<std::string> errors_ = std::make_unique<std::string>("text");

    void add_errors(const CommandLine &line);
};

}  // namespace tessera
