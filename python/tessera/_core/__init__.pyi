"""Tessera's algorithms, schedules and kernels, for the package tessera."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from tessera._core import expr as expr, tile as tile


class Accumulator:
    """What accum(f32) gives."""

    def __repr__(self) -> str: ...

class Numerics:
    """
    A numerics policy: in which types numbers are kept, computed and added up.
    """

    @staticmethod
    def named(name: str) -> Numerics:
        """
        One of those that `tessera list` shows, such as 'bf16', with words that license more: 'f32+contraction+functions'.
        """

    @staticmethod
    def names() -> list[str]: ...

    @staticmethod
    def words() -> list[str]:
        """What may follow '+' in a name."""

    def with_words(self, *words: str) -> Numerics:
        """The policy with these words, and without those it has."""

    @property
    def name(self) -> str: ...

    @property
    def storage(self) -> DType: ...

    @property
    def compute(self) -> DType: ...

    @property
    def accumulate(self) -> DType: ...

    @property
    def licensed(self) -> list[str]: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class DType:
    """The type of a tensor's elements, such as tessera.f32."""

    @staticmethod
    def named(name: str) -> DType: ...

    @property
    def name(self) -> str: ...

    @property
    def bits(self) -> int: ...

    @property
    def is_float(self) -> bool: ...

    def __matmul__(self, arg: Accumulator, /) -> Numerics: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

def accum(type: DType) -> Accumulator:
    """bf16 @ accum(f32): numbers kept in bf16, sums in f32."""

dtypes: list[DType]

class RawMonoid:
    """
    A fold over elements, as expressions. tessera.Monoid is the one to write.
    """

    def __init__(self, name: str, parts: Sequence[str], types: Sequence[DType], identities: Sequence[float], inputs: Sequence[DType], lift: Sequence[expr.Expr], combine: Sequence[expr.Expr], step: Sequence[expr.Expr], commutative: bool = True) -> None: ...

    @staticmethod
    def standard(name: str, dtype: DType) -> RawMonoid: ...

    @property
    def name(self) -> str: ...

    @property
    def arity(self) -> int: ...

    def broken_law(self) -> str | None:
        """None, or the first law that values were found to break, in words."""

    def __repr__(self) -> str: ...

class Dim:
    """
    A named dim with constraints: Dim.symbolic('M', min=1, max=4096, multiple_of=8), Dim.fixed('K', 64).
    """

    @staticmethod
    def fixed(name: str, extent: int) -> Dim: ...

    @staticmethod
    def symbolic(name: str, min: int = 0, max: int | None = None, multiple_of: int = 1, equals: str = '') -> Dim: ...

    @staticmethod
    def derived(name: str, size: expr.Expr) -> Dim: ...

    @property
    def name(self) -> str: ...

    @property
    def extent(self) -> int | None: ...

    def __repr__(self) -> str: ...

