"""What this machine can do at most, by the loops of bench/measure: multiply-adds on registers, and plain reading and copying."""
import ctypes
import os
import platform
import subprocess

PEAKS = {"f32": 0, "bf16": 2, "u8s8": 3, "int4": 3}  # of peak.h; weights of 4 bits by rows of 8
WIDTHS = (64, 32, 16)
BLOCK = 512  # bytes that bandwidth.h moves at a time


class Limits:
    def __init__(self, checkout, runtime, folder):
        sources = [os.path.join(checkout, "bench", "measure", name + ".c") for name in ("peak", "bandwidth", "evict")]
        path = os.path.join(folder, "limits.so")
        compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-shared", "-fPIC", "-I", checkout]
        subprocess.run([*compiler, "-o", path, *sources, runtime], check=True)
        self.library = ctypes.CDLL(path)
        self.library.peak_run.restype = ctypes.c_double
        self.library.peak_run.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long]
        self.library.bandwidth_read.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_long]
        self.library.bandwidth_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_long]
        self.width = next(w for w in WIDTHS if self.library.peak_run(PEAKS["f32"], w, 1))

    def evict(self):
        assert self.library.evict_caches() == 0

    def arithmetic(self, dtype, operations):
        """A call that does so many operations on registers. Where a dtype has no instruction of its own, in f32."""
        peak, width = next((p, w) for p in (PEAKS[dtype], PEAKS["f32"]) for w in WIDTHS if self.library.peak_run(p, w, 1))
        rounds = max(1, round(operations / self.library.peak_run(peak, width, 1)))
        return lambda: self.library.peak_run(peak, width, rounds)

    def movement(self, memory, read, written):
        """A call that reads and writes so many bytes: it copies what is both, and reads the rest. `memory` gives an aligned address of so many
        bytes."""
        def whole(size):
            return max(BLOCK, -(-size // BLOCK) * BLOCK)
        copied, more = whole(min(read, written)), max(0, read - written)
        more = whole(more) if more >= BLOCK else 0
        to, source = memory(copied), memory(copied + more)

        def call():
            self.library.bandwidth_copy(to, source, copied, self.width, 1)
            if more:
                self.library.bandwidth_read(source + copied, more, self.width, 1)
        return call


# Processors of AMD and Intel, by vendor, family and models.
KINDS = (("AuthenticAMD", 26, range(256), "Zen 5"), ("AuthenticAMD", 25, (*range(16, 32), *range(96, 128), *range(160, 176)), "Zen 4"),
         ("AuthenticAMD", 25, range(256), "Zen 3"), ("AuthenticAMD", 23, range(48, 256), "Zen 2"),
         ("GenuineIntel", 6, (143, 207), "Sapphire Rapids"), ("GenuineIntel", 6, (106, 108), "Ice Lake"), ("GenuineIntel", 6, (85,), "Skylake"))


def kind_of(vendor, family, model):
    """Of a processor, or "unknown"."""
    return next((kind for v, f, models, kind in KINDS if (v, f) == (vendor, family) and model in models), "unknown")


def machine():
    said = {}
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        for line in stream:
            if not line.strip():
                break
            name, _, value = line.partition(":")
            said[name.strip()] = value.strip()
    kind = kind_of(said.get("vendor_id"), int(said.get("cpu family", 0)), int(said.get("model", 0)))
    return {"processor": said.get("model name", "unknown"), "kind": kind, "architecture": platform.machine(),
            "threads": len(os.sched_getaffinity(0)), "features": set(said.get("flags", "").split())}
