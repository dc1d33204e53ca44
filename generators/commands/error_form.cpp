#include "generators/commands/error_form.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "support/files/json_text.h"

namespace tessera {

using nlohmann::ordered_json;

static ErrorForm &form() {
    static ErrorForm form = ErrorForm::text;
    return form;
}

void set_error_form(ErrorForm chosen) { form() = chosen; }

ErrorForm error_form_of(int argc, char **argv) {
    const std::string option = "--errors";
    std::string value;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word.starts_with(option + "=")) value = word.substr(option.size() + 1);
        if (word == option && i + 1 < argc) value = argv[i + 1];
    }
    return value == "json" ? ErrorForm::json : ErrorForm::text;
}

static ordered_json line_of(const std::string &kind, const std::string &id, const std::string &text) {
    ordered_json line = {{"kind", kind}};
    if (!id.empty()) line["id"] = id;
    line["text"] = text;
    return line;
}

static ordered_json line_of(const UserError &error) {
    ordered_json line = line_of("error", error.id(), error.message());
    if (!error.remedy().empty()) line["remedy"] = error.remedy();
    if (!error.stage().empty()) line["stage"] = error.stage();
    if (!error.document().empty()) line["document"] = error.document(), line["pointer"] = error.pointer();
    if (error.span()) line["span"] = {{"file", error.span().file_name()}, {"line", error.span().line}};
    return line;
}

static void print(const ordered_json &line) { std::cerr << lossy_json_text(line) << "\n"; }
static bool is_json() { return form() == ErrorForm::json; }

void print(const UserError &error) { print(std::vector<UserError>{error}); }

void print(const std::vector<UserError> &errors) {
    if (!is_json()) {
        for (const UserError &error : errors) std::cerr << error.report() << "\n";
        return;
    }
    ordered_json line = line_of(errors.front());
    if (errors.size() > 1)
        for (const UserError &error : errors) line["errors"].push_back(line_of(error));
    print(line);
}

void print(const InternalError &error) {
    if (is_json()) print(line_of("error", "internal", error.what()));
    else std::cerr << error.what() << "\n";
}

void print(const Note &note) {
    if (is_json()) print(line_of("note", note.id, note.text));
    else std::cerr << "note: " << note.text << "\n";
}

void warn(const std::string &text) {
    if (is_json()) print(line_of("warning", "", text));
    else std::cerr << "warning: " << text << "\n";
}

}  // namespace tessera
