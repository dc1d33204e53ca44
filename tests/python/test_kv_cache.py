"""Caches of keys and values: generated kernels beside NumPy, in each layout, and pages by tables in no order."""
import numpy as np
import pytest

from tessera import Dim, State, Tensor, f32, i32, jit, tile
from tessera.stdlib import function

B, H, G, D, E, PAGE, ENTRIES = 3, 2, 2, 8, 6, 4, 5
ROOM = PAGE * ENTRIES


def oracle(q, k, v, position, window=0, sinks=0):
    """q (B, H, G, S, D), keys and values (B, H, T, .), the position of each query (B, S), in double precision."""
    scores = np.einsum("bhgsd,bhtd->bhgst", q, k, dtype="f8") / np.sqrt(q.shape[-1])
    t = np.arange(k.shape[2])
    sees = t <= position[..., None]
    if window:
        sees &= (t > position[..., None] - window) | (t < sinks)
    weight = np.where(sees[:, None, None], np.exp(scores - scores.max(-1, keepdims=True)), 0)
    total = weight.sum(-1, keepdims=True)
    return np.einsum("bhgst,bhte->bhgse", weight / np.where(total, total, 1), v.astype("f8"))


P1, C1 = Dim.symbolic("P", min=1), Dim.symbolic("C", min=1)


@jit(schedule="none")
def paged(k: Tensor["B", "H", "S", "D", f32], v: Tensor["B", "H", "S", "E", f32], q: Tensor["B", "H", "G", "S", "D", f32],
          keys: State[P1, "H", PAGE, "D", f32], values: State[P1, "H", PAGE, "E", f32], length: Tensor["B", i32],
          table: Tensor["B", C1, i32], window: int = 0, sinks: int = 0) -> Tensor["B", "H", "G", "S", "E", f32]:
    cache = tile.kv_cache(keys, values, length, layout="paged", table=table)
    first = cache.length
    cache.append(k, v)
    return tile.attend(q, cache, first + tile.index("S"), window=window, sinks=sinks)


@pytest.mark.parametrize("window,sinks", [(0, 0), (4, 0), (5, 2)])
def test_a_prompt_in_pieces_and_steps_of_one_token(rng, window, sinks):
    k, v, q = (rng.standard_normal(s).astype("f4") for s in [(B, H, ROOM, D), (B, H, ROOM, E), (B, H, G, ROOM, D)])
    table = rng.permutation(B * ENTRIES).astype("i4").reshape(B, ENTRIES)
    keys, values = np.full((B * ENTRIES, H, PAGE, D), np.nan, "f4"), np.full((B * ENTRIES, H, PAGE, E), np.nan, "f4")
    made, at = [], 0
    for piece in (7, 1, 1, 8, 3):
        now = slice(at, at + piece)
        made.append(paged(*(np.ascontiguousarray(x[..., now, :]) for x in (k, v, q)), keys, values, np.full(B, at, "i4"), table,
                          window=window, sinks=sinks))
        at += piece
    position = np.broadcast_to(np.arange(ROOM), (B, ROOM))
    np.testing.assert_allclose(np.concatenate(made, 3), oracle(q, k, v, position, window, sinks), atol=3e-6)
    np.testing.assert_array_equal(keys[table].transpose(0, 2, 1, 3, 4).reshape(k.shape), k)


@pytest.mark.parametrize("codes,tolerance", [("i8", 0.03), ("storage", 3e-6)])
@pytest.mark.parametrize("lengths", [(0, ROOM, 3), (1, 5, 19), (20, 0, 0)])
def test_layouts_of_the_library_give_equal_bits(rng, codes, tolerance, lengths):
    S = 2
    k, v = rng.standard_normal((B, ROOM, H, D)).astype("f4"), rng.standard_normal((B, ROOM, H, E)).astype("f4")
    q = rng.standard_normal((B, H, G, S, D)).astype("f4")
    count, made = np.array(lengths, "i4"), {}
    table = rng.permutation(B * ENTRIES).astype("i4").reshape(B, ENTRIES)
    for layout in ("contiguous", "ring", "paged"):
        rows, slots = (B * ENTRIES, PAGE) if layout == "paged" else (B, ROOM)
        kind = "i1" if codes == "i8" else "f4"
        states = [np.zeros((rows, H, slots, D), kind), np.zeros((rows, H, slots, E), kind)]
        if codes == "i8":
            states += [np.zeros((rows, H, slots), "f4"), np.zeros((rows, H, slots), "f4")]
        tables = [table] if layout == "paged" else []
        how = {"layout": layout, "codes": codes, "page": PAGE, "positions": ROOM}
        function("cache_append", counts="yes", **how).with_schedule("none")(*states, np.zeros(B, "i4"), *tables, k, v, count)
        made[layout] = function("attention_cached", **how).with_schedule("none")(q, *states, count, *tables)
    np.testing.assert_array_equal(made["contiguous"], made["paged"])
    np.testing.assert_array_equal(made["contiguous"], made["ring"])
    position = count[:, None] - S + np.arange(S)
    expected = oracle(q, k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3), position)
    np.testing.assert_allclose(made["paged"], expected, atol=tolerance)
    assert (made["paged"][count == 0] == 0).all()


def test_pages_are_copied_and_pairs_without_a_page_are_dropped(rng):
    pages = rng.integers(0, 256, (5, 12), dtype="u1")
    expected = pages.copy()
    expected[[1, 2]] = pages[[0, 1]]
    function("cache_copy_pages").with_schedule("none")(pages, np.array([[0, 1], [1, 2], [-1, -1], [5, 0], [0, 9]], "i4"))
    np.testing.assert_array_equal(pages, expected)