class Algorithm:
    """What is computed: stages over named dims, without a word about how."""

    @staticmethod
    def from_json(text: str) -> Algorithm: ...

    def json(self) -> str:
        """The document that every command takes in place of a name."""

    def text(self) -> str: ...

    def check_elementwise(self) -> None: ...

    def jvp(self, by: Sequence[str] = [], of: Sequence[str] = []) -> Algorithm:
        """
        How outputs change with x.tangent of each input that is named; nothing named: all floats.
        """

    def vjp(self, by: Sequence[str] = [], of: Sequence[str] = [], saved: Sequence[str] = []) -> Algorithm:
        """x.grad of each input that is named, from y.grad of outputs."""

    def forward_backward(self, by: Sequence[str] = [], of: Sequence[str] = [], saved: Sequence[str] = []) -> tuple[Algorithm, Algorithm]:
        """
        Outputs and what the backward part reads; and x.grad of each input that is named, from that and y.grad.
        """

    def grad(self, by: Sequence[str] = [], of: Sequence[str] = [], saved: Sequence[str] = []) -> Algorithm:
        """x.grad of the one output without dims."""

    def value_and_grad(self, by: Sequence[str] = [], of: Sequence[str] = [], saved: Sequence[str] = []) -> Algorithm:
        """All outputs, then x.grad of the one without dims."""

    def transposed(self, linear_in: Sequence[str] = []) -> Algorithm:
        """The adjoint of what is linear in these inputs."""

    def vmap(self, over: Dim, mapped: Sequence[str] = []) -> Algorithm:
        """
        For many arguments at once: `over` in front of what is mapped, and of outputs.
        """

    def renamed(self, names: Mapping[str, str]) -> Algorithm:
        """The same with other names of inputs, states and outputs."""

    def with_rule(self, jvp: Algorithm | None, backward: Algorithm | None, forward: Algorithm | None, differs: bool) -> Algorithm:
        """With a derivative of its author's, which differences check."""

    def checkpoint(self, scope: str, every: int) -> Algorithm:
        """With the rounds of a call in groups of `every`."""

    def elementwise_over_rows(self, repeated: Sequence[str]) -> Algorithm:
        """
        An element-wise algorithm over rows and columns; inputs in `repeated` have one element for each row.
        """

    @property
    def name(self) -> str: ...

    @property
    def semantic_hash(self) -> str: ...

    @property
    def surface_hash(self) -> str: ...

    @property
    def dims(self) -> list[Dim]: ...

    def extent(self, dim: str, told: dict[str, Any]) -> Any:
        """
        A dim's extent from those of others, numbers or what a framework that traces has for them; None where these do not tell it.
        """

    @property
    def tensors(self) -> list[tuple[str, str, DType, list[str]]]:
        """
        (name, 'input' or 'state', dtype, dims) of each, in the order of the kernel's arguments
        """

    @property
    def outputs(self) -> list[tuple[str, DType, list[str]]]: ...

    @property
    def parameters(self) -> list[tuple[str, DType]]: ...

    @property
    def stages(self) -> list[tuple[str, list[str], list[str]]]:
        """(name, dims, dims that it folds over) of each"""

    @property
    def spans(self) -> dict[str, tuple[str, int]]:
        """
        {stage: (file, line)} of the declarations; an algorithm that was read from a file has none.
        """

    @property
    def effects(self) -> list[str]: ...

    def __repr__(self) -> str: ...

class Tile:
    """
    An expression over named dims. Operators combine tiles dim by dim, by name.
    """

    @property
    def dims(self) -> list[str]:
        """Names, outermost first."""

    @property
    def dtype(self) -> DType: ...

    @property
    def value(self) -> expr.Expr:
        """The expression of one point."""

    def named(self, name: str) -> Tile:
        """The same tile as a stage of that name, which a schedule can address."""

    def at(self, index: Mapping[str, expr.Expr | Tile | int], dims: Sequence[str] | None = None) -> Tile:
        """
        The tile read at another index: {dim: position}; `dims` are those of the result.
        """

    def cast(self, dtype: DType, saturate: bool = False) -> Tile: ...

    def __neg__(self) -> Tile: ...

    def __invert__(self) -> Tile: ...

    def __abs__(self) -> Tile: ...

    @overload
    def __pow__(self, arg: int, /) -> Tile: ...

    @overload
    def __pow__(self, arg: float, /) -> Tile: ...

    @overload
    def __pow__(self, arg: Tile, /) -> Tile: ...

    def __repr__(self) -> str: ...

    def __bool__(self) -> bool: ...

    __hash__: None = None

    __array_ufunc__: None = None

    @overload
    def __add__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __add__(self, arg: float, /) -> Tile: ...

    def __radd__(self, arg: float, /) -> Tile: ...

    @overload
    def __sub__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __sub__(self, arg: float, /) -> Tile: ...

    def __rsub__(self, arg: float, /) -> Tile: ...

    @overload
    def __mul__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __mul__(self, arg: float, /) -> Tile: ...

    def __rmul__(self, arg: float, /) -> Tile: ...

    @overload
    def __truediv__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __truediv__(self, arg: float, /) -> Tile: ...

    def __rtruediv__(self, arg: float, /) -> Tile: ...

    @overload
    def __floordiv__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __floordiv__(self, arg: float, /) -> Tile: ...

    def __rfloordiv__(self, arg: float, /) -> Tile: ...

    @overload
    def __mod__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __mod__(self, arg: float, /) -> Tile: ...

    def __rmod__(self, arg: float, /) -> Tile: ...

    @overload
    def __lt__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __lt__(self, arg: float, /) -> Tile: ...

    @overload
    def __le__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __le__(self, arg: float, /) -> Tile: ...

    @overload
    def __gt__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __gt__(self, arg: float, /) -> Tile: ...

    @overload
    def __ge__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __ge__(self, arg: float, /) -> Tile: ...

    @overload
    def __eq__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __eq__(self, arg: float, /) -> Tile: ...

    @overload
    def __ne__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __ne__(self, arg: float, /) -> Tile: ...

    @overload
    def __and__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __and__(self, arg: float, /) -> Tile: ...

    def __rand__(self, arg: float, /) -> Tile: ...

    @overload
    def __or__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __or__(self, arg: float, /) -> Tile: ...

    def __ror__(self, arg: float, /) -> Tile: ...

    @overload
    def __xor__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __xor__(self, arg: float, /) -> Tile: ...

    def __rxor__(self, arg: float, /) -> Tile: ...

    @overload
    def __lshift__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __lshift__(self, arg: float, /) -> Tile: ...

    def __rlshift__(self, arg: float, /) -> Tile: ...

    @overload
    def __rshift__(self, arg: Tile, /) -> Tile: ...

    @overload
    def __rshift__(self, arg: float, /) -> Tile: ...

    def __rrshift__(self, arg: float, /) -> Tile: ...

