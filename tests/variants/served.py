"""What the tests here share: models whose runs say which variant served them, and compiles that are refused."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import models
import ptc
from models import RNG, Compiled, parse

MIX = """m (float[b, s, 8] x, float[b, s] mask) => (float[b, s, 4] y, float[b, s2] z)
<float[8, 4] w, int64[1] two = {2}, int64[2] flat = {0, -1}> {
  p = MatMul(x, w)
  wide = Unsqueeze(mask, two)
  y = Mul(p, wide)
  soft = Softmax<axis=1>(mask)
  twice = Concat<axis=1>(soft, mask)
  rest = Reshape(p, flat)
  z = Concat<axis=1>(twice, rest)
}"""


def with_weight(text, name, array, opset=17):
    model = parse(text, opset)
    kept = [tensor for tensor in model.graph.initializer if tensor.name != name]
    del model.graph.initializer[:]
    model.graph.initializer.extend([*kept, numpy_helper.from_array(array, name)])
    for value in list(model.graph.input):
        if value.name == name:
            model.graph.input.remove(value)
    return model


def mix():
    return with_weight(MIX.replace("float[8, 4] w, ", ""), "w", RNG.standard_normal((8, 4)).astype(np.float32))


def inputs(b, s):
    return {"x": RNG.standard_normal((b, s, 8)).astype(np.float32), "mask": RNG.standard_normal((b, s)).astype(np.float32)}


class Served(Compiled):
    """Also says which variant served the last call."""

    def __init__(self, model, *flags):
        super().__init__(model, *flags)
        self.ptc = ptc.load(self.library, threads=2, profile=4096)
        self.manifest = json.loads(self.library.with_suffix(".json").read_text())

    def variant(self):
        return [span.kernel for span in self.ptc.take_spans() if span.kind == "run"][-1]

    def bytes(self):
        return self.library.stat().st_size

    def kernels(self, variant=None):
        return [kernel["name"] for kernel in self.manifest["kernels"] if kernel.get("variant") == variant]


class Refuses:
    """For test cases: flags with which a compile ends as a usage error and leaves nothing behind."""

    MODEL = "m (float[b, s, 3] x) => (float[b, s, 3] y) { y = Relu(x) }"

    def refuse(self, said, *flags, model=MODEL):
        with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
            path = Path(folder) / "m.onnx"
            onnx.save(parse(model) if isinstance(model, str) else model, path)
            done = subprocess.run([models.PTC, "compile", path, "-o", Path(folder) / "m.so", *flags], text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, said)
            self.assertEqual([found.name for found in Path(folder).iterdir()], ["m.onnx"])
