"""The manager of pages beside generated kernels, as a server has them, and checkpoints."""
import os
import threading

import numpy as np
import pytest

from tessera import Dim, State, StateError, Tensor, f16, f32, i32, jit, state, tile
from tessera.stdlib import function
from test_kv_cache import oracle

H, G, D, PAGE = 2, 2, 8, 4
P, C = Dim.symbolic("P", min=1), Dim.symbolic("C", min=1)


@jit(schedule="none")
def decode(k: Tensor["B", "H", "S", "D", f32], v: Tensor["B", "H", "S", "D", f32], q: Tensor["B", "H", "G", "S", "D", f32],
           keys: State[P, "H", PAGE, "D", f32], values: State[P, "H", PAGE, "D", f32], length: Tensor["B", i32], begin: Tensor["B", i32],
           table: Tensor["B", C, i32], sinks: int = 0) -> Tensor["B", "H", "G", "S", "D", f32]:
    cache = tile.kv_cache(keys, values, length, layout="paged", table=table, begin=begin)
    first = cache.length
    cache.append(k, v)
    return tile.attend(q, cache, first + tile.index("S"), sinks=sinks)


class Model:
    """One layer of attention whose tokens' keys, values and queries are drawn from the token's number and position."""

    def __init__(self, pages=24, **options):
        self.keys, self.values = (np.full((pages, H, PAGE, D), np.nan, "f4") for _ in range(2))
        self.pages = state.Pages(self.keys, self.values, page_tokens=PAGE, sequences=8, **options)

    @staticmethod
    def drawn(tokens, at):
        parts = [np.random.default_rng([token, at + i]).standard_normal((H * (2 + G), D)).astype("f4") for i, token in enumerate(tokens)]
        all = np.stack(parts, 1)  # (heads, S, D)
        return all[:H], all[H:2 * H], all[2 * H:].reshape(H, G, len(tokens), D)

    def step(self, sequences, tokens, sinks=0):
        """Each sequence takes its tokens, as many for all."""
        count = len(tokens[0])
        for s in sequences:
            self.pages.reserve(s, count, timeout=None)
        with self.pages.step(sequences) as step:
            k, v, q = (np.stack(x) for x in zip(*[self.drawn(t, n) for t, n in zip(tokens, step.length)]))
            made = decode(k, v, q, self.keys, self.values, step.length, step.begin, step.table, sinks=sinks)
            for s in sequences:
                self.pages.commit(s, count)
        return made

    def alone(self, tokens):
        """What attention gives for each of these tokens, by NumPy."""
        k, v, q = self.drawn(tokens, 0)
        return oracle(q[None], k[None], v[None], np.arange(len(tokens))[None])[0]


def test_sequences_join_and_leave_and_each_has_its_own_bits(rng):
    texts = [rng.integers(0, 99, n).tolist() for n in (9, 14, 6)]
    together, made = Model(), {i: [] for i in range(3)}
    opened = {}
    for turn in range(16):
        if turn in (0, 2, 5):
            opened[len(opened)] = together.pages.open()
        live = [i for i in opened if len(made[i]) < len(texts[i])]
        if not live:
            break
        y = together.step([opened[i] for i in live], [[texts[i][len(made[i])]] for i in live])
        for row, i in enumerate(live):
            made[i].append(y[row, :, :, 0])
            if len(made[i]) == len(texts[i]):
                together.pages.close(opened[i])
    assert together.pages.counts.free == 24
    for i, text in enumerate(texts):
        model = Model()
        s = model.pages.open()
        alone = [model.step([s], [[t]])[0, :, :, 0] for t in text]
        np.testing.assert_array_equal(made[i], alone)
        np.testing.assert_allclose(np.stack(alone, 2), model.alone(text), atol=3e-6)


def test_a_prompt_is_shared_until_somebody_writes(rng):
    model, prompt = Model(prefix_tokens=8), rng.integers(0, 99, 6).tolist()
    first = model.pages.open()
    model.step([first], [prompt])
    model.pages.publish(first, prompt)
    assert model.pages.prefix(prompt + [5]) == (first, PAGE)
    second = model.pages.fork(first)
    assert model.pages.counts.used == 2
    ends = [[1, 2, 3], [4, 5, 6]]
    y = model.step([first, second], ends)
    assert model.pages.counts.used == 5  # the page in the middle is copied, and each has one more
    for row, end in enumerate(ends):
        np.testing.assert_allclose(y[row], model.alone(prompt + end)[:, :, 6:], atol=3e-6)


