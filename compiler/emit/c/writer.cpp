#include "compiler/emit/c/writer.h"

#include <cctype>

#include <fmt/format.h>

#include "compiler/emit/emit_library.h"
#include "compiler/emit/spec.h"
#include "compiler/rewrite/prepack.h"
#include "runtime/abi/kernel.h"
#include "support/text/error.h"

namespace tessera::emit_c {

static Buffer tensor_buffer(const Tensor &t, Space space) {
    Buffer b{t.name, t.dtype, {}, space};
    for (const std::string &d : t.dims) b.extents.push_back(extent(d));
    return b;
}

Writer::Writer(const TileProgram &program, const std::string &stem, Operations &operations)
    : program_(program), stem_(stem), operations_(operations), spec_(spec_of(program)) {
    for (const Argument &a : program.arguments) {
        Place &place = places_[a.tensor.name] = {tensor_buffer(a.tensor, Space::argument)};
        place.strided = !a.packed, place.written = a.written;
        if (a.packed) place.buffer.extents = packed_extents(*a.packed, program.dims);
        for (Expr &e : place.buffer.extents) e = in_spec_dims(e, program);
        argument_names_.push_back(arguments_.take(a.tensor.name));
    }
    for (const Tensor &t : program.constants) places_[t.name] = {tensor_buffer(t, Space::constant), false, 0};
    scope_.variable = [this](const std::string &name) { return reach(variables_, name); };
    scope_.extent = [this](const std::string &name) { return extent(name); };
    scope_.parameter = [this](const std::string &name) { return parameter(name); };
    scope_.stride = [this](const std::string &buffer, size_t axis) { return stride(buffer, axis); };
    scope_.place = [this](const std::string &name) -> const Place & {
        auto it = places_.find(name);
        require(it != places_.end(), "buffer " + name + " is there where it is used");
        return it->second;
    };
    scope_.pointer = [this](const std::string &name) { return pointer(name); };
    scope_.slot = [this](const std::string &name, int64_t slot) { return slots_.at(name).at(static_cast<size_t>(slot)); };
}

// Arguments have the same names in all functions.
void Writer::begin() {
    functions_.emplace_back();
    functions_.back().identifiers = arguments_;
}

// What is around it keeps its identifier inside.
void Writer::begin_task() {
    const Identifiers around = functions_.back().identifiers;
    functions_.emplace_back();
    functions_.back().identifiers = around;
}

Writer::Finished Writer::finish(const std::string &head, const std::string &task) {
    const Function f = std::move(functions_.back());
    functions_.pop_back();
    std::string text = head + " {\n";
    auto add = [&](const std::string &l) { text += "    " + l + "\n"; };
    const bool has_call = head.find("void *call") != std::string::npos;
    if (!task.empty()) {
        add(fmt::format("const {0}_closure *const outer = (const {0}_closure *)(const void *)closure;", task));
        add("int64_t *const frame = outer->frame;");
    }
    if (has_call && !f.call) add("(void)call;");
    if (f.frame.empty() && !f.layout && f.lines.find("frame") == std::string::npos) add("(void)frame;");
    for (const auto &[id, type] : f.captured) {
        const bool pointer = type.back() == '*';
        add(pointer ? fmt::format("{0}const restrict {1} = outer->{1};", type, id) : fmt::format("const {0} {1} = outer->{1};", type, id));
    }
    for (const auto &[slot, binding] : f.frame) add(binding);
    if (f.layout) add(fmt::format("const {0}_layout layout = {0}_layout_of(frame);", stem_));
    // Numbers, since there is no memory where none is needed, and nothing may be added to a null pointer.
    if (f.shared_memory || f.worker_memory)
        add(fmt::format("const uintptr_t shared_memory = (uintptr_t)frame[{}];", tess_frame_workspace(spec_.data())));
    if (f.worker_memory)
        add(
            fmt::format("const uintptr_t worker_memory = shared_memory + (uintptr_t)frame[{}] + (uintptr_t)tess_abi2_worker(call) * "
                        "(uintptr_t)frame[{}];",
                        tess_frame_shared_bytes(spec_.data()), tess_frame_worker_bytes(spec_.data())));
    return {text + f.lines + "    return 0;\n}\n\n", f.captured};
}

void Writer::line(const std::string &text) {
    functions_.back().lines += std::string(static_cast<size_t>(4 * functions_.back().depth), ' ') + text + "\n";
}

void Writer::use_workspace(bool of_worker) {
    Function &f = functions_.back();
    f.layout = true;
    if (of_worker) f.worker_memory = f.call = true;
    else f.shared_memory = true;
}

std::string Writer::bound() {
    std::string text;
    for (const auto &[slot, binding] : functions_.back().frame) text += "    " + binding + "\n";
    return text;
}

// Names with a prefix that no identifier of names.h has, each its own.
std::string Writer::frame_name(const std::string &prefix, const std::string &name) {
    std::string &id = frame_names_[prefix + name];
    if (!id.empty()) return id;
    std::string plain = prefix;
    for (char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    id = plain;
    for (int n = 2; !frame_taken_.insert(id).second; n++) id = plain + "_" + std::to_string(n);
    return id;
}

std::string Writer::extent(const std::string &name) {
    int64_t slot = 0;
    for (const Dim &d : spec_dims(program_)) {
        if (d.name == name) {
            if (d.kind == DimKind::fixed) return std::to_string(d.value);
            const std::string id = frame_name("size_", name);
            functions_.back().frame[slot] = fmt::format("const int64_t {} = frame[{}];", id, slot);
            return id;
        }
        slot++;
    }
    throw InternalError("no dim " + name + " in the frame of " + program_.name);
}

std::string Writer::parameter(const std::string &name) {
    for (size_t p = 0; p < program_.parameters.size(); p++) {
        const Parameter &q = program_.parameters[p];
        if (q.name != name) continue;
        const int64_t slot = tess_frame_parameter(spec_.data(), static_cast<int64_t>(p));
        const std::string word = fmt::format("frame[{}]", slot);
        std::string value = fmt::format("({}){}", operations_.type({q.dtype, 0}), word);
        if (q.dtype == DType::f32) value = fmt::format("{}((int32_t){})", operations_.bitcast(DType::f32, {DType::i32, 0}), word);
        if (q.dtype == DType::f64) value = fmt::format("{}({})", operations_.bitcast(DType::f64, {DType::i64, 0}), word);
        if (q.dtype == DType::boolean) value = word + " != 0";
        const std::string id = frame_name("parameter_", name);
        functions_.back().frame[slot] = fmt::format("const {} {} = {};", operations_.type({q.dtype, 0}), id, value);
        return id;
    }
    throw InternalError("no parameter " + name);
}

size_t Writer::argument(const std::string &name) const {
    for (size_t a = 0; a < program_.arguments.size(); a++)
        if (program_.arguments[a].tensor.name == name) return a;
    throw InternalError("no argument " + name);
}

std::string Writer::stride(const std::string &buffer, size_t axis) {
    const std::string id = fmt::format("{}_{}", frame_name("stride_", buffer), axis);
    const int64_t slot = tess_frame_stride(spec_.data(), static_cast<int64_t>(argument(buffer)), static_cast<int64_t>(axis));
    functions_.back().frame[slot] = fmt::format("const int64_t {} = frame[{}];", id, slot);
    return id;
}

std::string Writer::distance(const std::string &buffer, size_t axis) {
    const Place &place = scope_.place(buffer);
    const std::vector<Expr> &extents = place.buffer.extents;
    if (axis + 1 == extents.size()) return "1";
    if (place.buffer.space == Space::argument && place.strided) return stride(buffer, axis);
    Expr product = extents[axis + 1];
    for (size_t inner = axis + 2; inner < extents.size(); inner++) product = product * extents[inner];
    return scalar(product);
}

std::string Writer::pointer(const std::string &name) {
    if (pointers_.count(name)) return reach(pointers_, name);
    const Place &place = scope_.place(name);
    if (place.buffer.space == Space::constant) return constant_name(stem_, name);
    const size_t a = argument(name);
    const int64_t slot = tess_frame_data(spec_.data(), static_cast<int64_t>(a));
    const std::string type = (program_.arguments[a].written ? "" : "const ") + operations_.stored_type(place.buffer.dtype);
    functions_.back().frame[slot] = fmt::format("{0} *const restrict {1} = ({0} *)(uintptr_t)frame[{2}];", type, argument_names_[a], slot);
    return argument_names_[a];
}

// From this function or one around it; then it comes by way of the closures between.
std::string Writer::reach(const std::map<std::string, Local> &table, const std::string &name) {
    auto it = table.find(name);
    require(it != table.end(), "'" + name + "' is bound where it is used");
    const Local &local = it->second;
    for (size_t f = local.function + 1; f < functions_.size(); f++) functions_[f].captured.emplace(local.identifier, local.type);
    return local.identifier;
}

void Writer::write(Run &run) {
    for (const std::string &text : run.text(kept_)) line(text);
}

std::string Writer::scalar(const Expr &e) {
    Run one = run();
    one.scalar(e);
    std::vector<std::string> lines = one.text(kept_);
    const std::string last = lines.back();
    lines.pop_back();
    for (const std::string &l : lines) line(l);
    return last;
}

Writer::Block::Block(Writer &writer)
    : writer_(writer),
      outer_(std::move(writer.kept_)),
      variables_(writer.variables_),
      pointers_(writer.pointers_),
      places_(writer.places_) {
    writer_.kept_.clear();
}

Writer::Block::~Block() {
    for (const std::string &t : writer_.kept_) writer_.functions_.back().identifiers.release(t);
    writer_.kept_ = std::move(outer_);
    writer_.variables_ = std::move(variables_), writer_.pointers_ = std::move(pointers_), writer_.places_ = std::move(places_);
}

std::string Writer::take(const std::string &name) {
    kept_.push_back(functions_.back().identifiers.take(name));
    return kept_.back();
}

std::string Writer::declare_variable(const std::string &name, const std::string &type) {
    const std::string id = take(name);
    variables_[name] = {id, type, functions_.size() - 1};
    return id;
}

std::string Writer::declare_pointer(const Buffer &buffer) {
    const std::string id = take(buffer.name);
    pointers_[buffer.name] = {id, operations_.stored_type(buffer.dtype) + " *", functions_.size() - 1};
    places_[buffer.name] = {buffer, false, 0};
    return id;
}

void Writer::declare_named(const Buffer &buffer, int lanes, std::vector<std::string> slots) {
    places_[buffer.name] = {buffer, true, lanes};
    slots_[buffer.name] = std::move(slots);
}

}  // namespace tessera::emit_c
