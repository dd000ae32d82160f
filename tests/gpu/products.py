"""Products that a tuning file leaves to cuBLASLt: part of run.py. fake_cublaslt.c is the library, on the fake driver's streams."""

import json
import subprocess

import numpy as np
from onnx import TensorProto, helper

F, H = TensorProto.FLOAT, TensorProto.FLOAT16
TYPES = {F: np.float32, H: np.float16}


def some(seed, kind, *shape):
    return (np.random.default_rng(seed).standard_normal(shape) / 4).astype(TYPES[kind])


def node(operator, *names, **attributes):
    return helper.make_node(operator, list(names[:-1]), [names[-1]], **attributes)


# Nodes, type, shapes of inputs, shape of y, weights, what y is.
FORMS = {
    "plain": ([node("MatMul", "x", "w", "y")], F, {"x": [33, 48]}, [33, 40], {"w": [48, 40]}, lambda x, w: x @ w),
    "bias": ([node("MatMul", "x", "w", "p"), node("Add", "b", "p", "y")], H, {"x": [2, 16, 32]}, [2, 16, 24], {"w": [32, 24], "b": [24]},
             lambda x, w, b: x @ w + b),
    "relu": ([node("Gemm", "x", "w", "b", "p", transA=1, transB=1), node("Relu", "p", "y")], H, {"x": [32, 16]}, [16, 24], {"w": [24, 32], "b": [24]},
             lambda x, w, b: np.maximum(x.T @ w.T + b, 0)),
    "batched": ([node("Transpose", "k", "t", perm=[0, 1, 3, 2]), node("MatMul", "q", "t", "y")], H, {"q": [2, 3, 16, 32], "k": [2, 3, 24, 32]},
                [2, 3, 16, 24], {}, lambda q, k: q @ k.transpose(0, 1, 3, 2)),
    "shared": ([node("MatMul", "x", "w", "p"), node("Relu", "p", "y")], F, {"x": [2, 3, 16, 32], "w": [1, 1, 32, 24]}, [2, 3, 16, 24], {},
               lambda x, w: np.maximum(x @ w, 0)),
}
# What the library has no words for.
REFUSED = {
    "scaled": [node("MatMul", "x", "w", "p"), node("Sigmoid", "p", "y")],
    "residual": [node("MatMul", "x", "w", "p"), node("Add", "p", "x", "y")],
    "bias of rows": [node("MatMul", "x", "w", "p"), node("Add", "p", "b", "y")],
}

RUNS = """
model, inputs = ptc.load(sys.argv[1] + "/library.so"), dict(np.load(sys.argv[1] + "/inputs.npz"))
outputs = [model(**{name: value * factor for name, value in inputs.items()})["y"] for factor in (1, 1, 2)]
print(json.dumps([output.astype(float).tolist() for output in outputs]))
"""


