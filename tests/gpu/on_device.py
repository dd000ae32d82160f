"""Libraries among other users of a real device: threads, streams, little memory, graphs and tensors of others. Part of run.py, with --device=cuda.

Needs torch with CUDA, NVIDIA's toolkit (its cuda.h, compute-sanitizer, and ptxas) and a C compiler.
"""

import contextlib
import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "runtime" / "python"))
F = TensorProto.FLOAT
TOOLKIT = Path("/usr/local/cuda")


class Managed:
    """Memory of the driver's other kinds, shown through DLPack."""

    def __init__(self, kind, shape):
        driver, pointer, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), int(np.prod(shape))
        take = driver.cuMemHostAlloc if kind == 3 else driver.cuMemAllocManaged
        assert take(ctypes.byref(pointer), ctypes.c_size_t(4 * count), ctypes.c_uint(1)) == 0
        self.array = np.frombuffer((ctypes.c_float * count).from_address(pointer.value), np.float32).reshape(shape)
        self.kind = kind

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        from ptc import _abi, _dlpack

        capsule = self.array.__dlpack__()
        managed = ctypes.cast(_dlpack._pointer(capsule, b"dltensor"), ctypes.POINTER(_dlpack._ManagedTensor))
        managed.contents.tensor.device = _abi.Device(self.kind, 0)
        return capsule


