"""Libraries of --target=cuda on a machine without a GPU: their host's part against a driver that only takes notes.

    build/venv/bin/python tests/gpu/run.py             all
    build/venv/bin/python tests/gpu/run.py -k stream   some
    python tests/gpu/run.py --device=cuda --gpu=sm_90a other ones, on a real device (on_device.py)

fake_cuda.c is the driver; the library finds it as libcuda.so.1. What kernels compute is checked in tests/ptx, and on a
device by tests/conformance/run.py --device=cuda.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import test_sanitizer  # noqa: E402
import unittests  # noqa: E402

import numpy as np  # noqa: E402
from callers import Callers  # noqa: E402
from onnx import TensorProto, helper, numpy_helper, save  # noqa: E402
from convolutions import Convolutions  # noqa: E402
from on_device import OnDevice  # noqa: E402
from products import Products  # noqa: E402

ARGUMENTS = None  # of the command line
HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "runtime" / "python"

# What a child process does with the library: arrays by name in, what came out as JSON.
CHILD = """
import ctypes, json, sys
import numpy as np
import ptc
"""


def model(path, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), str(path))


class Cuda(Products, Convolutions, Callers, unittest.TestCase):
    library = "broken"  # of the folders that make_libraries makes, where cuBLASLt and cuDNN are looked for

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="ptc-gpu-")
        cls.folder = Path(cls.temporary.name)
        cls.program = ARGUMENTS.build / "bin" / "ptc"
        cls.compile_driver(cls.folder / "libcuda.so.1")
        cls.make_libraries()
        f = TensorProto.FLOAT
        model(cls.folder / "relu.onnx", [helper.make_node("Relu", ["x"], ["y"], name="relu")], [("x", f, ["n", 8])], [("y", f, ["n", 8])])
        w = np.arange(4096, dtype=np.float32).reshape(64, 64)
        model(cls.folder / "scale.onnx", [helper.make_node("Mul", ["x", "w"], ["y"], name="scale")], [("x", f, ["n", 64, 64])], [("y", f, ["n", 64, 64])],
              [("w", w)])
        model(cls.folder / "pick.onnx", [helper.make_node("Gather", ["x", "i"], ["y"], name="pick")],
              [("x", f, [5, 8]), ("i", TensorProto.INT64, [3])], [("y", f, [3, 8])])
        model(cls.folder / "branch.onnx",
              [helper.make_node("Greater", ["s", "zero"], ["c"], name="compare"),
               helper.make_node("If", ["c"], ["y"], name="choose",
                                then_branch=helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "t", [], [helper.make_tensor_value_info("t", f, [64])]),
                                else_branch=helper.make_graph([helper.make_node("CumSum", ["x", "axis"], ["e"])], "e", [], [helper.make_tensor_value_info("e", f, [64])]))],
              [("x", f, [64]), ("s", f, [])], [("y", f, [64])], [("zero", np.float32(0)), ("axis", np.int64(0))])
        for name in ("relu", "scale", "pick", "branch"):
            cls.compile(name, "--gpu=ptx", "-o", cls.folder / f"{name}.so")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def compile_driver(cls, path, *flags, source="fake_cuda.c"):
        compiler = next(c for c in ("/usr/lib/llvm-22/bin/clang", "clang", "cc") if subprocess.run(["which", c], capture_output=True).returncode == 0)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", *flags, "-o", path, HERE / source], check=True)

    @classmethod
    def compile(cls, name, *flags, target="cuda", check=True):
        done = subprocess.run([cls.program, "compile", cls.folder / f"{name}.onnx", "--target=" + target, "-q", *flags], capture_output=True, text=True)
        if check and done.returncode:
            raise AssertionError(done.stderr)
        return done

    def environment(self, driver=True, **variables):
        self.log = self.folder / "log"
        self.log.unlink(missing_ok=True)
        known = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_CUDA")}
        extra = {f"FAKE_CUDA_{name}": str(value) for name, value in variables.items()}
        folders = f"{self.folder / self.library}:{self.folder}" if driver else str(self.folder / "none")
        return known | extra | {"FAKE_CUDA_LOG": str(self.log), "LD_LIBRARY_PATH": folders, "PYTHONPATH": str(PYTHON)}

    def ptc(self, *words, driver=True, **variables):
        return subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, env=self.environment(driver, **variables))

    def python(self, text, **variables):
        done = subprocess.run([sys.executable, "-c", CHILD + text, str(self.folder)], capture_output=True, text=True, env=self.environment(**variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def lines(self, pattern):
        return [line for line in self.log.read_text().splitlines() if re.search(pattern, line)]

    # ---- what is missing ----

    def test_without_driver(self):
        if Path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").exists():
            self.skipTest("this machine has a driver")
        done = self.ptc("run", self.folder / "relu.so", "-i", "x=ones", "--at", "n=2", driver=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("there is no driver here (libcuda.so.1)", done.stderr)

    def test_without_device(self):
        done = self.ptc("run", self.folder / "relu.so", "-i", "x=ones", "--at", "n=2", DEVICES=0)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("the driver shows none", done.stderr)

    def test_ptx_is_told(self):
        done = self.ptc("run", self.folder / "relu.so", "-v", "-i", "x=ones", "--at", "n=2")
        self.assertIn("level ptx is PTX, which the driver compiles now", done.stderr)

    def test_device_too_old(self):
        done = self.ptc("run", self.folder / "relu.so", "-i", "x=ones", "--at", "n=2", CAPABILITY=75)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("device Fake 0, whose compute capability is 7.5: it has code for ptx", done.stderr)

    def test_doctor(self):
        for variables, found in (({}, "Fake 0, 132 multiprocessors, 1.1 GB, compute capability 9.0: --gpu=sm_90a"), ({"CAPABILITY": 86}, "8.6: --gpu=sm_86"),
                                 ({"CAPABILITY": 110}, "11.0: --gpu=ptx"), ({"DEVICES": 0}, "is here, but shows no device")):
            done = self.ptc("doctor", **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(found, done.stdout)

    def test_architecture_of_this_machine(self):
        for variables, levels in (({}, "sm_90a"), ({"CAPABILITY": 86}, "ptx sm_86"), ({"CAPABILITY": 110}, "ptx")):
            flags = "native,ptx" if levels.startswith("ptx") else "native"
            done = self.ptc("compile", self.folder / "relu.onnx", "--target=cuda", f"--gpu={flags}", "--ptxas=none", "-o", self.folder / "native.so", **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"levels: {levels}\n", self.ptc("inspect", self.folder / "native.so").stdout)
        done = self.ptc("compile", self.folder / "relu.onnx", "--target=cuda", "--gpu=native", "-o", self.folder / "native.so", DEVICES=0)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("--gpu=native is for this machine's device, and there is none: ", done.stderr)
        self.assertIn("help: name the architecture, --gpu=sm_90a;", done.stderr)

    def test_verify_names_the_model(self):
        done = self.ptc("verify", self.folder / "relu.onnx", "--target=cuda", DEVICES=0)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("relu.onnx' cannot be used: the model needs a CUDA device", done.stderr)
        self.assertIn("help: `ptc doctor` shows what is here", done.stderr)

    def test_driver_fails(self):
        for function, words in {"cuInit": "start", "cuModuleLoadData": "load kernel", "cuLaunchKernel": "launch a kernel",
                                "cuStreamSynchronize": "run the model"}.items():
            done = self.ptc("run", self.folder / "relu.so", "-i", "x=ones", "--at", "n=2", FAIL=function)
            self.assertEqual(done.returncode, 5, function + done.stderr)
            self.assertIn(f"the CUDA driver failed to {words}", done.stderr)

    def test_no_memory(self):
        done = self.ptc("run", self.folder / "relu.so", "-i", "x=ones", "--at", "n=2", FAIL="cuMemAlloc_v2")
        self.assertEqual(done.returncode, 5, done.stderr)

    # ---- runs ----

    def test_tensors_in_host_memory(self):
        (self.folder / "x.npy").unlink(missing_ok=True)
        np.save(self.folder / "x.npy", np.arange(16, dtype=np.float32).reshape(2, 8))
        done = self.ptc("run", self.folder / "relu.so", "-i", f"x=@{self.folder}/x.npy", "-o", f"y=@{self.folder}/y.npy", COPY="0,1,64")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(np.array_equal(np.load(self.folder / "y.npy"), np.arange(16, dtype=np.float32).reshape(2, 8)))
        launches = self.lines("^launch")
        self.assertEqual(len(launches), 1)
        self.assertRegex(launches[0], r"^launch relu_\w+ grid 1,1,1 block \d+,1,1 shared 0 on 7: m\d+\+0 m\d+\+256$")
        self.assertEqual(len(self.lines("^in .* 64 on 7")), 1)
        self.assertEqual(len(self.lines("^out .* 64 on 7")), 1)
        self.assertEqual(len(self.lines("^retain")), len(self.lines("^release .* depth 0")))

    def test_grid_follows_dims(self):
        self.ptc("run", self.folder / "relu.so", "-i", "x=ones", "--at", "n=1000")
        manifest = json.loads((self.folder / "relu.json").read_text()) if (self.folder / "relu.json").exists() else None
        threads = int(re.search(r"block (\d+)", self.lines("^launch")[0])[1])
        blocks = int(re.search(r"grid (\d+)", self.lines("^launch")[0])[1])
        self.assertGreater(blocks, 1)
        self.assertGreaterEqual(blocks * threads * 4, 8000)
        self.assertEqual(manifest["kernels"][0]["block"], [threads, 1])
        self.assertIn("n", manifest["kernels"][0]["grid"]["expression"])

    def test_stream_and_device_memory(self):
        out = self.python("""
