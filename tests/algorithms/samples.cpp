#include "tests/algorithms/samples.h"

#include <cmath>

#include "algorithms/expr/value_numbering.h"
#include "algorithms/functions/functions.h"
#include "support/text/error.h"

namespace tessera::test {

namespace {

Expr v(const std::string &name) { return variable(name); }

Algorithm named(const std::string &name, std::vector<Dim> dims, std::vector<Tensor> tensors) {
    Algorithm a;
    a.name = name, a.dims = std::move(dims), a.tensors = std::move(tensors);
    return a;
}

Tensor tensor(const std::string &name, DType type, std::vector<std::string> dims, Role role = Role::input) {
    return {name, type, std::move(dims), role, {}};
}

Stage reduce(const std::string &name, std::vector<std::string> dims, Monoid monoid, std::vector<std::string> over,
             std::vector<Expr> inputs) {
    return {name, std::move(dims), Reduce{std::move(monoid), std::move(over), std::move(inputs), {}, {}}};
}

}  // namespace

Algorithm matmul() {
    Algorithm a = named("matmul", {symbolic_dim("M"), symbolic_dim("N"), fixed_dim("K", 768)},
                        {tensor("x", DType::f32, {"M", "K"}), tensor("w", DType::f32, {"K", "N"}), tensor("b", DType::f32, {"N"})});
    a.dims[0].min = 1, a.dims[0].max = 4096, a.dims[1].multiple_of = 16;
    a.steps.push_back(reduce("acc", {"M", "N"}, dot_monoid(DType::f32), {"K"},
                             {load("x", DType::f32, {v("M"), v("K")}), load("w", DType::f32, {v("K"), v("N")})}));
    a.steps.push_back(Stage{"y", {"M", "N"}, Map{gelu(load("acc", DType::f32, {v("M"), v("N")}) + load("b", DType::f32, {v("N")}))}});
    a.outputs = {"y"};
    return a;
}

Algorithm softmax() {
    Algorithm a = named("softmax", {symbolic_dim("M"), symbolic_dim("N")}, {tensor("x", DType::f32, {"M", "N"})});
    Expr x = load("x", DType::f32, {v("M"), v("N")});
    a.steps.push_back(reduce("top", {"M"}, max_monoid(DType::f32), {"N"}, {x}));
    a.steps.push_back(Stage{"e", {"M", "N"}, Map{exp(x - load("top", DType::f32, {v("M")}))}});
    Expr e = load("e", DType::f32, {v("M"), v("N")});
    a.steps.push_back(reduce("total", {"M"}, sum_monoid(DType::f32), {"N"}, {e}));
    a.steps.push_back(Stage{"y", {"M", "N"}, Map{e / load("total", DType::f32, {v("M")})}});
    a.outputs = {"y"};
    return a;
}

Algorithm layernorm() {
    Algorithm a = named("layernorm", {symbolic_dim("M"), symbolic_dim("K")}, {tensor("x", DType::bf16, {"M", "K"})});
    a.parameters = {{"eps", DType::f32}};
    a.numerics = numerics_named("bf16");
    Expr x = cast(DType::f32, load("x", DType::bf16, {v("M"), v("K")}));
    a.steps.push_back(reduce("stats", {"M"}, welford_monoid(DType::f32), {"K"}, {x}));
    auto stat = [&](const std::string &part) { return load("stats." + part, DType::f32, {v("M")}); };
    Expr scale = rsqrt(stat("m2") / stat("n") + parameter("eps", DType::f32));
    a.steps.push_back(Stage{"y", {"M", "K"}, Map{cast(DType::bf16, (x - stat("mean")) * scale)}});
    a.outputs = {"y"};
    return a;
}

Algorithm attention() {
    Algorithm a = named("attention", {symbolic_dim("Q"), symbolic_dim("S"), fixed_dim("D", 64), fixed_dim("V", 64)},
                        {tensor("q", DType::f32, {"Q", "D"}), tensor("k", DType::f32, {"S", "D"}), tensor("v", DType::f32, {"S", "V"})});
    a.steps.push_back(reduce("scores", {"Q", "S"}, dot_monoid(DType::f32), {"D"},
                             {load("q", DType::f32, {v("Q"), v("D")}), load("k", DType::f32, {v("S"), v("D")})}));
    Expr score = load_or("scores", DType::f32, {v("Q"), v("S")}, v("S") <= v("Q"), constant(DType::f32, -INFINITY));
    a.steps.push_back(reduce("o", {"Q"}, online_softmax_monoid(DType::f32, "V"), {"S"}, {score, load("v", DType::f32, {v("S"), v("V")})}));
    a.steps.push_back(Stage{"y", {"Q", "V"}, Map{load("o.acc", DType::f32, {v("Q"), v("V")}) / load("o.l", DType::f32, {v("Q")})}});
    a.outputs = {"y"};
    return a;
}

Algorithm prefix_sums() {
    Algorithm a = named("prefix_sums", {symbolic_dim("M"), symbolic_dim("N")}, {tensor("x", DType::f64, {"M", "N"})});
    a.numerics = numerics_named("f64");
    a.steps.push_back(Stage{"y", {"M", "N"}, Scan{sum_monoid(DType::f64), "N", false, {load("x", DType::f64, {v("M"), v("N")})}}});
    a.outputs = {"y"};
    return a;
}

Algorithm suffix_maxima() {
    Algorithm a = named("suffix_maxima", {symbolic_dim("M"), symbolic_dim("N")},
                        {tensor("x", DType::f32, {"M", "N"}), tensor("begins", DType::boolean, {"N"})});
    Scan scan{max_monoid(DType::f32),
              "N",
              true,
              {load("x", DType::f32, {v("M"), v("N")})},
              ScanDirection::backward,
              load("begins", DType::boolean, {v("N")})};
    a.steps.push_back(Stage{"y", {"M", "N"}, scan});
    a.outputs = {"y"};
    return a;
}

Algorithm segmented_sum() {
    Algorithm a =
        named("segmented_sum", {symbolic_dim("S"), symbolic_dim("S1"), symbolic_dim("T"), ragged_dim("R", "offsets", DType::i32, "S")},
              {tensor("offsets", DType::i32, {"S1"}), tensor("x", DType::f32, {"T"})});
    Expr first = cast(DType::index, load("offsets", DType::i32, {v("S")}));
    a.steps.push_back(
        reduce("y", {"S"}, sum_monoid(DType::f32), {"R"}, {load("x", DType::f32, {bounded(first + v("R"), 0, extent("T"))})}));
    a.outputs = {"y"};
    return a;
}

Algorithm ring_buffer() {
    Algorithm a = named("ring_buffer", {symbolic_dim("B"), symbolic_dim("D"), fixed_dim("L", 128)},
                        {tensor("row", DType::f32, {"B", "D"}), tensor("cache", DType::f32, {"L", "D"}, Role::state)});
    a.parameters = {{"position", DType::i32}};
    Expr at = (cast(DType::index, parameter("position", DType::i32)) + v("B")) % extent("L");
    Expr row = load("row", DType::f32, {v("B"), v("D")}), old = load("cache", DType::f32, {v("L"), v("D")});
    a.steps.push_back(Stage{"append", {"B", "D"}, Map({"cache", {at, v("D")}}, row)});
    a.steps.push_back(reduce("y", {"D"}, sum_monoid(DType::f32), {"L"}, {old}));
    a.steps.push_back(Stage{"decay", {"L", "D"}, Map({"cache", {v("L"), v("D")}}, old * constant(DType::f32, 0.5))});
    a.outputs = {"y"};
    a.updates_state = true;
    return a;
}

Algorithm histogram() {
    Algorithm a = named("histogram", {symbolic_dim("T"), fixed_dim("N", 256)},
                        {tensor("x", DType::u8, {"T"}), tensor("keep", DType::boolean, {"T"})});
    Reduce body{sum_monoid(DType::i32),
                {"T"},
                {constant_int(DType::i32, 1)},
                load("keep", DType::boolean, {v("T")}),
                {cast(DType::index, load("x", DType::u8, {v("T")}))}};
    a.steps.push_back(Stage{"y", {"N"}, body});
    a.outputs = {"y"};
    return a;
}

Algorithm argmax() {
    Algorithm a = named("argmax", {symbolic_dim("M"), symbolic_dim("N")}, {tensor("x", DType::f32, {"M", "N"})});
    a.dims[1].equals = "M";
    a.steps.push_back(
        reduce("best", {"M"}, argmax_monoid(DType::f32), {"N"}, {load("x", DType::f32, {v("M"), v("N")}), cast(DType::i64, v("N"))}));
    a.outputs = {"best.value", "best.position"};
    return a;
}

Algorithm every_expression() {
    Algorithm a = named("every_expression", {symbolic_dim("M")},
                        {tensor("f", DType::f32, {"M"}), tensor("i", DType::i32, {"M"}), tensor("t", DType::f16, {"M"}, Role::constant)});
    a.parameters = {{"p", DType::i64}};
    for (double value :
         {0.0, -0.0, 1.0 / 3, 65504.0, 0x1p-24, static_cast<double>(INFINITY), -static_cast<double>(INFINITY), static_cast<double>(NAN)})
        a.tensors[2].values.push_back(Scalar::of_real(DType::f16, value));
    Expr f = load("f", DType::f32, {v("M")}), i = load("i", DType::i32, {v("M")}), b = f < constant(DType::f32, 0.1);
    auto add = [&](const Expr &e) { a.steps.push_back(Stage{"s" + std::to_string(a.stages().size()), {"M"}, Map{e}}); };
    for (int k = 0; k <= static_cast<int>(Op::select); k++) {
        Op op = static_cast<Op>(k);
        bool whole = op == Op::logical_not || op == Op::mod || (op >= Op::bit_and && op <= Op::shr);
        Expr x = whole ? i : f;
        std::vector<Expr> operands(static_cast<size_t>(arity(op)), x);
        operands.back() = whole ? i + constant_int(DType::i32, k) : f + constant(DType::f32, k);
        if (op == Op::select) operands[0] = b;
        add(operation(op, operands));
    }
    for (DType type : {DType::f32, DType::f64, DType::bf16, DType::f16})
        for (double value :
             {0.0, -0.0, 0.1, 1e-40, 0x1p-1074, static_cast<double>(INFINITY), -static_cast<double>(INFINITY), static_cast<double>(NAN)})
            add(select(b, constant(type, value), cast(type, f)));
    for (DType type : {DType::i8, DType::u8, DType::i32, DType::i64, DType::index, DType::boolean})
        for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) add(constant_int(type, value));
    for (Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero})
        for (bool saturate : {false, true}) add(cast(DType::i8, f, rounding, saturate));
    add(bitcast(DType::i32, f));
    add(bitcast(DType::f32, i));
    add(cast(DType::i32, extent("M") - v("M") - 1) + i);
    add(parameter("p", DType::i64));
    add(load("t", DType::f16, {bounded(i, 0, extent("M"))}));
    add(load_or("f", DType::f32, {v("M") - 1}, 0 < v("M"), constant(DType::f32, 0)));
    a.outputs = {a.stages().back().name};
    a.updates_state = true;
    return a;
}

