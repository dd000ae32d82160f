"""A driver that emulates the device, in this process: install() makes it what libraries of --target=cuda find as libcuda.so.1.

So the library itself runs, its host program and the runtime, and its PTX in the emulation; only then is it seen that the
two work together. `tests/conformance/run.py --device=emulated` runs its suites like that.
"""

import ctypes
import functools
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from emulator import Emulator

HERE = Path(__file__).resolve().parent
FUNCTIONS = []  # what the driver calls, as long as the process lives
ONE_AT_A_TIME = threading.Lock()  # calls of several threads


class Device:
    """Modules and functions of the driver are numbers: where they stand here, from 1 on."""

    def __init__(self):
        self.emulator, self.known = Emulator(), []

    def note(self, thing):
        self.known.append(thing)
        return len(self.known)

    def load(self, text):
        return self.note(self.emulator.load(text.decode()))

    def find(self, module, name):
        return self.note(self.emulator.find(self.known[module - 1], name.decode()))

    def allocate(self, size):
        return self.emulator.allocate(size)

    def copy_in(self, target, source, size):
        self.emulator.memory.bytes[target:target + size] = np.frombuffer(ctypes.string_at(source, size), np.uint8)

    def copy_out(self, target, source, size):
        ctypes.memmove(target, self.emulator.memory.bytes[source:source + size].tobytes(), size)

    def fill(self, target, value, size):
        self.emulator.memory.bytes[target:target + size] = value

    def launch(self, function, blocks, x, y, shared, parameters):
        code = self.known[function - 1]
        arguments = [ctypes.cast(parameters[i], ctypes.POINTER(ctypes.c_uint64))[0] for i in range(len(code.parameters))]
        self.emulator.launch(code, blocks, (x, y, 1), arguments, shared)
        return 0


def reporting(function):
    """0, which the driver takes for a failure where there is something to return, and the reason on stderr."""
    def call(*arguments):
        try:
            with ONE_AT_A_TIME:
                return function(*arguments)
        except Exception as error:  # nothing may leave a callback
            print(f"{function.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
            return 1 if function.__name__ == "launch" else 0
    return call


@functools.cache  # a process has one driver
def install():
    u64, u32, size, text, pointer = ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
    device = Device()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "libcuda.so.1"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wl,-soname,libcuda.so.1", "-o", path, HERE / "emulated_cuda.c"], check=True)
        library = ctypes.CDLL(str(path))
    for function, *types in ((device.load, u64, text), (device.find, u64, u64, text), (device.allocate, u64, size),
                             (device.copy_in, None, u64, pointer, size), (device.copy_out, None, pointer, u64, size),
                             (device.fill, None, u64, u32, size), (device.launch, ctypes.c_int, u64, u32, u32, u32, u32, ctypes.POINTER(pointer))):
        FUNCTIONS.append(ctypes.CFUNCTYPE(*types)(reporting(function)))
    library.emulated_cuda_install((pointer * len(FUNCTIONS))(*(ctypes.cast(function, pointer) for function in FUNCTIONS)))
    FUNCTIONS.append(library)
