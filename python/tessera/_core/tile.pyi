"""Functions over tiles."""

from collections.abc import Mapping, Sequence
from typing import overload

import tessera._core
import tessera._core.expr


def abs(x: tessera._core.Tile) -> tessera._core.Tile: ...

def floor(x: tessera._core.Tile) -> tessera._core.Tile: ...

def ceil(x: tessera._core.Tile) -> tessera._core.Tile: ...

def round(x: tessera._core.Tile) -> tessera._core.Tile: ...

def trunc(x: tessera._core.Tile) -> tessera._core.Tile: ...

def exp(x: tessera._core.Tile) -> tessera._core.Tile: ...

def exp_nonpositive(x: tessera._core.Tile) -> tessera._core.Tile: ...

def expm1(x: tessera._core.Tile) -> tessera._core.Tile: ...

def log(x: tessera._core.Tile) -> tessera._core.Tile: ...

def log1p(x: tessera._core.Tile) -> tessera._core.Tile: ...

def sin(x: tessera._core.Tile) -> tessera._core.Tile: ...

def cos(x: tessera._core.Tile) -> tessera._core.Tile: ...

def atan(x: tessera._core.Tile) -> tessera._core.Tile: ...

def erf(x: tessera._core.Tile) -> tessera._core.Tile: ...

def erfc(x: tessera._core.Tile) -> tessera._core.Tile: ...

def tanh(x: tessera._core.Tile) -> tessera._core.Tile: ...

def sigmoid(x: tessera._core.Tile) -> tessera._core.Tile: ...

def sqrt(x: tessera._core.Tile) -> tessera._core.Tile: ...

def rsqrt(x: tessera._core.Tile) -> tessera._core.Tile: ...

def relu(x: tessera._core.Tile) -> tessera._core.Tile: ...

def softplus(x: tessera._core.Tile) -> tessera._core.Tile: ...

def gelu(x: tessera._core.Tile) -> tessera._core.Tile: ...

def gelu_tanh(x: tessera._core.Tile) -> tessera._core.Tile: ...

def silu(x: tessera._core.Tile) -> tessera._core.Tile: ...

def stop_gradient(x: tessera._core.Tile) -> tessera._core.Tile: ...

def transpose(x: tessera._core.Tile) -> tessera._core.Tile: ...

def order_key(x: tessera._core.Tile) -> tessera._core.Tile: ...

def from_order_key(x: tessera._core.Tile) -> tessera._core.Tile: ...

def straight_through(x: tessera._core.Tile, by: tessera._core.Tile) -> tessera._core.Tile: ...

def atan2(y: tessera._core.Tile, x: tessera._core.Tile) -> tessera._core.Tile: ...

def fmod(x: tessera._core.Tile, y: tessera._core.Tile) -> tessera._core.Tile:
    """The rest of a division, with the sign of x; x % y has that of y."""

def fma(a: tessera._core.Tile, b: tessera._core.Tile, c: tessera._core.Tile) -> tessera._core.Tile: ...

@overload
def select(condition: tessera._core.Tile, a: tessera._core.Tile, b: tessera._core.Tile) -> tessera._core.Tile: ...

@overload
def select(condition: tessera._core.Tile, a: tessera._core.Tile, b: float) -> tessera._core.Tile: ...

@overload
def select(condition: tessera._core.Tile, a: float, b: tessera._core.Tile) -> tessera._core.Tile: ...

@overload
def minimum(a: tessera._core.Tile, b: tessera._core.Tile) -> tessera._core.Tile: ...

@overload
def minimum(a: tessera._core.Tile, b: float) -> tessera._core.Tile: ...

@overload
def maximum(a: tessera._core.Tile, b: tessera._core.Tile) -> tessera._core.Tile: ...

@overload
def maximum(a: tessera._core.Tile, b: float) -> tessera._core.Tile: ...

def bitcast(dtype: tessera._core.DType, x: tessera._core.Tile) -> tessera._core.Tile: ...

def bounded(position: tessera._core.Tile, lo: tessera._core.expr.Expr, hi: tessera._core.expr.Expr) -> tessera._core.Tile:
    """Integers as positions lo ..= hi - 1, at which a tensor may be read."""

def sum(x: tessera._core.Tile, over: str) -> tessera._core.Tile: ...

def product(x: tessera._core.Tile, over: str) -> tessera._core.Tile: ...

def max(x: tessera._core.Tile, over: str) -> tessera._core.Tile: ...

def min(x: tessera._core.Tile, over: str) -> tessera._core.Tile: ...