driver = ctypes.CDLL("libcuda.so.1")
def allocate(bytes):
    pointer = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(bytes)) == 0
    return pointer.value
from ptc import _abi
model = ptc.load(sys.argv[1] + "/relu.so")
table = model._table
ctx = ctypes.c_void_p()
assert table.ctx_create(model._open(), ctypes.byref(ctx)) == 0
shape = (ctypes.c_int64 * 2)(2, 8)
def tensor(pointer, kind):
    return _abi.Tensor(pointer, _abi.Device(kind, 0), 2, _abi.DType(2, 32, 1), shape, None, 0)
x, y = allocate(64), allocate(64)
status = table.run(ctx, 0, ctypes.byref(tensor(x, 2)), ctypes.byref(tensor(y, 2)), None, ctypes.c_void_p(99))
wrong = table.run(ctx, 0, ctypes.byref(tensor(x, 4)), ctypes.byref(tensor(y, 2)), None, None)
shifted = table.run(ctx, 0, ctypes.byref(tensor(x + 4, 2)), ctypes.byref(tensor(y, 2)), None, None)
print(json.dumps([status, wrong, shifted]))
""")
        self.assertEqual(out, [0, 9, 0])
        self.assertEqual(len(self.lines("^launch .* on 99")), 1)
        self.assertFalse(self.lines("wait 99"))  # all on the device: run returns when all is enqueued
        self.assertFalse(self.lines("^(in|out) "))
        self.assertEqual(len(self.lines("^within .* on 7")), 1)  # what is not aligned goes through a copy

    def test_index_fault(self):
        plain = self.ptc("run", self.folder / "pick.so", "-i", "x=ones", "-i", "i=zeros")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertEqual(len(self.lines("^fill .* 4 on 7")), 1)
        done = self.ptc("run", self.folder / "pick.so", "-i", "x=ones", "-i", "i=zeros", SET=3)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("index out of range in node 'pick'", done.stderr)

    def test_condition_is_read_once(self):
        done = self.ptc("run", self.folder / "branch.so", "-i", "x=ones", "-i", "s=ones")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.lines("^out .* 1 on 7")), 1)

    def test_weights(self):
        out = self.python("""
