#include "support/text/span.h"

#include <mutex>
#include <set>

#include "support/text/printable.h"

namespace tessera {

static const char *kept(std::string_view name) {
    static std::mutex mutex;
    static std::set<std::string, std::less<>> names;
    const std::lock_guard lock(mutex);
    auto it = names.find(name);
    if (it == names.end()) it = names.emplace(name).first;
    return it->c_str();
}

Span::Span(std::string_view file_name, uint32_t line_number) : file(kept(file_name)), line(line_number) {}

std::string Span::file_name() const {
    const std::string_view all = file;
    return printable(all.substr(all.find_last_of("/\\") + 1));
}

std::string Span::text() const { return *this ? file_name() + ":" + std::to_string(line) : ""; }

static Span &here() {
    thread_local Span span;
    return span;
}

SpanScope::SpanScope(const Span &span) : before_(here()) { here() = span; }
SpanScope SpanScope::entered(const Span &where) { return SpanScope(here() ? here() : where); }
SpanScope::~SpanScope() { here() = before_; }
const Span &SpanScope::current() { return here(); }

}  // namespace tessera
