"""Libraries for aarch64 under emulation, against the official tests and onnxruntime; see README.md."""

import argparse
import concurrent.futures
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy starts threads, for which a fork would wait in vain
    os.environ[name] = "1"

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "conformance"), str(ROOT / "runtime" / "python")]
import execute  # noqa: E402
import suite  # noqa: E402
from ptc.backend import Backend  # noqa: E402

PREFIX = "/usr/aarch64-linux-gnu"  # the C library of Debian's cross packages
PROCESSORS = {"cortex-a72": "aarch64", "neoverse-n1": "aarch64-dotprod", "max": "aarch64-i8mm-bf16"}  # and the level each takes
LEVELS = list(PROCESSORS.values())
NUMBERS = {np.dtype(name): (code, np.dtype(name).itemsize * 8)
           for code, names in {0: "int8 int16 int32 int64", 1: "uint8 uint16 uint32 uint64", 2: "float16 float32 float64", 6: "bool"}.items()
           for name in names.split()} | {np.dtype(ml_dtypes.bfloat16): (4, 16)}
KINDS = {kind: dtype for dtype, kind in NUMBERS.items()}


def build_driver(folder):
    """The driver, linked without libgcc, which it does not need."""
    driver = folder / "driver"
    lib = Path(PREFIX, "lib")
    clang = shutil.which("clang-22") or "clang"
    subprocess.run([clang, "--target=aarch64-linux-gnu", "-nostdlibinc", "-isystem", f"{PREFIX}/include", "-I", ROOT / "runtime" / "include",
                    "-std=c17", "-O1", "-Wall", "-Werror", "-fuse-ld=lld", "-nostdlib", "-pie", lib / "Scrt1.o", lib / "crti.o",
                    Path(__file__).with_name("driver.c"), "-L", lib, "-lc", lib / "crtn.o", "-Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1",
                    "-o", driver], check=True)
    return driver


class Failed(Exception):
    pass


