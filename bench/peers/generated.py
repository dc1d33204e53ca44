"""Generated kernels as Python functions, through ctypes."""
import ctypes
import os
import subprocess

# DLPack's codes and bits.
DTYPES = {"f32": (2, 32), "f64": (2, 64), "bf16": (4, 16), "f16": (2, 16), "i8": (0, 8), "u8": (1, 8), "i32": (0, 32), "i64": (0, 64),
          "bool": (6, 8), "f8e4m3": (8, 8), "f8e4m3fn": (10, 8), "f8e4m3fnuz": (11, 8), "f8e5m2": (12, 8), "f8e5m2fnuz": (13, 8),
          "f8e8m0fnu": (14, 8), "f6e2m3fn": (15, 6), "f6e3m2fn": (16, 6), "f4e2m1fn": (17, 4), "i4": (0, 4), "u4": (1, 4)}
HOST = 1

# Targets by the features that they need of the processor, as Linux names them; best first.
TARGETS = {"sapphirerapids": {"avx512_fp16", "avx512_bf16", "avx512_vnni", "avx_vnni"},
           "znver5": {"avx512_bf16", "avx512_vnni", "sse4a", "avx_vnni"},
           "znver4": {"avx512_bf16", "avx512_vnni", "sse4a"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
           "avx2": {"avx2", "fma"}, "x86-64": set()}


def targets_for(features):
    return [target for target, needed in TARGETS.items() if needed <= features]


def host_features():
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        return next((set(line.partition(":")[2].split()) for line in stream if line.startswith("flags")), set())


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    """A TessTensor, which is laid out as a DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("rank", ctypes.c_int32), ("type", Type),
                ("extents", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Context(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_uint64), ("pool", ctypes.c_void_p),
                ("features_off", ctypes.c_uint64), ("device", Device), ("stream", ctypes.c_void_p), ("done", ctypes.c_void_p),
                ("done_state", ctypes.c_void_p), ("fault", ctypes.c_void_p)]


def dense(pointer, dtype, extents):
    """A dense row-major tensor; `dtype` is a name of DTYPES. Of four bits an element, each row begins at a byte. It keeps its extents."""
    kept = (ctypes.c_int64 * max(1, len(extents)))(*extents)
    d = Tensor(data=pointer, device=Device(HOST, 0), rank=len(extents), type=Type(*DTYPES[dtype], 1),
               extents=ctypes.cast(kept, ctypes.POINTER(ctypes.c_int64)))
    d.kept = kept
    return d


def struct_of(parameters):
    """A kernel's struct of parameters, from values of ctypes; nothing where there are none."""
    if not parameters:
        return []
    fields = [(f"p{i}", type(value)) for i, value in enumerate(parameters)]
    return [type("Parameters", (ctypes.Structure,), {"_fields_": fields})(*(value.value for value in parameters))]


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

    def context(self, tensors, threads=1, pool=None):
        """One with the workspace that a call with these arguments needs, which it keeps."""
        context, needed = Context(size=ctypes.sizeof(Context), threads=threads, pool=pool), ctypes.c_uint64()
        status = self.query(*map(ctypes.byref, tensors), ctypes.byref(context), ctypes.byref(needed))
        assert status == 0, f"{self.name}_workspace: status {status:#x}"
        context.memory = Memory(needed.value)
        context.workspace, context.workspace_bytes = context.memory.pointer, needed.value
        return context

    def bound(self, tensors, parameters=(), threads=1, pool=None):
        context, struct = self.context(tensors, threads, pool), struct_of(parameters)
        args = [*map(ctypes.byref, [*tensors, *struct, context])]

        def call(kept=(tensors, struct, context)):
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
        path, self.archive = os.path.join(out, name + ".so"), os.path.join(out, f"lib{name}.a")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o", path, "-Wl,--whole-archive", self.archive,
                        "-Wl,--no-whole-archive", runtime, "-lpthread", "-lm"], check=True)
        self.library, self.name = ctypes.CDLL(path), name
        self.run = Function(self.library, name)

    def packs(self, operand):
        return hasattr(self.library, f"{self.name}_pack_{operand}")

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


class Pools:
    """Pools of threads, which last as long as this. The runtime keeps its functions to whoever links it."""

    def __init__(self, runtime, folder):
        path = os.path.join(folder, "pools.so")
        source = "void *tess_pool_create(int threads); void *pool_of(int threads) { return tess_pool_create(threads); }"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", path, "-x", "c", "-", "-x", "none", runtime, "-lpthread"],
                       input=source, text=True, check=True)
        self.create, self.made = ctypes.CDLL(path).pool_of, {}
        self.create.restype = ctypes.c_void_p

    def of(self, threads):
        """A pool of so many threads; none for one."""
        if threads > 1 and threads not in self.made:
            self.made[threads] = self.create(threads)
            assert self.made[threads], f"no pool of {threads} threads"
        return self.made.get(threads)