def mean(x: tessera._core.Tile, over: str) -> tessera._core.Tile: ...

def softmax(x: tessera._core.Tile, over: str) -> tessera._core.Tile: ...

def logsumexp(x: tessera._core.Tile, over: str) -> tessera._core.Tile: ...

def dot(a: tessera._core.Tile, b: tessera._core.Tile, over: Sequence[str] | None = None) -> tessera._core.Tile:
    """
    Sum of products over `over`, or over every dim that a and b share and is a's last.
    """

def online_softmax(scores: tessera._core.Tile, values: tessera._core.Tile, over: str, value: str | None = None, where: tessera._core.Tile | None = None) -> tessera._core.Tile:
    """
    The sum over `over` of softmax(scores) * values, folded online; `value` is the values' own dim, their last by default. Rows for which `where` holds nowhere give 0.
    """

def mask_causal(scores: tessera._core.Tile, query: str, key: str) -> tessera._core.Tile: ...

def normalized(x: tessera._core.Tile, over: Sequence[str], epsilon: float = 1e-05) -> tessera._core.Tile: ...

def layernorm(x: tessera._core.Tile, gamma: tessera._core.Tile, beta: tessera._core.Tile, over: str, epsilon: float = 1e-05) -> tessera._core.Tile: ...

def rmsnorm(x: tessera._core.Tile, gamma: tessera._core.Tile, over: str, epsilon: float = 1e-05) -> tessera._core.Tile: ...

def broadcast(x: tessera._core.Tile, dims: Sequence[str]) -> tessera._core.Tile: ...

def rename(x: tessera._core.Tile, from_: str, to: str) -> tessera._core.Tile: ...

def stack(tiles: Sequence[tessera._core.Tile], along: str) -> tessera._core.Tile: ...

def largest(x: tessera._core.Tile, over: str, count: int) -> list[tuple[tessera._core.Tile, tessera._core.Tile]]:
    """
    (key, position) of the largest elements, from the largest down; from_order_key gives the float of a key.
    """

def smallest(x: tessera._core.Tile, over: str, count: int) -> list[tuple[tessera._core.Tile, tessera._core.Tile]]:
    """(key, position) of the smallest elements, from the smallest up."""

def sorted(x: tessera._core.Tile, over: str, downwards: bool = False) -> tuple[tessera._core.Tile, tessera._core.Tile]: ...

def from_end(position: tessera._core.Tile, dim: str) -> tessera._core.Tile:
    """
    Positions that may count from the end, -1 being the last, as positions from the beginning.
    """

def gather(x: tessera._core.Tile, at: Mapping[str, tessera._core.Tile]) -> tessera._core.Tile:
    """
    x read along each of these dims at the positions beside it: gather(x, {"V": ids}). Positions outside become the nearest inside.
    """

def one_hot(id: tessera._core.Tile, classes: str, on: float = 1.0, off: float = 0.0, dtype: tessera._core.DType | None = None) -> tessera._core.Tile:
    """
    `on` where the class is the id, `off` elsewhere, as f32 unless a type is given; the dim `classes` comes last.
    """

def scatter_into(x: tessera._core.Tile, monoid: tessera._core.RawMonoid, updates: tessera._core.Tile, at: Sequence[tessera._core.Tile]) -> tessera._core.Tile: ...

def replace_at(x: tessera._core.Tile, updates: tessera._core.Tile, at: Sequence[tessera._core.Tile]) -> tessera._core.Tile:
    """
    x with the updates in its place, each at the position that `at` gives for each of x's dims; positions outside are dropped, and the last of several stays.
    """

def einsum(operands: Sequence[tessera._core.Tile], result: Sequence[str]) -> tessera._core.Tile:
    """
    The sum over all dims that `result` lacks of the product of the operands.
    """

class RandomStream:
    """
    What numbers are drawn from: a seed and a step, i64 tiles without dims, and the draw's number.
    """

    def __init__(self, seed: tessera._core.Tile, step: tessera._core.Tile, number: int = 0) -> None: ...

def uniform(stream: RandomStream, dims: Sequence[str]) -> tessera._core.Tile: ...

def normal(stream: RandomStream, dims: Sequence[str]) -> tessera._core.Tile: ...

def bernoulli(stream: RandomStream, dims: Sequence[str], p: tessera._core.Tile) -> tessera._core.Tile: ...

def dropout(x: tessera._core.Tile, stream: RandomStream, p: tessera._core.Tile) -> tessera._core.Tile: ...