class Scope:
    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

class Suspended:
    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

class Builder:
    """
    Declares dims, tensors and outputs. tessera.jit makes one for each function.
    """

    def __init__(self, name: str, numerics: Numerics = ...) -> None: ...

    @property
    def numerics(self) -> Numerics: ...

    @overload
    def dim(self, name: str, extent: int | None = None) -> Dim: ...

    @overload
    def dim(self, dim: Dim) -> Dim: ...

    def dim_named(self, name: str) -> Dim: ...

    def ragged_rows(self, name: str, offsets: str, dtype: DType, parent: str, flat: str) -> expr.Expr:
        """
        Declares the dim `name`, the rows of a segment; gives the position in `flat` of a row of it.
        """

    def input(self, name: str, dims: Sequence[str], dtype: DType | None = None) -> Tile: ...

    def state(self, name: str, dims: Sequence[str], dtype: DType | None = None) -> Tile: ...

    def parameter(self, name: str, dtype: DType, least: float | None = None, most: float | None = None, above: bool = False, below: bool = False) -> Tile: ...

    def constant(self, name: str, dims: Sequence[str], values: Sequence[float], dtype: DType | None = None) -> Tile: ...

    def index(self, dim: str) -> Tile: ...

    def scalar(self, dtype: DType, value: float) -> Tile: ...

    def tile(self, value: expr.Expr, dims: Sequence[str]) -> Tile: ...

    def fold(self, monoid: RawMonoid, inputs: Sequence[Tile], over: Sequence[str], where: Tile | None = None) -> list[Tile]: ...

    def scan(self, monoid: RawMonoid, inputs: Sequence[Tile], along: str, inclusive: bool = True, backward: bool = False, segments: Tile | None = None) -> list[Tile]: ...

    def scatter(self, monoid: RawMonoid, inputs: Sequence[Tile], at: Sequence[Tile], dims: Sequence[str]) -> list[Tile]: ...

    def update(self, name: str, state: Tile, index: Sequence[Tile], value: Tile) -> None: ...

    def output_in_place(self, donated: Tile, value: Tile) -> None: ...

    def call(self, scope: str, callee: Algorithm, arguments: Sequence[Tile], parameters: Mapping[str, Tile] = {}) -> list[Tile]: ...

    def repeat(self, scope: str, callee: Algorithm, dim: str, arguments: Sequence[Tile], carried: Mapping[str, str] = {}, stacked: Sequence[str] = [], until: str = '', parameters: Mapping[str, Tile] = {}) -> list[Tile]: ...

    def output(self, name: str, tile: Tile, dtype: DType | None = None) -> None: ...

    def large(self, name: str) -> None: ...

    def verify_numerics(self, stage: str, stable: bool = True, bounded: tuple[float, float] | None = None, loss: float | None = None) -> None: ...

    def state_range(self, input: str, lowest: float, highest: float) -> None: ...

    def build(self) -> Algorithm: ...

    def scope(self, prefix: str) -> Scope: ...

    def suspend(self, effects: Sequence[str]) -> Suspended: ...

