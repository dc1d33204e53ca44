"""What the encoder computes: the embedding, a block and the loss are declared once, and everything else follows from their derivatives."""
import numpy as np

import tessera as ts
from tessera import Dim, Tensor, autodiff, f32, i32, jit, tile

EXTENTS = {"B": 8, "S": 64, "T": 64, "H": 4, "E": 16, "D": 64, "F": 256, "V": 256}
B, S, T, H, E, D, F, V = (Dim.fixed(name, extent) for name, extent in EXTENTS.items())
BLOCKS = 2


@autodiff
@jit(schedule="derived")
def embed(ids: Tensor[B, S, i32], table: Tensor[V, D, f32], places: Tensor[S, D, f32]) -> Tensor[B, S, D, f32]:
    return tile.gather(table, {"V": ids}) + places


# x plus what each place attends to among those up to its own, plus the MLP of that.
@autodiff
@jit(schedule="derived")
def block(x: Tensor[B, S, D, f32], norm_a: Tensor[D, f32], q: Tensor[D, H, E, f32], k: Tensor[D, H, E, f32], v: Tensor[D, H, E, f32],
          o: Tensor[H, E, D, f32], norm_m: Tensor[D, f32], up: Tensor[D, F, f32], down: Tensor[F, D, f32]) -> Tensor[B, S, D, f32]:
    with tile.scope("attention"):
        a = tile.rmsnorm(x, norm_a, "D").named("a")                                              # (B, S, D)
        q, k, v = (tile.einsum([a, w], ["B", "H", "S", "E"]) for w in (q, k, v))
        tile.dim(T)
        k, v = (y.at({"S": tile.index("T")}, ["B", "H", "T", "E"]) for y in (k, v))              # keys have a dim of their own
        scores = tile.dot(q * EXTENTS["E"] ** -0.5, k, ["E"])                                    # (B, H, S, T)
        seen = tile.online_softmax(scores, v, "T", "E", tile.index("T") <= tile.index("S"))      # (B, H, S, E)
        x = (x + tile.dot(seen, o, ["H", "E"])).named("x")
    with tile.scope("mlp"):
        hidden = tile.gelu(tile.dot(tile.rmsnorm(x, norm_m, "D"), up, ["D"]))                    # (B, S, F)
        return x + tile.dot(hidden, down, ["F"])


# The mean over all places of -log(the probability of the target), in nats.
@autodiff
@jit(schedule="derived")
def cross_entropy(x: Tensor[B, S, D, f32], targets: Tensor[B, S, i32], norm: Tensor[D, f32], head: Tensor[D, V, f32]):
    logits = tile.dot(tile.rmsnorm(x, norm, "D"), head, ["D"]).named("logits")                   # (B, S, V)
    with tile.scope("right"):
        right = tile.sum(tile.select(tile.index("V").cast(i32) == targets, logits, 0.0), "V")    # (B, S)
    return tile.einsum([(tile.logsumexp(logits, "V") - right) * (1 / (EXTENTS["B"] * EXTENTS["S"]))], [])


def weights_of(function):
    """The names of the weights among a function's arguments."""
    return [name for name in function.arguments if name not in ("x", "ids", "targets")]


embed_vjp = ts.vjp(embed, by=weights_of(embed))
block_vjp = ts.vjp(block, by=["x", *weights_of(block)])
loss_and_grad = ts.value_and_grad(cross_entropy, by=["x", *weights_of(cross_entropy)])


def shapes():
    """The weights in their order in the vector of all, by function: a list of shapes for the embedding, each block and the head."""
    functions = [embed, *[block] * BLOCKS, cross_entropy]
    return [[[EXTENTS[d] for d in dims] for name, _, _, dims in f.algorithm.tensors if name in weights_of(f)] for f in functions]


def parts(vector):
    """Views of the vector of all weights, or of their gradients, as shapes() has them."""
    ends = iter(np.split(vector, np.cumsum([np.prod(s) for f in shapes() for s in f])[:-1]))
    return [[next(ends).reshape(s) for s in f] for f in shapes()]


def initial(seed):
    """No step taken: weights, the two moments of AdamW, and the losses of all steps."""
    rng, size = np.random.default_rng(seed), sum(int(np.prod(s)) for f in shapes() for s in f)
    state = {"w": np.ones(size, np.float32), "m": np.zeros(size, np.float32), "v": np.zeros(size, np.float32), "losses": np.zeros(0, np.float32)}
    for view in (view for f in parts(state["w"]) for view in f if view.ndim > 1):  # the scales of norms stay at one
        view[...] = rng.standard_normal(view.shape) * EXTENTS["D"] ** -0.5
    return state


def loss_of(w, ids, targets, g=None):
    """The loss; its gradient is written to the vector g. Forward through the blocks, which keep only what goes into each, and back by vjp."""
    first, *blocks, last = parts(w)
    xs = [embed(ids, *first)]
    for one in blocks:
        xs.append(block(xs[-1], *one))
    loss, x_grad, *head_grads = loss_and_grad(xs[-1], targets, *last)
    if g is not None:
        grads = [head_grads]
        for x, one in zip(xs[-2::-1], blocks[::-1]):
            x_grad, *block_grads = block_vjp(x, *one, x_grad)
            grads.insert(0, block_grads)
        grads.insert(0, embed_vjp(ids, *first, x_grad))
        for views, found in zip(parts(g), grads):
            for view, value in zip(views, found):
                view[...] = value
    return float(loss)
