// How errors and notes reach stderr: as words for people or, with --errors json, as JSON for programs. All of a generator's are printed
// here.
//
// With --errors json the last line of stderr is one JSON object where a command ends with 2 or 3. Of its fields these are always there:
//
//     kind      "error"; of notes, which may stand in lines before, "note", and of warnings "warning"
//     id        "schedule.unknown-dim"; "internal" of an error of Tessera's
//     text      the message, without the id
//
// and these where they are known:
//
//     remedy    what to do, which stands in the text too
//     stage     the stage or call that the error is about: "acc", "ffn.up.acc"
//     document  the JSON document that is wrong, as the text calls it; with it `pointer`, the place in it (RFC 6901), "" for the whole
//     span      where what it is about is declared or stands: {"file": "linear.cpp", "line": 9}
//     errors    a list of all, each with these fields, where there are several; the object has those of the first
#pragma once
#include <string>
#include <vector>

#include "support/text/error.h"
#include "support/text/note.h"

namespace tessera {

enum class ErrorForm { text, json };

// That of this process. It is read from the words of the command line, so that an error in these has it too; the last one counts.
ErrorForm error_form_of(int argc, char **argv);
void set_error_form(ErrorForm form);

void print(const UserError &error);
void print(const std::vector<UserError> &errors);  // at least one
void print(const InternalError &error);
void print(const Note &note);
void warn(const std::string &text);

}  // namespace tessera
