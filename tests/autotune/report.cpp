#include "autotune/report/report.h"

#include <catch2/catch.hpp>

#include "compiler/lower/lower.h"
#include "tests/autotune/kernels.h"

namespace tessera::test_report {

using namespace tessera::test;

static Trial trial(int64_t number, Verdict verdict, double ratio, const std::string &message) {
    Trial t;
    t.number = number, t.origin = number ? "sample" : "base", t.resolved = "sha256:" + std::to_string(number);
    t.measurement.verdict = verdict, t.measurement.message = message;
    t.measurement.ratio = ratio, t.measurement.lower = ratio * 0.99, t.measurement.upper = ratio * 1.01;
    t.draft = 1e-5, t.score = ratio;
    return t;
}

TEST_CASE("a report is one page that needs nothing else, and what it quotes is escaped") {
    CampaignResult r;
    r.base.program = lower(library::matmul({}), {}, target_named("avx2"));
    r.base.resolved = "sha256:0", r.base.features.bound = 1e-6;
    r.best = r.base;
    r.best.resolved = "sha256:2";
    r.base_seconds = 1e-5, r.improved = true;
    r.measurement.verdict = Verdict::measured, r.measurement.ratio = 2, r.measurement.lower = 1.9, r.measurement.upper = 2.1;
    r.trials = {trial(0, Verdict::measured, 1, ""), trial(1, Verdict::crashed, 0, "<script>alert('x')</script>"),
                trial(2, Verdict::measured, 2.02, ""), trial(3, Verdict::slow, 0.4, "")};
    r.ablations = {{{{"y", "micro"}}, 1.5}, {{{"y", "pack"}}, 0}};
    Work work;
    work.operations = 1e9, work.bytes = 1e6;
    Report report{"matmul/<b>",
                  "matmul/avx2",
                  r,
                  target_named("avx2"),
                  1,
                  work,
                  "/stages/y/micro/M   4 -> 6\n",
                  "schedules/a&b.json",
                  {{"machine", "a \"processor\""}}};
    const std::string page = report_page(report);
    CHECK_THAT(page, Catch::StartsWith("<!DOCTYPE html>") && Catch::EndsWith("</html>\n"));
    for (const char *part : {"matmul/&lt;b&gt;", "&lt;script&gt;alert(&#39;x&#39;)", "schedules/a&amp;b.json", "a &quot;processor&quot;",
                             "micro/M   4 -&gt; 6", "the others need it", "1 crashed", "Roofline", "Predicted against measured",
                             "prefers-color-scheme: dark", "circle class=\"winner\"", "for m &lt; |M|", "2.000"})
        CHECK_THAT(page, Catch::Contains(part));
    for (const char *part : {"<script", "http:", "https:", "src=", "href=", "url(", "@import"}) CHECK_THAT(page, !Catch::Contains(part));

    CHECK_THAT(page, !Catch::Contains("Stopped"));

    r.improved = false, r.stopped = true;
    r.trials.resize(1);
    report.work.operations.reset();
    CHECK_THAT(report_page(report),
               Catch::Contains("<p>Stopped after 1 trials. Nothing that is surely faster was found.") && !Catch::Contains("Roofline"));
}

}  // namespace tessera::test_report
