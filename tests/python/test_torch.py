"""PyTorch: direct calls with its tensors, and functions as operators of its dispatcher."""
import itertools
import json
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here; ./tessera frameworks fetches it and runs this")

import tessera as ts  # noqa: E402
from tessera import CallError, CompilationError, Dim, State, Tensor, autodiff, f32, i32, jit, tile  # noqa: E402
from tessera.shapes import Shapes  # noqa: E402
from tessera.stdlib import function, names  # noqa: E402
from tessera.torch import DTYPES, register  # noqa: E402

_numbers = itertools.count()
_root = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh():
    """A name that no operator has."""
    return f"tessera_tests::op{next(_numbers)}"


@jit(schedule="none")
def scaled(x: Tensor["M", "N", f32], s: Tensor["N", f32]):
    return x * s


@jit(schedule="none")
def scaled_backward(x: Tensor["M", "N", f32], s: Tensor["N", f32], grad_y: Tensor["M", "N", f32]):
    return {"grad_x": grad_y * s, "grad_s": tile.sum(grad_y * x, over="M")}


def test_results_are_of_torch(add, linear_silu):
    x, w, b = torch.randn(5, 32), torch.randn(32, 64), torch.randn(64)
    y = linear_silu(x, w, b)
    assert type(y) is torch.Tensor and y.dtype == torch.float32 and y.is_contiguous()
    torch.testing.assert_close(y, torch.nn.functional.silu(x @ w + b), rtol=1e-4, atol=1e-4)
    out = torch.empty_like(y)
    assert linear_silu(x, w, b, out=out) is out and torch.equal(out, y)
    wide = torch.randn(10, 64)
    assert torch.equal(linear_silu(wide[::2, :32], w, b), linear_silu(wide[::2, :32].contiguous(), w, b))
    row = torch.randn(7)
    assert torch.equal(add(row.expand(4, 7), row.expand(4, 7)), (row + row).expand(4, 7))
    assert add(torch.empty(0, 3), torch.empty(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("change, kind, words", [
    (lambda x: (x, x.double()), "dtype", "argument 1 ('z'): dtype must be f32, not f64"),
    (lambda x: (x, x.bfloat16()), "dtype", "not bf16"),
    (lambda x: (x, x[:3]), "extent-mismatch", "argument 1 ('z'), dimension 0"),
    (lambda x: (x, x.t().contiguous().t()), "stride-last", "argument 1 ('z')"),
    (lambda x: (x, x[0]), "rank", "argument 1 ('z')"),
])
def test_what_is_wrong_is_named(add, fresh, change, kind, words):
    operator = register(add, fresh)
    for call in (add, operator):  # the dispatcher hands the same exception on
        with pytest.raises(CallError) as error:
            call(*change(torch.zeros(4, 6)))
        assert error.value.kind == kind and words in str(error.value)


@pytest.mark.parametrize("dtype, tessera", [
    ("bfloat16", "bf16"), ("float16", "f16"), ("float64", "f64"), ("float8_e4m3fn", "f8e4m3fn"), ("float8_e5m2", "f8e5m2"),
    ("int32", "i32"), ("int64", "i64"), ("int8", "i8"), ("uint8", "u8"), ("bool", "bool_")])
def test_types(dtype, tessera):
    kind, theirs = getattr(ts, tessera), getattr(torch, dtype)

    @jit(schedule="none")
    def swap(x: Tensor["M", "N", kind], z: Tensor["M", "N", kind]) -> tuple[Tensor["M", "N", kind], Tensor["M", "N", kind]]:
        return z, x

    x, z = (torch.randint(0, 2, (2, 3)).float().to(theirs) for _ in range(2))
    first, second = swap(x, z)
    assert first.dtype == second.dtype == theirs
    assert torch.equal(first.float(), z.float()) and torch.equal(second.float(), x.float())


def test_dlpack_is_laid_out_as_in_torch(tmp_path):
    header = Path(torch.__file__).parent / "include" / "ATen" / "dlpack.h"
    if not header.exists():
        pytest.skip(f"PyTorch came without {header}")
    pairs = {
        "DLTensor": ("Tensor", {"data": "data", "device": "device", "ndim": "rank", "dtype": "type", "shape": "extents",
                                "strides": "strides", "byte_offset": "byte_offset"}),
        "DLManagedTensor": ("Managed", {"dl_tensor": "tensor", "manager_ctx": "context", "deleter": "deleter"}),
        "DLManagedTensorVersioned": ("ManagedVersioned", {"version": "version", "manager_ctx": "context", "deleter": "deleter",
                                                          "flags": "flags", "dl_tensor": "tensor"}),
        "DLPackExchangeAPIHeader": ("ExchangeHeader", {"version": "version", "prev_api": "previous"}),
        "DLPackExchangeAPI": ("Exchange", {
            "header": "header", "managed_tensor_allocator": "allocate", "managed_tensor_from_py_object_no_sync": "managed_of",
            "managed_tensor_to_py_object_no_sync": "object_of", "dltensor_from_py_object_no_sync": "tensor_of",
            "current_work_stream": "current_stream"})}
    lines = ['#include <cstddef>', f'#include "{header}"', '#include "python/core/dlpack.h"',
             "namespace ours = tessera::python::dlpack;", "static_assert(DLPACK_MAJOR_VERSION == 1);",
             "static_assert(ours::read_only == DLPACK_FLAG_BITMASK_READ_ONLY);"]
    for theirs, (mine, fields) in pairs.items():
        lines.append(f"static_assert(sizeof(::{theirs}) == sizeof(ours::{mine}));")
        lines += [f"static_assert(offsetof(::{theirs}, {a}) == offsetof(ours::{mine}, {b}));" for a, b in fields.items()]
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join(lines) + "\n")
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-I", str(_root), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_compiled(linear_silu, fresh):
    operator = register(linear_silu, fresh)
    w, b = torch.randn(32, 64), torch.randn(64)
    net = torch.compile(lambda x: operator(x.relu(), w, b) * 2, fullgraph=True, dynamic=True, backend="aot_eager")
    for m in (3, 8, 17):
        x = torch.randn(m, 32)
        assert torch.equal(net(x), linear_silu(x.relu(), w, b) * 2)


def test_constraints_are_guards(fresh):
    @jit(schedule="none")
    def even(x: Tensor[Dim.symbolic("M", min=2, max=64, multiple_of=2), "N", f32], z: Tensor["N", f32]):
        return tile.sum(x * z, over="N")

    operator = register(even, fresh)
    net = torch.compile(lambda x, z: operator(x, z), fullgraph=True, dynamic=True, backend="aot_eager")
    assert net(torch.ones(4, 3), torch.ones(3)).tolist() == [3] * 4
    meta = torch.ones(4, 3, device="meta")
    assert operator(meta, meta[0]).shape == (4,)
    for m, n, words in [(3, 3, "expected a multiple of 2, got 3"), (0, 3, "expected at least 2, got 0"),
                        (66, 3, "expected at most 64, got 66"), (4, 5, "argument 'z', dimension 0 (N): expected 5, got 3")]:
        with pytest.raises(RuntimeError) as error:
            operator(torch.ones(m, n, device="meta"), torch.ones(3, device="meta"))
        assert words in str(error.value)


def test_states_are_updated(fresh):
    @jit(schedule="none")
    def momentum(m: State["N", f32], g: Tensor["N", f32], rate: f32):
        tile.update("put", m, [tile.index("N")], m * rate + g)

    operator = register(momentum, fresh)
    assert "(Tensor(a!) m, Tensor g, float rate) -> ()" in str(operator._schema)
    m, g = torch.ones(5), torch.arange(5.0)
    kept = m
    assert operator(m, g, 0.5) is None and torch.equal(kept, g + 0.5)
    net = torch.compile(lambda m, g: operator(m, g, 0.5), fullgraph=True, dynamic=True, backend="aot_eager")
    net(m, g)
    assert torch.equal(kept, (g + 0.5) * 0.5 + g)
    torch.library.opcheck(operator, (torch.ones(5), g, 0.5))


def test_gradients(fresh):
    operator = register(scaled, fresh, backward=scaled_backward)
    x, s = torch.randn(4, 6, requires_grad=True), torch.randn(6, requires_grad=True)
    torch.library.opcheck(operator, (x, s))
    for call in (operator, torch.compile(lambda x, s: operator(x, s), fullgraph=True, backend="aot_eager")):
        x.grad = s.grad = None
        call(x, s).sum().backward()  # its gradient is one number, spread
        torch.testing.assert_close(x.grad, s.detach().expand(4, 6))
        torch.testing.assert_close(s.grad, x.detach().sum(0))
    with torch.no_grad():
        assert not operator(x, s).requires_grad


@autodiff
@jit(schedule="none")
def gated(x: Tensor["M", "N", f32], s: Tensor["N", f32], k: Tensor["N", i32], by: f32 = 2.0) -> tuple[Tensor["M", "N", f32], Tensor["M", f32]]:
    gate = tile.sigmoid(x * s) * by + tile.stop_gradient(k.cast(f32))
    return x * gate, tile.sum(x * x, over="N")


def by_torch(x, s, k, by=2.0):
    return x * (torch.sigmoid(x * s) * by + k), (x * x).sum(1)


def test_gradients_by_vjp(fresh):
    operator = register(gated, fresh)
    x, s, k = torch.randn(4, 6, requires_grad=True), torch.randn(6, requires_grad=True), torch.arange(6, dtype=torch.int32)
    torch.library.opcheck(operator, (x, s, k))
    for call in (operator, torch.compile(lambda *v: operator(*v), fullgraph=True, backend="aot_eager")):
        for wanted in ((x, s), (x,), (s,)):
            given = [t if any(t is w for w in wanted) else t.detach() for t in (x, s)]
            for pick in (lambda y, n: (y * y).sum() + n.sum(), lambda y, n: y.sum()):
                ours = torch.autograd.grad(pick(*call(*given, k)), wanted)
                theirs = torch.autograd.grad(pick(*by_torch(*given, k)), wanted)
                for a, b in zip(ours, theirs):
                    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        assert not operator(x, s, k)[0].requires_grad


@jit(schedule="none")
def clipped(s: Tensor["N", f32], y_grad: Tensor["M", "N", f32], most: f32):
    return {"x_grad": tile.minimum(tile.maximum(y_grad * s, -most), most)}  # `s` has none


@ts.with_rule(backward=clipped, differs=True)
@jit(schedule="none")
def gate(x: Tensor["M", "N", f32], s: Tensor["N", f32], most: f32 = 1.0) -> Tensor["M", "N", f32]:
    return x * s


@autodiff
@jit(schedule="none")
def behind_gate(x: Tensor["M", "N", f32], s: Tensor["N", f32], most: f32 = 0.5) -> Tensor["M", "N", f32]:
    return tile.call("gate", gate, x, s, most=most) * s


def test_gradients_by_a_rule(fresh):
    """The rule, which is another than the derivative on purpose: what goes back is clipped, and s is a constant."""
    x, s = torch.randn(4, 6, requires_grad=True), torch.linspace(-3, 3, 6, requires_grad=True)
    g = torch.linspace(-1.5, 1.5, 24).view(4, 6)
    for i, (function, arguments, x_grad, s_grad) in enumerate([
            (gate, (x, s, 2.0), (g * s).clamp(-2, 2), 0 * s),
            (autodiff(gate), (x, s, 0.25), (g * s).clamp(-0.25, 0.25), 0 * s),
            (behind_gate, (x, s), (g * s * s).clamp(-0.5, 0.5), (g * x * s).sum(0))]):
        operator = register(function, f"{fresh}_{i}")
        torch.library.opcheck(operator, arguments)
        for call in (operator, torch.compile(lambda *v, o=operator: o(*v), fullgraph=True, backend="aot_eager")):
            y = call(*arguments)
            ours = torch.autograd.grad(y, (x, s), g, allow_unused=True)
            torch.testing.assert_close(ours[0], x_grad.detach(), rtol=1e-6, atol=1e-6)
            by_s = torch.zeros(6) if ours[1] is None else ours[1]
            torch.testing.assert_close(by_s, s_grad.detach(), rtol=1e-5, atol=1e-5)


def test_gradients_that_nobody_gives_are_errors(add, fresh):
    x = torch.randn(4, 6, requires_grad=True)
    operator = register(add, fresh)
    for call in (operator, torch.compile(lambda x, z: operator(x, z), fullgraph=True, backend="aot_eager")):
        with pytest.raises(Exception, match="argument 'x' requires grad, and .* has no backward function; declare it under @autodiff, register it with backward="):
            call(x, x)
    with torch.no_grad():
        assert torch.equal(operator(x, x), x + x)

    @jit(schedule="none")
    def half(s: Tensor["N", f32], grad_y: Tensor["M", "N", f32]):
        return {"grad_x": grad_y * s}

    partly = register(scaled, fresh + "h", backward=half)
    partly(x, torch.ones(6)).sum().backward()
    assert torch.equal(x.grad, torch.ones(4, 6))
    with pytest.raises(CallError, match="'s' requires grad, and the backward function half has no result 'grad_s'"):
        partly(x, torch.ones(6, requires_grad=True))


def test_what_cannot_be_registered(add, fresh):
    @jit(schedule="none")
    def other(q: Tensor["M", "N", f32]):
        return {"grad_x": q + q}

    @jit(schedule="none")
    def misnamed(x: Tensor["M", "N", f32]):
        return x + x

    @jit
    def family(x: Tensor["M", f32], n: int = 1):
        return x * n

    register(add, fresh)
    for make, words in [(lambda: register(add, fresh), f"there is an operator {fresh} already"),
                        (lambda: register(add, "add"), "expected a name such as \"my::add\", got 'add'"),
                        (lambda: register(family, fresh + "f"), "expected a function under @jit, got JitFamily"),
                        (lambda: register(scaled, fresh + "b", backward=other),
                         "argument 'q': a backward function of scaled takes some of x, s, y, grad_y"),
                        (lambda: register(scaled, fresh + "c", backward=misnamed),
                         "result 'y': a backward function of scaled returns some of grad_x, grad_s")]:
        with pytest.raises(CompilationError) as error:
            make()
        assert words in str(error.value)


def samples(made):
    """Small arguments that the algorithm takes, or None where PyTorch has no such type."""
    torch.manual_seed(3)
    dims = json.loads(made.json)["dims"]
    told = {d["name"]: -(-max(4, d.get("min", 0)) // d.get("multiple_of", 1)) * d.get("multiple_of", 1) for d in dims}
    shapes = Shapes(made.algorithm)
    tensors = {n: (t.name, [made.algorithm.extent(d, told) for d in dims]) for n, _, t, dims in made.algorithm.tensors}
    values = []
    for n in made.arguments:
        if n not in tensors:
            values.append({"f32": 0.5}.get(dict((p, t.name) for p, t in made.algorithm.parameters)[n], 1))
            continue
        kind, extents = tensors[n]
        values.append((torch.rand(extents) if DTYPES[kind].is_floating_point else torch.zeros(extents)).to(DTYPES[kind]))
    return values


# What of the library is no operator, and the id of the refusal. Some results have an extent that only the caller knows, and PyTorch has no
# kernels of its own for elements of 4 bits.
REFUSED = {
    **dict.fromkeys(["embedding_gradient", "histogram", "random_normal", "random_uniform", "resize_bicubic_nhwc", "resize_bilinear_nhwc",
                     "resize_nearest_nhwc", "segmented_sum", "slice"], "python.result-extent"),
    **dict.fromkeys(["matmul_dynamic_qint4", "matmul_mxfp4", "matmul_nvfp4", "matmul_qint4"], "torch.dtype")}


@pytest.mark.parametrize("name", names())
def test_operators_of_the_library(name, fresh):
    made = function(name).with_schedule("none")
    try:
        operator = register(made, fresh)
    except CompilationError as error:
        assert REFUSED.get(name) == error.id, str(error)
        return
    assert name not in REFUSED
    checks = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    if name == "matmul_mxfp8":
        checks.remove("test_schema")  # which itself multiplies what it is given, and PyTorch does not multiply float8 on the CPU
    said = torch.library.opcheck(operator, tuple(samples(made)), test_utils=checks)
    assert set(said.values()) == {"SUCCESS"}


def test_defaults_of_parameters():
    @jit(schedule="none")
    def moved(x: Tensor["N", f32], by: f32 = 0.5, times: f32 = 2) -> Tensor["N", f32]:
        return (x + by) * times

    op = register(moved, "tessera_defaults::moved")
    x = torch.ones(3)
    assert op(x).tolist() == [3.0] * 3 and op(x, 1.5).tolist() == [5.0] * 3
    assert torch.compile(lambda v: op(v, times=3.0), fullgraph=True, backend="eager")(x).tolist() == [4.5] * 3