class Products:
    @classmethod
    def make_libraries(cls):
        for name in ("library", "broken"):
            (cls.folder / name).mkdir()
        cls.compile_driver(cls.folder / "library" / "libcublasLt.so.13", source="fake_cublaslt.c")
        cls.compile_driver(cls.folder / "library" / "libcudnn.so.9", source="fake_cudnn.c")
        for name in ("libcublasLt.so.12", "libcublasLt.so.13", "libcudnn.so.9"):  # so that one of the machine's is not found
            (cls.folder / "broken" / name).write_text("no library\n")

    def compile_tuned(self, form, *flags, level="sm_90a"):
        """library.so, and inputs.npz; returns what y should be."""
        from run import model

        nodes, kind, inputs, result, weights, exact = FORMS[form]
        constants = {name: some(number, kind, *shape) for number, (name, shape) in enumerate(weights.items(), 8)}
        values = {name: some(number, kind, *shape) for number, (name, shape) in enumerate(inputs.items())}
        np.savez(self.folder / "inputs.npz", **values)
        model(self.folder / "library.onnx", nodes, [(name, kind, shape) for name, shape in inputs.items()], [("y", kind, result)], constants.items())
        self.compile_with_numbers({"cublaslt": 1}, *flags, level=level)
        return exact(*(value.astype(np.float64) for value in (values | constants).values()))

    def compile_with_numbers(self, numbers, *flags, level="sm_90a"):
        flags = ("--gpu=sm_90a", "--ptxas=none", *flags)
        self.compile("library", *flags, "-o", self.folder / "library.so")
        kernels = [{"kernel": row["name"], "numbers": numbers, "ns": 0, "planned_ns": 0} for row in self.manifest()["kernels"]]
        tuning = {"format": 1, "compiler": "", "model": "", "level": level, "processor": "", "threads": 1, "kernels": kernels}
        (self.folder / "library.tune.json").write_text(json.dumps(tuning))
        self.compile("library", *flags, "--tune-file", self.folder / "library.tune.json", "-o", self.folder / "library.so")

    def manifest(self):
        return json.loads((self.folder / "library.json").read_text())

    def check_runs(self, expected, **variables):
        for factor, found in zip((1, 1, 2), self.python(RUNS, **variables)):
            scale = factor ** (2 if len(self.inputs_of()) == 2 else 1)
            np.testing.assert_allclose(np.array(found), expected * scale, rtol=4e-3, atol=4e-3)

    def inputs_of(self):
        return np.load(self.folder / "inputs.npz").files

    def test_library_computes(self):
        self.library = "library"
        for form in ("plain", "batched", "shared"):
            for mode in ("default", "reduce-overhead"):
                with self.subTest(form=form, mode=mode):
                    self.check_runs(self.compile_tuned(form, "--mode=" + mode))
                    self.assertFalse(self.lines("^launch"))
                    graph = mode != "default"
                    self.assertEqual(len(self.lines("^multiply on 7")), 2 if graph else 3)  # of a graph one is run, one captured
                    self.assertEqual(len(self.lines("^replay")), 2 if graph else 0)

    def test_library_adds_a_bias(self):
        self.library = "library"
        for form, epilogue in (("bias", 4), ("relu", 6)):
            expected = self.compile_tuned(form)
            [first, *_] = self.python(RUNS)
            np.testing.assert_allclose(np.array(first), expected, rtol=4e-3, atol=4e-3)
            self.assertRegex(self.lines("^propose")[0], f"epilogue {epilogue}$")
            self.compile_tuned(form, "--fp=strict")  # sums would be rounded once
            self.python(RUNS)
            self.assertFalse(self.lines("^multiply"))
        for form, calls in (("plain", 3), ("shared", 0)):  # NaN might be lost in the ReLU
            self.compile_tuned(form, "--fp=strict")
            self.python(RUNS)
            self.assertEqual(len(self.lines("^multiply")), calls, form)

    def test_profile_has_no_call_of_the_library(self):
        """Between the events lies a graph of what the library launches; what is loaded at first is in none."""
        self.library = "library"
        self.compile_tuned("plain")
        done = self.ptc("bench", self.folder / "library.so", "--min-time=0.001", "--profile", self.folder / "trace.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.lines(r"^replay on \d+$"))
        self.assertEqual(self.lines("^library has")[-1], "library has 0 objects")
        spans = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        self.assertTrue([span for span in spans if "matmul" in json.dumps(span)], spans)

    def test_library_reads_matrices_where_they_lie(self):
        self.library = "library"
        self.compile_tuned("relu")
        self.python(RUNS)
        self.assertEqual(self.lines("^propose"), ["propose 24x32 pitch 24 type 2 batch 1 every 0, 16x32 pitch 16 type 2 batch 1 every 0 turned, "
                                                  "24x16 pitch 24 type 2 batch 1 every 0, epilogue 6"])
        self.compile_tuned("batched")
        self.python(RUNS)
        self.assertEqual(self.lines("^propose"), ["propose 32x24 pitch 32 type 2 batch 6 every 768 turned, 32x16 pitch 32 type 2 batch 6 every 512, "
                                                  "24x16 pitch 24 type 2 batch 6 every 384, epilogue 1"])

    def test_own_code_without_the_library(self):
        self.compile_tuned("plain")
        for library, variables in (("broken", {}), ("library", {"LIBRARY_FAILS": "cublasLtCreate"}),
                                   ("library", {"LIBRARY_FAILS": "cublasLtMatmulAlgoGetHeuristic"}), ("library", {"LIBRARY_FAILS": "cublasLtMatmul"})):
            self.library = library
            done = self.ptc("run", self.folder / "library.so", "-i", "x=ones", "-v", **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.lines("^launch")), 1, variables)
            self.assertEqual(done.stderr.count("kernels' own code computes what it was chosen for"), 1, done.stderr)
            self.assertIn({"cublasLtMatmul": "fails at a product", "cublasLtMatmulAlgoGetHeuristic": "refuses a product"}
                          .get(variables.get("LIBRARY_FAILS"), "is not found, or does not start"), done.stderr)
            if self.lines("library opened"):
                self.assertEqual(self.lines("^library has")[-1], "library has 0 objects")

    def test_own_code_at_other_levels(self):
        self.library = "library"
        self.compile_tuned("plain", "--gpu=sm_80,sm_90a", level="sm_80")
        self.python(RUNS)
        self.assertEqual((len(self.lines("^launch")), self.lines("^propose")), (3, []))
        self.python(RUNS, CAPABILITY=86)
        self.assertEqual((self.lines("^launch"), len(self.lines("^propose"))), ([], 1))

    def test_graph_with_a_product_that_fails(self):
        self.library = "library"
        self.compile_tuned("plain", "--mode=reduce-overhead")
        self.python(RUNS, LIBRARY_FAILS="cublasLtMatmul")  # the next run records anew, with the kernel's code
        self.assertEqual((len(self.lines("^launch")), len(self.lines("^replay"))), (2, 1))
        for function in ("cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphAddChildGraphNode"):
            self.python(RUNS, FAIL=function)
            self.assertEqual((len(self.lines("^multiply on 7")), self.lines("^replay")), (3 if "Begin" in function else 4, []), function)

    def test_graph_follows_pointers_of_products(self):
        self.library = "library"
        expected = self.compile_tuned("plain", "--mode=reduce-overhead")
        runs = self.python("""
driver = ctypes.CDLL("libcuda.so.1")
def allocate(bytes):
    pointer = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(bytes)) == 0
    return pointer.value
from ptc import _abi
model = ptc.load(sys.argv[1] + "/library.so")
ctx, table = ctypes.c_void_p(), model._table
assert table.ctx_create(model._open(), ctypes.byref(ctx)) == 0
def tensor(pointer, *shape):
    return _abi.Tensor(pointer, _abi.Device(2, 0), 2, _abi.DType(2, 32, 1), (ctypes.c_int64 * 2)(*shape), None, 0)
x, y, z = allocate(33 * 48 * 4), allocate(33 * 40 * 4), allocate(33 * 40 * 4)
given = np.load(sys.argv[1] + "/inputs.npz")["x"].tobytes()
ctypes.memmove(x, given, len(given))
results = []
for target in (y, y, z, z):
    ctypes.memset(target, 0, 33 * 40 * 4)
    assert table.run(ctx, 0, ctypes.byref(tensor(x, 33, 48)), ctypes.byref(tensor(target, 33, 40)), None, ctypes.c_void_p(99)) == 0
    results.append(np.frombuffer(ctypes.string_at(target, 33 * 40 * 4), np.float32).tolist())
print(json.dumps(results))
""")
        for found in runs:
            np.testing.assert_allclose(np.array(found).reshape(33, 40), expected, rtol=1e-4, atol=1e-5)
        self.assertEqual(len(self.lines("^multiply on 99")), 1)
        self.assertEqual(len(self.lines("^replay on 99")), 3)
        self.assertEqual(len(self.lines("^change child 1")), 1)

    def test_launches_do_not_start_early_beside_products(self):
        from run import model

        self.library = "library"
        h, w = [("h", H, [64, 64])], some(0, H, 64, 64)
        nodes = [node("Softmax", "h", "a", axis=-1), node("MatMul", "a", "w", "p"), node("Softmax", "p", "s", axis=0), node("Softmax", "s", "y", axis=-1)]
        model(self.folder / "library.onnx", nodes, h, [("y", H, [64, 64])], [("w", w)])
        self.compile_with_numbers({"cublaslt": 1}, "--mode=reduce-overhead")
        self.python("model = ptc.load(sys.argv[1] + '/library.so')\nfor _ in range(2): model(h=np.ones((64, 64), np.float16))\nprint(1)")
        kinds = [line.split()[0] for line in self.lines("^(node|child) ")]
        at = kinds.index("child")
        self.assertEqual(kinds.count("child"), 1)
        self.assertIn(f"child {at + 1} behind 1", self.lines("^child"))
        self.assertIn(f"node {at + 2} behind 1", self.lines("^node"))
        early = [int(line.split()[3]) for line in self.lines("^edge")]
        self.assertEqual(early, [number for number in range(2, len(kinds) + 1) if number not in (at + 1, at + 2)])
        self.assertTrue(early)

    def test_library_is_described(self):
        self.compile_tuned("bias")
        [kernel] = self.manifest()["kernels"]
        self.assertEqual(kernel["library"], "cublaslt")
        self.assertIn("(or cublaslt)", self.ptc("inspect", self.folder / "library.so").stdout)
        first = (self.folder / "library.so").read_bytes()
        self.compile("library", "--gpu=sm_90a", "--ptxas=none", "--tune-file", self.folder / "library.tune.json", "-o", self.folder / "library.so")
        self.assertEqual(first, (self.folder / "library.so").read_bytes())
        text = subprocess.run(["readelf", "-d", self.folder / "library.so"], capture_output=True, text=True).stdout
        self.assertNotIn("cublas", text)

    def test_own_code_of_what_the_library_does_not_compute(self):
        from run import model

        for name, nodes in REFUSED.items():
            model(self.folder / "library.onnx", nodes, [("x", F, [32, 32])], [("y", F, [32, 32])], [("w", some(0, F, 32, 32)), ("b", some(1, F, 32, 1))])
            self.compile_with_numbers({"cublaslt": 1})
            self.assertFalse([kernel for kernel in self.manifest()["kernels"] if "library" in kernel], name)
