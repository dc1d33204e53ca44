#include "compiler/tile/tile_program.h"

#include "algorithms/text/print.h"
#include "algorithms/text/shared_text.h"
#include "compiler/instructions/families.h"
#include "schedules/knobs/notation.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

// What each node is made of, where it is const and where it is to be changed.
void each_body(Is<Loop> auto &n, const auto &visit) { visit(n.body); }
void each_body(Is<Compute> auto &, const auto &) {}
void each_body(Is<Copy> auto &, const auto &) {}
void each_body(Is<Prefetch> auto &, const auto &) {}
void each_body(Is<Barrier> auto &, const auto &) {}
void each_body(Is<Commit> auto &, const auto &) {}
void each_body(Is<Await> auto &, const auto &) {}
void each_body(Is<Guard> auto &n, const auto &visit) { visit(n.then), visit(n.otherwise); }
void each_body(Is<Let> auto &n, const auto &visit) { visit(n.body); }
void each_body(Is<Alloc> auto &n, const auto &visit) { visit(n.body); }
void each_body(Is<Invoke> auto &, const auto &) {}
void each_body(Is<Move> auto &, const auto &) {}
void each_body(Is<Fragment> auto &, const auto &) {}

void each_of(auto &expressions, const auto &visit) {
    for (auto &e : expressions) visit(e);
}
void each_of_store(auto &n, const auto &visit) {
    each_of(n.index, visit), visit(n.value);
    if (n.guard.defined()) visit(n.guard);
}
void each_expression(Is<Loop> auto &n, const auto &visit) { visit(n.count); }
void each_expression(Is<Compute> auto &n, const auto &visit) { each_of_store(n, visit); }
void each_expression(Is<Copy> auto &n, const auto &visit) { each_of_store(n, visit); }
void each_expression(Is<Prefetch> auto &n, const auto &visit) { each_of(n.index, visit); }
void each_expression(Is<Barrier> auto &, const auto &) {}
void each_expression(Is<Commit> auto &, const auto &) {}
void each_expression(Is<Await> auto &, const auto &) {}
void each_expression(Is<Guard> auto &n, const auto &visit) { visit(n.condition); }
void each_expression(Is<Let> auto &n, const auto &visit) { visit(n.value); }
void each_expression(Is<Alloc> auto &n, const auto &visit) { each_of(n.buffer.extents, visit); }
void each_of_view(auto &view, const auto &visit) {
    each_of(view.first, visit);
    for (auto &moved : view.axes) visit(moved.step);
}
void each_expression(Is<Move> auto &n, const auto &visit) {
    each_of_view(n.to, visit);
    if (n.from) each_of_view(*n.from, visit);
}
void each_expression(Is<Fragment> auto &n, const auto &visit) {
    if (n.warp.defined()) visit(n.warp);
}
void each_expression(Is<Invoke> auto &n, const auto &visit) {
    for (auto &view : n.arguments) each_of_view(view, visit);
    for (auto &[name, e] : n.extents) visit(e);
    for (auto &[name, e] : n.parameters) visit(e);
}

}  // namespace

std::vector<const TileBody *> bodies_of(const TileNode &node) {
    std::vector<const TileBody *> all;
    std::visit([&](const auto &n) { each_body(n, [&](const TileBody &body) { all.push_back(&body); }); }, node);
    return all;
}

TileNode map_bodies(TileNode node, const std::function<TileBody(const TileBody &)> &change) {
    std::visit([&](auto &n) { each_body(n, [&](TileBody &body) { body = change(body); }); }, node);
    return node;
}

std::vector<Expr> expressions_of(const TileNode &node) {
    std::vector<Expr> all;
    std::visit([&](const auto &n) { each_expression(n, [&](const Expr &e) { all.push_back(e); }); }, node);
    return all;
}

TileNode map_expressions(TileNode node, const std::function<Expr(const Expr &)> &change) {
    std::visit([&](auto &n) { each_expression(n, [&](Expr &e) { e = change(e); }); }, node);
    return node;
}

std::optional<TileStore> store_of(const TileNode &node) {
    using Found = std::optional<TileStore>;
    return std::visit(Overloaded{
                          [](const StoreNode auto &n) -> Found {
                              return TileStore{n.buffer, n.index, n.value, n.guard};
                          },
                          [](const LeafNode auto &) -> Found { return {}; },
                          [](const Loop &) -> Found { return {}; },
                          [](const Guard &) -> Found { return {}; },
                          [](const Let &) -> Found { return {}; },
                          [](const Alloc &) -> Found { return {}; },
                      },
                      node);
}