model = ptc.load(sys.argv[1] + "/scale.so")
model(x=np.ones((2, 64, 64), np.float32))
model.set_weight("w", np.full((64, 64), 5, np.float32))
print(json.dumps(1))
""")
        self.assertEqual(out, 1)
        self.assertEqual(len(self.lines("^in m0.0 16384 on 0")), 2)

    def test_level_is_chosen(self):
        self.compile("relu", "--gpu=sm_80,sm_90a,ptx", "--ptxas=none", "-o", self.folder / "three.so")
        out = "print(json.dumps(ptc.load(sys.argv[1] + '/three.so').cpu_level))"
        self.assertEqual(self.python(out), "sm_90a")
        self.assertEqual(self.python(out, CAPABILITY=86), "sm_80")
        self.assertEqual(self.python(out, CAPABILITY=120), "sm_80")

    # ---- the host's part of a run ----

    WORDS = """
words = lambda *texts: np.array(texts, object)
m = ptc.load(sys.argv[1] + "/words.so", **json.loads('%s'))
print(json.dumps([m.cpu_level, list(m(x=words("a", "", "c"), y=words("b", "d", "e"))["z"])]))
"""

    def compile_words(self, *flags, target="cuda"):
        s = TensorProto.STRING
        nodes = [helper.make_node("StringConcat", ["x", "y"], ["xy"], name="join"), helper.make_node("Gather", ["xy", "i"], ["z"], name="turn")]
        model(self.folder / "words.onnx", nodes, [("x", s, [3]), ("y", s, [3])], [("z", s, [3])], [("i", np.array([2, 1, 0]))])
        self.compile("words", *flags, "-o", self.folder / "words.so", target=target)

    def test_strings_stay_on_the_host(self):
        self.compile_words("--gpu=sm_80,ptx", "--ptxas=none")
        for capability, level in ((80, "sm_80"), (120, "sm_80")):  # there is no code that a device could not run
            self.assertEqual(self.python(self.WORDS % "{}", CAPABILITY=capability), [level, ["ce", "d", "ab"]])
            self.assertFalse(self.lines("^(launch|in|out|within) "))
        self.compile_words(target="cpu,cuda")
        self.assertEqual(self.python(self.WORDS % '{"device": "cuda"}')[1], self.python(self.WORDS % '{"device": "cpu"}')[1])

    def compile_numerals(self, *flags):
        """Numbers go through strings between two kernels of the device."""
        i, shape = TensorProto.INT64, [16384]
        nodes = [helper.make_node("Abs", ["x"], ["a"], name="before"), helper.make_node("Cast", ["a"], ["s"], to=TensorProto.STRING, name="write"),
                 helper.make_node("Cast", ["s"], ["b"], to=i, name="read"), helper.make_node("Abs", ["b"], ["y"], name="after")]
        model(self.folder / "numerals.onnx", nodes, [("x", i, shape)], [("y", i, shape)])
        self.compile("numerals", *flags, "-o", self.folder / "numerals.so")

    NUMERALS = """