Algorithm feed_forward() {
    auto linear = std::make_shared<Algorithm>(matmul());
    linear->dims[2] = symbolic_dim("K");
    Algorithm a = named("feed_forward", {symbolic_dim("B"), symbolic_dim("H"), symbolic_dim("E")},
                        {tensor("x", DType::f32, {"B", "E"}), tensor("up", DType::f32, {"E", "H"}), tensor("down", DType::f32, {"H", "E"}),
                         tensor("up_bias", DType::f32, {"H"}), tensor("down_bias", DType::f32, {"E"})});
    a.steps.push_back(Call{"first", linear, {{"M", "B"}, {"N", "H"}, {"K", "E"}}, {{"x", "x"}, {"w", "up"}, {"b", "up_bias"}}, {}});
    a.steps.push_back(
        Call{"second", linear, {{"M", "B"}, {"N", "E"}, {"K", "H"}}, {{"x", "first.y"}, {"w", "down"}, {"b", "down_bias"}}, {}});
    a.steps.push_back(
        Stage{"y", {"B", "E"}, Map{load("second.y", DType::f32, {v("B"), v("E")}) + load("x", DType::f32, {v("B"), v("E")})}});
    a.outputs = {"y"};
    return a;
}

Algorithm layers() {
    Algorithm step;
    step.name = "step";
    step.dims = {symbolic_dim("M"), symbolic_dim("N")};
    step.tensors = {{"x", DType::f32, {"M", "N"}, Role::input, {}}, {"b", DType::f32, {"N"}, Role::input, {}}};
    step.steps = {Stage{"y", {"M", "N"}, Map{load("x", DType::f32, {v("M"), v("N")}) + load("b", DType::f32, {v("N")})}}};
    step.outputs = {"y"};
    Algorithm a;
    a.name = "layers";
    a.dims = {symbolic_dim("L"), symbolic_dim("M"), symbolic_dim("N"), derived_dim("W", extent("N") * 2)};
    a.tensors = {{"x", DType::f32, {"M", "W"}, Role::input, {}}, {"b", DType::f32, {"L", "N"}, Role::input, {}}};
    Call call{"rounds", std::make_shared<const Algorithm>(step), {{"M", "M"}, {"N", "N"}}, {}, {}};
    call.tensors["x"] = View("x", {axis(0), axis(1) + extent("N")});
    call.tensors["b"] = View("b", {v("L"), axis(0)});
    call.repeat = Repeat{"L", {{"x", "y"}}, {"y"}};
    a.steps = {call};
    a.outputs = {"rounds.y"};
    return a;
}