class Weights:
    """Weights of products, as the numerics policy keeps them."""

    @property
    def tensors(self) -> list[tessera._core.Tile]: ...

def weights(builder: tessera._core.Builder, name: str, outer: Sequence[str], k: str, n: str) -> Weights: ...

def multiply(x: tessera._core.Tile, weights: Weights, name: str = '', prefix: str = '') -> tessera._core.Tile: ...

class Quantized:
    """Codes with scales, and perhaps zero points, that neighbours share."""

    @property
    def codes(self) -> tessera._core.Tile: ...

    @property
    def scales(self) -> tessera._core.Tile: ...

    @property
    def zeros(self) -> tessera._core.Tile: ...

def quantized(builder: tessera._core.Builder, name: str, dims: Sequence[str], codes: tessera._core.DType, scales: tessera._core.DType, group: int = 0, zeros: tessera._core.DType | None = None) -> Quantized: ...

def quantize_dynamic(x: tessera._core.Tile, name: str, over: Sequence[str]) -> Quantized:
    """
    u8 codes of x with the scale and zero point of its least and largest elements over these dims.
    """

def dequantize(quantized: Quantized) -> tessera._core.Tile: ...

class KVCache:
    """
    Keys and values by position, whatever their layout: see algorithms/build/cache.h.
    """

    @property
    def positions(self) -> str:
        """The name of the dim of all positions."""

    @property
    def length(self) -> tessera._core.Tile:
        """Tokens of each sequence (B), with those appended here."""

    @property
    def begin(self) -> tessera._core.Tile:
        """The first position of each sequence that is there."""

    def keys(self, t: str | None = None) -> tessera._core.Tile:
        """
        (B, H, t, D), numbers at the positions that the dim t counts; of all positions by default.
        """

    def values(self, t: str | None = None) -> tessera._core.Tile:
        """(B, H, t, E)"""

    def append(self, k: tessera._core.Tile, v: tessera._core.Tile, count: tessera._core.Tile | None = None, prefix: str = 'append_') -> None:
        """
        Writes k (B, H, S, D) and v (B, H, S, E) after what is there, of sequence b the first count[b] rows.
        """

    def copy_pages(self, pairs: tessera._core.Tile) -> None:
        """Page pairs[n, 1] becomes what page pairs[n, 0] was."""

def kv_cache(keys: tessera._core.Tile, values: tessera._core.Tile, length: tessera._core.Tile, *, layout: str = 'contiguous', table: tessera._core.Tile | None = None, key_scales: tessera._core.Tile | None = None, value_scales: tessera._core.Tile | None = None, begin: tessera._core.Tile | None = None, sinks: int = 0, positions: int = 0, key: str | None = None, value: str | None = None) -> KVCache:
    """
    A cache of states that the function takes: keys [B, H, T, D], of pages [P, H, Z, D] with table [B, C], of a ring [B, H, W, D] whose sequences have at most so many positions; layout 'contiguous', 'ring' or 'paged'. Codes have scales [B, H, T]; u8 has two codes of i4, of the dims `key` and `value`.
    """

def attend(q: tessera._core.Tile, cache: KVCache, position: tessera._core.Tile, *, window: int = 0, sinks: int = 0) -> tessera._core.Tile:
    """
    Attention of q (B, H, ..., D) to the keys up to `position`, integers over B and other dims of q; 0 where there is none.
    """

def copy_pages(pages: tessera._core.Tile, pairs: tessera._core.Tile) -> None:
    """pages[pairs[n, 1]] of a state becomes what pages[pairs[n, 0]] was."""

def lstm(x: tessera._core.Tile, w: tessera._core.Tile, r: tessera._core.Tile, h: tessera._core.Tile, c: tessera._core.Tile, along: str, *, bias: tessera._core.Tile | None = None, recurrent_bias: tessera._core.Tile | None = None, peepholes: tessera._core.Tile | None = None, gates: str = 'onnx', backward: bool = False, activations: Sequence[str] = [], clip: float = 0.0, couples: bool = False) -> tuple[tessera._core.Tile, tessera._core.Tile, tessera._core.Tile]:
    """
    y (T, N, H) and the last h and c of an LSTM on x (T, N, I): w (I, G), r (K, G), biases (G), h and c (N, H), G = 4 H. `gates` is the order of G: 'onnx' or 'pytorch'. A sequence in pieces, each with the states that the one before it left, gives the same bits.
    """