m, x = ptc.load(sys.argv[1] + "/numerals.so"), np.arange(16384)
print(json.dumps([bool(np.array_equal(m(x=x + i)["y"], x + i)) for i in range(3)]))
"""

    def test_host_and_device_take_turns(self):
        for mode in ("default", "reduce-overhead"):
            self.compile_numerals("--mode=" + mode)
            self.assertEqual(self.python(self.NUMERALS, COPY="0,1,131072"), [True, True, True])
            words = [line.split()[0] for line in self.lines("^(launch|in|out|replay) ")]
            self.assertEqual(words, 3 * ["in", "launch", "out", "in", "launch", "out"])
            first, second = (line.split(": ")[1].split() for line in self.lines("^launch")[:2])
            self.assertEqual(self.lines("^out")[0].split()[1], first[1])  # what the first kernel wrote
            self.assertEqual(self.lines("^in")[1].split()[1], second[0])  # what the second one reads
        kernels = json.loads((self.folder / "numerals.json").read_text())["kernels"]
        self.assertFalse([kernel for kernel in kernels if "on_host" in kernel])

    def test_the_first_fault_is_told(self):
        """A wrong index on the device makes garbage, at which the host fails."""
        i = TensorProto.INT64
        nodes = [helper.make_node("Gather", ["x", "i"], ["a"], name="pick"), helper.make_node("ReduceMax", ["a"], ["p"], keepdims=0, name="most"),
                 helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="list"), helper.make_node("SequenceAt", ["s", "p"], ["y"], name="take")]
        model(self.folder / "garbage.onnx", nodes, [("x", i, [5]), ("i", i, [100000])], [("y", i, [5])])
        self.compile("garbage", "-o", self.folder / "garbage.so")
        run = [self.folder / "garbage.so", "-i", "x=ones", "-i", "i=zeros"]
        for variables, code, sentence in (({}, 2, "node 'take': position"), ({"SET": 3}, 7, "index out of range in node 'pick, most'")):
            done = self.ptc("run", *run, **variables)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(sentence, done.stderr)

    def test_transfers_fail(self):
        self.compile_numerals()
        for function, words in (("cuMemcpyDtoHAsync_v2", "read a value"), ("cuStreamSynchronize", "read a value")):
            done = self.ptc("run", self.folder / "numerals.so", "-i", "x=ones", FAIL=function)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn(f"the CUDA driver failed to {words}", done.stderr)

    # ---- the CPU and a GPU in one library ----

    def compile_both(self, *flags):
        """A product whose weights the CPU has in panels and the GPU as they are, and a sum that both read alike."""
        rng, f = np.random.default_rng(0), TensorProto.FLOAT
        w, b = (rng.standard_normal(shape, np.float32) for shape in ((96, 80), (33, 80)))
        model(self.folder / "both.onnx", [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"), helper.make_node("Add", ["p", "b"], ["y"], name="sum")],
              [("x", f, [33, 96])], [("y", f, [33, 80])], [("w", w), ("b", b)])
        for stem, target in (("both", "cpu,cuda"), ("one-cpu", "cpu"), ("one-cuda", "cuda")):
            gpu = ["--gpu=sm_80,ptx", "--ptxas=none"] if "cuda" in target else []
            self.compile("both", *gpu, *flags, "-o", self.folder / f"{stem}.so", target=target)

    RUN_BOTH = """
x = np.random.default_rng(1).standard_normal((33, 96), np.float32)
def run(stem, w=None, **how):
    model = ptc.load(f"{sys.argv[1]}/{stem}.so", **how)
    if w is not None:
        model.set_weight("w", np.full((96, 80), w, np.float32))
    return [model.cpu_level, model(x)["y"].tobytes().hex()]
