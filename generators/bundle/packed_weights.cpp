#include "generators/bundle/packed_weights.h"

#include <algorithm>
#include <cstring>

#include "compiler/emit/spec.h"
#include "runtime/abi/tessera.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

// An axis of the packed tensor: how far it moves along which axis of the operand.
struct Axis {
    size_t of = 0;
    int64_t extent = 0, step = 1;
};

[[noreturn]] void refuse(const std::string &subject, const std::string &why) { throw UserError("bundle.packed", subject + ": " + why); }

std::vector<Axis> axes_of(const PackedForm &form, const std::vector<int64_t> &extents, const std::string &subject) {
    std::vector<Axis> axes;
    std::vector<std::vector<LayoutAxis>> of_dims(extents.size());
    for (const std::string &text : form.layout) {
        const std::optional<LayoutAxis> axis = parse_axis(text);
        const auto dim = axis ? std::find(form.dims.begin(), form.dims.end(), axis->dim) : form.dims.end();
        if (dim == form.dims.end() || axis->factor < 0)
            refuse(subject, "layout axis '" + printable(text) + "' is none of its dims " + printable(join(form.dims)) + ".");
        const auto of = static_cast<size_t>(dim - form.dims.begin());
        of_dims[of].push_back(*axis);
        axes.push_back({of, axis->positions() ? axis->positions() : (extents[of] + axis->step() - 1) / axis->step(), axis->step()});
    }
    for (size_t d = 0; d < extents.size(); d++)
        if (!hold_each_index_once(of_dims[d]))
            refuse(subject,
                   "its layout has the dim '" + printable(form.dims[d]) + "' neither whole nor in parts that hold each index once.");
    return axes;
}

void put(std::string &text, size_t at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) text[at + i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

std::string packed_bytes(const PackedForm &form, const std::vector<int64_t> &extents, std::string_view bytes, const std::string &subject) {
    require(form.dims.size() == extents.size() && extents.size() <= TESS_MAX_RANK, "an operand has an extent for each dim");
    const std::vector<Axis> axes = axes_of(form, extents, subject);
    const auto size = static_cast<uint64_t>(size_of(form.dtype));
    uint64_t all = size, given = size;
    bool too_many = false;
    for (const Axis &axis : axes) too_many |= __builtin_mul_overflow(all, static_cast<uint64_t>(axis.extent), &all);
    for (int64_t extent : extents) too_many |= __builtin_mul_overflow(given, static_cast<uint64_t>(extent), &given);
    if (too_many || all > (uint64_t{1} << 46)) refuse(subject, "packed it has more bytes than there can be.");
    require(given == bytes.size(), "the bytes of a tensor are its extents'");

    std::string packed(TESS_PACKED_HEADER_BYTES + all, '\0');
    std::memcpy(packed.data(), "TESSPACK", 8);
    put(packed, 8, TESS_PACKED_VERSION, 4), put(packed, 12, TESS_PACKED_HEADER_BYTES, 4), put(packed, 16, form.hash, 8);
    put(packed, 24, static_cast<uint64_t>(abi_dtype(form.dtype)), 4), put(packed, 28, extents.size(), 4), put(packed, 32, all, 8);
    for (size_t d = 0; d < extents.size(); d++) put(packed, 48 + 8 * d, static_cast<uint64_t>(extents[d]), 8);

    std::vector<int64_t> strides(extents.size(), 1);
    for (size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
    if (all == 0) return packed;
    std::vector<int64_t> at(axes.size(), 0), index(extents.size(), 0);
    char *to = packed.data() + TESS_PACKED_HEADER_BYTES;
    while (true) {
        // All but the last axis stand; elements along it lie `step` apart in the operand, and those past its end are zeros.
        const bool has_last = !axes.empty();
        bool inside = true;
        int64_t from = 0;
        for (size_t d = 0; d < extents.size(); d++) from += index[d] * strides[d], inside &= index[d] < extents[d];
        const int64_t count = has_last ? axes.back().extent : 1;
        if (inside) {
            int64_t there = count, stride = 1;
            if (has_last) {
                const Axis &last = axes.back();
                there = std::min(count, (extents[last.of] - index[last.of] + last.step - 1) / last.step),
                stride = last.step * strides[last.of];
            }
            if (stride == 1) std::memcpy(to, bytes.data() + static_cast<uint64_t>(from) * size, static_cast<uint64_t>(there) * size);
            else
                for (int64_t i = 0; i < there; i++)
                    std::memcpy(to + static_cast<uint64_t>(i) * size, bytes.data() + static_cast<uint64_t>(from + i * stride) * size, size);
        }
        to += static_cast<uint64_t>(count) * size;
        size_t axis = axes.size() - (has_last ? 1 : 0);
        while (axis-- > 0) {
            index[axes[axis].of] += axes[axis].step;
            if (++at[axis] < axes[axis].extent) break;
            index[axes[axis].of] -= axes[axis].step * axes[axis].extent, at[axis] = 0;
        }
        if (axis == static_cast<size_t>(-1)) return packed;
    }
}

}  // namespace tessera
