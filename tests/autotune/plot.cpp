#include "autotune/report/plot.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace tessera::test_plot {

static size_t count(const std::string &text, const std::string &part) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) n++;
    return n;
}

TEST_CASE("text is escaped for HTML") {
    CHECK(escaped("a < b && c > \"d\" 'e'") == "a &lt; b &amp;&amp; c &gt; &quot;d&quot; &#39;e&#39;");
    CHECK(escaped(std::string("\x01\n\x7f")) == "\xEF\xBF\xBD\n\xEF\xBF\xBD");
}

TEST_CASE("a plot shows what is finite, inside of its frame") {
    Plot plot{
        "a <name>",
        "x",
        "y",
        false,
        true,
        {{1, 10, "measured", "one"}, {2, 100, "measured", "<two>"}, {3, 0, "failed", "not on a logarithm"}, {NAN, 1, "failed", "nowhere"}},
        {{{{1, 10}, {2, 1e300}}, "best", "end"}}};
    plot.lines[0].points[1].second = INFINITY;
    const std::string svg = svg_of(plot);
    CHECK(count(svg, "<circle") == 2);
    CHECK(count(svg, "<title>&lt;two&gt;</title>") == 1);
    CHECK(count(svg, "aria-label=\"a &lt;name&gt;\"") == 1);
    CHECK(count(svg, "nan") + count(svg, "inf") == 0);
    CHECK(count(svg, "class=\"grid\"") >= 6);
    CHECK(svg_of({"none", "x", "y", true, true, {{0, 0, "", ""}}, {}}) == "");
    CHECK(count(svg_of({"bars", "x", "y", false, false, {{1, 2, "m", "l", 1, 3}, {2, 2, "m", "l"}}, {}}), "class=\"interval m\"") == 1);
    CHECK(count(svg_of({"one", "x", "y", false, false, {{5, 0, "m", "l"}}, {}}), "<circle") == 1);
}

}  // namespace tessera::test_plot
