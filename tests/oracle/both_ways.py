"""Libraries of kernels as runtime/load loads them, beside the same ones that a linker linked: their bits have to be equal."""
import ctypes
import os
import subprocess

from generated import Function

# The runtime keeps its functions to whoever links it.
SOURCE = """
#include <stdint.h>
extern int tess_load_file(const char *, void **, void *);
extern void *tess_loaded_symbol(const void *, const char *);
int load(const char *path, void **loaded, void *error) { return tess_load_file(path, loaded, error); }
void *symbol(const void *loaded, const char *name) { return tess_loaded_symbol(loaded, name); }
"""


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("text", ctypes.c_char * 1020)]


class Loaded:
    """What a library exports is an attribute of this."""

    def __init__(self, loader, path):
        error, self.library = Error(), ctypes.c_void_p()
        status = loader.load(path.encode(), ctypes.byref(self.library), ctypes.byref(error))
        assert status == 0, error.text.decode()
        self.symbol = loader.symbol

    def __getattr__(self, name):
        address = self.symbol(self.library, name.encode())
        if not address:
            raise AttributeError(name)
        return ctypes.CFUNCTYPE(ctypes.c_int32)(address)


class BothWays:
    def __init__(self, runtime, load, folder):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "load.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", path, "-x", "c", "-", "-x", "none", load, runtime, "-lpthread",
                        "-lm"], input=SOURCE, text=True, check=True)
        self.loader, self.kernels = ctypes.CDLL(path), {}
        self.loader.symbol.restype = ctypes.c_void_p

    def run(self, kernel, describe, arrays, parameters):
        """Runs a linked kernel on arrays, and the loaded one on copies; whether all of both have equal bits then."""
        if kernel.name not in self.kernels:
            self.kernels[kernel.name] = Function(Loaded(self.loader, kernel.archive), kernel.name)
        copies = [array.copy("K") for array in arrays]
        kernel.run([describe(t) for t in arrays], parameters)
        self.kernels[kernel.name]([describe(t) for t in copies], parameters)
        return all(one.tobytes() == other.tobytes() for one, other in zip(arrays, copies))