void walk(const TileBody &body, const std::function<void(const TileNode &)> &visit) {
    for (const auto &node : body) {
        visit(*node);
        for (const TileBody *inner : bodies_of(*node)) walk(*inner, visit);
    }
}

std::vector<Expr> index_of(const Expr &load) { return {load->args.begin(), load->args.end() - (load->guarded ? 2 : 0)}; }

bool streams(const TileNode &node) {
    const Loop *loop = std::get_if<Loop>(&node);
    if (loop && loop->kind == LoopKind::streamed) return true;
    if (loop && loop->kind == LoopKind::parallel) return false;
    const std::vector<const TileBody *> bodies = bodies_of(node);
    return std::any_of(bodies.begin(), bodies.end(), [](const TileBody *body) {
        return std::any_of(body->begin(), body->end(), [](const auto &inner) { return streams(*inner); });
    });
}

static std::string list(const std::vector<Expr> &items) {
    std::string text;
    for (const Expr &e : items) text += (text.empty() ? "" : ", ") + to_string(e);
    return text;
}

static std::string brackets(const std::vector<std::string> &dims) { return "[" + (dims.empty() ? "" : join(dims)) + "]"; }

// What repeats is named below the line where it is longer than most indices, which read better in their place.
constexpr int shared_nodes = 16;

static std::string store_text(const std::string &indent, const std::string &buffer, const std::vector<Expr> &index, const std::string &sign,
                              const Expr &value, const Expr &guard) {
    std::string place = buffer + "[" + list(index) + "]" + sign, condition = guard.defined() ? " where " + to_string(guard) : "";
    // A step of an instruction family is named; its meaning is in compiler/instructions/families.h.
    for (const Instruction &family : families())
        if (std::vector<Expr> operands = match(family, value); !operands.empty())
            return indent + place + family.name + "(" + list(operands) + ")" + condition + "\n";
    std::vector<Expr> all = index;
    all.push_back(value);
    if (guard.defined()) all.push_back(guard);
    SharedText line(all, shared_nodes);
    return line.finish(indent, buffer + "[" + line(index) + "]" + sign + line(value) + (guard.defined() ? " where " + line(guard) : ""));
}

static void print(const TileBody &body, int depth, std::string &out);

// "w[l, 0, 0 : 1, 2]": what it begins with, and the axes that its own move; a step that is not 1 stands beside its axis.
static std::string to_string(const BufferView &view) {
    if (view.is_whole()) return view.buffer;
    std::string axes;
    for (const BufferView::Axis &moved : view.axes)
        axes += (axes.empty() ? " : " : ", ") +
                (moved.step.is_constant(0) ? "-"
                                           : std::to_string(moved.of) + (moved.step.is_constant(1) ? "" : " by " + to_string(moved.step)));
    return view.buffer + "[" + list(view.first) + axes + "]";
}

// ", chunks of 8 ^ row/2%4" or ""
static std::string order_of_chunks(const Buffer &buffer) {
    if (!buffer.swizzle) return "";
    const Swizzle &s = *buffer.swizzle;
    const std::string row = s.phase > 1 ? "row/" + std::to_string(s.phase) : "row";
    return ", chunks of " + std::to_string(s.chunk) + " ^ " + row + "%" + std::to_string(s.rows);
}