def gru(x: tessera._core.Tile, w: tessera._core.Tile, r: tessera._core.Tile, h: tessera._core.Tile, along: str, *, bias: tessera._core.Tile | None = None, recurrent_bias: tessera._core.Tile | None = None, gates: str = 'onnx', backward: bool = False, activations: Sequence[str] = [], clip: float = 0.0, resets_after: bool = True) -> tuple[tessera._core.Tile, tessera._core.Tile]:
    """The same of a gated recurrent unit, G = 3 H: y and the last h."""

def rnn(x: tessera._core.Tile, w: tessera._core.Tile, r: tessera._core.Tile, h: tessera._core.Tile, along: str, *, bias: tessera._core.Tile | None = None, recurrent_bias: tessera._core.Tile | None = None, backward: bool = False, activations: Sequence[str] = [], clip: float = 0.0) -> tuple[tessera._core.Tile, tessera._core.Tile]:
    """The same of h = tanh(x w + h r + biases), G = H: y and the last h."""

def linear_recurrence(a: tessera._core.Tile, b: tessera._core.Tile, h: tessera._core.Tile, along: str) -> tuple[tessera._core.Tile, tessera._core.Tile]:
    """
    y (T, N, H) and the last h of h = a h + b, with matrices a (T, N, H, K), b (T, N, H), h (N, H); T or N may be missing in a or b.
    """

def causal_conv1d(x: tessera._core.Tile, w: tessera._core.Tile, history: tessera._core.Tile, along: str, taps: str, channels: Sequence[str], dilation: int = 1) -> tuple[tessera._core.Tile, tessera._core.Tile]:
    """
    y (N, L, O) of x (N, L, C), w (R, C, O) behind history (N, J, C), J = (R - 1) dilation, summed over taps and channels; and the history of what follows x.
    """

def conv(x: tessera._core.Tile, w: tessera._core.Tile, dims: dict[str, str], channels: Sequence[str], positions: Sequence[str], stride: int | Sequence[int] = 1, padding: int | Sequence[int | tuple[int, int]] = 0, dilation: int | Sequence[int] = 1) -> tessera._core.Tile:
    """
    The sum over windows and channels, along any number of dims: dims says of each by which dim its taps are called, {"H": "R"}.
    """

def transposed_conv(x: tessera._core.Tile, w: tessera._core.Tile, dims: dict[str, str], channels: Sequence[str], positions: Sequence[str], stride: int | Sequence[int] = 1, padding: int | Sequence[int | tuple[int, int]] = 0, dilation: int | Sequence[int] = 1, end: int | Sequence[int] = 0) -> tessera._core.Tile:
    """
    The gradient of conv by x: each element adds its products with the window to the positions that it covers, stride apart.
    """

def conv2d(x: tessera._core.Tile, w: tessera._core.Tile, height: str, width: str, rows: str, columns: str, channels: Sequence[str], stride: int = 1, padding: int = 0, dilation: int = 1) -> tessera._core.Tile:
    """
    The sum over the window's rows and columns and the channels; positions are the dims P and Q.
    """

def conv1d(x: tessera._core.Tile, w: tessera._core.Tile, length: str, taps: str, channels: Sequence[str], stride: int = 1, padding: int = 0, dilation: int = 1) -> tessera._core.Tile: ...

def max_pool(x: tessera._core.Tile, dims: dict[str, str], positions: Sequence[str], stride: int | Sequence[int] = 1, padding: int | Sequence[int | tuple[int, int]] = 0, dilation: int | Sequence[int] = 1) -> tessera._core.Tile:
    """The maximum over windows along any number of dims."""

def average_pool(x: tessera._core.Tile, dims: dict[str, str], positions: Sequence[str], stride: int | Sequence[int] = 1, padding: int | Sequence[int | tuple[int, int]] = 0, dilation: int | Sequence[int] = 1, counts_padding: bool = True) -> tessera._core.Tile:
    """
    The mean over windows along any number of dims; what is padded counts as 0, or not at all.
    """

def max_pool2d(x: tessera._core.Tile, height: str, width: str, rows: str, columns: str, stride: int = 1, padding: int = 0) -> tessera._core.Tile: ...

def average_pool2d(x: tessera._core.Tile, height: str, width: str, rows: str, columns: str, stride: int = 1, padding: int = 0) -> tessera._core.Tile: ...

def resize(x: tessera._core.Tile, dim: str, to: str, by: str = 'linear', coordinates: str = 'half_pixel', nearest: str = 'half_down', cubic: float = -0.75, antialias: bool = False) -> tessera._core.Tile:
    """
    x with elements of the dim `to` in place of those of `dim`: the nearest, or between two (linear) or four (cubic).
    """