"""

    def test_both_on_the_cpu(self):
        for place in ("embed", "file"):
            self.compile_both("--weights=" + place)
            out = self.python(self.RUN_BOTH + "print(json.dumps([run(s, w, device='cpu') for w in (None, 3) for s in ('both', 'one-cpu')]))")
            self.assertEqual(out[0], out[1])
            self.assertEqual(out[2], out[3])
            self.assertNotEqual(out[0], out[2])
            self.assertFalse(self.log.exists())  # no driver was opened
        self.compile_both("--weights=none")
        out = self.python(self.RUN_BOTH + "print(json.dumps([run(s, 3, device='cpu') for s in ('both', 'one-cpu')]))")
        self.assertEqual(out[0], out[1])

    def test_both_on_the_gpu(self):
        self.compile_both()
        # Of the library's weights the device gets those that its kernels read, as from the library for it alone.
        sizes, logs = [], []
        for stem in ("both", "one-cuda"):
            self.python(self.RUN_BOTH + f"run('{stem}', 3)\nprint(1)")
            [_, _, size, *_], *rest = [line.split() for line in self.lines("^in |^launch")]
            sizes.append(int(size))
            logs.append([re.sub(r"m0\+\d+", "weights", " ".join(words)) for words in rest])
        self.assertEqual(*logs)  # the new weight is copied in its one form, and the launch reads it
        self.assertEqual(len(logs[0]), 3)
        self.assertLess(sizes[0] - sizes[1], 4096)  # what a weight is aligned to

    def test_both_choose(self):
        self.compile_both()
        one = self.RUN_BOTH + "print(json.dumps(run('both', **json.loads('%s'))[0]))"
        for how, variables, level in (("{}", {}, "sm_80"), ('{"device": "cuda"}', {}, "sm_80"), ('{"cpu_level": "ptx"}', {}, "ptx"),
                                      ('{"device": "cpu"}', {}, "x86-64"), ('{"cpu_level": "x86-64-v3"}', {}, "x86-64-v3"),
                                      ("{}", {"DEVICES": 0}, "x86-64"), ("{}", {"driver": False}, "x86-64"), ("{}", {"CAPABILITY": 75}, "x86-64")):
            self.assertTrue(self.python(one % how, **{"CAPABILITY": 80, **variables}).startswith(level), (how, variables))

    def test_both_refuse(self):
        self.compile_both()
        for library, device, variables, code, sentence in (
                ("both", "cuda", {"driver": False}, 77, "there is no driver here"), ("both", "cuda", {"DEVICES": 0}, 77, "the driver shows none"),
                ("both", "cuda:3", {}, 77, "there is no CUDA device 3"), ("both", "cuda", {"CAPABILITY": 75}, 5, "compute capability is 7.5"),
                ("one-cpu", "cuda", {}, 5, "the model was not compiled for CUDA devices"),
                ("one-cuda", "cpu", {}, 5, "the model was compiled for a device, not for this processor"), ("both", "tpu", {}, 2, "--device cpu, cuda or cuda:N")):
            done = self.ptc("run", self.folder / f"{library}.so", "-i", "x=ones", "--device", device, **variables)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(sentence, done.stderr)

    def test_both_are_described(self):
        self.compile_both()
        manifests = {stem: json.loads((self.folder / f"{stem}.json").read_text()) for stem in ("both", "one-cpu", "one-cuda")}
        both = manifests["both"]
        schema = json.loads((HERE.parents[1] / "compiler" / "artifact" / "manifest.schema.json").read_text())
        import jsonschema

        jsonschema.validate(both, schema)
        self.assertEqual(both["target"], "cpu,cuda")
        for target in ("cpu", "cuda"):
            alone = manifests["one-" + target]
            for part in ("kernels", "memory", "buffers"):
                mine = [{key: value for key, value in row.items() if key != "target"} for row in both[part] if row["target"] == target]
                self.assertEqual(mine, alone[part], part)
        self.assertEqual(both["levels"], manifests["one-cpu"]["levels"] + manifests["one-cuda"]["levels"])
        stored = [manifests[stem]["weights"]["bytes"] for stem in ("both", "one-cpu", "one-cuda")]
        self.assertLess(stored[0], stored[1] + stored[2])  # b is there once
        self.assertIn(b".target sm_80", (self.folder / "both.so").read_bytes())
        shown = self.ptc("inspect", self.folder / "both.so").stdout
        for heading in ("kernels of cpu:", "kernels of cuda:", "memory of main of cuda:"):
            self.assertIn(heading, shown.replace("memory of test", "memory of main"))

    def test_both_are_compiled(self):
        self.compile_both()
        for target, sentence in (("cpu,cpu", "'cpu' twice"), ("cpu,tpu", "unknown target 'tpu'"), ("cpu,", "unknown target ''")):
            done = self.compile("both", "-o", self.folder / "refused", target=target, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(sentence, done.stderr)
        for words, sentence in ((["--emit=asm"], "--target=cuda does not write 'asm'"), (["--emit=ptx"], "--target=cpu does not write 'ptx'"),
                                (["--emit=onnx:prim"], "is about one target"), (["--cpu=aarch64"], "belong to different processors")):
            done = self.compile("both", *words, "-o", self.folder / "refused", target="cpu,cuda", check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(sentence, done.stderr)
        done = self.ptc("compile", self.folder / "both.onnx", "--target=cpu,cuda", "--emit=mlir:plan-memory", "-o", "-")
        self.assertEqual(done.stdout.count("// -----"), 1)
        done = self.ptc("verify", self.folder / "both.onnx", "--target=cpu,cuda", "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)

    # ---- graphs ----

    def graph_runs(self, name, text, **variables):
        self.compile(name, "--mode=reduce-overhead", "-o", self.folder / f"{name}-graph.so")
        return self.python(f"model = ptc.load(sys.argv[1] + '/{name}-graph.so')\n" + text, **variables)

    def test_graph_is_replayed(self):
        out = self.graph_runs("relu", """
