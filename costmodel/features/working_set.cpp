#include "costmodel/features/working_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tessera {

namespace {

constexpr double line_bytes = 64, page_bytes = 4 << 10;
constexpr double held_pages = 64;  // by the first level of translation
constexpr double crowding = 0.8;   // of a set's lines that are too many, most are still there when they are used again
// In the first level a page, since it is looked up before the address is translated; of the second level what most have.
constexpr std::array<double, 2> way_bytes = {4 << 10, 64 << 10};

// Rows of so many bytes, by axis how many and how far apart, innermost axis last.
struct EqualRows {
    double bytes = 0;
    std::vector<double> counts, steps;
};

// In whole lines, or pages; rows without one between them are one.
EqualRows in_units(std::vector<double> counts, std::vector<double> steps, double element, double unit) {
    double row = element;
    for (; !counts.empty() && steps.back() <= std::max(row, unit); counts.pop_back(), steps.pop_back())
        row += (counts.back() - 1) * steps.back();
    return {std::ceil(row / unit) * unit, std::move(counts), std::move(steps)};
}

double bytes_of(const EqualRows &rows) {
    double bytes = rows.bytes;
    for (double count : rows.counts) bytes *= count;
    return bytes;
}

// What they need of a cache whose ways are so long: as many ways as the fullest sets have lines.
double needs_of(const EqualRows &rows, double way) {
    double covered = std::min(rows.bytes, way);  // of one way, by all rows
    for (size_t a = rows.counts.size(); a-- > 0;) {
        const double step = std::fmod(rows.steps[a], way), shift = std::min(step, way - step);
        const double apart = static_cast<double>(std::gcd(static_cast<int64_t>(step), static_cast<int64_t>(way)));
        const double places = std::min(rows.counts[a], way / apart);
        covered = std::min(way, covered + (places - 1) * std::min(covered, shift));
    }
    const double bytes = bytes_of(rows), load = bytes / covered;
    return load > 1 ? std::max(bytes, crowding * load * way) : bytes;
}

}  // namespace

std::vector<Touched> touched_by(const Walk &walk) {
    const size_t axes = walk.extents.size();
    std::vector<Touched> all(walk.loops.size() + 1);
    std::vector<double> spans(axes, 1), iterations(axes, 1), strides(axes, walk.element);
    for (size_t a = axes; a-- > 1;) strides[a - 1] = strides[a] * walk.extents[a];
    for (size_t first = walk.loops.size() + 1; first-- > 0;) {
        for (size_t a = 0; a < axes && first < walk.loops.size(); a++)
            if (const double moved = walk.movement[first * axes + a]; moved != 0)
                spans[a] += moved, iterations[a] *= walk.loops[first].count;
        std::vector<double> counts(axes), steps(axes);
        for (size_t a = 0; a < axes; a++) {
            const double span = std::max(1.0, std::min(spans[a], walk.extents[a]));
            counts[a] = std::max(1.0, std::min(span, iterations[a]));
            steps[a] = counts[a] > 1 ? strides[a] * (span - 1) / (counts[a] - 1) : 0;
        }
        const EqualRows rows = in_units(counts, steps, walk.element, line_bytes);
        all[first].span = walk.element;
        for (size_t a = 0; a < axes; a++) all[first].span += (std::max(1.0, std::min(spans[a], walk.extents[a])) - 1) * strides[a];
        all[first].bytes = bytes_of(rows), all[first].rows = all[first].bytes / rows.bytes;
        all[first].pages = bytes_of(in_units(std::move(counts), std::move(steps), walk.element, page_bytes)) / page_bytes;
        for (size_t level = 0; level < way_bytes.size(); level++) all[first].needs[level] = needs_of(rows, way_bytes[level]);
    }
    return all;
}

namespace {

// The bytes of a buffer that one access touches or several that touch much the same.
struct Stream {
    size_t buffer = 0, node = 0;
    double middle = 0;
    double likely = 0, always = 0;  // what is brought, and what would be if all conditions held
    Touched touched;
};

// The stream that the access touches while its loops from one on run, as large as the largest of its accesses'.
Stream &stream_of(std::vector<Stream> &streams, const Access &access, size_t first, size_t node) {
    const Touched &own = access.touched[first];
    for (Stream &stream : streams) {
        if (stream.buffer != access.buffer || stream.node != node ||
            std::abs(stream.middle - access.middle) >= (stream.touched.span + own.span) / 4)
            continue;
        Touched &most = stream.touched;
        most.bytes = std::max(most.bytes, own.bytes), most.pages = std::max(most.pages, own.pages);
        most.span = std::max(most.span, own.span), most.rows = std::max(most.rows, own.rows);
        for (size_t level = 0; level < own.needs.size(); level++) most.needs[level] = std::max(most.needs[level], own.needs[level]);
        return stream;
    }
    return streams.emplace_back(Stream{access.buffer, node, access.middle, 0, 0, own});
}

}  // namespace

WorkingSets::WorkingSets(const std::vector<Access> &accesses, size_t nodes, const Target &target)
    : accesses_(accesses),
      sizes_{static_cast<double>(target.l1_bytes), static_cast<double>(target.l2_bytes), static_cast<double>(target.l3_bytes)},
      in_(nodes) {
    std::vector<std::vector<Stream>> streams(nodes);
    for (const Access &access : accesses) {
        stream_of(streams[0], access, 0, 0);
        for (size_t i = 0; i < access.loops.size(); i++) stream_of(streams[access.loops[i].node], access, i + 1, 0);
    }
    for (size_t node = 0; node < nodes; node++)
        for (const Stream &stream : streams[node]) {
            in_[node].bytes += stream.touched.bytes, in_[node].pages += stream.touched.pages, in_[node].rows += stream.touched.rows;
            for (size_t level = 0; level < stream.touched.needs.size(); level++) in_[node].needs[level] += stream.touched.needs[level];
        }
}

bool WorkingSets::holds(size_t level, size_t node) const { return (level < 2 ? in_[node].needs[level] : in_[node].bytes) <= sizes_[level]; }

template <class Holds, class Amount>
double WorkingSets::brought(const Holds &holds, const Amount &amount) const {
    if (holds(0)) return 0;
    std::vector<Stream> streams;
    for (const Access &access : accesses_) {
        size_t first = 0, node = 0;
        double times = 1;
        for (; first < access.loops.size(); first++) {
            node = access.loops[first].node;
            if (holds(node)) break;
            times *= access.loops[first].count;
        }
        Stream &stream = stream_of(streams, access, first, node);
        const double much = amount(access, access.touched[first]) * times;
        stream.likely += access.likely * much, stream.always = std::max(stream.always, much);
    }
    double sum = 0;
    for (const Stream &stream : streams)
        sum += std::min(stream.likely, stream.always);  // two branches bring what one would without the condition
    return sum;
}

std::array<double, 3> WorkingSets::traffic() const {
    std::array<double, 3> all{};
    for (size_t level = 0; level < all.size(); level++)
        all[level] = brought([&](size_t node) { return holds(level, node); },
                             [](const Access &access, const Touched &touched) { return touched.bytes * (access.store ? 2 : 1); });
    return all;
}

double WorkingSets::translations() const {
    return brought([&](size_t node) { return in_[node].pages <= held_pages; },
                   [](const Access &, const Touched &touched) { return touched.pages; });
}

}  // namespace tessera
