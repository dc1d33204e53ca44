"""JAX: direct calls with its arrays, and functions under jax.jit."""
import subprocess
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not here; ./tessera frameworks fetches it and runs this")

import tessera as ts  # noqa: E402
from tessera import CallError, State, Tensor, autodiff, f32, i32, jit, tile  # noqa: E402
from tessera.jax import call  # noqa: E402

jnp = jax.numpy
_root = Path(__file__).resolve().parents[2]


def array(rng, *shape):
    return jnp.asarray(rng.standard_normal(shape), jnp.float32)


@jit(schedule="none")
def momentum(m: State["N", f32], g: Tensor["N", f32], rate: f32):
    tile.update("put", m, [tile.index("N")], m * rate + g)


def test_direct_calls(add, rng):
    x, z = array(rng, 4, 6), array(rng, 4, 6)
    y = add(x, z)
    assert isinstance(y, jax.Array)
    np.testing.assert_array_equal(y, x + z)
    np.testing.assert_array_equal(add(np.asarray(x), z), x + z)


def test_arrays_are_never_written(add):
    x, y = jnp.ones((4, 6)), jnp.zeros((4, 6))
    with pytest.raises(CallError) as error:
        add(x, x, out=y)
    assert error.value.kind == "read-only"
    with pytest.raises(CallError, match="'m' is updated in place, and the tensor is read-only"):
        momentum(jnp.ones(5), jnp.ones(5), 0.5)
    assert not y.any()


def test_under_jit(linear_silu, rng):
    w, b = array(rng, 32, 64), array(rng, 64)
    net = jax.jit(lambda x, w, b: call(linear_silu, jnp.maximum(x, 0), w, b) * 2)
    for m in (3, 8):
        x = array(rng, m, 32)
        assert jnp.array_equal(net(x, w, b), linear_silu(jnp.maximum(x, 0), w, b) * 2)
        assert jnp.array_equal(call(linear_silu, x, w, b), linear_silu(x, w, b))


def test_batches(add, rng):
    x, z = array(rng, 5, 4, 6), array(rng, 4, 6)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda x: call(add, x, z)))(x), x + z)


def test_states_are_donated(rng):
    m, g = array(rng, 9), array(rng, 9)
    kept = np.array(m)
    step = jax.jit(lambda m, g: call(momentum, m, g, 0.5))
    np.testing.assert_array_equal(step(m, g), kept * np.float32(0.5) + g)
    np.testing.assert_array_equal(m, kept)  # who does not donate it keeps it
    donated = jax.jit(lambda m, g: call(momentum, m, g, 0.5), donate_argnums=0)
    assert jnp.array_equal(donated(m, g), kept * np.float32(0.5) + g)
    with pytest.raises(CallError, match="argument 'rate' is a number of the kernel's and is traced"):
        jax.jit(lambda m, g, r: call(momentum, m, g, r))(g, g, 0.5)


@autodiff
@jit(schedule="none")
def gated(x: Tensor["M", "N", f32], s: Tensor["N", f32], k: Tensor["N", i32], by: f32 = 2.0) -> tuple[Tensor["M", "N", f32], Tensor["M", f32]]:
    gate = tile.sigmoid(x * s) * by + tile.stop_gradient(k.cast(f32))
    return x * gate, tile.sum(x * x, over="N")


def by_jax(x, s, k):
    return x * (jax.nn.sigmoid(x * s) * 2 + k), (x * x).sum(1)