def test_a_kernel_copies_the_pages_that_a_fork_asks_for(rng):
    model = Model()
    first = model.pages.open()
    model.step([first], [[3, 1, 4]])
    second = model.pages.fork(first, 2)
    source, target = model.pages.reserve(second, 1, copy=False)
    before = model.keys[source].copy()
    model.keys[target], model.values[target] = model.keys[source], model.values[source]
    model.pages.commit(second, 1)
    np.testing.assert_array_equal(model.keys[model.pages.step([second]).table[0, 0]], before)


def test_a_window_with_sinks_reads_what_was_kept(rng):
    text, window, keep = rng.integers(0, 99, 22).tolist(), 6, PAGE
    model = Model(pages=5, sequence_pages=6)  # fewer than the whole text has
    s = model.pages.open()
    for at, token in enumerate(text):
        y = model.step([s], [[token]], sinks=keep)
        begin = model.pages.info(s).begin
        k, v, q = model.drawn(text[:at + 1], 0)
        seen = [t for t in range(at + 1) if t < keep or t >= (begin if at else 0)]
        expected = oracle(q[None, :, :, -1:], k[None][:, :, seen], v[None][:, :, seen], np.array([[len(seen) - 1]]))
        np.testing.assert_allclose(y[0], expected[0], atol=3e-6)
        model.pages.prune(s, window, keep)
    assert model.pages.info(s).begin >= len(text) - window - PAGE


@pytest.mark.parametrize("home", ["memory", "files"])
def test_what_goes_outside_comes_back_with_its_bits(rng, tmp_path, home):
    folder = tmp_path if home == "files" else None
    model = Model(pages=4, outside_pages=12, folder=folder)
    texts = [rng.integers(0, 99, 11).tolist() for _ in range(3)]  # three pages each, of four
    opened = [model.pages.open(key=i) for i in range(3)]
    made = [[], [], []]
    for at in range(0, 11, 4):
        for i, s in enumerate(opened):
            if model.pages.info(s).where != "memory":
                for other in opened:
                    if model.pages.info(other).where == "memory":
                        model.pages.offload(other)
                        model.pages.wait(other)
                model.pages.prefetch(s, timeout=None)
                model.pages.wait(s)
            made[i].append(model.step([s], [texts[i][at:at + 4]])[0])
    for i, text in enumerate(texts):
        np.testing.assert_allclose(np.concatenate(made[i], 2), model.alone(text), atol=3e-6)
    assert model.pages.counts.outside > 0


def test_mistakes_say_what_and_lose_nothing():
    model = Model(pages=2, sequence_pages=99)
    s = model.pages.open(key=7)
    model.step([s], [[1, 2, 3]])
    for kind, call in [("state.full", lambda: model.pages.reserve(s, 99)), ("state.length", lambda: model.pages.commit(s, 1)),
                       ("state.sequence", lambda: model.pages.close(12345)), ("state.length", lambda: model.pages.fork(s, 4)),
                       ("state.argument", lambda: model.pages.reserve(s, -1)), ("state.argument", lambda: model.pages.wait(s, timeout=-1.0)),
                       ("state.argument", lambda: model.pages.step([s], 0))]:
        with pytest.raises(StateError) as raised:
            call()
        assert raised.value.kind == kind, raised.value
    assert model.pages.info(s) == (s, 7, 3, 0, 0, 0, 1, 0, "memory")
    shut = np.zeros((2, 3))
    shut.flags.writeable = False
    for pools, words in [((shut,), "read only"), ((np.zeros((4, 6, 3))[:, ::2],), "gaps"), ((np.zeros(3),), "first axis"),
                         ((np.zeros((2, 3)), np.zeros((3, 3))), "2 pages"), ((), "at least one"), ((np.broadcast_to(np.zeros(3), (2, 3)).view(),), "read only")]:
        with pytest.raises(StateError, match=words):
            state.Pages(*pools, page_tokens=4)


def test_tables_of_sequences_without_tokens_have_an_entry():
    pages = state.Pages(np.zeros((2, 3)), page_tokens=4, steps=1)
    for sequences in ([pages.open()], []):
        with pages.step(sequences) as step:
            assert step.table.shape == (len(sequences), 1) and (step.table == -1).all()
    for _ in range(3):
        pages.step([])  # what nobody keeps is released


