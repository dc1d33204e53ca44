// The small texts inside a schedule's JSON and the values they stand for.
//
//   place      "root" | "inline" | "<stage>.<loop>" | "beside <stage>" | "beside <stage> in <loop>"    y.micro, y.block.N, y.N, beside y
//   axis       "<dim>" | "<dim>/<factor>" | "<dim>%<factor>"  N/48
//   loop       "<level>.<dim>" | "<dim>" | "<level>"          block.N, K.i, block
//   condition  "<dim> <relation> <int>" | "<dim> % <int> <relation> <int>" | "<feature>"
//
// Each parser gives nothing if the text does not have its form.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedules/knobs/schedule.h"

namespace tessera {

// Stages and dims both have dots in their names ("y.partial", "K.o"). `stages`, the stages that the schedule has knobs for, say
// where a stage's name ends. If none of them matches, the name of the last level says it, or else that of the last dim.
std::optional<Place> parse_place(const std::string &text, const std::set<std::string> &stages);
std::string to_string(const Place &place);

struct LoopName {
    std::string level, dim;  // level "" for the loop point by point, dim "" for a level alone
    std::string text() const { return level.empty() || dim.empty() ? level + dim : level + "." + dim; }
};

// Dims have dots in their names too ("K.o"). If the whole text is a dim, it is a loop point by point; otherwise what comes before
// the first dot is a level.
LoopName parse_loop(const std::string &text, const std::function<bool(const std::string &)> &is_dim);

// "N", "N/48", "N%48", "K%32/2".
std::optional<LayoutAxis> parse_axis(const std::string &text);
std::string to_string(const LayoutAxis &axis);
// Whether axes of one dim hold each of its indices once: the dim itself, or digits, "K/32", "K%32/2" and "K%2", in any order.
bool hold_each_index_once(const std::vector<LayoutAxis> &of_one_dim);

std::optional<Condition> parse_condition(const std::string &text);
std::string to_string(const Condition &condition);

// A schedule's name: parts of letters, digits, '_', '-', '+' and '.', none of them "." or "..", joined by '/'; at most
// 200 characters. It names a file, so nothing else is let in.
bool is_schedule_name(const std::string &name);

}  // namespace tessera
