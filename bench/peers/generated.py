"""Generated kernels as Python functions, through ctypes."""
import ctypes
import os
import subprocess

DTYPES = {"f32": 1, "f64": 2, "bf16": 3, "f16": 4, "i8": 5, "u8": 6, "i32": 7, "i64": 8, "bool": 9}


class TensorDesc(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("extents", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("device", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class Context(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64), ("pool", ctypes.c_void_p)]


def dense(pointer, dtype, extents):
    """The descriptor of a dense row-major tensor; `dtype` is a name of DTYPES."""
    d = TensorDesc(data=pointer, dtype=DTYPES[dtype], rank=len(extents))
    step = 1
    for axis in reversed(range(len(extents))):
        d.extents[axis], d.strides[axis] = extents[axis], step
        step *= extents[axis]
    return d


class Memory:
    """Bytes of our own, aligned to 128."""

    def __init__(self, size):
        self.buffer = ctypes.create_string_buffer(size + 128)
        self.pointer = (ctypes.addressof(self.buffer) + 127) // 128 * 128


class Function:
    """One entry point. Calling it with descriptors and scalars finds its workspace out; `bound` does so once and gives a
    call without arguments."""

    def __init__(self, library, name):
        self.name, self.run, self.query = name, getattr(library, name), getattr(library, name + "_workspace")

    def context(self, tensors, parameters=(), threads=1, pool=None):
        """One with the workspace that a call with these arguments needs, which it keeps."""
        context, needed = Context(size=ctypes.sizeof(Context), threads=threads, pool=pool), ctypes.c_uint64()
        status = self.query(*map(ctypes.byref, tensors), *parameters, ctypes.byref(context), ctypes.byref(needed))
        assert status == 0, f"{self.name}_workspace: status {status:#x}"
        context.memory = Memory(needed.value)
        context.workspace, context.workspace_bytes = context.memory.pointer, needed.value
        return context

    def bound(self, tensors, parameters=()):
        context = self.context(tensors, parameters)
        args = [*map(ctypes.byref, tensors), *parameters, ctypes.byref(context)]

        def call(kept=(tensors, context)):
            status = self.run(*args)
            assert status == 0, f"{self.name}: status {status:#x}"
        return call

    def __call__(self, tensors, parameters=()):
        self.bound(tensors, parameters)()


class Library:
    """A kernel that `generator` makes into `folder`, loaded; `arguments` follow `generate` on the command line."""

    def __init__(self, generator, runtime, folder, name, arguments):
        out = os.path.join(folder, name)
        subprocess.run([generator, "generate", *arguments, "--name", name, "--out", out, "--quiet"], check=True)
        path = os.path.join(out, name + ".so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o", path, "-Wl,--whole-archive", os.path.join(out, f"lib{name}.a"),
                        "-Wl,--no-whole-archive", runtime, "-lpthread", "-lm"], check=True)
        self.library, self.name = ctypes.CDLL(path), name
        self.run = Function(self.library, name)

    def packed(self, operand, tensor):
        """The operand, packed ahead of time, as the kernel takes it; the descriptor keeps the memory that it is in."""
        pack, size = Function(self.library, f"{self.name}_pack_{operand}"), ctypes.c_uint64()
        context = Context(size=ctypes.sizeof(Context))
        assert getattr(self.library, f"{self.name}_pack_{operand}_size")(ctypes.byref(tensor), ctypes.byref(context), ctypes.byref(size)) == 0
        memory = Memory(size.value)
        d = dense(memory.pointer, "u8", [size.value])
        d.memory = memory
        pack([tensor, d])
        return d
