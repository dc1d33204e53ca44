"""The training of examples/encoder2 again, in NumPy and float64: the same first weights, texts and steps, by a forward and a backward pass written
by hand. Says the largest relative difference between its losses and those of a run.

    encoder2_twin.py FIRST LOSSES TEXT STEPS B S DROPOUT

FIRST is a checkpoint before any step, LOSSES the loss.csv of the run, TEXT the file that it learnt from. What is dropped out follows from the
words of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011), drawn here once and used in both passes.
"""
import csv
import json
import math
import sys

import numpy as np

MASK = (1 << 64) - 1


def mixed(counter):
    z = counter * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def words(seed, step, number, count):
    """The words 0 ..< count of a stream: four of each block, whose counter is its number in 64 bits, the step and the stream's number."""
    low = np.uint64(0xFFFFFFFF)
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    c = [blocks & low, blocks >> np.uint64(32), np.full_like(blocks, step), np.full_like(blocks, number)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [b >> np.uint64(32) ^ c[1] ^ np.uint64(key[0]), b & low, a >> np.uint64(32) ^ c[3] ^ np.uint64(key[1]), a & low]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return np.stack(c, -1).ravel()[:count]


class Dropout:
    """What numbers of a step are multiplied by, for each of the places where some are left out: 0 or 1 / (1 - rate)."""

    def __init__(self, seed, step, rate):
        self.seed, self.step, self.rate = seed, step, np.float32(rate)

    def kept(self, shape, number, round=None, rounds=1):
        if self.rate == 0:
            return np.ones(shape)
        step = self.step if round is None else self.step * rounds + round
        drawn = (words(self.seed, step, number, math.prod(shape)) >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
        return np.where(drawn < self.rate, 0.0, np.float64(1 / (1 - self.rate))).reshape(shape)


def batch(text, texts, length, seed, step):
    starts = [mixed((mixed((mixed(seed) + step) & MASK) + b) & MASK) % (len(text) - length) for b in range(texts)]
    rows = np.stack([text[s:s + length + 1] for s in starts]).astype(int)
    return rows[:, :-1], rows[:, 1:]


def first_weights(path, shapes):
    with open(path, "rb") as stream:
        head = int.from_bytes(stream.read(8), "little")
        stored = json.loads(stream.read(head))["w"]
        begin, end = stored["data_offsets"]
        stream.seek(8 + head + begin)
        w = np.frombuffer(stream.read(end - begin), {"F32": "<f4", "F64": "<f8"}[stored["dtype"]]).astype(np.float64)
    ends = np.cumsum([math.prod(s) for s in shapes.values()])
    assert ends[-1] == len(w), (ends[-1], len(w))
    return {name: part.reshape(s) for (name, s), part in zip(shapes.items(), np.split(w, ends[:-1]))}


def rmsnorm(x, gamma):
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    return x * scale * gamma, (x, gamma, scale)


def rmsnorm_back(saved, g):
    x, gamma, scale = saved
    inner = g * gamma
    return scale * (inner - x * scale**2 * (inner * x).mean(-1, keepdims=True)), (g * x * scale).reshape(-1, x.shape[-1]).sum(0)


erf = np.vectorize(math.erf)


def block(x, w, i, dropout):
    B, S, D = x.shape
    shapes = {1: x.shape, 2: x.shape, 3: (B, w["query"].shape[2], S, S)}
    kept = {number: dropout.kept(shape, number, i, len(w["up"])) for number, shape in shapes.items()}
    a, saved_a = rmsnorm(x, w["norm_attention"][i])
    q, k, v = (np.einsum("bsd,dhe->bhse", a, w[n][i]) for n in ("query", "key", "value"))
    scale = q.shape[-1] ** -0.5
    scores = np.einsum("bhse,bhte->bhst", q * scale, k)
    scores = np.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    seen = np.einsum("bhst,bhte->bhse", p * kept[3], v)
    middle = x + np.einsum("bhse,hed->bsd", seen, w["out"][i]) * kept[1]
    b, saved_b = rmsnorm(middle, w["norm_mlp"][i])
    before = b @ w["up"][i]
    below = (1 + erf(before / math.sqrt(2))) / 2
    return middle + (before * below) @ w["down"][i] * kept[2], (saved_a, a, q, k, v, scale, p, seen, saved_b, b, before, below, kept)


def block_back(saved, w, i, g, grads):
    saved_a, a, q, k, v, scale, p, seen, saved_b, b, before, below, kept = saved
    hidden = before * below
    grads["down"][i] = np.einsum("bsf,bsd->fd", hidden, g * kept[2])
    inner = ((g * kept[2]) @ w["down"][i].T) * (below + before * np.exp(-before**2 / 2) / math.sqrt(2 * math.pi))
    grads["up"][i] = np.einsum("bsd,bsf->df", b, inner)
    back, grads["norm_mlp"][i] = rmsnorm_back(saved_b, inner @ w["up"][i].T)
    g = g + back
    grads["out"][i] = np.einsum("bhse,bsd->hed", seen, g * kept[1])
    seen_g = np.einsum("bsd,hed->bhse", g * kept[1], w["out"][i])
    v_g = np.einsum("bhst,bhse->bhte", p * kept[3], seen_g)
    p_g = np.einsum("bhse,bhte->bhst", seen_g, v) * kept[3]
    s_g = p * (p_g - (p_g * p).sum(-1, keepdims=True))
    q_g, k_g = np.einsum("bhst,bhte->bhse", s_g, k) * scale, np.einsum("bhst,bhse->bhte", s_g, q * scale)
    a_g = np.zeros_like(a)
    for name, back in (("query", q_g), ("key", k_g), ("value", v_g)):
        grads[name][i] = np.einsum("bsd,bhse->dhe", a, back)
        a_g += np.einsum("bhse,dhe->bsd", back, w[name][i])
    back, grads["norm_attention"][i] = rmsnorm_back(saved_a, a_g)
    return g + back


def loss_and_gradients(w, ids, targets, dropout):
    grads = {name: np.zeros_like(value) for name, value in w.items()}
    kept = dropout.kept((*ids.shape, w["table"].shape[1]), 0)
    xs, saved = [(w["table"][ids] + w["places"]) * kept], []
    for i in range(len(w["up"])):
        x, one = block(xs[-1], w, i, dropout)
        xs.append(x), saved.append(one)
    normal, saved_head = rmsnorm(xs[-1], w["norm_head"])
    logits = normal @ w["head"]
    logits -= logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    right = np.arange(logits.shape[-1]) == targets[..., None]
    loss = -log_p[right].mean()
    g = (np.exp(log_p) - right) / targets.size
    grads["head"] = np.einsum("bsd,bsv->dv", normal, g)
    g, grads["norm_head"] = rmsnorm_back(saved_head, g @ w["head"].T)
    for i in reversed(range(len(saved))):
        g = block_back(saved[i], w, i, g, grads)
    g = g * kept
    grads["places"] = g.sum(0)
    np.add.at(grads["table"], ids, g)
    return loss, grads


def main(first, losses, text, steps, B, S, rate_of_dropout):
    B, S = int(B), int(S)
    L, D, H, E, F, V = 2, 64, 4, 16, 256, 256
    shapes = {"table": (V, D), "places": (S, D), "norm_attention": (L, D), "query": (L, D, H, E), "key": (L, D, H, E), "value": (L, D, H, E),
              "out": (L, H, E, D), "norm_mlp": (L, D), "up": (L, D, F), "down": (L, F, D), "norm_head": (D,), "head": (D, V)}
    w = first_weights(first, shapes)
    with open(losses, newline="", encoding="utf-8") as stream:
        theirs = [float(row["loss"]) for row in csv.DictReader(stream)]
    learnt = np.fromfile(text, np.uint8)
    learnt = learnt[:len(learnt) // 10 * 9]
    m = {name: np.zeros_like(value) for name, value in w.items()}
    v = {name: np.zeros_like(value) for name, value in w.items()}
    beta1, beta2, epsilon, worst = 0.9, 0.99, 1e-8, 0.0
    for step in range(1, int(steps) + 1):
        loss, grads = loss_and_gradients(w, *batch(learnt, B, S, 1, step), Dropout(1, step, rate_of_dropout))
        length = math.sqrt(sum((g * g).sum() for g in grads.values()))
        rate = 3e-3 * min(1, step / 20)
        for name, g in grads.items():
            g = g * min(1 / max(length, 1e-30), 1)
            m[name] = beta1 * m[name] + (1 - beta1) * g
            v[name] = beta2 * v[name] + (1 - beta2) * g * g
            w[name] = w[name] * (1 - rate * 0.01) - rate / (1 - beta1**step) * m[name] / (np.sqrt(v[name] / (1 - beta2**step)) + epsilon)
        worst = max(worst, abs(loss - theirs[step - 1]) / loss)
    print(f"{steps} losses, from {theirs[0]:.4f} to {theirs[int(steps) - 1]:.4f}: at most {worst:.2e} off, relative")


if __name__ == "__main__":
    main(*sys.argv[1:])
