"""Functions that declare algorithms, as functions that compute."""
from __future__ import annotations

import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import tessera
from tessera import _core, cache, compiler
from tessera._core import Algorithm, Numerics
from tessera.declare import Signature, declare, signature_of, static_value
from tessera.errors import CompilationError
from tessera.schedule import Schedule

if TYPE_CHECKING:
    from tessera.ufunc import Ufunc

# How the names of targets for processors begin, whose kernels are called in this process where they are for its own.
_MACHINES = ("x86-64", "avx", "znver", "sapphirerapids", "amx", "arm64", "wasm32")
MAX_SPECIALISATIONS = 16
MAX_ALGORITHMS = 64


class Tuning(NamedTuple):
    """What kernel.autotune asks for: a search at the first call of each shape."""

    space: Mapping[str, Sequence[Any]]
    metric: str
    budget_ms: float
    folder: str


class Choices(NamedTuple):
    """How a function's kernels are made."""

    fix: tuple[str, ...] = ()
    target: str = "host"
    schedule: Schedule | str | None = None
    schedule_folders: tuple[str, ...] = ()
    tuning: Tuning | None = None
    autodiff: bool = False  # frameworks take the gradients from its vjp
    made_of: Jit | None = None  # whose schedule stages of a gradient take by their roles


class Jit(_core.Function):
    """A function of tensors. Its first call with new fixed extents makes a kernel; results are made, or written to `out`.

    Tensors are NumPy arrays, those of PyTorch, JAX, or anything with __dlpack__; none is copied. States are updated in the caller's memory.
    """

    algorithm: Algorithm
    choices: Choices
    search: Search | None = None  # that autotune made
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __new__(cls, algorithm: Algorithm, choices: Choices, arguments: Sequence[str], defaults: Mapping[str, int | float | bool] | None = None) -> Jit:
        return super().__new__(cls)

    def __init__(self, algorithm: Algorithm, choices: Choices, arguments: Sequence[str], defaults: Mapping[str, int | float | bool] | None = None) -> None:
        self.algorithm, self.choices, self._arguments = algorithm, choices, list(arguments)
        self._defaults = dict(defaults or {})
        self._compiling = threading.RLock()
        self._made: dict[tuple[tuple[str, int], ...], _core.Kernel] = {}
        self._names = {d.name for d in algorithm.dims}
        self._check_dims(choices.fix, "fix: ")
        self._tensors = {name: dims for name, _, _, dims in algorithm.tensors}
        super().__init__(algorithm.name, self._arguments, [name for name, _, _ in algorithm.outputs], algorithm, self._miss, self._defaults)

    @property
    def arguments(self) -> list[str]:
        """Names, in the order of a call: inputs, states and parameters. Results are not among them."""
        return list(self._arguments)

    @property
    def defaults(self) -> dict[str, int | float | bool]:
        """The values of parameters that a call may leave out."""
        return dict(self._defaults)

    def _check_dims(self, dims: Iterable[str], where: str = "") -> None:
        for dim in dims:
            if dim not in self._names:
                raise CompilationError("shape.unknown-dim",
                                       f"{self.algorithm.name}: {where}there is no dim '{dim}'; there are {', '.join(sorted(self._names))}")

    # ---- making kernels

    @functools.cached_property
    def json(self) -> str:
        """The algorithm as every command takes it in place of a name."""
        return self.algorithm.json()

    def _with(self, **changes: Any) -> Jit:
        return Jit(self.algorithm, self.choices._replace(**changes), self._arguments, self._defaults)

    def differentiable(self) -> Jit:
        """The function with its vjp as the backward pass in frameworks (autodiff)."""
        made = self._with(autodiff=True)
        made.__dict__.update({n: v for n, v in self.__dict__.items() if n.startswith("__")})
        return made

    def vjp(self, by: str | Sequence[str] = (), of: str | Sequence[str] = ()) -> Jit:
        """tessera.vjp of it."""
        from tessera.derivatives import vjp

        return vjp(self, by, of)

    def transformed(self, transform: Callable[[Algorithm], Algorithm]) -> Jit:
        """The function of another algorithm that is made of this one's. Its arguments are those that both have, in this function's order,
        then new ones. A schedule that names stages of this function is not its own; its products take it by their roles."""
        made = transform(self.algorithm)
        names = [n for n, _, _, _ in made.tensors] + [n for n, _ in made.parameters]
        arguments = [n for n in self._arguments if n in names] + [n for n in names if n not in self._arguments]
        dims = {d.name for d in made.dims}
        schedule = self.choices.schedule if self.choices.schedule in ("none", "derived") else None
        choices = self.choices._replace(fix=tuple(d for d in self.choices.fix if d in dims), schedule=schedule, tuning=None, autodiff=False,
                                        made_of=self.choices.made_of or self)
        return Jit(made, choices, arguments, {n: v for n, v in self._defaults.items() if n in names})

    def _extents_of(self, values: Sequence[Any]) -> dict[str, int]:
        extents: dict[str, int] = {}
        for name, value in zip(self._arguments, values):
            dims = self._tensors.get(name)
            shape = getattr(value, "shape", None)
            if dims is not None and shape is not None and len(shape) == len(dims):
                extents.update((d, int(n)) for d, n in zip(dims, shape) if d not in extents)
        return extents

    def _miss(self, values: tuple[Any, ...]) -> None:
        extents = self._extents_of(values)
        self.compile(**{d: extents[d] for d in self.choices.fix if d in extents}, _all=extents)

    def compile(self, _all: Mapping[str, int] | None = None, **fixed: int) -> _core.Kernel:
        """Makes the kernel for these fixed extents, or takes it from the cache."""
        self._check_dims(fixed)
        for dim, extent in fixed.items():
            if type(extent) is not int or not 0 <= extent < 2**31:
                raise CompilationError("shape.extent", f"{self.algorithm.name}: {dim}: expected an extent of 0 ..< 2^31, got {extent!r}")
        key = tuple(sorted(fixed.items()))
        with self._compiling:  # of threads that miss at one time, one compiles
            made = self._made.get(key)
            if made is None or not any(made is kernel for kernel in self.kernels()):
                made = self._made[key] = self._compile(fixed, _all)
            return made

    def _compile(self, fixed: Mapping[str, int], extents: Mapping[str, int] | None) -> _core.Kernel:
        if len(self.kernels()) >= MAX_SPECIALISATIONS:
            made = "; ".join(", ".join(f"{d}={n}" for d, n in k.fixed.items()) or "nothing fixed" for k in self.kernels())
            raise CompilationError("python.specialisations", f"{self.algorithm.name}: {MAX_SPECIALISATIONS} kernels are made for {made}. "
                                                             "Fix fewer dims (jit(fix=...)), or forget_kernels()")
        self._check_runs_here()
        tuning = self.choices.tuning
        if tuning is not None and extents is not None:
            self._tune_once(tuning, extents)
        kernel = cache.loaded(self._key(fixed), f"{self.algorithm.name} with {_text(fixed)}",
                              lambda folder: self._generate(folder, self.choices.target, fixed),
                              lambda library: _core.Kernel(str(library), self._name_in_c()))
        self.add_kernel(kernel)
        return kernel

    def _check_runs_here(self) -> None:
        machine = os.uname().machine
        ours = {"x86_64": ("x86-64", "avx", "znver", "sapphirerapids", "amx"), "aarch64": ("arm64",)}.get(machine, ())
        targets = [t.strip() for t in self.choices.target.split(",")]
        others = [t for t in targets if t.startswith(_MACHINES) and not t.startswith(ours)]
        if others:
            raise CompilationError("python.target", f"{self.algorithm.name}: its target is {', '.join(others)}, and this machine is {machine}, so that it "
                                                    'cannot be called here; jit(target="host") makes it for this machine, and export(...) writes it for the other')

    def kernel_for(self, *values: Any) -> tuple[str, _core.Kernel]:
        """The kernel for arguments of these shapes, and the hash that it has in the cache."""
        extents = self._extents_of(values)
        fixed = {d: extents[d] for d in self.choices.fix if d in extents}
        made = [k for k in self.kernels() if fixed.items() <= k.fixed.items()]
        return self._key(fixed), made[0] if made else self.compile(_all=extents, **fixed)

    def _said(self) -> list[Any]:
        """The algorithm, and what is said of its schedule."""
        schedule = self.choices.schedule
        return [self.json, [s.text for s in (schedule, *schedule.ancestors())] if isinstance(schedule, Schedule) else schedule]

    def _key(self, fixed: Mapping[str, int]) -> str:
        said = self._said()[1]
        folders = [[str(f), _core.sha256(f.read_bytes())] for folder in self.choices.schedule_folders
                   for f in sorted(Path(folder).rglob("*.json"))]
        parts: list[Any] = [tessera.__version__, compiler.generator_identity(), self.json, sorted(fixed.items()), said, folders, self.choices.target,
                            _core.cpu_features() if "host" in self.choices.target else 0,
                            self.choices.made_of._said() if self.choices.made_of else 0]
        return _core.sha256(json.dumps(parts).encode()).removeprefix("sha256:")

    def _arguments_of(self, folder: Path, target: str, fixed: Mapping[str, int]) -> list[str]:
        """What the commands are told; files that they read are written to the folder."""
        file = folder / f"{self.algorithm.name}.json"
        file.write_text(self.json, encoding="utf-8")
        said = [str(file), "--target", target]
        if fixed:
            said += ["--shape", *(f"{d}={n}" for d, n in fixed.items())]
        schedule = self.choices.schedule
        if isinstance(schedule, Schedule):
            schedule.write_below(folder / "schedules")
            said += ["--schedule-dir", str(folder / "schedules"), "--schedule", schedule.name]
        elif schedule is not None:
            said += ["--schedule", schedule]
        elif (before := self.choices.made_of) is not None:
            said += ["--made-of", str(folder / "before.json")]
            (folder / "before.json").write_text(before.json, encoding="utf-8")
            inherited = before.choices.schedule
            if isinstance(inherited, Schedule):
                inherited.write_below(folder / "schedules")
                said += ["--schedule-dir", str(folder / "schedules"), "--inherit", inherited.name]
            elif inherited is not None and inherited != "derived":
                said += ["--inherit", inherited]
        for other in self.choices.schedule_folders:
            if os.path.isdir(other):
                said += ["--schedule-dir", other]
        return said

    def _name_in_c(self) -> str:
        """Of linear.grad it is linear_grad, as the command line has it."""
        return self.algorithm.name.replace(".", "_")

    def _named_in_c(self) -> list[str]:
        return [] if self._name_in_c() == self.algorithm.name else ["--name", self._name_in_c()]

    def _run(self, command: str, more: Sequence[str], target: str, fixed: Mapping[str, int], *, progress: bool = False) -> str:
        import tempfile  # a kernel from the cache needs neither this nor a process

        with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
            return compiler.run([command, *self._arguments_of(Path(folder), target, fixed), *more], progress=progress, spans=self.algorithm.spans)

    def _generate(self, folder: Path, target: str, fixed: Mapping[str, int]) -> None:
        self._run("generate", ["--quiet", "--out", str(folder), *self._named_in_c()], target, fixed)

    # ---- schedules

    def with_schedule(self, schedule: Schedule | str | None) -> Jit:
        """The function under this schedule: a value, a name, "none" for plain loops, "derived" for the cost model's choice, None for what
        generators choose unasked."""
        return self._with(schedule=schedule)

    def schedule(self, stage: str = "", **knobs: Any) -> Jit:
        """States knobs over the schedule that the function has. `block`, `micro` and `vector` take an extent for each of the stage's last
        dims, in order; `k` those of what it folds over; all take {dim: extent}. Without `stage`, k is of the one fold, the rest of the result."""
        made: Jit = self
        for knob, value in knobs.items():
            of = stage or made._stage_for(knob)
            made = made._with(schedule=made._own_schedule().stage(of, **{knob: made._by_dim(of, knob, value)}))
        return made

    def vector(self, *lanes: int, stage: str = "") -> Jit:
        return self.schedule(stage, vector=lanes)

    def micro(self, *extents: int, stage: str = "") -> Jit:
        return self.schedule(stage, micro=extents)

    def warps(self, count: int, stage: str = "") -> Jit:
        return self.schedule(stage, warps=count)

    def _own_schedule(self) -> Schedule:
        schedule = self.choices.schedule
        if isinstance(schedule, Schedule):
            return schedule
        if schedule is not None and schedule not in ("none", "derived"):
            return Schedule.named(schedule, self.choices.schedule_folders)
        return Schedule(f"{self.algorithm.name}/python")

    def _stage_for(self, knob: str) -> str:
        folds = [name for name, _, over in self.algorithm.stages if over]
        if knob == "k":
            if len(folds) != 1:
                raise CompilationError("python.stage", f"{self.algorithm.name}: 'k' is of a fold, and there are {', '.join(folds) or 'none'}; name one with stage=")
            return folds[0]
        return self.algorithm.outputs[0][0]

    def _by_dim(self, stage: str, knob: str, value: Any) -> Any:
        if knob not in ("block", "k", "micro", "vector", "unroll") or isinstance(value, Mapping):
            return cast("Any", value)
        found = [(dims, over) for name, dims, over in self.algorithm.stages if name == stage]
        if not found:
            raise CompilationError("python.stage", f"{self.algorithm.name}: there is no stage '{stage}'; there are {', '.join(n for n, _, _ in self.algorithm.stages)}")
        dims = found[0][1] if knob == "k" else found[0][0]
        extents = list(cast("Iterable[Any]", value)) if isinstance(value, Iterable) else [value]
        if len(extents) > len(dims):
            raise CompilationError("python.extents", f"{self.algorithm.name}.{stage}: {knob}: {len(extents)} extents for the dims {', '.join(dims)}")
        return dict(zip(dims[len(dims) - len(extents):], extents))

    def explain(self, field: str = "") -> str:
        """Which ancestor of the schedule states each of its fields, or this one."""
        return self._own_schedule().explain(field)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the schedule."""
        self._own_schedule().save(file)

    # ---- arrays of any shape

    def ufunc(self) -> Ufunc:
        """The function over NumPy's arrays of any shape, as numpy.ufunc: for one that is element-wise (tessera.ufunc.Ufunc)."""
        from tessera.ufunc import Ufunc

        return Ufunc(self)

    # ---- looking, measuring, searching, exporting

    def show(self, what: str = "algorithm", *, target: str = "", **fixed: int) -> str:
        """As `tessera show --what`: algorithm, shapes, schedule, lowering, tiles, bits, memory, lockstep, c or assembly."""
        more = ["--what", what, "--quiet"]
        if what not in ("algorithm", "shapes"):
            return self._run("show", more, target or self.choices.target, fixed)
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tessera-") as folder:  # no schedule and no target changes these
            file = Path(folder) / f"{self.algorithm.name}.json"
            file.write_text(self.json, encoding="utf-8")
            shape = ["--shape", *(f"{d}={n}" for d, n in fixed.items())] if fixed else []
            return compiler.run(["show", str(file), *shape, *more])

    def _split(self, extents: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
        self._check_dims(extents)
        fixed = {d: n for d, n in extents.items() if d in self.choices.fix}
        others = [f"{d}={n}" for d, n in extents.items() if d not in fixed]
        return fixed, ["--extents", *others] if others else []

    def profile(self, *, seconds: float = 1.0, threads: int = 1, **extents: int) -> Profile:
        """Times the kernel at these extents, as `tessera bench`."""
        fixed, others = self._split(extents)
        more = [*others, "--json", "--quiet", "--seconds", str(seconds), "--threads", str(threads)]
        return Profile(json.loads(self._run("bench", more, self.choices.target, fixed)))

    def verify(self, **fixed: int) -> str:
        """Runs the kernel on awkward shapes beside its tile program and its algorithm, as `tessera verify`."""
        return self._run("verify", ["--quiet"], self.choices.target, fixed)

    def autotune(self, *, trials: int | None = None, budget_s: float | None = None, threads: int = 1, metric: str = "latency",
                 space: Mapping[str, Sequence[Any]] | None = None, out: str = "schedules", records: str = "tune.db", seed: int = 1,
                 progress: bool = True, **extents: int) -> Jit:
        """Searches for a faster schedule at these extents, as `tessera tune`: the same records, the same artifact in the folder `out`. Gives
        the function with that folder among those of its schedules, or with the schedule that it has where no faster one was found. Its
        `search` is what the search measured."""
        fixed, others = self._split(extents)
        more = [*others, "--out", out, "--records", records, "--threads", str(threads), "--metric", metric, "--seed", str(seed), "--json"]
        if trials is not None:
            more += ["--trials", str(trials)]
        if budget_s is not None:
            more += ["--budget-s", str(budget_s)]
        for decision, answers in (space or {}).items():
            more += ["--space", f"{decision}={','.join(str(a) for a in answers)}"]
        Path(out).mkdir(parents=True, exist_ok=True)
        search = Search(json.loads(self._run("tune", more, self.choices.target, fixed, progress=progress)))
        folders = self.choices.schedule_folders
        has_artifact = search["artifact"] or search["kept"]
        tuned = self._with(schedule=None if has_artifact else self.choices.schedule,
                           schedule_folders=folders if out in folders else (out, *folders))
        tuned.search = search
        return tuned

    def _tune_once(self, tuning: Tuning, extents: Mapping[str, int]) -> None:
        marker = Path(tuning.folder) / self.algorithm.name / "tuned.txt"
        shape = ",".join(f"{d}={n}" for d, n in sorted(extents.items()) if d in self._names)
        line = f"{self.algorithm.semantic_hash} {self.choices.target} {shape}\n"
        if marker.exists() and line in marker.read_text(encoding="utf-8"):
            return
        symbolic = {d.name for d in self.algorithm.dims if d.extent is None}
        others: dict[str, Any] = {d: n for d, n in extents.items() if d in symbolic}
        Jit(self.algorithm, self.choices, self._arguments).autotune(
            budget_s=tuning.budget_ms / 1000, metric=tuning.metric.removesuffix("_ms"), space=tuning.space, out=tuning.folder,
            records=str(Path(tuning.folder) / "tune.db"), **others)
        marker.parent.mkdir(parents=True, exist_ok=True)
        with open(marker, "a", encoding="utf-8") as stream:
            stream.write(line)

    def export(self, folder: str | os.PathLike[str], *, target: str = "", **fixed: int) -> Path:
        """Writes the static library, its C header and the manifest, byte for byte as `tessera generate` does."""
        self._run("generate", ["--quiet", "--out", os.fspath(folder), *self._named_in_c()], target or self.choices.target, fixed)
        return Path(folder)

    def export_onnx(self, file: str | os.PathLike[str], **fixed: int) -> Path:
        """Writes the function as an ONNX model, as `tessera export` does; schedules and targets change nothing of it."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
            algorithm = Path(folder) / f"{self.algorithm.name}.json"
            algorithm.write_text(self.json, encoding="utf-8")
            shape = ["--shape", *(f"{d}={n}" for d, n in fixed.items())] if fixed else []
            compiler.run(["export", str(algorithm), *shape, "--out", os.fspath(file)], spans=self.algorithm.spans)
        return Path(file)

    def __reduce__(self) -> Any:
        return _rebuilt, (self.json, self.choices, self._arguments, self._defaults)

    def __repr__(self) -> str:
        return f"<tessera function {self.algorithm.name}({', '.join(self._arguments)})>"


_core.keep_vectorcall(Jit)


def _rebuilt(text: str, choices: Choices, arguments: list[str], defaults: dict[str, int | float | bool]) -> Jit:
    """A copied or unpickled function; its kernels are taken from the cache."""
    return Jit(Algorithm.from_json(text), choices, arguments, defaults)


class Profile(dict[str, Any]):
    """What `bench --json` says."""

    def __repr__(self) -> str:
        return json.dumps(self, indent=2)


class Search(dict[str, Any]):
    """What `tune --json` says: the trials in order, each with its speed beside that of the schedule to beat."""

    def __repr__(self) -> str:
        return (f"<search of {len(self['trials'])} trials in {self['elapsed_s']:.0f} s: {self['best_s'] * 1e3:.3f} ms, "
                f"{self['ratio'][1]:.2f} of the speed of the schedule to beat>")


class JitFamily:
    """A function with static arguments: for each of their values a Jit. They are given by name."""

    __module__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], signature: Signature, choices: Choices, numerics: Numerics | str | None) -> None:
        self._function, self._signature, self._choices, self._numerics = function, signature, choices, numerics
        self._made: dict[tuple[tuple[str, type, str], ...], Jit] = {}
        functools.update_wrapper(self, function)

    def specialised(self, **static: Any) -> Jit:
        """The function for these static arguments; of others the defaults hold."""
        signature = self._signature
        values = {**signature.static, **static}
        for name in (*values, *signature.required_static):
            if name not in values:
                raise CompilationError("python.static", f"{signature.name}: the static argument '{name}' is missing")
            if name not in signature.static and name not in signature.required_static:
                raise CompilationError("python.static", f"{signature.name}: there is no argument '{name}'")
            values[name] = static_value(signature, name, values[name])
        key = tuple((name, value.__class__, repr(value)) for name, value in sorted(values.items()))  # 1 is not True, 0.0 not -0.0, nan is nan
        if key not in self._made:
            if len(self._made) >= MAX_ALGORITHMS:
                raise CompilationError("python.specialisations", f"{signature.name}: {MAX_ALGORITHMS} values of its static arguments were given; what "
                                                                 "changes from call to call is a parameter: annotate it f32 or Param[f32]")
            algorithm = declare(self._function, signature, values, self._numerics, signature.name)
            self._made[key] = Jit(algorithm, self._choices, list(signature.arguments), signature.defaults)
        return self._made[key]

    def __call__(self, *values: Any, **named: Any) -> Any:
        signature = self._signature
        static = {n: named.pop(n) for n in list(named) if n in signature.static or n in signature.required_static}
        return self.specialised(**static)(*values, **named)

    def ufunc(self, **static: Any) -> Ufunc:
        """The function for these static arguments over NumPy's arrays of any shape (Jit.ufunc)."""
        return self.specialised(**static).ufunc()

    def __reduce__(self) -> str:
        """By its module and name, as functions are pickled: its own function cannot be."""
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is not self:
            from pickle import PicklingError

            raise PicklingError(f"{self._signature.name}: a function with static arguments is pickled by its module and name, as functions of "
                                f"Python are, and {self.__module__}.{self.__qualname__} is not this one; give it that name, or pickle "
                                "specialised(...)")
        return self.__qualname__

    def __copy__(self) -> JitFamily:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> JitFamily:
        return self

    def _with(self, **changes: Any) -> JitFamily:
        return JitFamily(self._function, self._signature, self._choices._replace(**changes), self._numerics)

    def differentiable(self) -> JitFamily:
        """The functions with their vjps as the backward passes in frameworks (autodiff)."""
        return self._with(autodiff=True)


@overload
def jit(function: Callable[..., Any], /) -> Jit: ...
@overload
def jit(*, fix: Sequence[str] = (), target: str = "host", numerics: Numerics | str | None = None,
        schedule: Schedule | str | None = None, name: str = "") -> Callable[[Callable[..., Any]], Jit]: ...
def jit(function: Callable[..., Any] | None = None, /, *, fix: Sequence[str] = (), target: str = "host",
        numerics: Numerics | str | None = None, schedule: Schedule | str | None = None, name: str = "") -> Any:
    """Makes a function of tiles a function of tensors.

    fix       dims whose extents kernels are made for; others stay dynamic, and nothing is specialised that is not named
    target    as `tessera list` shows, or several: "avx2,avx512"
    numerics  a policy; by default what annotations say
    schedule  a Schedule, a name, "none" or "derived"; by default what generators choose unasked
    name      of the algorithm and of the kernel in C, where the function's own cannot be one, as `double`

    The function runs once, here, with tiles: what is wrong is raised at its line. Arguments annotated int, float, bool or str are static:
    given by name, and each value makes an algorithm of its own (JitFamily).
    """
    choices = Choices(tuple(fix), target, schedule)

    def wrap(f: Callable[..., Any]) -> Any:
        signature = signature_of(f)
        chosen = choices._replace(autodiff=getattr(f, "__tessera_autodiff__", False))
        if name:
            signature = signature._replace(name=name)
        if signature.static or signature.required_static:
            return JitFamily(f, signature, chosen, numerics)
        made = Jit(declare(f, signature, {}, numerics, signature.name), chosen, list(signature.arguments), signature.defaults)
        if chosen.autodiff:
            made.algorithm.vjp()  # what has none is refused here
        made.__doc__, made.__module__, made.__qualname__, made.__wrapped__ = f.__doc__, f.__module__, f.__qualname__, f
        return made

    return wrap if function is None else wrap(function)


class kernel:  # noqa: N801, named as users write it
    """What is asked of kernels beside their function."""

    @staticmethod
    def autotune(*, space: Mapping[str, Sequence[Any]] | None = None, metric: str = "latency_ms", budget_ms: float = 60_000,
                 cache: str = "schedules") -> Callable[[Any], Any]:
        """Above @jit: the first call of each shape searches for a schedule, at most so long, within `space` (decisions of the search space
        and the answers that are allowed: tessera tune --dry-run lists them). Its artifact is kept in the folder `cache`, to be checked in."""
        tuning = Tuning(dict(space or {}), metric, budget_ms, cache)

        def wrap(function: Any) -> Any:
            if isinstance(function, JitFamily):
                return function._with(tuning=tuning)
            return function._with(tuning=tuning, schedule_folders=(cache, *function.choices.schedule_folders))

        return wrap


def _text(fixed: Mapping[str, int]) -> str:
    return ", ".join(f"{d}={n}" for d, n in fixed.items()) or "no extents fixed"