ctx, table = ctypes.c_void_p(), model._table
from ptc import _abi
assert table.ctx_create(model._open(), ctypes.byref(ctx)) == 0
results = []
def run(rows, value):
    shape = (ctypes.c_int64 * 2)(rows, 8)
    x, y = np.full((rows, 8), value, np.float32), np.zeros((rows, 8), np.float32)
    tensor = lambda a: _abi.Tensor(a.ctypes.data, _abi.Device(1, 0), 2, _abi.DType(2, 32, 1), shape, None, 0)
    status = table.run(ctx, 0, ctypes.byref(tensor(x)), ctypes.byref(tensor(y)), None, None)
    results.append([status, float(y[0, 0])])
for rows, value in ((2, 1), (2, 2), (2, 3), (4, 4)):
    run(rows, value)
print(json.dumps(results))
""", COPY="0,1,64")
        self.assertEqual(out, [[0, 1], [0, 2], [0, 3], [0, 4]])
        self.assertEqual(len(self.lines("^launch")), 2)  # the first run of each set of dims
        self.assertEqual(len(self.lines("^node")), 2)
        self.assertEqual(len(self.lines("^replay on 7")), 2)
        self.assertFalse(self.lines("^change"))

    def test_graph_follows_pointers(self):
        self.graph_runs("relu", """
driver = ctypes.CDLL("libcuda.so.1")
def allocate(bytes):
    pointer = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(bytes)) == 0
    return pointer.value
from ptc import _abi
ctx, table = ctypes.c_void_p(), model._table
assert table.ctx_create(model._open(), ctypes.byref(ctx)) == 0
shape = (ctypes.c_int64 * 2)(2, 8)
def tensor(pointer):
    return _abi.Tensor(pointer, _abi.Device(2, 0), 2, _abi.DType(2, 32, 1), shape, None, 0)
x, y, z = allocate(64), allocate(64), allocate(64)
for target in (y, y, z, z):
    assert table.run(ctx, 0, ctypes.byref(tensor(x)), ctypes.byref(tensor(target)), None, ctypes.c_void_p(99)) == 0
print(json.dumps(1))
""")
        self.assertEqual(len(self.lines("^launch .* on 99")), 1)
        self.assertEqual(len(self.lines("^replay on 99")), 3)
        self.assertEqual(len(self.lines("^change node 1")), 1)  # once for the new output
        self.assertFalse(self.lines("^wait 99"))

    def test_graph_is_given_up_where_the_host_reads(self):
        self.graph_runs("branch", """
for _ in range(3):
    model(x=np.ones(64, np.float32), s=np.float32(1))
print(json.dumps(1))
""")
        self.assertFalse(self.lines("^replay"))
        self.assertTrue(self.lines("^launch"))

    def test_graph_starts_early(self):
        w = np.ones((64, 64), np.float32)
        model(self.folder / "two.onnx", [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])],
              [("x", TensorProto.FLOAT, [64, 64])], [("y", TensorProto.FLOAT, [64, 64])], [("w", w)])
        runs = """
model = ptc.load(sys.argv[1] + "/two.so")
for _ in range(2):
    model(x=np.ones((64, 64), np.float32))
print(json.dumps(1))
"""
        for gpu, edges in (("sm_80", []), ("sm_90", ["edge 1 to 2 port 1 type 1"])):
            self.compile("two", "--mode=reduce-overhead", "--gpu=" + gpu, "--ptxas=none", "-o", self.folder / "two.so")
            self.python(runs)
            self.assertEqual(self.lines("^edge"), edges)
            self.assertEqual(len(self.lines("^node 2 behind " + str(1 - len(edges)))), 1)
            self.assertEqual(len(self.lines("^replay")), 1)
        self.python(runs, FAIL="cuGraphAddDependencies_v2")
        self.assertFalse(self.lines("^replay"))

    def test_launches_alone_on_their_multiprocessors_start_early(self):
        h = TensorProto.FLOAT16
        model(self.folder / "wide.onnx", [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])],
              [("x", h, [1024, 512])], [("y", h, [1024, 512])], [("w", np.ones((512, 512), np.float16))])
        self.compile("wide", "--mode=reduce-overhead", "--gpu=sm_90a", "--ptxas=none", "-o", self.folder / "wide.so")
        self.python("""