static void print(const TileNode &node, int depth, std::string &out) {
    std::string indent(2 * depth, ' ');
    std::visit(Overloaded{
                   [&](const Loop &n) {
                       out += indent + name_of(n.kind) + " " + n.variable + " < " + to_string(n.count) + "\n";
                       print(n.body, depth + 1, out);
                   },
                   [&](const Compute &n) { out += store_text(indent, n.buffer, n.index, " = ", n.value, n.guard); },
                   [&](const Copy &n) {
                       const char *sign = n.is_asynchronous ? " <~ " : " <- ";
                       out += store_text(indent, n.buffer, n.index, sign, n.value, n.guard);
                   },
                   [&](const Prefetch &n) {
                       SharedText line(n.index, shared_nodes);
                       std::string index;
                       for (const Expr &e : n.index) index += (index.empty() ? "" : ", ") + line(e);
                       out += line.finish(indent, "prefetch " + n.buffer + "[" + index + "]");
                   },
                   [&](const Barrier &) { out += indent + "barrier shared 0\n"; },
                   [&](const Commit &) { out += indent + "commit\n"; },
                   [&](const Await &n) { out += indent + "await " + std::to_string(n.pending) + "\n"; },
                   [&](const Guard &n) {
                       out += indent + "if " + to_string(n.condition) + "\n";
                       print(n.then, depth + 1, out);
                       if (!n.otherwise.empty()) {
                           out += indent + "else\n";
                           print(n.otherwise, depth + 1, out);
                       }
                   },
                   [&](const Let &n) {
                       SharedText line({n.value}, shared_nodes);
                       out += line.finish(indent, n.variable + " = " + line(n.value));
                       print(n.body, depth, out);
                   },
                   [&](const Alloc &n) {
                       out += indent + n.buffer.name + "[" + list(n.buffer.extents) + "]: " + name_of(n.buffer.dtype) + " in " +
                              name_of(n.buffer.space) + order_of_chunks(n.buffer) + "\n";
                       print(n.body, depth, out);
                   },
                   [&](const Invoke &n) {
                       std::vector<std::string> arguments;
                       for (const BufferView &view : n.arguments) arguments.push_back(to_string(view));
                       out += indent + "invoke " + n.program + "(" + (arguments.empty() ? "" : join(arguments));
                       for (auto &[name, e] : n.extents) out += ", " + name + "=" + to_string(e);
                       for (auto &[name, e] : n.parameters) out += ", " + name + "=" + to_string(e);
                       out += ")\n";
                   },
                   [&](const Move &n) {
                       std::vector<std::string> box;
                       for (int64_t extent : n.box) box.push_back(std::to_string(extent));
                       out += indent + "move " + to_string(n.to) + " <- " + (n.from ? to_string(*n.from) : "0") + " of " +
                              join(box, " x ") + "\n";
                   },
                   [&](const Fragment &n) {
                       const std::string warp = n.warp.defined() ? "[" + to_string(n.warp) + "]" : "";
                       out += indent + n.family + " " + n.accumulator + warp + " += " + n.a + " * " + n.b + "\n";
                   },
               },
               node);
}

static void print(const TileBody &body, int depth, std::string &out) {
    for (const auto &node : body) print(*node, depth, out);
}

std::string to_string(const Packing &packing) {
    std::vector<std::string> axes;
    for (const LayoutAxis &axis : packing.layout) axes.push_back(to_string(axis));
    return packing.operand.name + brackets(packing.operand.dims) + " packed as " + join(axes);
}

std::string half_bytes_text(const Argument &a) {
    return a.half_bytes ? std::string(", of ") + name_of(a.half_bytes->dtype) + brackets(a.half_bytes->dims) : "";
}

static std::string text_after_name(const TileProgram &p) {
    std::string out = " for " + p.target + "\n";
    for (const Dim &d : p.dims) {
        out += "  dim " + d.name;
        if (d.kind == DimKind::fixed) out += " = " + std::to_string(d.value);
        if (d.size.defined()) out += " = " + to_string(d.size);
        if (d.multiple_of > 1) out += " % " + std::to_string(d.multiple_of) + " == 0";
        if (!d.equals.empty()) out += " == " + d.equals;
        out += "\n";
    }
    for (const Parameter &q : p.parameters) out += "  parameter " + q.name + ": " + name_of(q.dtype) + "\n";
    for (const Argument &a : p.arguments)
        out += std::string("  ") + (a.written ? (a.read ? "state " : "output ") : "input ") + a.tensor.name + brackets(a.tensor.dims) +
               ": " + name_of(a.tensor.dtype) + (a.packed ? ", " + to_string(*a.packed) : "") + (a.large ? ", large" : "") +
               half_bytes_text(a) + "\n";
    for (const Tensor &t : p.constants)
        out += "  constant " + t.name + brackets(t.dims) + ": " + name_of(t.dtype) + " = " + values_text(t) + "\n";
    for (const Ascending &tensor : p.ascending) out += "  ascending " + tensor.tensor + ": 0 ..= " + to_string(tensor.most) + "\n";
    print(p.body, 1, out);
    for (const TileProgram &q : p.programs) out += to_text(q);
    return out;
}

std::string to_text(const TileProgram &program) { return "tile program " + program.name + text_after_name(program); }

std::string to_text(const TileBody &body) {
    std::string text;
    print(body, 0, text);
    return text;
}

Bounds facts_of(const TileProgram &program) {
    Bounds facts(program.dims, program.parameters);
    for (const Ascending &tensor : program.ascending) facts.set_ascending(tensor);
    return facts;
}

std::string resolved_hash(const TileProgram &program) { return sha256(text_after_name(program)); }

}  // namespace tessera