class Emulated:
    """A library on an emulated processor, called as ptc.load's result is."""

    def __init__(self, driver, library, processor="max", level="", threads=2):
        self.command = ["qemu-aarch64", "-cpu", processor, driver, library, level, str(threads)]
        self.level = None  # that the last call took

    def __call__(self, **inputs):
        with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
            files = [Path(folder) / name for name in ("inputs", "outputs")]
            files[0].write_bytes(b"".join(self._record(name, np.asarray(value)) for name, value in inputs.items()))
            done = subprocess.run([*map(str, [*self.command, *files])], capture_output=True, text=True, timeout=execute.TIMEOUT,
                                  env=os.environ | {"QEMU_LD_PREFIX": PREFIX})
            if done.returncode:
                raise Failed(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
            self.level = done.stdout.strip()
            return dict(self._tensors(files[1].read_bytes()))

    @staticmethod
    def _record(name, array):
        code, bits = NUMBERS[array.dtype]
        data = np.ascontiguousarray(array).tobytes()
        return (struct.pack("<I", len(name.encode())) + name.encode() + struct.pack("<BBI", code, bits, array.ndim)
                + struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<Q", len(data)) + data)

    @staticmethod
    def _tensors(data):
        at = 0

        def take(form):
            nonlocal at
            values = struct.unpack_from("<" + form, data, at)
            at += struct.calcsize("<" + form)
            return values

        while at < len(data):
            (length,) = take("I")
            (name,) = take(f"{length}s")
            code, bits, rank = take("BBI")
            shape = take(f"{rank}q")
            (size,) = take("Q")
            yield name.decode(), np.frombuffer(data, KINDS[code, bits], offset=at, count=size * 8 // bits).reshape(shape)
            at += size


# Official tests


def is_of_numbers(case):
    model = onnx.load(case.model, load_external_data=False)
    values = [*model.graph.input, *model.graph.output]
    return bool(case.sets) and all(map(suite._is_plain, values))


def check_case(case, program, driver):
    """'' or what is wrong."""
    processor = list(PROCESSORS)[zlib.crc32(case.name.encode()) % len(PROCESSORS)]
    compiled = lambda model, library, flags: execute._compiler(program)(model, library, flags)
    prepared = Backend.prepare(case.model, flags=["-j1", f"--cpu={','.join(LEVELS)}"], compiler=compiled, pin=True)
    emulated = []

    def load(library):
        emulated.append(Emulated(driver, library, processor))
        return emulated[-1]

    prepared.load = load
    try:
        for files in case.sets:
            inputs, outputs = ([suite.read(path) for path in side] for side in files)
            for got, expected in zip(prepared.run(inputs), outputs, strict=True):
                if problem := execute.difference(got, expected, case.rtol, case.atol):
                    return f"on {processor}: {problem}"
    except execute.Refused as refused:
        return f"{refused.outcome.cause}: {refused.outcome.text.strip()}"
    except (Failed, subprocess.TimeoutExpired) as failed:
        return f"on {processor}: {failed}"
    wrong = [library.level for library in emulated if library.level not in (None, PROCESSORS[processor])]
    return f"level {wrong[0]} on {processor}" if wrong else ""


# Libraries of our own


def normal(rng, *shape):
    return rng.standard_normal(shape, np.float32)


def model(nodes, inputs, outputs, weights):
    value = lambda name, what: helper.make_tensor_value_info(name, *what)
    graph = helper.make_graph(nodes, "graph", [value(*x) for x in inputs.items()], [value(*x) for x in outputs.items()],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)


class Libraries:
    """Each `test_` method yields what is wrong."""

    def __init__(self, program, driver, folder):
        self.program, self.driver, self.folder = program, driver, folder
        self.rng, self.count = np.random.default_rng(23), 0

    def compile(self, proto, *flags):
        self.count += 1
        path = self.folder / f"m{self.count}.onnx"
        onnx.save(proto, path)
        done = subprocess.run([self.program, "compile", path, "-o", path.with_suffix(".so"), "-q", f"--cpu={','.join(LEVELS)}", *flags],
                              capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr)
        return path.with_suffix(".so")

    def at_levels(self, proto, feeds, *flags, want=None, rtol=1e-5):
        library = self.compile(proto, *flags)
        want = expected(proto, feeds) if want is None else want
        for level in LEVELS:
            got = Emulated(self.driver, library, level=level)(**feeds).values()
            for mine, theirs in zip(got, want, strict=True):
                size = np.abs(theirs.astype(np.float64)).max(initial=0)
                if problem := execute.difference(mine, theirs, rtol, 0 if theirs.dtype.kind in "iu" else rtol * size):
                    yield f"{level}: {problem}"

    def test_products_of_bytes(self):
        for a, b in (np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8):
            for m, k, n in (7, 64, 33), (1, 256, 16), (20, 36, 48):
                draw = lambda dtype, *shape: self.rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
                weights = {"w": draw(b, k, n), "za": draw(a), "zb": draw(b)}
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(a))
                proto = model([helper.make_node("MatMulInteger", ["x", "w", "za", "zb"], ["y"])], {"x": (kind, [m, k])},
                              {"y": (TensorProto.INT32, [m, n])}, weights)
                x = draw(a, m, k)
                exact = (x.astype(np.int32) - int(weights["za"])) @ (weights["w"].astype(np.int32) - int(weights["zb"]))
                yield from self.at_levels(proto, {"x": x}, want=[exact])

    def test_products_of_bf16(self):
        w, x = normal(self.rng, 96, 40), normal(self.rng, 11, 96)
        proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, [11, 96])}, {"y": (1, [11, 40])}, {"w": w})
        rounded = lambda array: array.astype(ml_dtypes.bfloat16).astype(np.float64)
        yield from self.at_levels(proto, {"x": x}, "--autocast=bf16", want=[(rounded(x) @ rounded(w)).astype(np.float32)])

    def test_weights_of_few_bits(self):
        k, n, block = 1024, 1003, 64
        weights = {"q": self.rng.integers(0, 256, (n, k // block, block // 2), np.uint8), "s": np.abs(normal(self.rng, n, k // block)),
                   "z": self.rng.integers(0, 256, (n, k // block // 2), np.uint8)}
        numbers, zeros = (np.stack([weights[name] & 15, weights[name] >> 4], -1).reshape(n, -1).astype(np.float64) for name in "qz")
        w = (numbers - np.repeat(zeros, block, 1)) * np.repeat(weights["s"].astype(np.float64), block, 1)
        for rows in 1, 2, 3:
            node = helper.make_node("MatMulNBits", ["x", *weights], ["y"], domain="com.microsoft", K=k, N=n, bits=4, block_size=block)
            proto = model([node], {"x": (1, [rows, k])}, {"y": (1, [rows, n])}, weights)
            proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
            x = normal(self.rng, rows, k)
            yield from self.at_levels(proto, {"x": x}, want=[(x @ w.T).astype(np.float32)])

    def test_products_and_convolutions(self):
        for dtype in np.float32, np.float64:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            w, x = normal(self.rng, 70, 45).astype(dtype), normal(self.rng, 13, 70).astype(dtype)
            proto = model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])], {"x": (kind, [13, 70])},
                          {"y": (kind, [13, 45])}, {"w": w})
            yield from self.at_levels(proto, {"x": x})
        for channels, group in (16, 1), (24, 24):
            w, x = normal(self.rng, 24, channels // group, 3, 3), normal(self.rng, 1, channels, 14, 15)
            proto = model([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4, group=group)], {"x": (1, list(x.shape))},
                          {"y": (1, [1, 24, 14, 15])}, {"w": w})
            yield from self.at_levels(proto, {"x": x}, rtol=1e-4)

    def test_free_dims_threads_and_a_weights_file(self):
        w = normal(self.rng, 200, 300)
        proto = model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])], {"x": (1, ["rows", 200])},
                      {"y": (1, ["rows", 300])}, {"w": w})
        library = self.compile(proto, "--weights=file")
        for rows in 1, 64:
            x = normal(self.rng, rows, 200)
            (want,), results = expected(proto, {"x": x}), []
            for threads in 1, 2:
                results.append(Emulated(self.driver, library, threads=threads)(x=x)["y"])
                if problem := execute.difference(results[-1], want, 1e-4, 1e-7):
                    yield f"{rows} rows, {threads} threads: {problem}"
            if results[0].tobytes() != results[1].tobytes():
                yield f"{rows} rows: threads change the result"

    def test_sizes_that_a_run_finds(self):
        proto = model([helper.make_node("NonZero", ["x"], ["y"])], {"x": (1, ["n", 5])}, {"y": (TensorProto.INT64, [2, "found"])}, {})
        yield from self.at_levels(proto, {"x": (normal(self.rng, 9, 5) > 0.5).astype(np.float32)})

    def test_a_level_that_the_processor_lacks(self):
        proto = model([helper.make_node("Neg", ["x"], ["y"])], {"x": (1, [3])}, {"y": (1, [3])}, {})
        try:
            Emulated(self.driver, self.compile(proto), "cortex-a72", LEVELS[1])(x=normal(self.rng, 3))
            yield "a processor without dot products ran their level"
        except Failed as failed:
            if LEVELS[1] not in str(failed):
                yield f"the message names no level: {failed}"

    def run(self):
        for name in (name for name in dir(self) if name.startswith("test_")):
            try:
                yield name, "; ".join(getattr(self, name)())
            except Failed as failed:
                yield name, str(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--every", type=int, default=5, help="of so many official tests one runs")
    parser.add_argument("--filter", default="", help="only tests with this in their names, of the official ones all")
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    arguments = parser.parse_args()
    program = arguments.build.resolve() / "bin" / "ptc"
    cases = [case for case in suite.load(arguments.build.resolve() / "tests" / "conformance") if case.suite == "node"]
    listed = {line.split()[0] for line in (ROOT / "tests" / "conformance" / "expected.txt").read_text().splitlines() if line[:1] not in "#"}
    every = 1 if arguments.filter else arguments.every
    chosen = [case for case in cases if case.name not in listed and arguments.filter in case.name
              and zlib.crc32(case.name.encode()) // len(PROCESSORS) % every == 0 and is_of_numbers(case)]
    wrong, total = 0, 0
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder, concurrent.futures.ThreadPoolExecutor(arguments.j) as pool:
        driver = build_driver(Path(folder))
        results = pool.map(lambda case: (case.name, check_case(case, program, driver)), chosen)
        libraries = Libraries(program, driver, Path(folder))
        for name, problem in [*(libraries.run() if not arguments.filter else ()), *results]:
            total += 1
            wrong += bool(problem)
            if problem:
                print(f"{name}: {problem}", flush=True)
    print(f"{total - wrong} passed, {wrong} failed, 0 skipped")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