std::vector<Algorithm> samples() {
    return {matmul(),      softmax(),   layernorm(), attention(),        prefix_sums(),  suffix_maxima(), segmented_sum(),
            ring_buffer(), histogram(), argmax(),    every_expression(), feed_forward(), layers()};
}

Expr random_expr(std::mt19937 &random, DType type, int depth) {
    auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    auto sub = [&](DType t) { return random_expr(random, t, depth - 1); };
    if (depth == 0) {
        if (type == DType::f32) {
            if (pick(2)) return load("x", type, {v("M"), v("K")});
            return constant(type, std::ldexp(static_cast<double>(random()) - 2147483648.0, pick(60) - 60));
        }
        if (type == DType::i32) return pick(2) ? load("n", type, {v("K")}) : constant_int(type, static_cast<int32_t>(random()));
        if (type == DType::index) return pick(3) == 0 ? Expr(pick(9)) : pick(2) ? v(pick(2) ? "M" : "K") : extent("M");
        return v("M") < extent("K");
    }
    if (type == DType::boolean) {
        DType of[] = {DType::f32, DType::i32, DType::index};
        DType t = of[pick(3)];
        Op op[] = {Op::eq, Op::ne, Op::lt, Op::le};
        return operation(op[pick(4)], {sub(t), sub(t)});
    }
    if (type == DType::f32) {
        Op binary[] = {Op::add, Op::sub, Op::mul, Op::div, Op::min, Op::max};
        switch (pick(7)) {
        case 0: return fma(sub(type), sub(type), sub(type));
        case 1: return select(sub(DType::boolean), sub(type), sub(type));
        case 2: return bitcast(type, sub(DType::i32));
        case 3: return cast(type, sub(DType::i32));
        case 4: return load_or("x", type, {sub(DType::index), v("K")}, sub(DType::boolean), sub(type));
        default: return operation(binary[pick(6)], {sub(type), sub(type)});
        }
    }
    if (type == DType::index && pick(4) == 0) return bounded(sub(DType::i32), 0, extent("K"));
    if (type == DType::i32 && pick(4) == 0)
        return cast(type, sub(DType::f32), pick(2) ? Rounding::toward_zero : Rounding::nearest_even, pick(2));
    Op whole[] = {Op::add, Op::sub, Op::mul, Op::div, Op::mod, Op::min, Op::max, Op::bit_xor, Op::shl, Op::shr};
    return operation(whole[pick(10)], {sub(type), sub(type)});
}