def test_a_folder_of_other_pages_is_refused_and_kept(tmp_path):
    def cache(width, recover=False):
        return state.Pages(np.ones((4, width), "f4"), page_tokens=2, outside_pages=4, folder=tmp_path, recover=recover)

    first = cache(4)
    s = first.open(key=5)
    first.reserve(s, 3)
    first.commit(s, 3)
    first.offload(s)
    first.wait(s)
    del first
    with pytest.raises(StateError, match="another cache") as raised:
        cache(5, recover=True)
    assert raised.value.kind == "state.foreign"
    again = cache(4, recover=True)
    [found] = again.sequences
    assert (found.key, found.length, found.where) == (5, 3, "outside")
    again.prefetch(found.sequence)
    again.wait(found.sequence)
    for options in ({"folder": tmp_path}, {"recover": True}, {"recover": True, "outside_pages": 2}):
        with pytest.raises(StateError) as raised:
            state.Pages(np.zeros((2, 3)), page_tokens=4, **options)
        assert raised.value.kind == "state.argument"


def test_threads_use_one_manager(rng):
    pages = state.Pages(np.zeros((64, 2), "u1"), page_tokens=2, sequences=32)

    def work():
        for _ in range(200):
            s = pages.open()
            pages.reserve(s, 3)
            with pages.step([s]) as step:
                assert step.table.shape == (1, 2) and (step.table >= 0).all()
            pages.commit(s, 3)
            pages.close(s)

    all = [threading.Thread(target=work) for _ in range(4)]
    for t in all:
        t.start()
    for t in all:
        t.join()
    assert pages.counts == (64, 0, 0, 0, 0, 0)


def test_checkpoints_are_whole_or_refused(tmp_path, rng):
    file = tmp_path / "step.safetensors"
    kept = {"m": rng.standard_normal((3, 4)).astype("f4"), "w": rng.standard_normal(5), "n": np.array(4, "i8")}
    state.save(file, kept, step=9, seed=2**63, semantic_hash="sha256:" + "a" * 64)
    head, tensors = state.look(file)
    assert head == ("sha256:" + "a" * 64, 9, 2**63) and tensors["m"] == ("float32", (3, 4)) and tensors["n"] == ("int64", ())
    into = {name: np.zeros_like(x) for name, x in kept.items()}
    assert state.load(file, into).step == 9
    for name, x in kept.items():
        np.testing.assert_array_equal(into[name], x)
    bytes = file.read_bytes()
    for kind, content, arrays, hash in [("state.damaged", bytes[:-1], into, ""), ("state.damaged", bytes[:-1] + b"?", into, ""),
                                        ("state.foreign", b"{}" * 40, into, ""), ("state.mismatch", bytes, {"m": into["m"]}, ""),
                                        ("state.mismatch", bytes, into, "sha256:" + "b" * 64)]:
        file.write_bytes(content)
        before = into["m"].copy()
        with pytest.raises(StateError) as raised:
            state.load(file, arrays, semantic_hash=hash)
        assert raised.value.kind == kind, raised.value
        np.testing.assert_array_equal(into["m"], before)
    with pytest.raises(StateError, match="gaps"):
        state.save(file, {"x": np.zeros((4, 4))[::2]})
    for path in (tmp_path, os.devnull, tmp_path / "link", f"{file}\0x"):
        if path == tmp_path / "link":
            path.symlink_to(file)
        with pytest.raises(StateError) as raised:
            state.save(path, kept)
        assert raised.value.kind == "state.argument", raised.value
    file.chmod(0o600)
    state.save(file, kept)
    assert file.stat().st_mode & 0o777 == 0o600
    os.remove(file)
    with pytest.raises(StateError) as raised:
        state.look(file)
    assert raised.value.kind == "state.file"


NUMBERS = {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.999}


def advance(adamw, step, m, v, w, g):
    """A step of AdamW; what forward passes read of the masters."""
    return adamw(m, v, w, g, scale=(1 - 0.99**step) ** -0.5, step=0.01 / (1 - 0.9**step), **NUMBERS)


def gradients(step, count):
    return np.random.default_rng(step).standard_normal(count).astype("f4")