class OnDevice(unittest.TestCase):
    program = gpu = None  # by run.py
    MODES = ("default", "reduce-overhead")

    @classmethod
    def setUpClass(cls):
        import torch

        from run import model

        cls.torch = torch
        cls.temporary = tempfile.TemporaryDirectory(prefix="ptc-gpu-")
        cls.folder = Path(cls.temporary.name)
        rng = np.random.default_rng(1)
        cls.weights = [rng.standard_normal((512, 512)).astype(np.float32) / 16 for _ in range(4)]
        nodes, value = [], "x"
        for i in range(4):
            nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]), helper.make_node("Tanh", [f"m{i}"], [f"t{i}"])]
            value = f"t{i}"
        nodes[-1].output[0] = "y"
        model(cls.folder / "chain.onnx", nodes, [("x", F, ["n", 512])], [("y", F, ["n", 512])], [(f"w{i}", w) for i, w in enumerate(cls.weights)])
        model(cls.folder / "state.onnx", [helper.make_node("Add", ["s", "x"], ["t"])], [("s", F, [64]), ("x", F, [64])], [("t", F, [64])])
        large = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Transpose", ["a"], ["b"]), helper.make_node("MatMul", ["b", "x"], ["c"]),
                 helper.make_node("ReduceSum", ["c"], ["y"], keepdims=0)]
        model(cls.folder / "large.onnx", large, [("x", F, ["n", 4096])], [("y", F, [])], [("w", np.ones((4096, 4096), np.float32))])
        for mode in cls.MODES:
            cls.compile("chain", "--mode=" + mode, "--dim=n=1..256:64", "--bucket=n=64", name=f"chain-{mode}")
        cls.compile("state", "--alias=s=t")
        cls.compile("large")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def compile(cls, source, *flags, name=None, target="cuda"):
        path = cls.folder / f"{name or source}.so"
        subprocess.run([cls.program, "compile", cls.folder / f"{source}.onnx", f"--target={target}", f"--gpu={cls.gpu}", "-q", *flags, "-o", path], check=True)
        return path

    @classmethod
    def load(cls, name, **options):
        import ptc

        return ptc.load(cls.folder / f"{name}.so", **options)

    def chain(self, x):
        for w in self.weights:
            x = np.tanh(x.astype(np.float64) @ w)
        return x

    def inputs(self, *rows):
        return [self.torch.randn(n, 512, device="cuda") for n in rows]

    # ---- threads and streams ----

    def test_threads_with_a_context_each(self):
        for mode in self.MODES:
            model, failures = self.load(f"chain-{mode}"), []

            def work(number, model=model, failures=failures):
                stream, x = self.torch.cuda.Stream(), self.inputs(64, 3 + number, 200)
                self.torch.cuda.synchronize()
                with self.torch.cuda.stream(stream):
                    wanted = [self.torch.empty_like(each) for each in x]
                    for each, y in zip(x, wanted):
                        model.run({"x": each}, {"y": y}, stream=stream)
                    for _ in range(100):
                        found = [self.torch.empty_like(each) for each in x]
                        for each, y in zip(x, found):
                            model.run({"x": each}, {"y": y}, stream=stream)
                        stream.synchronize()
                        failures += [number for a, b in zip(found, wanted) if not self.torch.equal(a, b)]
                for each, y in zip(x, wanted):
                    np.testing.assert_allclose(y.cpu(), self.chain(each.cpu().numpy()), rtol=1e-4, atol=1e-4)
                failures.append("done")

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, ["done"] * 4, mode)

    def test_one_context_on_four_streams_in_turns(self):
        for mode in self.MODES:
            model, streams = self.load(f"chain-{mode}"), [self.torch.cuda.Stream() for _ in range(4)]
            for turn in range(25):
                pairs = []
                for stream in streams:
                    with self.torch.cuda.stream(stream):
                        (x,) = self.inputs(64 if turn % 2 else 17)
                        y = self.torch.empty_like(x)
                        model.run({"x": x}, {"y": y}, stream=stream)
                        pairs.append((x, y))
                self.torch.cuda.synchronize()
                for x, y in pairs:
                    self.assertTrue(self.torch.equal(y, self.torch.from_numpy(model(x=x.cpu().numpy())["y"]).cuda()), (mode, turn))

    def test_a_run_in_a_graph_of_the_caller(self):
        for mode in self.MODES:
            model, graph, x = self.load(f"chain-{mode}"), self.torch.cuda.CUDAGraph(), self.inputs(64)[0]
            y = self.torch.empty_like(x)
            model.run({"x": x}, {"y": y}, stream=self.torch.cuda.current_stream())
            with self.torch.cuda.graph(graph):
                model.run({"x": x}, {"y": y}, stream=self.torch.cuda.current_stream())
                y.mul_(2)
            for _ in range(3):
                x.normal_()
                graph.replay()
                self.torch.cuda.synchronize()
                np.testing.assert_array_equal(y.cpu(), 2 * model(x=x.cpu().numpy())["y"])
            other = self.inputs(64)[0]  # a run beside it, with other pointers, leaves the graph as it is
            model.run({"x": other}, {"y": other.clone()}, stream=self.torch.cuda.current_stream())
            graph.replay()
            np.testing.assert_array_equal(y.cpu(), 2 * model(x=x.cpu().numpy())["y"])

    # ---- memory ----

    @contextlib.contextmanager
    def only(self, megabytes):
        """The rest of the device's memory is taken for so long."""
        self.torch.cuda.empty_cache()
        taken = []
        try:
            for step in (1 << 30, 1 << 25, 1 << 21):
                with contextlib.suppress(self.torch.OutOfMemoryError):
                    while self.torch.cuda.mem_get_info()[0] > (megabytes << 20) + step:
                        taken.append(self.torch.empty(step, dtype=self.torch.uint8, device="cuda"))
            yield
        finally:
            taken.clear()
            self.torch.cuda.empty_cache()

    def test_no_memory_at_create(self):
        import ptc

        with self.only(16), self.assertRaisesRegex(ptc.Error, r"failed to .*: out of memory"):  # to load a kernel, or for weights
            self.load("large")
        self.assertGreater(float(self.load("large")(x=np.ones((2, 4096), np.float32))["y"]), 0)

    def test_no_memory_at_a_run(self):
        import ptc

        model = self.load("large")
        x = np.ones((4096, 4096), np.float32)
        small = model(x=x[:2])["y"]
        with self.only(16):
            with self.assertRaisesRegex(ptc.Error, r"allocate \d+ bytes: out of memory"):
                model(x=x)
            np.testing.assert_array_equal(model(x=x[:2])["y"], small)  # what is left is enough for that
        np.testing.assert_allclose(model(x=x)["y"], 4096.0**4, rtol=1e-4)

    def test_state_in_place(self):
        model, s, x = self.load("state"), self.torch.ones(64, device="cuda"), self.torch.arange(64.0, device="cuda")
        place = s.data_ptr()
        for _ in range(3):
            model.run({"s": s, "x": x}, {"t": s}, stream=self.torch.cuda.current_stream())
        self.assertEqual(s.data_ptr(), place)
        np.testing.assert_array_equal(s.cpu(), 1 + 3 * np.arange(64.0))
        given = np.ones(64, np.float32)
        np.testing.assert_array_equal(model(s=given, x=x.cpu().numpy())["t"], 1 + np.arange(64.0))
        self.assertEqual(given.max(), 1)

    def test_pinned_and_managed_memory(self):
        model = self.load("chain-default")
        for kind in (3, 13):  # of DLPack: CUDA's host memory, managed memory
            x, y = Managed(kind, (8, 512)), Managed(kind, (8, 512))
            x.array[:] = np.linspace(-1, 1, 8 * 512).reshape(8, 512)
            model.run({"x": x}, {"y": y})
            self.torch.cuda.synchronize()
            np.testing.assert_allclose(y.array, self.chain(x.array), rtol=1e-4, atol=1e-4)

    def test_tensors_of_another_device(self):
        import ptc

        if self.torch.cuda.device_count() < 2:
            self.skipTest("one device")
        first, second = self.load("chain-default", device="cuda:0"), self.load("chain-reduce-overhead", device="cuda:1")
        (x,) = self.inputs(5)
        there = x.to("cuda:1")
        with self.assertRaisesRegex(ptc.Error, "input 'x' is in the memory of device 1, and the model runs on device 0"):
            first(x=there)
        np.testing.assert_array_equal(first(x=x)["y"], second(x=there)["y"])

    # ---- targets, tuning ----

    def test_library_for_both(self):
        self.compile("chain", target="cpu,cuda", name="both")
        x = self.inputs(9)[0].cpu().numpy()
        for device, name in ((None, "cuda:0"), ("cpu", "cpu"), ("cuda", "cuda:0")):
            model = self.load("both", device=device)
            self.assertEqual(model.device, name)
            np.testing.assert_allclose(model(x=x)["y"], self.chain(x), rtol=1e-4, atol=1e-4)

    def test_tuning(self):
        file = self.folder / "chain.tune.json"
        subprocess.run([self.program, "tune", self.folder / "chain.onnx", "--target=cuda", f"--gpu={self.gpu}", "--dim=n=64", "--budget=4s", "-q", "-o", file],
                       check=True)
        paths = []
        for folder in ("one", "two"):
            (self.folder / folder).mkdir()
            paths.append(self.compile("chain", "--dim=n=64", f"--tune-file={file}", name=f"{folder}/tuned"))
        self.assertEqual(*(path.read_bytes() for path in paths))
        x = self.inputs(64)[0].cpu().numpy()
        np.testing.assert_allclose(self.load("one/tuned")(x=x)["y"], self.chain(x), rtol=1e-4, atol=1e-4)

    def test_max_autotune(self):
        """Measures where the file is not there, and makes the same bytes of the file that it wrote."""
        file, flags = self.folder / "measured.json", ("--dim=n=64", "--mode=max-autotune")
        paths = []
        for folder in ("first", "second"):
            (self.folder / folder).mkdir()
            paths.append(self.compile("chain", *flags, f"--tune-file={file}", name=f"{folder}/measured"))
            self.assertTrue(file.exists())
        self.assertEqual(*(path.read_bytes() for path in paths))
        x = self.inputs(64)[0].cpu().numpy()
        np.testing.assert_allclose(self.load("first/measured")(x=x)["y"], self.chain(x), rtol=1e-4, atol=1e-4)

    # ---- leaks ----

    def test_the_program_of_the_docs_leaks_nothing(self):
        from run import model

        sanitizer = shutil.which("compute-sanitizer") or str(TOOLKIT / "bin" / "compute-sanitizer")
        text = (HERE.parents[1] / "runtime" / "docs" / "c-abi.md").read_text()
        (self.folder / "gpu.c").write_text(re.search(r"```c gpu\.c\n(.*?)```", text, re.DOTALL)[1])
        model(self.folder / "mlp.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, ["batch", 8])], [("y", F, ["batch", 4])],
              [("w", np.ones((8, 4), np.float32))])
        for mode in self.MODES:
            self.compile("mlp", f"--mode={mode}")
            subprocess.run(["cc", f"-I{TOOLKIT / 'include'}", "gpu.c", "mlp.so", "-l:libcuda.so.1", "-Wl,-rpath,$ORIGIN", "-o", "gpu"], cwd=self.folder, check=True)
            done = subprocess.run([sanitizer, "--tool=memcheck", "--leak-check=full", self.folder / "gpu"], capture_output=True, text=True)
            self.assertIn("6.0000 6.0000 6.0000 6.0000", done.stdout, done.stderr)
            self.assertIn("LEAK SUMMARY: 0 bytes leaked in 0 allocations", done.stdout)
            self.assertIn("ERROR SUMMARY: 0 errors", done.stdout)