model = ptc.load(sys.argv[1] + "/wide.so")
model(x=np.ones((1024, 512), np.float16))
print(json.dumps(1))
""")
        self.assertEqual(self.lines("^edge"), ["edge 1 to 2 port 2 type 1"])

    def test_graph_fails(self):
        self.compile("relu", "--mode=reduce-overhead", "-o", self.folder / "relu-graph.so")
        for function in ("cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags"):  # then there is none
            done = self.ptc("bench", self.folder / "relu-graph.so", "--at", "n=4", "--min-time", "0.01", FAIL=function)
            self.assertEqual(done.returncode, 0, function + done.stderr)
            self.assertFalse(self.lines("^replay"))
        done = self.ptc("bench", self.folder / "relu-graph.so", "--at", "n=4", "--min-time", "0.01", FAIL="cuGraphLaunch")
        self.assertIn("the CUDA driver failed to launch a graph", done.stderr)

    def test_unknown_mode(self):
        done = self.compile("relu", "--mode=fastest", "-o", self.folder / "mode.so", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--mode is default, reduce-overhead or max-autotune", done.stderr)

    # ---- tensor cores ----

    def test_shared_memory_and_counters(self):
        w = np.ones((2048, 64), np.float32)
        model(self.folder / "split.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
              [("x", TensorProto.FLOAT, [32, 2048])], [("y", TensorProto.FLOAT, [32, 64])], [("w", w)])
        self.compile("split", "-o", self.folder / "split.so")
        done = self.ptc("run", self.folder / "split.so", "-i", "x=ones")
        self.assertEqual(done.returncode, 0, done.stderr)
        [launch] = self.lines("^launch")
        shared = int(re.search(r"shared (\d+)", launch)[1])
        self.assertGreater(shared, 0)
        self.assertEqual(len(self.lines(f"^function matmul_.* attribute 8 is {shared}")), 1)
        self.assertEqual(len(self.lines("^fill m.* 4096 on 7")), 1)  # the counters, once

    def product(self, *flags, gpu="sm_80,sm_90a"):
        """A matrix product that warpgroups take on sm_90a."""
        h = TensorProto.FLOAT16
        model(self.folder / "product.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
              [("x", h, [2048, 512])], [("y", h, [2048, 2040])], [("w", np.ones((512, 2040), np.float16))])
        self.compile("product", "--gpu=" + gpu, "--ptxas=none", *flags, "-o", self.folder / "product.so")

    def test_tensor_maps(self):
        self.product()
        self.assertEqual(self.ptc("run", self.folder / "product.so", "-i", "x=ones").returncode, 0)
        [launch], maps = self.lines("^launch"), self.lines("^map")
        self.assertRegex(launch, r"grid 1\d\d,1,1 block 384,1,1 shared 19")
        self.assertEqual(len(maps), 2)
        self.assertRegex(maps[0], r"^map of m\d+\+\d+ type 1 swizzle 3: 512/64 2048/128$")
        self.assertRegex(maps[1], r"^map of m\d+\+\d+ type 1 swizzle 3: 512/64 2040/\d+$")  # a weight is stored along k
        self.ptc("run", self.folder / "product.so", "-i", "x=ones", MULTIPROCESSORS=78)
        self.assertRegex(self.lines("^launch")[0], "grid 78,1,1")  # blocks stay and share the tiles
        done = self.ptc("run", self.folder / "product.so", "-i", "x=ones", FAIL="cuTensorMapEncodeTiled")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("the CUDA driver failed to describe a tensor", done.stderr)
        self.ptc("run", self.folder / "product.so", "-i", "x=ones", CAPABILITY=86)
        self.assertFalse(self.lines("^map"))
        self.assertNotRegex(self.lines("^launch")[0], "block 384")

    def test_maps_of_images(self):
        h = TensorProto.FLOAT16
        nodes = [helper.make_node("Transpose", ["x"], ["xi"], perm=[0, 3, 1, 2]),
                 helper.make_node("Conv", ["xi", "w"], ["c"], name="window", pads=[1, 1, 1, 1], strides=[2, 2]),
                 helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])]
        model(self.folder / "window.onnx", nodes, [("x", h, [2, 56, 58, 128])], [("y", h, [2, 28, 29, 128])],
              [("w", np.ones((128, 128, 3, 3), np.float16))])
        self.compile("window", "--gpu=sm_90a", "--ptxas=none", "-o", self.folder / "window.so")
        self.assertEqual(self.ptc("run", self.folder / "window.so", "-i", "x=ones").returncode, 0)
        image, weights = self.lines("^map")
        self.assertRegex(image, r"^map of m\d+\+\d+ type 1 swizzle 3, 64 channels of \d+ pixels: 128 58\(-1,-2,2\) 56\(-1,-2,2\) 2$")
        self.assertRegex(weights, r"^map of m\d+\+\d+ type 1 swizzle 3: 128/64 3/1 3/1 128/\d+$")
        done = self.ptc("run", self.folder / "window.so", "-i", "x=ones", FAIL="cuTensorMapEncodeIm2col")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("the CUDA driver failed to describe a tensor", done.stderr)

    def test_tensor_maps_of_a_graph(self):
        self.product("--mode=reduce-overhead")
        self.python("""