def test_to_load_is_to_go_on_at_every_step(tmp_path):
    adamw, count, file = function("adamw", narrow="yes").with_schedule("none"), 37, tmp_path / "step.safetensors"
    never = {name: np.full(count, x, "f4") for name, x in [("m", 0), ("v", 0), ("w", 1)]}
    again = {name: x.copy() for name, x in never.items()}
    for step in range(1, 12):
        narrow = advance(adamw, step, **never, g=gradients(step, count))
        np.testing.assert_array_equal(advance(adamw, step, **again, g=gradients(step, count)), narrow)
        state.save(file, again, step=step, seed=3)
        again = {name: np.empty(t.shape, t.dtype) for name, t in state.look(file)[1].items()}
        assert state.load(file, again) == ("", step, 3)
        for name, x in never.items():
            assert x.tobytes() == again[name].tobytes(), (step, name)


def test_moments_larger_than_memory_come_and_go_by_pages(tmp_path):
    """States of 12 blocks of weights in memory for 4: the next block comes while one is updated, and the bits are those of all at once."""
    adamw, blocks, size = function("adamw").with_schedule("none"), 12, 64
    whole = {name: np.full(blocks * size, x, "f4") for name, x in [("m", 0), ("v", 0), ("w", 1)]}
    pools = {name: np.zeros((4, size), "f4") for name in whole}
    pages = state.Pages(*pools.values(), page_tokens=1, sequences=blocks, sequence_pages=1, outside_pages=blocks, folder=tmp_path, sync=False)
    opened = []
    for block in range(blocks):
        s = pages.open(key=block)
        pages.reserve(s, 1, timeout=None)  # earlier blocks go outside
        with pages.step([s]) as step:
            for name, pool in pools.items():
                pool[step.table[0, 0]] = whole[name][:size]
        pages.commit(s, 1)
        opened.append(s)
    for n in (1, 2, 3):
        g = gradients(n, blocks * size)
        advance(adamw, n, **whole, g=g)
        for block, s in enumerate(opened):
            pages.prefetch(s, timeout=None)
            pages.wait(s)
            with pages.step([s]) as step:
                if block + 1 < blocks and pages.info(opened[block + 1]).where == "outside":
                    pages.prefetch(opened[block + 1], timeout=None)
                at = step.table[0, 0]
                advance(adamw, n, **{name: pool[at] for name, pool in pools.items()}, g=g[block * size:(block + 1) * size])
    for block, s in enumerate(opened):
        pages.prefetch(s, timeout=None)
        pages.wait(s)
        with pages.step([s]) as step:
            for name, pool in pools.items():
                np.testing.assert_array_equal(pool[step.table[0, 0]], whole[name][block * size:(block + 1) * size])


def test_two_policies_of_one_program_switch_where_the_narrow_one_overflows():
    """Gradients of f16 and of f32 of one declaration; those of some steps are planted to overflow f16."""
    def error(kind):
        @jit(schedule="none")
        def squared(w: Tensor["N", f32], x: Tensor["M", "N", kind], t: Tensor["M", f32], loss_scale: f32):
            narrow = w.cast(kind).named("narrow")
            missed = (tile.dot(x, narrow, ["N"]).cast(f32) - t).named("missed")
            return tile.dot(x, (missed * 2.0 * loss_scale).cast(kind).named("back"), ["M"]).cast(kind)
        return squared

    narrow, wide = error(f16), error(f32)
    rng = np.random.default_rng(3)
    w, true = np.zeros(5, np.float32), rng.standard_normal(5).astype(np.float32)
    precision = state.AdaptivePrecision(range=65504, first=8, patience=2, grow=50, stay=10)
    policies, skipped = [], 0
    for step in range(120):
        x = rng.standard_normal((16, 5)).astype(np.float32)
        planted = 1e5 if 20 <= step < 40 else 1.0  # larger than f16 has
        t = x @ true * np.float32(planted)
        policies.append(precision.is_wide)
        f, kind = (wide, np.float32) if precision.is_wide else (narrow, np.float16)
        with np.errstate(over="ignore"):
            g = f(w, x.astype(kind), t, precision.scale).astype(np.float32) / np.float32(precision.scale)
        before = w.copy()
        if precision.step(float(np.abs(g).max())):
            w -= np.float32(0.01) * g / np.float32(planted)
        else:
            skipped += 1
            np.testing.assert_array_equal(w, before)
    assert np.isfinite(w).all() and np.abs(w - true).max() < 0.05
    assert not any(policies[:21]) and all(policies[22:40]) and not policies[-1]
    assert sum(a != b for a, b in zip(policies, policies[1:])) == 2  # there, and back
    assert (precision.skipped, precision.updates) == (skipped, 120 - skipped) and skipped == 2


