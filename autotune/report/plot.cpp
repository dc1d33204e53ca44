#include "autotune/report/plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tessera {

namespace {

constexpr double width = 720, height = 380, left = 64, right = 96, top = 12, bottom = 48;

class Axis {
public:
    Axis(bool logarithmic, double from, double to) : log_(logarithmic), from_(from), to_(to) {}

    bool shows(double v) const { return std::isfinite(v) && (!log_ || v > 0); }
    void include(double v) {
        if (!shows(v)) return;
        low_ = std::min(low_, scaled(v)), high_ = std::max(high_, scaled(v));
    }
    bool empty() const { return low_ > high_; }
    // Some room around what it has to show.
    void finish() {
        const double room = high_ > low_ ? 0.06 * (high_ - low_) : log_ ? 0.3 : std::max(0.1 * std::abs(high_), 0.5);
        low_ -= room, high_ += room;
    }
    double at(double v) const { return from_ + (scaled(v) - low_) / (high_ - low_) * (to_ - from_); }

    std::vector<double> ticks() const {
        std::vector<double> all;
        if (log_) {
            const bool fine = high_ - low_ < 1.7;
            for (double decade = std::floor(low_); decade <= high_; decade++)
                for (double digit : {1, 2, 5})
                    if (const double v = std::pow(10, decade) * digit; (fine || digit == 1) && scaled(v) >= low_ && scaled(v) <= high_)
                        all.push_back(v);
            return all;
        }
        const double raw = (high_ - low_) / 6, decade = std::pow(10, std::floor(std::log10(raw)));
        const double step = decade * (raw / decade < 1.5 ? 1 : raw / decade < 3.5 ? 2 : raw / decade < 7.5 ? 5 : 10);
        for (double n = std::ceil(low_ / step); n * step <= high_; n++) all.push_back(n * step);
        return all;
    }

private:
    bool log_;
    double from_, to_, low_ = 1e300, high_ = -1e300;
    double scaled(double v) const { return log_ ? std::log10(v) : v; }
};

std::string number_text(double v) {
    return std::abs(v) < 1e-12 ? "0" : std::abs(v) >= 1e5 || std::abs(v) < 1e-4 ? fmt::format("{:.0e}", v) : fmt::format("{:.4g}", v);
}

}  // namespace

std::string escaped(const std::string &text) {
    std::string safe;
    for (char c : text) {
        if (c == '&') safe += "&amp;";
        else if (c == '<') safe += "&lt;";
        else if (c == '>') safe += "&gt;";
        else if (c == '"') safe += "&quot;";
        else if (c == '\'') safe += "&#39;";
        else if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) safe += "\xEF\xBF\xBD";
        else safe += c;
    }
    return safe;
}

std::string svg_of(const Plot &plot) {
    Axis x(plot.log_x, left, width - right), y(plot.log_y, height - bottom, top);
    auto shown = [&](double a, double b) { return x.shows(a) && y.shows(b); };
    auto has_interval = [&](const PlotPoint &p) { return p.upper > p.lower && y.shows(p.lower) && y.shows(p.upper); };
    for (const PlotPoint &p : plot.points)
        if (shown(p.x, p.y)) {
            x.include(p.x), y.include(p.y);
            if (has_interval(p)) y.include(p.lower), y.include(p.upper);
        }
    for (const PlotLine &l : plot.lines)
        for (const auto &[a, b] : l.points)
            if (shown(a, b)) x.include(a), y.include(b);
    if (x.empty() || y.empty()) return "";
    x.finish(), y.finish();
    std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width, height, escaped(plot.name));
    for (double v : x.ticks()) {
        svg += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", x.at(v), top, height - bottom);
        svg += fmt::format("<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", x.at(v), height - bottom + 16,
                           number_text(v));
    }
    for (double v : y.ticks()) {
        svg += fmt::format("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", left, width - right, y.at(v));
        svg += fmt::format("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", left - 8, y.at(v) + 4,
                           number_text(v));
    }
    svg += fmt::format("<text class=\"axis\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n", (left + width - right) / 2, height - 10,
                       escaped(plot.x_name));
    svg += fmt::format("<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(14 {}) rotate(-90)\">{}</text>\n",
                       (top + height - bottom) / 2, escaped(plot.y_name));
    std::vector<double> labelled;  // heights
    for (const PlotLine &l : plot.lines) {
        std::string path;
        double end_x = 0, end_y = 0;
        for (const auto &[a, b] : l.points)
            if (shown(a, b))
                end_x = x.at(a), end_y = y.at(b), path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", end_x, end_y);
        if (path.empty()) continue;
        svg += fmt::format("<path class=\"line {}\" d=\"{}\"/>", escaped(l.mark), path);
        if (l.label.empty()) continue;
        // Labels of lines that end at one height stand below each other.
        constexpr double line_height = 14;
        while (std::any_of(labelled.begin(), labelled.end(), [&](double other) { return std::abs(other - end_y) < line_height; }))
            end_y += line_height / 2;
        labelled.push_back(end_y);
        svg += fmt::format("<text class=\"end {}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", escaped(l.mark), end_x + 8, end_y + 4,
                           escaped(l.label));
    }
    for (const PlotPoint &p : plot.points)
        if (shown(p.x, p.y) && has_interval(p))
            svg += fmt::format("<line class=\"interval {0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{3:.1f}\"/>\n",
                               escaped(p.mark), x.at(p.x), y.at(p.lower), y.at(p.upper));
    for (const PlotPoint &p : plot.points)
        if (shown(p.x, p.y))
            svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title></circle>\n", escaped(p.mark),
                               x.at(p.x), y.at(p.y), escaped(p.label));
    return svg + "</svg>\n";
}

}  // namespace tessera