@pytest.mark.parametrize("under", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_gradients_by_vjp(rng, under):
    x, s, k = array(rng, 4, 6), array(rng, 6), jnp.arange(6, dtype=jnp.int32)
    for pick in (lambda y, n: (y * y).sum() + n.sum(), lambda y, n: y.sum()):
        for wanted in ((0, 1), (0,), (1,)):
            ours = under(jax.grad(lambda *v: pick(*call(gated, *v)), argnums=wanted))(x, s, k)
            theirs = jax.grad(lambda *v: pick(*by_jax(*v)), argnums=wanted)(x, s, k)
            for a, b in zip(ours, theirs):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    batched = jax.vmap(jax.grad(lambda x: call(gated, x, s, k)[0].sum()))(jnp.stack([x, x + 1]))
    np.testing.assert_allclose(batched[1], jax.grad(lambda x: by_jax(x, s, k)[0].sum())(x + 1), rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("under", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_gradients_by_a_rule(rng, under):
    """The rule, which is another than the derivative on purpose: what goes back is clipped, and s is a constant."""
    x, s, g = array(rng, 4, 6), jnp.linspace(-3, 3, 6, dtype=jnp.float32), jnp.linspace(-1.5, 1.5, 24, dtype=jnp.float32).reshape(4, 6)

    def gradients(function, *more):
        return under(jax.grad(lambda x, s: (call(function, x, s, *more) * g).sum(), argnums=(0, 1)))(x, s)

    for function, more, x_grad, s_grad in [(gate, (2.0,), jnp.clip(g * s, -2, 2), 0 * s),
                                           (autodiff(gate), (0.25,), jnp.clip(g * s, -0.25, 0.25), 0 * s),
                                           (behind_gate, (), jnp.clip(g * s * s, -0.5, 0.5), (g * x * s).sum(0))]:
        ours = gradients(function, *more)
        np.testing.assert_allclose(ours[0], x_grad, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(ours[1], s_grad, rtol=1e-5, atol=1e-5)


def test_several_results(rng):
    @jit(schedule="none")
    def both(x: Tensor["N", f32]):
        return x + x, x * x

    x = array(rng, 7)
    twice, square = jax.jit(lambda x: call(both, x))(x)
    np.testing.assert_array_equal(twice, x + x)
    np.testing.assert_array_equal(square, x * x)


def test_types(rng):
    for mine, theirs in [("bf16", "bfloat16"), ("f16", "float16"), ("f8e4m3fn", "float8_e4m3fn"), ("f8e5m2", "float8_e5m2"),
                         ("i32", "int32"), ("i8", "int8"), ("u8", "uint8"), ("bool_", "bool")]:
        kind = getattr(ts, mine)

        @jit(schedule="none")
        def same(x: Tensor["M", "N", kind]) -> Tensor["M", "N", kind]:
            return x

        x = jnp.asarray(rng.integers(0, 2, (3, 4)), theirs)
        for y in (same(x), jax.jit(lambda x: call(same, x))(x)):
            assert y.dtype == x.dtype and jnp.array_equal(y.astype("float32"), x.astype("float32"))


def test_what_is_wrong_is_named(add, rng):
    x = array(rng, 4, 6)
    for values, kind, words in [((x, x[:3]), "extent-mismatch", "add: argument 'z', dimension 0 (M): expected 4, got 3"),
                                ((x, x.astype("bfloat16")), "dtype", "add: argument 'z': dtype must be float32, not bfloat16"),
                                ((x, x[0]), "rank", "add: argument 'z': expected 2 dimensions, got 1"),
                                ((x,), "argument", "add: expected 2 arguments (x, z), got 1")]:
        with pytest.raises(CallError) as error:
            jax.jit(lambda *v: call(add, *v))(*values)
        assert error.value.kind == kind and words in str(error.value)

    @jit(schedule="none")
    def rated(x: Tensor["N", f32], rate: ts.Param[f32, 0, 1]):
        return x * rate

    with pytest.raises(Exception, match="INVALID_ARGUMENT: rated: .*rate"):
        jax.block_until_ready(jax.jit(lambda x: call(rated, x, 1.5))(x[0]))
    with pytest.raises(Exception, match="cannot be differentiated"):
        jax.grad(lambda x: call(add, x, x).sum())(x)


def test_the_interface_is_laid_out_as_in_jaxlib(tmp_path):
    folder = Path(jax.ffi.include_dir())
    if not (folder / "xla" / "ffi" / "api" / "c_api.h").exists():
        pytest.skip("jaxlib came without XLA's header")
    pairs = {
        "Extension_Base": ("Extension", {"struct_size": "struct_size", "type": "type", "next": "next"}),
        "Api_Version": ("Version", {"extension_start": "extension", "major_version": "major", "minor_version": "minor"}),
        "Error_Create_Args": ("ErrorCreate", {"extension_start": "extension", "message": "message", "errc": "code"}),
        "Buffer": ("Buffer", {"dtype": "type", "data": "data", "rank": "rank", "dims": "extents"}),
        "ByteSpan": ("Span", {"ptr": "data", "len": "size"}),
        "Array": ("Array", {"dtype": "type", "size": "size", "data": "data"}),
        "Args": ("Buffers", {"size": "size", "types": "types", "args": "values"}),
        "Rets": ("Buffers", {"size": "size", "types": "types", "rets": "values"}),
        "Attrs": ("Attributes", {"size": "size", "types": "types", "names": "names", "attrs": "values"}),
        "CallFrame": ("Frame", {"extension_start": "extension", "api": "api", "ctx": "context", "stage": "stage", "args": "arguments",
                                "rets": "results", "attrs": "attributes", "future": "future"}),
        "Metadata_Extension": ("MetadataExtension", {"metadata": "metadata"})}
    heads = {"Metadata": ("Metadata", {"api_version": "version"}),
             "Api": ("Api", {"api_version": "version", "internal_api": "internal", "XLA_FFI_Error_Create": "create_error"})}
    lines = ['#include "xla/ffi/api/c_api.h"', '#include "python/core/xla.h"', "namespace ours = tessera::python::xla;"]
    lines += [f"static_assert({a} == static_cast<int>(ours::{b}));" for a, b in [
        ("XLA_FFI_Extension_Metadata", "metadata_extension"), ("XLA_FFI_Error_Code_INVALID_ARGUMENT", "invalid_argument"),
        ("XLA_FFI_Error_Code_NOT_FOUND", "not_found"), ("XLA_FFI_ExecutionStage_EXECUTE", "execute"), ("XLA_FFI_ArgType_BUFFER", "buffer"),
        ("XLA_FFI_AttrType_ARRAY", "array_attribute"), ("XLA_FFI_AttrType_STRING", "string_attribute")]]
    lines += [f"static_assert(sizeof(XLA_FFI_{a}) == sizeof(ours::{b}));" for a, (b, _) in pairs.items()]
    for theirs, (mine, fields) in {**pairs, **heads}.items():
        lines += [f"static_assert(offsetof(XLA_FFI_{theirs}, {a}) == offsetof(ours::{mine}, {b}));" for a, b in fields.items()]
    lines.append("static_assert(XLA_FFI_API_MAJOR == 0);")
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join(lines) + "\n")
    command = ["c++", "-std=c++20", "-fsyntax-only", "-I", str(_root), "-I", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_defaults_of_parameters():
    @jit(schedule="none")
    def moved(x: Tensor["N", f32], by: f32 = 0.5) -> Tensor["N", f32]:
        return x + by

    np.testing.assert_array_equal(jax.jit(lambda v: call(moved, v))(np.ones(3, np.float32)), np.full(3, 1.5, np.float32))