def builder_of(tile: Tile) -> Builder: ...

class RawSchedule:
    """
    A schedule as a value: exactly its JSON document. tessera.Schedule is the one to use.
    """

    def __init__(self, name: str) -> None: ...

    @staticmethod
    def parse(text: str, subject: str) -> RawSchedule: ...

    @staticmethod
    def read(file: str) -> RawSchedule: ...

    @property
    def name(self) -> str: ...

    @property
    def parent_name(self) -> str: ...

    def named(self, name: str) -> RawSchedule: ...

    @overload
    def extends(self, parent: RawSchedule) -> RawSchedule: ...

    @overload
    def extends(self, parent: str) -> RawSchedule: ...

    def for_algorithm(self, name: str, surface: str = '') -> RawSchedule: ...

    def stage(self, stage: str, knobs: str) -> RawSchedule: ...

    def variant(self, when: Sequence[str], stage: str, knobs: str) -> RawSchedule: ...

    def remove(self, stage: str, knob: str) -> RawSchedule: ...

    def unset(self, stage: str, knob: str) -> RawSchedule: ...

    @property
    def text(self) -> str:
        """The canonical document."""

    @property
    def hash(self) -> str: ...

    def __eq__(self, arg: object, /) -> bool: ...

class Library:
    """Finds schedules by name, in folders."""

    def __init__(self, folders: Sequence[str]) -> None: ...

    def add(self, schedule: RawSchedule) -> None: ...

    def find(self, name: str) -> RawSchedule: ...

    def names(self) -> list[str]: ...

    def check(self, schedule: RawSchedule) -> None:
        """Merges it with its ancestors, so that what is wrong is said now."""

    def flatten(self, schedule: RawSchedule) -> RawSchedule: ...

    def explain(self, schedule: RawSchedule) -> str: ...

    def explain_json(self, schedule: RawSchedule) -> str: ...

    def diff(self, a: RawSchedule, b: RawSchedule) -> str: ...

class Kernel:
    """A kernel of a library that `generate` wrote, loaded into this process."""

    def __init__(self, file: str, name: str) -> None: ...

    @property
    def name(self) -> str: ...

    @property
    def targets(self) -> list[str]: ...

    @property
    def inputs(self) -> list[str]:
        """Names of inputs and states, then of parameters."""

    @property
    def outputs(self) -> list[str]: ...

    @property
    def fixed(self) -> dict[str, int]: ...

    def parameter_block(self, values: dict[str, object]) -> bytes:
        """Parameters by name as the bytes that the kernel reads."""

    def __repr__(self) -> str: ...

def set_threads(count: int) -> int:
    """
    One pool of so many threads for all calls of the process; 1: the caller alone.
    """

def threads() -> int: ...

def cpu_features() -> int:
    """
    What the processor and the system support, bit by bit (tess_cpu_features).
    """

def cpu_count() -> int:
    """Processors that this thread may run on."""

class Bundle:
    """A bundle that is open in this process (docs/bundle.md)."""

    def __init__(self, file: str, public_key: bytes | None = None, trust_weights: bool = False, features_off: int = 0) -> None: ...

    @property
    def name(self) -> str: ...

    @property
    def kernels(self) -> list[tuple[str, str | None]]:
        """
        Name and target of each kernel; no target where this processor runs none of its code.
        """

    @property
    def tensors(self) -> list[str]:
        """Names of the tensors."""

    @property
    def has_record(self) -> bool: ...

    def kernel(self, name: str) -> Kernel: ...

    def tensor(self, name: str) -> Any:
        """A tensor, read only, for __dlpack__."""

    def weight(self, kernel: str, argument: str) -> Any:
        """
        What a kernel takes as a weight, packed where its code wants that; None where the argument is none.
        """

    def member(self, path: str) -> bytes:
        """The bytes of a member of the file."""

    def replay(self, record: bytes | None = None, inputs: bytes | None = None) -> list[tuple[int, str, str, str, str, str, str]]:
        """
        Runs what is recorded, or a record: run, kernel, argument, target, hash of bits, what came out, what was recorded.
        """

