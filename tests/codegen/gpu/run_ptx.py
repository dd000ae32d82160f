"""Runs models that were compiled to PTX on this machine's GPU and compares their results. Needs numpy and the driver.

    python run_ptx.py [--time] [--filter REGEX] DIR        DIR: written by make_cases.py

Of each case it reads model.ptx (entries; their comments say grid, block and parameters), model.plan-memory.mlir (buffers
and launches in order), inputs.npz and expected.npz. --time measures each launch and prints the bytes of its buffers a
second.
"""

import argparse
import ctypes
import re
import sys
from pathlib import Path

import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i8": np.int8,
          "i1": np.bool_}
FUNCTIONS = {
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else a,
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "eq": lambda a, b: int(a == b),
    "select": lambda c, a, b: a if c else b,
}


def evaluate(text, symbols):
    return int(eval(text, {"__builtins__": {}}, {**FUNCTIONS, **symbols}))


def split(text):
    """At commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([<"
        depth -= c in ")]>"
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()] if text.strip() else []


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {text.value}")

    def load(self, ptx):
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
        keys = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 8192)
        try:
            self("cuModuleLoadDataEx", ctypes.byref(module), ptx, 2, keys, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{log.value.decode()}") from None
        return module

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        self("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0xCC), ctypes.c_size_t(max(size, 16)))
        return pointer.value

    def upload(self, array):
        pointer = self.allocate(array.nbytes)
        self("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return pointer

    def download(self, pointer, array):
        self("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(pointer), ctypes.c_size_t(array.nbytes))


class Entry:
    """One kernel, as its comments describe it."""

    def __init__(self, driver, module, name, text, symbols):
        self.function = ctypes.c_void_p()
        driver("cuModuleGetFunction", ctypes.byref(self.function), module, name.encode())
        grid = re.search(r"grid (.*), block (\d+) x (\d+) threads", text)
        self.grid, self.block = grid[1], (int(grid[2]), int(grid[3]), 1)
        self.symbols = symbols
        self.checks = ": errors" in text
        scratch = re.search(r": scratch, (.*) bytes", text)
        self.scratch = scratch and scratch[1]


class Case:
    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder
        self.inputs = dict(np.load(folder / "inputs.npz"))
        self.expected = dict(np.load(folder / "expected.npz"))
        self.plan = (folder / "model.plan-memory.mlir").read_text()
        ptx = (folder / "model.ptx").read_text()
        module = driver.load(ptx.encode())
        symbols = dict(re.findall(r"loop\.kernel @(\w+)\(.*symbols = \[(.*?)\]", self.plan))
        self.entries = {}
        for text in ptx.split("// kernel ")[1:]:
            name, comment = text.split("\n", 1)
            names = re.findall(r'"(\w+)"', symbols[name])
            self.entries[name] = Entry(driver, module, name, comment.split(".entry")[0], names)

    def bind(self):
        """Symbols, and device memory of inputs, outputs and the arena."""
        header = re.search(r"loop\.program @\w+\((.*)\) attributes \{(.*)\} \{", self.plan)
        inputs, outputs = re.split(r" \| ", header[1])
        names = {side: re.findall(r'"([^"]*)"', re.search(side + r"_names = \[(.*?)\]", header[2])[1])
                 for side in ("input", "output")}
        self.symbols, self.pointers, self.results = {}, {}, {}
        argument = re.compile(r"(%arg\d+): !loop\.buffer<\[(.*?)\] x (\w+)")
        for (value, dims, _), name in zip(argument.findall(inputs), names["input"]):
            array = np.ascontiguousarray(self.inputs[name])
            for dim, size in zip(split(dims), array.shape):
                if dim.isidentifier():
                    self.symbols[dim] = size
            self.pointers[value] = self.driver.upload(array)
        for (value, dims, dtype), name in zip(argument.findall(outputs), names["output"]):
            array = np.empty([evaluate(dim, self.symbols) for dim in split(dims)], DTYPES[dtype])
            self.pointers[value] = self.driver.allocate(array.nbytes)
            self.results[name] = (self.pointers[value], array)
        arena = re.search(r"\barena = #prim\.expr<(.*?)>[,}]|\barena = (\d+)", header[2])
        text = (arena[1] or arena[2]) if arena else "0"
        self.arena = self.driver.allocate(evaluate(text, self.symbols))

    def run(self, time):
        self.bind()
        body = self.plan[self.plan.index("loop.program @"):]
        for value, what, rest in re.findall(r"(%\d+) = loop\.(\w+) (.*)", body):
            if what == "flatten":
                self.pointers[value] = self.pointers[rest.split(" ")[0]]
            elif what == "at":
                self.pointers[value] = self.arena + evaluate(rest.split(" : ")[0], self.symbols)
        for name, buffers, symbols, types in re.findall(r"loop\.launch @(\w+)\((.*?)\) symbols \[(.*)\] : (.*) loc", body):
            values = [evaluate(text, self.symbols) for text in split(symbols)]
            self.launch(self.entries[name], [self.pointers[b] for b in split(buffers)], values)
            if time:
                size = sum(evaluate(count, self.symbols) * np.dtype(DTYPES[dtype]).itemsize
                           for count, dtype in re.findall(r"!loop\.buffer<\[(.*?)\] x (\w+)", types))
                self.measure(name, size, lambda: self.launch(self.entries[name], [self.pointers[b] for b in split(buffers)], values))
        self.driver("cuCtxSynchronize")

    def launch(self, entry, buffers, values):
        symbols = dict(zip(entry.symbols, values))
        arguments = [ctypes.c_uint64(p) for p in buffers] + [ctypes.c_int64(v) for v in values]
        if entry.checks:
            self.errors = getattr(self, "errors", None) or self.driver.upload(np.zeros(4, np.uint32))
            arguments.append(ctypes.c_uint64(self.errors))
        if entry.scratch:
            if not hasattr(entry, "memory"):
                entry.memory = self.driver.allocate(evaluate(entry.scratch, symbols))
            arguments.append(ctypes.c_uint64(entry.memory))
        blocks = evaluate(entry.grid, symbols)
        if not blocks:
            return
        array = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        self.driver("cuLaunchKernel", entry.function, blocks, 1, 1, *entry.block, 0, None, array, None)

    def measure(self, name, size, launch):
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self.driver("cuEventCreate", ctypes.byref(event), 0)
        for _ in range(10):
            launch()
        self.driver("cuEventRecord", events[0], None)
        for _ in range(100):
            launch()
        self.driver("cuEventRecord", events[1], None)
        self.driver("cuEventSynchronize", events[1])
        elapsed = ctypes.c_float()
        self.driver("cuEventElapsedTime", ctypes.byref(elapsed), *events)
        print(f"    {name}: {elapsed.value * 10:.2f} us, {size / elapsed.value / 1e7:.0f} GB/s")

    def compare(self):
        worst = 0.0
        for name, (pointer, array) in self.results.items():
            self.driver.download(pointer, array)
            expected = self.expected[name]
            if array.dtype.kind in "ib":
                if not np.array_equal(array, expected):
                    raise AssertionError(f"{name}: {np.count_nonzero(array != expected)} elements differ")
                continue
            relative = 2e-2 if array.dtype == np.float16 else 1e-3
            a, b = array.astype(np.float64), expected.astype(np.float64)
            if not np.array_equal(np.isnan(a), np.isnan(b)):
                raise AssertionError(f"{name}: NaNs differ in number or place")
            error = np.abs(a - b) / (relative * np.abs(b) + relative / 100 * np.nanmax(np.abs(b)) + 1e-30)
            worst = max(worst, float(np.nanmax(error)))
            if worst > 1:
                raise AssertionError(f"{name}: {np.count_nonzero(error > 1)} of {error.size} elements, worst {worst:.3g} x tolerance")
        return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    driver, failed, passed = Driver(), 0, 0
    for folder in sorted(options.folder.iterdir()):
        if not re.search(options.filter, folder.name):
            continue
        try:
            case = Case(driver, folder)
            case.run(options.time)
            print(f"ok   {folder.name}: {case.compare():.3g} x tolerance")
            passed += 1
        except (RuntimeError, AssertionError, KeyError, ValueError, TypeError) as error:
            print(f"FAIL {folder.name}: {type(error).__name__}: {error}")
            failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
