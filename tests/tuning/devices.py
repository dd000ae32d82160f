"""ptc tune --target=cuda: the search with a driver that runs nothing but counts blocks (tests/gpu), what numbers make of
kernels in an emulation (tests/ptx)."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import onnxruntime
from case import ROOT, Case, normal, parse

sys.path += [str(ROOT / "tests" / "ptx")]
import program  # noqa: E402
from emulator import Emulator  # noqa: E402

BLOCK_NS = "20000"  # of each block of a launch: kernels of fewer blocks are faster
EXTREMES = (-(2**62), 2**62)


class Search(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save("relu", parse("relu (float[4096, 8] x) => (float[4096, 8] y) { y = Relu(x) }"))
        (self.folder / "driver").mkdir()
        self.compile_fake("fake_cuda.c", "libcuda.so.1")

    def compile_fake(self, source, library):
        compiler = next(c for c in ("/usr/lib/llvm-22/bin/clang", "clang", "cc") if subprocess.run(["which", c], capture_output=True).returncode == 0)
        path = self.folder / "driver" / library
        path.unlink(missing_ok=True)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, ROOT / "tests" / "gpu" / source], check=True)

    def run_there(self, *arguments, code=0, **variables):
        """On a machine that has a device."""
        environment = os.environ | {"LD_LIBRARY_PATH": str(self.folder / "driver"), "FAKE_CUDA_BLOCK_NS": BLOCK_NS} | variables
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_what_is_faster_there_makes_the_same_bytes_here(self):
        flags = ("--target=cuda", "--gpu=sm_90", "--ptxas=none")
        text = self.run_there("tune", self.model, *flags, "--budget=4", "-o", "relu.tune.json")
        tuning = json.loads((self.folder / "relu.tune.json").read_text())
        self.assertEqual((tuning["level"], tuning["processor"]), ("sm_90", "Fake 0"))
        [row] = tuning["kernels"]
        self.assertEqual(row["numbers"], {"block_threads": 512}, text)
        self.assertEqual((row["planned_ns"], row["ns"]), (640000, 320000))
        for where, run in (("a", self.run_there), ("b", self.run_ptc)):
            run("compile", self.model, *flags, "--tune-file=relu.tune.json", "-o", f"{where}/relu.so")
        self.assertEqual((self.folder / "a" / "relu.so").read_bytes(), (self.folder / "b" / "relu.so").read_bytes())

    def test_product_that_a_library_does_faster(self):
        model = parse("product (float[256, 8] x) => (float[256, 256] y) { y = MatMul(x, w) }", w=normal(8, 256))
        self.check_library(self.save("product", model), "cublaslt", "libcublasLt.so.13")

    def test_convolution_that_a_library_does_faster(self):
        model = parse("convolution (float[1, 16, 16, 8] x) => (float[1, 14, 14, 64] y) {"
                      " t = Transpose<perm=[0, 3, 1, 2]>(x)  c = Conv(t, w)  y = Transpose<perm=[0, 2, 3, 1]>(c) }", w=normal(64, 8, 3, 3))
        self.check_library(self.save("convolution", model), "cudnn", "libcudnn.so.9", block_ns="5000000")

    def check_library(self, model, number, file, block_ns="1000000"):
        """What the library does takes a block's time on the driver's clock, which is longer than its work on the host; where it is absent it is no
        alternative."""
        flags = ("--target=cuda", "--gpu=sm_90", "--ptxas=none")
        for is_here in (False, True):
            for name in ("libcublasLt.so.12", "libcublasLt.so.13", "libcudnn.so.9"):
                (self.folder / "driver" / name).write_text("no library")
            if is_here:
                self.compile_fake(f"fake_{number}.c", file)
            self.run_there("tune", model, *flags, "--budget=4", "-o", "tune.json", FAKE_CUDA_BLOCK_NS=block_ns)
            [row] = json.loads((self.folder / "tune.json").read_text())["kernels"]
            self.assertEqual(number in row["numbers"], is_here, row)
        for where, run in (("a", self.run_there), ("b", self.run_ptc)):
            run("compile", model, *flags, "--tune-file=tune.json", "-o", f"{where}/model.so")
        self.assertEqual((self.folder / "a" / "model.so").read_bytes(), (self.folder / "b" / "model.so").read_bytes())

    def test_whole_runs_copy_nothing(self):
        """Inputs and outputs stay on the device while whole runs are judged, each a graph."""
        self.run_there("tune", self.model, "--target=cuda", "--gpu=sm_90", "--ptxas=none", "--budget=4", FAKE_CUDA_LOG=str(self.folder / "log"))
        lines = (self.folder / "log").read_text().splitlines()
        judged = lines[max(i for i, line in enumerate(lines) if line == "instantiate"):]
        self.assertEqual([line for line in judged if line.startswith(("in ", "out "))], [])
        self.assertTrue([line for line in judged if line.startswith("replay")])

    def test_max_autotune_measures_and_records_graphs(self):
        flags = ("--target=cuda", "--gpu=sm_90", "--ptxas=none")
        (self.folder / "fast.json").write_text(json.dumps(
            {"format": 1, "compiler": "", "model": "", "level": "sm_90", "processor": "", "threads": 1, "kernels": []}))
        self.run_there("compile", self.model, *flags, "--mode=max-autotune", "--tune-file=fast.json", "-q", "-o", "a/relu.so")
        self.run_there("run", "a/relu.so", "-i", "x=ones", FAKE_CUDA_LOG=str(self.folder / "log"))
        self.assertIn("graph", (self.folder / "log").read_text())

    def test_without_a_device(self):
        """Told before anything is compiled, with a way out."""
        for words in (["tune", self.model], ["compile", self.model, "--mode=max-autotune", "-o", "a/relu.so"]):
            text = self.run_there(*words, "--target=cuda", code=77, FAKE_CUDA_DEVICES="0")
            self.assertIn("kernels of --target=cuda are timed on a device, and there is none here", text)
            self.assertIn("--tune-file=FILE", text)
        self.assertFalse((self.folder / "relu.tune.json").exists())
        text = self.run_there("tune", "none.onnx", "--target=cuda", code=6, FAKE_CUDA_DEVICES="0")
        self.assertIn("cannot read 'none.onnx': No such file", text)

    def test_level_that_the_device_does_not_run(self):
        text = self.run_there("tune", self.model, "--target=cuda", "--gpu=sm_80", "--ptxas=none", code=5, FAKE_CUDA_CAPABILITY="75")
        self.assertIn("--gpu names the architecture of the device that is here", text)


class Kernels(Case):
    """Whatever the numbers are, kernels are right."""

    def compile_ptx(self, model, numbers, gpu="sm_80"):
        self.save("model", model)
        command = ["compile", "model.onnx", "--target=cuda", f"--gpu={gpu}", "--emit=ptx,mlir:plan-memory", "-o", "model.ptx", "-q"]
        if numbers:
            names = re.findall(r"loop\.kernel @(\w+)", self.plan)
            kernels = [{"kernel": name, "numbers": numbers, "ns": 0, "planned_ns": 0} for name in names]
            (self.folder / "tune.json").write_text(json.dumps(
                {"format": 1, "compiler": "", "model": "", "level": gpu, "processor": "", "threads": 1, "kernels": kernels}))
            command.append("--tune-file=tune.json")
        self.run_ptc(*command)
        self.plan = (self.folder / "model.plan-memory.mlir").read_text()
        return (self.folder / "model.ptx").read_text()

    def check_all(self, model, inputs, alternatives, fewest):
        """At least `fewest` of the alternatives are kernels of their own."""
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        [expected] = session.run(None, inputs)
        texts = {self.compile_ptx(model, {})}
        for numbers in alternatives:
            ptx = self.compile_ptx(model, numbers)
            if ptx not in texts:
                texts.add(ptx)
                [found] = program.Program(Emulator(), ptx, self.plan).run(inputs).values()
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4, err_msg=str(numbers))
        self.assertGreater(len(texts), fewest)

    @staticmethod
    def extremes(*names):
        return [{name: number for name in names} for number in EXTREMES]

    def test_products(self):
        model = parse("product (float[33, 520] x, float[520, 40] w) => (float[33, 40] y) { y = MatMul(x, w) }")
        tiles = [{"tile_rows": rows, "tile_columns": columns, "splits": splits} for rows, columns in ((16, 64), (32, 32), (64, 64), (128, 64)) for splits in (1, 2, 3)]
        others = [{"stages": 3}, {"stages": 4}, {"warpgroups": 0, "tile_rows": 32}]
        self.check_all(model, {"x": normal(33, 520), "w": normal(520, 40) / 20}, tiles + others + self.extremes("tile_rows", "tile_columns", "splits", "stages"), 8)

    def test_a_row_times_a_matrix(self):
        model = parse("row (float[1, 300] x, float[300, 96] w) => (float[1, 96] y) { y = MatMul(x, w) }")
        alternatives = [{"across": across, "stream_threads": threads} for across in (1, 4, 32) for threads in (128, 512)]
        self.check_all(model, {"x": normal(1, 300), "w": normal(300, 96) / 10}, alternatives + [{"streamed": 0}] + self.extremes("across", "stream_threads"), 6)

    def test_attention(self):
        model = parse("attention (float[2, 20, 16] q, float[2, 70, 16] k, float[2, 70, 16] v) => (float[2, 20, 16] y) {"
                      " t = Transpose<perm=[0, 2, 1]>(k)  s = MatMul(q, t)  p = Softmax(s)  y = MatMul(p, v) }")
        alternatives = [{"warps": warps, "key_groups": groups, "block_keys": keys} for warps in (1, 2, 8) for groups in (1, 2, 4) for keys in (16, 64, 80)]
        inputs = {"q": normal(2, 20, 16), "k": normal(2, 70, 16), "v": normal(2, 70, 16)}
        self.check_all(model, inputs, alternatives + self.extremes("warps", "key_groups", "block_keys"), 8)

    def test_rows(self):
        model = parse("rows (float[9, 200] x) => (float[9, 200] y) { y = Softmax(x) }")
        alternatives = [{"row_threads": threads, "block_rows": rows} for threads in (32, 64, 256, 1024) for rows in (1, 2, 8)]
        self.check_all(model, {"x": normal(9, 200)}, alternatives + self.extremes("row_threads", "block_rows"), 5)
        long = parse("long (float[3, 2500] x) => (float[3, 2500] y) { y = Softmax(x) }")
        self.check_all(long, {"x": normal(3, 2500)}, [{"row_threads": 32, "block_rows": 2}, {"row_threads": 64}], 2)

    def test_points(self):
        model = parse("points (float[37, 24] x) => (float[37, 24] y) { y = Sigmoid(x) }")
        alternatives = [{"lanes": lanes, "block_threads": threads} for lanes in (1, 2, 4) for threads in (64, 128, 1024)]
        self.check_all(model, {"x": normal(37, 24)}, alternatives + self.extremes("lanes", "block_threads"), 7)

    def test_library_products(self):
        """In the kernel's text: how a library would compute it, where the file says so for this level."""
        model = parse("product (float16[33, 48] x) => (float16[33, 40] y) { p = MatMul(x, w)  q = Add(p, b)  y = Relu(q) }",
                      w=normal(48, 40).astype(np.float16), b=normal(40).astype(np.float16))
        self.assertNotIn("cuBLASLt", self.compile_ptx(model, {}))
        planned = self.compile_ptx(model, {"cublaslt": 0})
        self.assertNotIn("cuBLASLt", planned)
        ptx = self.compile_ptx(model, {"cublaslt": 1})
        self.assertIn("or by cuBLASLt: 1 x 33 x 40 x 48 of f16 to f16, lhs parameter 0 offset 0 pitch 48 along k, rhs parameter 1", ptx)
        self.assertRegex(ptx, r"bias parameter 2 offset 0, relu\n")
        self.assertEqual(ptx.count("mma.sync"), planned.count("mma.sync"))
        wide = parse("wide (float[33, 48] x, float[48, 40] w) => (float[33, 40] y) { y = MatMul(x, w) }")
        self.check_all(wide, {"x": normal(33, 48), "w": normal(48, 40)}, [{"cublaslt": 1}], 1)
        bf16 = parse("product (bfloat16[33, 48] x, bfloat16[48, 40] w) => (bfloat16[33, 40] y) { y = MatMul(x, w) }")
        self.compile_ptx(bf16, {})
        self.assertIn("of bf16 to bf16", self.compile_ptx(bf16, {"cublaslt": 1}))

    def test_library_convolutions(self):
        """The same of cuDNN. Where groups have few columns the kernel's own code is tensor cores' then, as if there were more."""
        model = parse("convolution (float16[1, 9, 8, 16] x, float16[1, 5, 4, 24] r) => (float16[1, 5, 4, 24] y) {"
                      " t = Transpose<perm=[0, 3, 1, 2]>(x)  u = Transpose<perm=[0, 3, 1, 2]>(r)  c = Conv<pads=[1, 1, 1, 1], strides=[2, 2]>(t, w, b)"
                      " s = Add(c, u)  p = Relu(s)  y = Transpose<perm=[0, 2, 3, 1]>(p) }",
                      w=normal(24, 16, 3, 3).astype(np.float16), b=normal(24).astype(np.float16))
        planned = self.compile_ptx(model, {})
        ptx = self.compile_ptx(model, {"cudnn": 1})
        self.assertNotIn("cuDNN", planned)
        self.assertIn("or by cuDNN: a convolution of f16 to f16, input parameter 0 offset 0 [1:1152, 16:1, 9:128, 8:16], weights parameter 1 offset 0 "
                      "[24:144, 16:1, 3:48, 3:16], result parameter 4 offset 0 [1:480, 24:1, 5:96, 4:24], bias parameter 2 offset 0, residual parameter 3 "
                      "offset 0 [1:480, 24:1, 5:96, 4:24], steps [2, 2], dilations [1, 1], before [1, 1], behind [1, 0], relu\n", ptx)
        self.assertEqual(ptx.count("mma.sync"), planned.count("mma.sync"))
        groups = parse("groups (float[1, 7, 6, 16] x) => (float[1, 7, 6, 16] y) { t = Transpose<perm=[0, 3, 1, 2]>(x)"
                       " c = Conv<pads=[1, 1, 1, 1], group=4>(t, w)  y = Transpose<perm=[0, 2, 3, 1]>(c) }", w=normal(16, 4, 3, 3))
        self.check_all(groups, {"x": normal(1, 7, 6, 16)}, [{"cudnn": 1}], 1)
        self.compile_ptx(groups, {})
        self.assertIn("weights parameter 1 offset 0 [16:36, 4:1, 3:12, 3:4]", self.compile_ptx(groups, {"cudnn": 1}))

    def test_warpgroups(self):
        """Numbers choose between both families, and among the tiles of one."""
        model = parse("wide (float16[512, 512] x) => (float16[512, 512] y) { y = MatMul(x, w) }", w=normal(512, 512).astype(np.float16))
        compile = lambda **numbers: self.compile_ptx(model, numbers, gpu="sm_90a")
        compile()
        self.assertNotIn("wgmma", compile(warpgroups=0))
        for rows, columns, threads in ((128, 256, 384), (128, 64, 384), (64, 32, 256)):
            ptx = compile(warpgroups=1, tile_rows=rows, tile_columns=columns, splits=1)
            self.assertRegex(ptx, rf"grid {512 // rows * 512 // columns}, block {threads} x 1 threads")
            self.assertIn(f"wgmma.mma_async.sync.aligned.m64n{columns}k16", ptx)
        for extreme in EXTREMES:
            self.assertIn("wgmma", compile(warpgroups=1, tile_rows=extreme, tile_columns=extreme, splits=extreme, together=extreme))