static Algorithm renamed(const Algorithm &algorithm, const std::string &prefix,
                         std::map<const Algorithm *, std::shared_ptr<const Algorithm>> &callees) {
    Algorithm a = algorithm;
    auto n = [&](std::string &name) { name = name.empty() ? name : prefix + name; };
    auto all = [&](std::vector<std::string> &names) {
        for (std::string &name : names) n(name);
    };
    // "scope.result" and "stage.part" change in both halves.
    auto result = [&](std::string name) {
        size_t dot = name.find('.');
        if (dot != name.npos) name.insert(dot + 1, prefix);
        return prefix + name;
    };
    auto expr = [&](const Expr &root) {
        return rewrite(root, [&](const Expr &e) -> Expr {
            if (e.kind() == ExprKind::variable) return e->name[0] == '%' ? e : variable(prefix + e->name);
            if (e.kind() == ExprKind::extent) return extent(prefix + e->name);
            if (e.kind() == ExprKind::parameter) return parameter(prefix + e->name, e.type());
            if (e.kind() != ExprKind::load) return {};
            Expr::Node node = *e.get();
            node.name = result(node.name);
            return Expr(std::move(node));
        });
    };
    auto monoid = [&](Monoid &m) {
        n(m.name);
        for (Part &p : m.parts) n(p.name), all(p.dims);
        for (BatchPass &p : m.batch) n(p.name), all(p.dims);
    };
    n(a.name), n(a.numerics.name);
    for (Dim &d : a.dims) n(d.name), n(d.equals), d.size = d.size.defined() ? expr(d.size) : d.size;
    for (Parameter &p : a.parameters) n(p.name);
    for (Tensor &t : a.tensors) n(t.name), all(t.dims);
    for (Stage &s : a.stages()) {
        s = map_expressions(s, expr);
        n(s.name), all(s.dims);
        for (Rows &rows : s.rows) n(rows.dim), n(rows.flat);
        if (auto *r = std::get_if<Reduce>(&s.body)) all(r->dims), monoid(r->monoid);
        if (auto *c = std::get_if<Scan>(&s.body)) n(c->dim), monoid(c->monoid);
        if (auto *m = std::get_if<Map>(&s.body))
            for (Value &value : m->values)
                if (value.to) n(value.to->state);
        for (std::string &result : s.results)
            if (!result.empty()) n(result);
    }
    for (Call &c : a.calls()) {
        Call old = c;
        n(c.scope), c.dims.clear(), c.tensors.clear(), c.parameters.clear();
        for (auto &[from, to] : old.dims) c.dims[prefix + from] = prefix + to;
        for (auto &[from, to] : old.tensors) {
            View &view = c.tensors[prefix + from] = {result(to.tensor), to.index};
            for (Expr &e : view.index) e = expr(e);
        }
        if (c.repeat) {
            Repeat &r = *c.repeat = {prefix + old.repeat->dim};
            for (auto &[input, output] : old.repeat->carried) r.carried[prefix + input] = result(output);
            for (const std::string &output : old.repeat->stacked) r.stacked.insert(result(output));
            if (!old.repeat->until.empty()) r.until = result(old.repeat->until);
        }
        for (auto &[from, to] : old.parameters) c.parameters[prefix + from] = expr(to);
        auto &callee = callees[c.callee.get()];
        if (!callee) callee = std::make_shared<const Algorithm>(renamed(*c.callee, prefix, callees));
        c.callee = callee;
    }
    for (std::string &output : a.outputs) output = result(output);
    return a;
}

