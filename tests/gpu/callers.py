"""Programs that have tensors and streams of their own: part of run.py."""

import re
import subprocess
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent
F = TensorProto.FLOAT

# A tensor of another library on the fake device: memory of the driver's, shown through DLPack.
TENSORS = """
from ptc import _abi, _dlpack
driver = ctypes.CDLL("libcuda.so.1")
class Tensor:
    def __init__(self, *shape, ordinal=0, kind=2):
        pointer = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 * int(np.prod(shape)))) == 0
        memory = (ctypes.c_float * int(np.prod(shape))).from_address(pointer.value)
        self.array, self.device, self.streams = np.frombuffer(memory, np.float32).reshape(shape), (kind, ordinal), []
        self.array[:] = 1
    def __dlpack_device__(self):
        return self.device
    def __dlpack__(self, stream):
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        pointer = _dlpack._pointer(capsule, b"dltensor")
        device = ctypes.cast(pointer, ctypes.POINTER(_dlpack._ManagedTensor)).contents.tensor.device
        device.type, device.id = self.device
        return capsule
def refusal(call):
    try:
        return call() and "none"
    except (TypeError, ptc.Error) as error:
        return str(error)
"""


class Callers:
    def compile_state(self):
        from run import model

        model(self.folder / "state.onnx", [helper.make_node("Add", ["s", "x"], ["t"])], [("s", F, [64]), ("x", F, [64])], [("t", F, [64])])
        self.compile("state", "--alias", "s=t", "-o", self.folder / "state.so")

    def test_the_program_of_the_docs(self):
        from run import model

        text = (HERE.parents[1] / "runtime" / "docs" / "c-abi.md").read_text()
        (self.folder / "gpu.c").write_text(re.search(r"```c gpu\.c\n(.*?)```", text, re.DOTALL)[1])
        model(self.folder / "mlp.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, ["batch", 8])], [("y", F, ["batch", 4])],
              [("w", np.ones((8, 4), np.float32))])
        self.compile("mlp", "-o", self.folder / "mlp.so")
        subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-I", HERE, "gpu.c", "mlp.so", "libcuda.so.1", "-Wl,-rpath,$ORIGIN", "-o", "gpu"],
                       cwd=self.folder, check=True)
        variables = self.environment(COPY="0,1,32")  # a launch copies the first eight numbers of x to y
        done = subprocess.run([self.folder / "gpu"], capture_output=True, text=True, env=variables)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1.0000 2.0000 3.0000 0.0000\n", ""))
        self.assertEqual(len(self.lines("^launch .* on 7")), 1)  # the program's stream; the context's own is the next
        self.assertEqual(len(self.lines("^wait 7")), 1)
        self.assertFalse(self.lines("^(in|out) .* on 8"))
        failed = subprocess.run([self.folder / "gpu"], capture_output=True, text=True, env=self.environment(FAIL="cuLaunchKernel"))
        self.assertEqual(failed.returncode, 1)
        self.assertIn("run: the CUDA driver failed to launch a kernel", failed.stderr)

    def test_tensors_of_python(self):
        out = self.python(TENSORS + """
model, x, y = ptc.load(sys.argv[1] + "/relu.so"), Tensor(2, 8), Tensor(2, 8)
class Stream:
    cuda_stream = 0
class Protocol:
    def __cuda_stream__(self):
        return 0, 42
x.array[:] = 3
found = model.run({"x": x}, {"y": y}, stream=99)
model.run({"x": x}, {"y": y}, stream=Stream())
model.run({"x": x}, {"y": y}, stream=Protocol())
on_host, given = model(x=x)["y"], np.zeros((2, 8), np.float32)
model.run({"x": x}, {"y": given})
model.run({"x": Tensor(2, 8, ordinal=1, kind=13)}, {"y": y}, stream=99)  # managed memory, which every device reaches
managed = float(y.array[1, 7])
model.run({"x": np.full((2, 8), 5, np.float32)}, {"y": y})
print(json.dumps([found["y"] is y, float(y.array[1, 7]), float(on_host[1, 7]), float(given[0, 0]), managed, x.streams, y.streams, model.device]))
""", COPY="0,1,64")
        self.assertEqual(out, [True, 5, 3, 3, 1, [99, 1, 42, 1, 1], [99, 1, 42, 99, 1], "cuda:0"])
        self.assertEqual([line.split(" on ")[1].split(":")[0] for line in self.lines("^launch")], ["99", "1", "42", "1", "1", "99", "1"])
        self.assertEqual(len(self.lines("^wait (99|42)")), 0)
        self.assertEqual(len(self.lines("^wait 1$")), 3)  # where something is in host memory
        self.assertEqual(len(self.lines("^(in|out) m")), 3)

    def test_tensors_of_python_are_refused(self):
        self.compile_state()
        self.compile("relu", "-o", self.folder / "relu-cpu.so", target="cpu")
        out = self.python(TENSORS + """
model, cpu = ptc.load(sys.argv[1] + "/relu.so"), ptc.load(sys.argv[1] + "/relu-cpu.so")
x, host = Tensor(2, 8), np.ones((2, 8), np.float32)
print(json.dumps([refusal(call) for call in (
    lambda: cpu(x=x), lambda: cpu.run({"x": host}, {"y": x}), lambda: cpu.run({"x": host}, stream=5), lambda: model(x=Tensor(2, 8, ordinal=1)),
    lambda: model.run({"x": x}, {"z": x}), lambda: model.run({"x": x}, {"y": Tensor(2, 9)}), lambda: model.run({"x": x}, {"y": host.astype(np.float64)}),
    lambda: ptc.load(sys.argv[1] + "/state.so")(s=Tensor(64), x=Tensor(64)))]))
""")
        for found, expected in zip(out, ("input 'x' is in the memory of CUDA, number 0; the model runs on the CPU", "output 'y' is in the memory of CUDA",
                                         "a stream is of a model on a GPU", "input 'x' is in the memory of device 1, and the model runs on device 0",
                                         "'main' has no output 'z'; it has y", "output 'y' dim 1 is 9, not 8",
                                         "output 'y' must be a dense writable array of float32", "input 's' and output 't' share one buffer"), strict=True):
            self.assertIn(expected, found)

    def test_state_of_python_stays_on_the_device(self):
        self.compile_state()
        out = self.python(TENSORS + """
model, s, x, other = ptc.load(sys.argv[1] + "/state.so"), Tensor(64), Tensor(64), Tensor(64, kind=13)
other.array[:] = 3
model.run({"s": s, "x": other}, {"t": s})
torn = refusal(lambda: model.run({"s": s, "x": x}, {"t": other}))
print(json.dumps([torn, float(s.array[63])]))
""", COPY="1,2,256")  # what a launch writes
        self.assertIn("output 't' shares the buffer of an input", out[0])
        self.assertEqual(out[1], 3)  # written there, too
        self.assertFalse(self.lines("^(in|out|within) "))
        (launch,) = self.lines("^launch")
        self.assertIn(f": {self.lines('^allocate .* 256$')[0].split()[1]}+0 ", launch)  # read where it is

    def test_a_run_on_another_stream_waits(self):
        self.python(TENSORS + """
model, x, y = ptc.load(sys.argv[1] + "/relu.so"), Tensor(2, 8), Tensor(2, 8)
for stream in (98, 98, 99, None, 1000):  # the last one is captured
    model.run({"x": x}, {"y": y}, stream=stream)
model(x=np.ones((2, 8), np.float32))
model.run({"x": x}, {"y": y}, stream=98)
print(json.dumps(1))
""")
        words = [line.split(" on ")[-1].split(":")[0] for line in self.lines("^(launch|wait for)")]
        self.assertEqual(words, ["98", "98", "wait for all", "99", "wait for all", "1", "1000", "wait for all", "7", "98", "wait for all"])

    def test_a_run_that_is_captured_replays_no_graph(self):
        self.compile("relu", "--mode=reduce-overhead", "-o", self.folder / "replayed.so")
        self.python(TENSORS + """
model, x, y = ptc.load(sys.argv[1] + "/replayed.so"), Tensor(2, 8), Tensor(2, 8)
for stream in (1000, 98, 98, 1000):
    model.run({"x": x}, {"y": y}, stream=stream)
print(json.dumps(1))
""")
        words = [line.split(":")[0].split()[0] + line.split(" on ")[-1].split(":")[0] for line in self.lines("^(launch|replay)")]
        self.assertEqual(words, ["launch1000", "launch98", "replay98", "launch1000"])

    def test_a_context_that_found_no_memory_finds_it_later(self):
        from run import model

        model(self.folder / "summed.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, [32, 2048])], [("y", F, [32, 64])],
              [("w", np.ones((2048, 64), np.float32))])
        self.compile("summed", "-o", self.folder / "summed.so")
        out = self.python(TENSORS + """
import os
model, x, results = ptc.load(sys.argv[1] + "/summed.so"), np.ones((32, 2048), np.float32), []
os.environ["FAKE_CUDA_FAIL"] = "cuMemAlloc_v2"
results.append(refusal(lambda: model(x=x)))
del os.environ["FAKE_CUDA_FAIL"]
results.append(refusal(lambda: model(x=x)))
print(json.dumps(results))
""")
        self.assertIn("the CUDA driver failed to allocate 4096 bytes", out[0])
        self.assertEqual(out[1], "none")
        self.assertEqual(len(self.lines("^fill m.* 4096 ")), 1)  # the counters

    def test_a_size_that_the_run_finds_is_read_once(self):
        from run import model

        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("NonZero", ["a"], ["i"], name="find"), helper.make_node("Transpose", ["i"], ["t"]),
                 helper.make_node("GatherND", ["x", "t"], ["v"]), helper.make_node("Exp", ["v"], ["e"]), helper.make_node("ReduceSum", ["e"], ["y"], keepdims=0)]
        model(self.folder / "found.onnx", nodes, [("x", F, [4, 64])], [("y", F, [])])
        for mode in ("default", "reduce-overhead"):
            self.compile("found", "--mode=" + mode, "-o", self.folder / "found.so")
            done = self.ptc("run", self.folder / "found.so", "-i", "x=ones", FILL=0)  # so that no element is found
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.lines("^out m.* 8 on")), 1)  # the size
            self.assertEqual(len(self.lines("^wait [1-9]")), 2)  # for it, and at the end
