"""Cases as in library_cases.py, of what is updated in place, scattered, drawn at random or called as a program, and what NumPy and SciPy
make of them. Random numbers are compared with a Philox of our own, which is first compared with the answers that Random123 publishes."""
import numpy as np
import scipy.special
from library_cases import Case, near

# kat_vectors of Random123 1.14, philox4x32 with 10 rounds: counter, key, words.
KNOWN = [([0] * 4, [0] * 2, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
         ([0xffffffff] * 4, [0xffffffff] * 2, [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
         ([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0], [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1])]


def philox4x32(counter, key):
    """The words of blocks, as Salmon, Moraes, Dror and Shaw define them (SC 2011): four arrays of a counter, two numbers of a key."""
    c, k, low = [np.asarray(word, "u8") for word in counter], list(key), np.uint64(0xffffffff)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [b >> np.uint64(32) ^ c[1] ^ np.uint64(k[0]), b & low, a >> np.uint64(32) ^ c[3] ^ np.uint64(k[1]), a & low]
        k = [k[0] + 0x9E3779B9 & 0xffffffff, k[1] + 0xBB67AE85 & 0xffffffff]
    return c


def words(count, seed, step):
    """The word of each element: the first stream of a program, four elements a block."""
    block = np.arange((count + 3) // 4, dtype="u8")
    zero = np.zeros_like(block)
    made = philox4x32([block, zero, zero + np.uint64(step & 0xffffffff), zero], [seed & 0xffffffff, seed >> 32 & 0xffffffff])
    return np.stack(made, 1).reshape(-1)[:count]


def check_philox():
    for counter, key, expected in KNOWN:
        made = [int(word) for word in philox4x32([[word] for word in counter], key)]
        assert made == expected, f"the oracle's Philox gives {made}, and Random123 {expected}"


def uniform(count, seed, step):
    return (words(count, seed, step) >> np.uint64(8)) * 2.0 ** -24


def normal(count, seed, step):
    """Of two words, a radius and an angle; of those, two neighbours (Box and Muller 1958)."""
    pair = words((count + 3) // 4 * 4, seed, step).reshape(-1, 2)
    radius = np.sqrt(-2 * np.log(((pair[:, 0] >> np.uint64(9)) * 2.0 + 1) * 2.0 ** -24))
    angle = (pair[:, 1] >> np.uint64(8)) * 2.0 ** -24 * 2 * np.pi
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:count]


def random_numbers(f, rng):
    check_philox()
    for count, seed, step in [(0, 1, 0), (1, 0, 0), (4099, -0x123456789abcdef, 7), (1030, 2 ** 63 - 1, 2 ** 32 - 1)]:
        of = [("i8", seed), ("i8", step)]
        yield Case("random_uniform", [], [uniform(count, seed, step)], of)
        yield Case("random_normal", [], [normal(count, seed, step)], of, absolute=2e-6)
    for m, n, p in [(1, 1, 0.5), (7, 33, 0.25), (5, 17, 0.0)]:
        x = f(m, n)
        kept = uniform(m * n, 3, 9).reshape(m, n) >= p
        yield Case("dropout", [x], [np.where(kept, x / (1 - p), 0)], [("f4", p), ("i8", 3), ("i8", 9)], relative=2e-7)


def updates(f, rng):
    m, w, g = f(37), f(37), f(37)
    momentum, decay, rate = (np.float64(np.float32(p)) for p in (0.9, 0.01, 0.1))
    v = m * momentum + (g + w * decay)
    yield Case("sgd_momentum", [m, w, g], [v, w - rate * v], [("f4", momentum), ("f4", decay), ("f4", rate)], states=2, absolute=1e-6)
    for count, step in [(1, 1), (37, 10), (4096, 1000)]:
        m, v, w, g = f(count), np.abs(f(count)), f(count), f(count)
        beta1, beta2, epsilon, rate, fading = 0.9, 0.999, 1e-8, 1e-2, 0.01
        given = [beta1, beta2, epsilon, 1 / np.sqrt(1 - beta2 ** step), rate / (1 - beta1 ** step), 1 - rate * fading]
        b1, b2, e, scale, length, decay = (np.float64(np.float32(p)) for p in given)
        first, second = m * b1 + g * (1 - b1), v * b2 + g.astype("f8") ** 2 * (1 - b2)
        moved = w * decay - length * first / (np.sqrt(second) * scale + e)
        yield Case("adamw", [m, v, w, g], [first, second, moved], [("f4", p) for p in given], states=3, absolute=2e-6, relative=2e-6)
        yield Case("adamw", [m, v, w, g], [first, second, moved, moved], [("f4", p) for p in given], {"narrow": 1}, states=3, absolute=2e-6,
                   relative=2e-6)
    for width, count, position in [(5, 3, 0), (5, 3, 4), (7, 7, 2 ** 40 + 3), (1, 1, 9)]:
        cache, x = f(2, width, 3), f(2, count, 3)
        after = cache.copy()
        after[:, (position + np.arange(count)) % width] = x
        yield Case("ring_append", [cache, x], [after], [("i8", position)], states=1)


def scatters(f, rng):
    for count, size in [(0, 3), (1, 1), (1000, 13), (33, 300)]:
        ids = rng.integers(0, size, count).astype("i4")
        ids[::7] = rng.choice(np.int32([-1, size, 2 ** 31 - 1, -2 ** 31]), len(ids[::7]))
        inside = (ids >= 0) & (ids < size)
        yield Case("histogram", [ids], [np.bincount(ids[inside], minlength=size)], types=["i4"])
        g, grad = f(count, 5), np.zeros((size, 5))
        np.add.at(grad, ids[inside], g[inside].astype("f8"))
        yield Case("embedding_gradient", [ids, g], [grad], absolute=near(grad))


def layernorm(x, gamma, beta):
    """With BERT's epsilon."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * gamma + beta


def feed_forward(x, up, b_up, down, b_down, gamma, beta):
    hidden = x @ up + b_up
    return layernorm(x + (hidden * scipy.special.ndtr(hidden)) @ down + b_down, gamma, beta)


def attended(x, keep, w, b, heads):
    """Attention of each sentence to its own tokens that are kept; queries, keys and values side by side, each by heads."""
    batch, tokens = keep.shape
    q, k, v = ((x @ w + b).reshape(batch, tokens, 3, heads, -1).transpose(2, 0, 3, 1, 4))
    scores = np.where(keep[:, None, None] != 0, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]), -np.inf)
    return (scipy.special.softmax(scores, -1) @ v).swapaxes(1, 2).reshape(batch * tokens, -1)


def programs(f, rng):
    for m, d, inner in [(1, 2, 1), (5, 24, 40)]:
        x, up, b_up, down, b_down, gamma, beta = f(m, d), f(d, inner), f(inner), f(inner, d), f(d), f(d), f(d)
        r = f(m, d)
        y = layernorm(x.astype("f8") + r, gamma, beta)
        yield Case("residual_layernorm", [x, r, gamma, beta], [y], absolute=near(y, factor=2e-5))
        y = feed_forward(x.astype("f8"), up, b_up, down, b_down, gamma, beta)
        yield Case("feed_forward", [x, up, b_up, down, b_down, gamma, beta], [y], absolute=near(y, factor=2e-5))
    batch, tokens, heads, d, inner = 2, 5, 3, 12, 20
    keep = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], "b1")
    x, w, b, out, b_out, g, beta = f(batch * tokens, d), f(d, 3 * d), f(3 * d), f(d, d), f(d), f(d), f(d)
    last = [f(d, inner), f(inner), f(inner, d), f(d), f(d), f(d)]
    middle = layernorm(x + attended(x.astype("f8"), keep, w, b, heads) @ out + b_out, g, beta)
    y = feed_forward(middle, *last)
    yield Case("encoder_layer", [x, keep, w, b, out, b_out, g, beta, *last], [y], options={"heads": heads}, absolute=near(y, factor=2e-5))


TOPICS = [updates, scatters, random_numbers, programs]
