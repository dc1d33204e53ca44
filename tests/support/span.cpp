#include "support/text/span.h"

#include <catch2/catch.hpp>
#include <thread>

#include "support/text/error.h"
#include "words.h"

namespace tessera::test_span {

static Span called(Span caller = std::source_location::current()) {
    const SpanScope line = SpanScope::entered(caller);
    return SpanScope::current();
}

static Span called_through(Span caller = std::source_location::current()) {
    const SpanScope line = SpanScope::entered(caller);
    return called();
}

TEST_CASE("span: it is shown without the folders of its file") {
    CHECK(Span("/home/me/kernels/linear.py", 9).text() == "linear.py:9");
    CHECK(Span("C:\\kernels\\linear.py", 9).text() == "linear.py:9");
    CHECK(Span("linear.py", 9).text() == "linear.py:9");
    CHECK(Span("evil\x1b[2J.py", 9).text() == "evil\\u001b[2J.py:9");
    CHECK(Span().text().empty());
    CHECK(!Span());
    CHECK(Span(std::source_location::current()).text() == "span.cpp:" + std::to_string(__LINE__));
}

TEST_CASE("span: a function knows the line of its caller, and of the outermost one") {
    CHECK(called().line == __LINE__);
    CHECK(called_through().line == __LINE__);
    CHECK(!SpanScope::current());
}

TEST_CASE("span: a scope counts whatever functions say of their callers, the inner one first, in its thread alone") {
    const SpanScope outer(Span("outer.py", 1));
    CHECK(called().text() == "outer.py:1");
    {
        const SpanScope inner(Span("inner.py", 2));
        CHECK(called_through().text() == "inner.py:2");
    }
    CHECK(called().text() == "outer.py:1");
    bool is_there = true;
    std::thread([&] { is_there = static_cast<bool>(SpanScope::current()); }).join();
    CHECK(!is_there);
}

TEST_CASE("span: the name of a file is kept") {
    std::string name = "linear.py";
    const Span span(name, 3);
    name = "changed";
    CHECK(span.text() == "linear.py:3");
    CHECK(span == Span("linear.py", 3));
    CHECK(!(span == Span("linear.py", 4)));
}

TEST_CASE("span: an error begins with the line, and its message does not") {
    const SpanScope line(Span("linear.py", 9));
    const UserError error("shape.dot", "x[M, K] and w[J, N] share no dim.");
    CHECK(std::string(error.what()) == "linear.py:9: error[shape.dot]: x[M, K] and w[J, N] share no dim.");
    CHECK(error.words() == "error[shape.dot]: x[M, K] and w[J, N] share no dim.");
    CHECK(error.message() == "x[M, K] and w[J, N] share no dim.");
    CHECK(error.report() == error.what());
}

TEST_CASE("span: an error of a stage says below itself where that is declared") {
    UserError error("schedule.unknown-dim", "linear.acc has no dim 'H'.");
    CHECK(error.report() == error.what());
    error.about("acc", Span("linear.cpp", 9)).about("other", Span("other.cpp", 1));
    CHECK(error.stage() == "acc");
    CHECK(std::string(error.what()) == "error[schedule.unknown-dim]: linear.acc has no dim 'H'.");
    CHECK(error.report() == "error[schedule.unknown-dim]: linear.acc has no dim 'H'.\n  'acc' is declared at linear.cpp:9.");
}

}  // namespace tessera::test_span
