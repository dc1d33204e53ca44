// A diagram as inline SVG: points and lines over two axes. Colours are the page's, by class; what a point is shows where the pointer
// rests on it.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tessera {

// For text in HTML and SVG, and for attributes in double quotes. Control characters become U+FFFD.
std::string escaped(const std::string &text);

struct PlotPoint {
    double x = 0, y = 0;
    std::string mark, label;      // its class; what it is
    double lower = 0, upper = 0;  // an interval of y, where upper > lower
};

struct PlotLine {
    std::vector<std::pair<double, double>> points;
    std::string mark, label;  // the label stands at its end
};

struct Plot {
    std::string name;  // for those who cannot see it
    std::string x_name, y_name;
    bool log_x = false, log_y = false;  // then what is not above 0 is left out
    std::vector<PlotPoint> points;
    std::vector<PlotLine> lines;
};

// Values that are not finite are left out. "" where nothing is left.
std::string svg_of(const Plot &plot);

}  // namespace tessera