def test_a_scale_goes_on_from_a_checkpoint(tmp_path):
    one, other = (state.AdaptivePrecision(range=65504, patience=2, stay=3) for _ in range(2))
    for i in range(9):
        one.step(float("inf") if i % 4 == 0 else 1.0)
    state.save(tmp_path / "step.safetensors", {"precision": one.state}, step=9)
    state.load(tmp_path / "step.safetensors", {"precision": other.state})
    assert repr(one) == repr(other) and "skipped" in repr(one)
    for i in range(9):
        assert one.step(1.0) == other.step(1.0) and one.scale == other.scale and one.is_wide == other.is_wide
    with pytest.raises(StateError, match="least <= first <= most"):
        state.AdaptivePrecision(first=30)


def test_precision_checks_what_its_user_wrote_and_gave(tmp_path):
    precision = state.AdaptivePrecision(range=65504, first=8)
    for field, value in {0: 99, 1: 2, 2: -1, 3: -1, 4: 0, 5: -1, 6: -1}.items():
        kept = int(precision.state[field])
        precision.state[field] = value
        for use in (lambda: precision.step(1.0), lambda: precision.scale, lambda: precision.is_wide):
            with pytest.raises(state.StateError, match=f"precision: field '.*' of its state: expected .*, got {value}. Load"):
                use()
        precision.state[field] = kept
    for largest in (True, -1.0, "1", None, np.bool_(True), -np.inf):
        with pytest.raises(state.StateError, match=r"precision.step: largest: expected a magnitude, 0 or more, infinite or NaN, got"):
            precision.step(largest)
    assert precision.step(np.float32(1)) and precision.step(1) and not precision.step(np.nan)
    assert (precision.updates, precision.skipped) == (2, 1)
    for wrong in ({"range": "wide"}, {"first": 1.5}, {"patience": True}, {"grow": None}, {"stay": "1"}, {"most": 2**40}):
        with pytest.raises(state.StateError, match=f"precision: {next(iter(wrong))}: expected"):
            state.AdaptivePrecision(**wrong)
    with pytest.raises(state.StateError, match="stay at most 1099511627776"):
        state.AdaptivePrecision(stay=2**50)


def test_states_name_the_argument_of_a_wrong_type(tmp_path):
    pool = np.zeros((4, 2, 3), np.float32)
    pages = state.Pages(pool, page_tokens=2)
    s = pages.open()
    file = tmp_path / "a.safetensors"
    for call, words in [(lambda: state.Pages(pool, page_tokens="2"), "Pages: page_tokens"),
                        (lambda: state.Pages(pool, page_tokens=True), "Pages: page_tokens"),
                        (lambda: state.Pages(pool, page_tokens=2, sync=1), "Pages: sync"),
                        (lambda: state.Pages(pool, page_tokens=2, outside_pages=1, folder=3), "Pages: folder"),
                        (lambda: pages.open("a"), "open: key"), (lambda: pages.close(1.5), "close: sequence"),
                        (lambda: pages.fork(s, at="x"), "fork: at"),
                        (lambda: pages.reserve(s, 1.0), "reserve: tokens"), (lambda: pages.reserve(s, 1, timeout="1"), "reserve: timeout"),
                        (lambda: pages.reserve(s, 1, copy=2), "reserve: copy"), (lambda: pages.commit(s, None), "commit: tokens"),
                        (lambda: pages.truncate(s, -1), "truncate: length"), (lambda: pages.prune(s, "3"), "prune: window"),
                        (lambda: pages.step(s), "step: sequences"), (lambda: pages.step([s], entries=2.0), "step: entries"),
                        (lambda: pages.wait(s, timeout=-1), "wait: timeout"), (lambda: pages.publish(s, 3), "publish: tokens"),
                        (lambda: pages.prefix([1, "2"]), r"prefix: tokens\[1\]"), (lambda: pages.info(None), "info: sequence"),
                        (lambda: state.save(3.5, {}), "save: path"), (lambda: state.save(file, [pool]), "save: tensors"),
                        (lambda: state.save(file, {"a": pool}, step=True), "save: step"),
                        (lambda: state.save(file, {"a": pool}, step=-1), "save: step"),
                        (lambda: state.save(file, {"a": pool}, seed="1"), "save: seed"),
                        (lambda: state.load(file, {1: pool}), "load: a tensor's name"),
                        (lambda: state.load(file, {"a": pool}, semantic_hash=None), "load: semantic_hash"), (lambda: state.look(None), "look: path")]:
        with pytest.raises(state.StateError, match=words + r": expected .*, got .*\.$"):
            call()