Algorithm renamed(const Algorithm &algorithm, const std::string &prefix) {
    std::map<const Algorithm *, std::shared_ptr<const Algorithm>> callees;
    return renamed(algorithm, prefix, callees);
}

namespace {

struct Same {
    ValueNumbering table;

    bool operator()(const Expr &a, const Expr &b) {
        if (!a.defined() || !b.defined()) return a.defined() == b.defined();
        return table.number(a) == table.number(b);
    }
    template <typename T>
    bool operator()(const std::vector<T> &a, const std::vector<T> &b) {
        bool equal = a.size() == b.size();
        for (size_t i = 0; equal && i < a.size(); i++) equal = (*this)(a[i], b[i]);
        return equal;
    }
    bool operator()(const std::string &a, const std::string &b) { return a == b; }
    bool operator()(const Scalar &a, const Scalar &b) { return a == b; }
    bool operator()(DType a, DType b) { return a == b; }
    bool operator()(int a, int b) { return a == b; }
    bool operator()(const Dim &a, const Dim &b) {
        return a.name == b.name && a.kind == b.kind && a.value == b.value && (*this)(a.size, b.size) && a.multiple_of == b.multiple_of &&
               a.min == b.min && a.max == b.max && a.equals == b.equals;
    }
    bool operator()(const Parameter &a, const Parameter &b) { return a.name == b.name && a.dtype == b.dtype; }
    bool operator()(const Tensor &a, const Tensor &b) {
        return a.name == b.name && a.dtype == b.dtype && a.dims == b.dims && a.role == b.role && (*this)(a.values, b.values);
    }
    bool operator()(const Part &a, const Part &b) { return a.name == b.name && a.identity == b.identity && a.dims == b.dims; }
    bool operator()(const BatchPass &a, const BatchPass &b) {
        return a.name == b.name && a.monoid == b.monoid && (*this)(a.values, b.values) && a.dims == b.dims;
    }
    bool operator()(const Monoid &a, const Monoid &b) {
        return a.name == b.name && (*this)(a.parts, b.parts) && a.inputs == b.inputs && (*this)(a.lift, b.lift) &&
               (*this)(a.combine, b.combine) && (*this)(a.step, b.step) && a.commutative == b.commutative && (*this)(a.batch, b.batch) &&
               a.batch_parts == b.batch_parts;
    }
    bool operator()(const Write &a, const Write &b) { return a.state == b.state && (*this)(a.index, b.index); }
    bool operator()(const Value &a, const Value &b) {
        return (*this)(a.value, b.value) && a.to.has_value() == b.to.has_value() && (!a.to || (*this)(*a.to, *b.to));
    }
    bool operator()(const Map &a, const Map &b) { return (*this)(a.values, b.values); }
    bool operator()(const Reduce &a, const Reduce &b) {
        return (*this)(a.monoid, b.monoid) && a.dims == b.dims && (*this)(a.inputs, b.inputs) && (*this)(a.where, b.where) &&
               (*this)(a.at, b.at);
    }
    bool operator()(const Scan &a, const Scan &b) {
        return (*this)(a.monoid, b.monoid) && a.dim == b.dim && a.inclusive == b.inclusive && (*this)(a.inputs, b.inputs) &&
               a.direction == b.direction && (*this)(a.segments, b.segments);
    }
    bool operator()(const Rows &a, const Rows &b) { return a.dim == b.dim && a.flat == b.flat && (*this)(a.first, b.first); }
    bool operator()(const Stage &a, const Stage &b) {
        if (a.name != b.name || a.dims != b.dims || a.results != b.results || a.body.index() != b.body.index()) return false;
        if (!(*this)(a.rows, b.rows)) return false;
        return std::visit([&](const auto &body) { return (*this)(body, std::get<std::decay_t<decltype(body)>>(b.body)); }, a.body);
    }
    bool operator()(const Call &a, const Call &b) {
        bool equal = a.scope == b.scope && (*this)(*a.callee, *b.callee) && a.dims == b.dims && a.tensors == b.tensors &&
                     a.results == b.results && a.repeat == b.repeat && a.parameters.size() == b.parameters.size();
        for (auto &[name, value] : a.parameters) equal = equal && b.parameters.count(name) && (*this)(value, b.parameters.at(name));
        return equal;
    }
    bool operator()(const Step &a, const Step &b) {
        if (a.index() != b.index()) return false;
        return std::visit([&](const auto &step) { return (*this)(step, std::get<std::decay_t<decltype(step)>>(b)); }, a);
    }
    bool operator()(const Algorithm &a, const Algorithm &b) {
        return a.name == b.name && (*this)(a.dims, b.dims) && (*this)(a.parameters, b.parameters) && (*this)(a.tensors, b.tensors) &&
               (*this)(a.steps, b.steps) && a.outputs == b.outputs && a.numerics == b.numerics && a.updates_state == b.updates_state;
    }
};

}  // namespace

bool same(const Algorithm &a, const Algorithm &b) { return Same()(a, b); }

}  // namespace tessera::test
