"""The kernels of a row, as calls: one library for each algorithm and what a user fixes, which is weights and widths; rows, batches and
images stay open."""
import ctypes
import json
import subprocess

from generated import Library, Pools, dense, targets_for

NAMES = {"float32": "f32", "bfloat16": "bf16", "int8": "i8", "uint8": "u8", "int32": "i32"}


def desc(tensor):
    """Of a dense tensor of PyTorch's, which it keeps; or of bytes that are a tensor of another type: the bytes, the type and its extents."""
    if isinstance(tensor, tuple):
        made = dense(tensor[0].data_ptr(), *tensor[1:])
        made.tensor = tensor[0]
        return made
    assert tensor.is_contiguous()
    made = dense(tensor.data_ptr(), NAMES[str(tensor.dtype).removeprefix("torch.")], list(tensor.shape))
    made.tensor = tensor
    return made


class Kernels:
    def __init__(self, generator, runtime, folder, features):
        self.generator, self.runtime, self.folder, self.made = generator, runtime, folder, {}
        self.pools = Pools(runtime, folder)
        listed = subprocess.run([generator, "list", "--json"], capture_output=True, text=True, check=True).stdout
        self.schedules = set(json.loads(listed)["schedules"])
        self.targets = targets_for(features)

    def library(self, arguments):
        key = tuple(arguments)
        if key not in self.made:
            self.made[key] = Library(self.generator, self.runtime, self.folder, f"kernel{len(self.made)}", arguments)
        return self.made[key]

    def prepacked(self, algorithm, dtype, names=("prepacked",)):
        """The schedules that pack weights ahead of time, of the best target that has any."""
        of = algorithm if dtype in ("f32", "u8s8") else f"{algorithm}/{dtype}"
        for target in self.targets:
            found = [f"{of}/{name}_{target}" for name in names if f"{of}/{name}_{target}" in self.schedules]
            if found:
                return found
        return []

    def call(self, row, algorithm, tensors, fixed, parameters=(), options=(), schedule=None, packed=()):
        """`packed`, the names of tensors from the second on, are packed ahead of time where the schedule has them so."""
        arguments = [algorithm, "--numerics", "bf16" if row.dtype == "bf16" else "f32"]
        if fixed:
            arguments += ["--shape", *(f"{n}={e}" for n, e in fixed.items())]
        if options:
            arguments += ["--option", *(f"{n}={v}" for n, v in options)]
        if schedule:
            arguments += ["--schedule", schedule]
        library = self.library(arguments)
        descs = [desc(t) for t in tensors]
        for i, name in enumerate(packed, 1):
            if schedule and library.packs(name):
                descs[i] = library.packed(name, descs[i])
        return library.run.bound(descs, parameters, row.threads, self.pools.of(row.threads))

    def weighted(self, row, algorithm, tensors, fixed, options=(), names=("prepacked",)):
        """Each way of a kernel whose second tensor is weights."""
        ways = {"default": self.call(row, algorithm, tensors, fixed, options=options)}
        for schedule in self.prepacked(algorithm, row.dtype, names) if row.prepared else ():
            ways[schedule] = self.call(row, algorithm, tensors, fixed, options=options, schedule=schedule, packed=("w",))
        return ways


EPSILON = ctypes.c_float(1e-5)