class Pages:
    """
    A cache in pages: see runtime/state/cache.h. The face is tessera.state.Pages.
    """

    def __init__(self, pools: Sequence[object], page_tokens: int, sequences: int, sequence_pages: int, steps: int, prefix_tokens: int, outside_pages: int, folder: str | None, recover: bool, sync: bool, thread: bool) -> None: ...

    def open(self, key: int) -> int: ...

    def close(self, sequence: int) -> None: ...

    def fork(self, parent: int, at: int, key: int) -> int: ...

    def reserve(self, sequence: int, tokens: int, timeout: float | None = 0.0, copy: bool = True) -> tuple[int, int] | None: ...

    def commit(self, sequence: int, tokens: int) -> None: ...

    def truncate(self, sequence: int, length: int) -> None: ...

    def prune(self, sequence: int, window: int, keep: int) -> None: ...

    def tables(self, sequences: Sequence[int], width: int) -> tuple[int, Any, Any, Any]: ...

    def release(self, step: int) -> None: ...

    def offload(self, sequence: int) -> None: ...

    def prefetch(self, sequence: int, timeout: float | None = 0.0) -> None: ...

    def wait(self, sequence: int, timeout: float | None = None) -> None: ...

    def publish(self, sequence: int, tokens: Sequence[int]) -> None: ...

    def prefix(self, tokens: Sequence[int]) -> tuple[int, int]: ...

    def info(self, sequence: int) -> tuple[int, int, int, int, int, int, int, int, str]: ...

    def sequences(self) -> list[tuple[int, int, int, int, int, int, int, int, str]]: ...

    def counts(self) -> tuple[int, int, int, int, int, int]: ...

class Precision:
    """
    See runtime/state/precision.h. The face is tessera.state.AdaptivePrecision.
    """

    def __init__(self, range: float, first: int, least: int, most: int, patience: int, grow: int, stay: int) -> None: ...

    def step(self, largest: float) -> bool: ...

    def check(self) -> None: ...

    def scale(self) -> float: ...

    def fields(self) -> Any: ...

def save_state(path: str, tensors: Sequence[tuple[str, object]], semantic_hash: str, step: int, seed: int) -> None: ...

def load_state(path: str, tensors: Sequence[tuple[str, object]], semantic_hash: str) -> tuple[str, int, int]: ...

def look_at_state(path: str) -> tuple[tuple[str, int, int], list[tuple[str, str, list[int]]]]: ...

class Weights:
    """
    A file of weights, safetensors or GGUF, as tensors that kernels take (docs/weights.md).
    """

    def __init__(self, file: str, floats: str | None = None) -> None: ...

    @property
    def names(self) -> list[str]:
        """Names of the tensors, in their order."""

    @property
    def notes(self) -> list[str]:
        """What was rounded."""

    def tensor(self, name: str) -> Any:
        """A tensor, read only, for __dlpack__."""

class Function:
    """
    Function(name, arguments, results, algorithm, miss, defaults): calls kernels with tensors of any framework.
    """

    def __call__(self, *values: Any, **named: Any) -> Any: ...

    def __init__(self, name: str, arguments: Sequence[str], results: Sequence[str], algorithm: Algorithm | None, miss: Callable[[tuple[Any, ...]], None] | None, defaults: dict[str, Any], /) -> None: ...

    def add_kernel(self, kernel: Kernel, /) -> None: ...

    def kernels(self) -> list[Kernel]: ...

    def forget_kernels(self) -> None: ...

def keep_vectorcall(type: object) -> None: ...

class Ufunc:
    """
    Ufunc(name, arguments, inputs, results, miss, other): calls kernels over arrays of any shape.
    """

    def __call__(self, *values: Any, **named: Any) -> Any: ...

    def __init__(self, name: str, arguments: Sequence[str], inputs: Mapping[str, Any], results: Mapping[str, Any], miss: Callable[[list[str]], Kernel], other: Callable[..., Any], /) -> None: ...

    def over(self, values: tuple[Any, ...], out: tuple[Any, ...], /) -> Any: ...

def sha256(data: bytes) -> str:
    """'sha256:' and hexadecimal digits, as manifests have them."""

def xla_handler() -> object:
    """
    The handler that XLA calls for all kernels, for jax.ffi.register_ffi_target.
    """

def xla_kernel(hash: str, kernel: Kernel) -> None:
    """Tells the handler of a kernel."""
