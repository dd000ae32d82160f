"""The model that tests tune, and what each of them starts from."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "python")]
import ptc  # noqa: E402

RNG = np.random.default_rng(3)

NET = """net (float[n, 32, 20, 18] x) => (float[n, 40] y) {
  c = Conv<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(x, w3)
  r = Relu(c)
  p = Conv<kernel_shape=[1, 1], strides=[2, 2]>(r, w1)
  s = ReduceMean<axes=[2, 3], keepdims=0>(p)
  y = Gemm(s, w, b)
}"""


def parse(text, **weights):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def net():
    return parse(NET, w3=normal(48, 32, 3, 3) / 10, w1=normal(64, 48, 1, 1) / 7, w=normal(64, 40) / 8, b=normal(40))


class Case(unittest.TestCase):
    program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ptc-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.save("net", net())
        for name in "ab":
            (self.folder / name).mkdir()

    def save(self, name, model):
        onnx.save(model, self.folder / f"{name}.onnx")
        return f"{name}.onnx"

    def run_ptc(self, *arguments, code=0):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def tune(self, *arguments, output="net.tune.json"):
        text = self.run_ptc("tune", self.model, "--dim", "n=2", "--budget=1", "-o", output, *arguments)
        return json.loads((self.folder / output).read_text()), text

    def compile(self, output, *arguments):
        self.run_ptc("compile", self.model, "--dim", "n=2", "-o", output, *arguments)
        return (self.folder / output).read_bytes()

    def kernels(self, output):
        return json.loads((self.folder / output).with_suffix(".json").read_text())["kernels"]

    def check(self, output):
        """The library against onnxruntime."""
        x = normal(2, 32, 20, 18)
        expected = onnxruntime.InferenceSession(str(self.folder / self.model), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        np.testing.assert_allclose(ptc.load(self.folder / output)(x=x)["y"], expected, rtol=1e-4, atol=1e-4)