model = ptc.load(sys.argv[1] + "/product.so")
for _ in range(3):
    model(x=np.ones((2048, 512), np.float16))
print(json.dumps(1))
""")
        self.assertEqual(len(self.lines("^replay")), 2)
        self.assertEqual(len(self.lines("^map")), 2)  # replayed as they are

    def test_driver_without_tensor_maps(self):
        old = self.folder / "old"
        old.mkdir(exist_ok=True)
        self.compile_driver(old / "libcuda.so.1", "-DOLD")
        run = [self.program, "run", self.folder / "product.so", "-i", "x=ones"]
        variables = self.environment() | {"LD_LIBRARY_PATH": str(old)}
        self.product()
        done = subprocess.run(run, capture_output=True, text=True, env=variables)
        self.assertEqual(done.returncode, 0, done.stderr)  # another level will do
        self.assertNotRegex(self.lines("^launch")[0], "block 384")
        self.product(gpu="sm_90a")
        done = subprocess.run(run, capture_output=True, text=True, env=variables)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("the CUDA driver is too old for level sm_90a: libcuda.so.1 has no cuTensorMapEncodeTiled", done.stderr)

    def test_profile(self):
        done = self.ptc("bench", self.folder / "relu.so", "--at", "n=4", "--per-kernel", "--min-time", "0.01")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("relu", done.stdout)

    def test_ranges_of_a_profiler(self):
        command = [self.program, "run", self.folder / "relu.so", "-i", "x=ones", "--at", "n=2", "-q"]
        marks = "^(push|pop|launch)"
        for name, flags, expected in (("nvtx", [], ["push main", "push relu", "launch", "pop", "pop"]), ("refuses", ["-DREFUSES"], ["launch"]),
                                      ("other", ["-DInitializeInjectionNvtx2=another"], ["launch"])):
            path = self.folder / f"{name}.so.1"
            self.compile_driver(path, *flags, source="fake_profiler.c")
            done = subprocess.run(command, capture_output=True, text=True, env=self.environment() | {"LD_PRELOAD": str(path)})
            self.assertEqual(done.returncode, 0, done.stderr)
            found = [line if line[0] == "p" else line.split()[0] for line in self.lines(marks)]
            self.assertEqual(found, expected, name)

    def test_bytes(self):
        for name in ("one", "two"):
            (self.folder / name).mkdir(exist_ok=True)
            self.compile("scale", "--ptxas=none", "--gpu=sm_80,ptx", "-o", self.folder / name / "scale.so")
        self.assertEqual((self.folder / "one" / "scale.so").read_bytes(), (self.folder / "two" / "scale.so").read_bytes())

    def test_needs_libc_alone(self):
        text = subprocess.run(["readelf", "-d", self.folder / "relu.so"], capture_output=True, text=True).stdout
        self.assertLessEqual(set(re.findall(r"Shared library: \[(.*?)\]", text)), {"libc.so.6", "libdl.so.2"})


def add_flags(parser):
    parser.add_argument("--device", choices=("fake", "cuda"), default="fake", help="cuda: the tests of on_device.py alone, on a real one")
    parser.add_argument("--gpu", default="ptx", metavar="ARCH", help="what these compile for")


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]  # of which other files take model()
    ARGUMENTS = unittests.parse(__doc__, add_flags)
    test_sanitizer.BUILD = ARGUMENTS.build
    OnDevice.program, OnDevice.gpu = ARGUMENTS.build / "bin" / "ptc", ARGUMENTS.gpu
    classes = (OnDevice,) if ARGUMENTS.device == "cuda" else (Cuda, test_sanitizer.Sanitizer)
    sys.exit(unittests.run(ARGUMENTS, lambda loader: unittest.TestSuite(map(loader.loadTestsFromTestCase, classes)), unittests.NOTHING))
