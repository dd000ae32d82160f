"""Models in ONNX's text form, compiled by ptc and run beside onnxruntime."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import ptc

PTC = None  # set by run.py
RNG = np.random.default_rng(1)


def parse(text, opset=17):
    """`name (inputs) => (outputs) { nodes }` as a model."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]>\n{text}')
    return model


class Compiled:
    """A model and its library, which goes when the object does."""

    def __init__(self, model, *flags):
        self.folder = tempfile.TemporaryDirectory(prefix="ptc-")
        self.path = Path(self.folder.name)
        self.model = parse(model) if isinstance(model, str) else model
        onnx.save(self.model, self.path / "m.onnx")
        self.library = self.path / "m.so"
        ptc._program.program = lambda: str(PTC)
        ptc.compile(self.path / "m.onnx", *flags, output=self.library)
        self.ptc = ptc.load(self.library, threads=2)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.reference = onnxruntime.InferenceSession(self.model.SerializeToString(), options, ["CPUExecutionProvider"])

    def __call__(self, **inputs):
        return self.ptc(**inputs)

    def check(self, test, **inputs):
        """The outputs, after a comparison with onnxruntime's: shapes and types equal, floats within 1e-5."""
        got, expected = self(**inputs), self.reference.run(None, inputs)
        for (name, mine), theirs in zip(got.items(), expected):
            where = f"{name} for inputs of {({k: v.shape for k, v in inputs.items()})}"
            test.assertEqual(mine.shape, theirs.shape, where)
            test.assertEqual(mine.dtype, theirs.dtype, where)
            if mine.dtype.kind == "f":
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5, err_msg=where)
            else:
                np.testing.assert_array_equal(mine, theirs, err_msg=where)
        return got


def sparse(*shape, share=0.5):
    """Floats of which about `share` are not 0."""
    values = RNG.standard_normal(shape).astype(np.float32)
    return np.where(RNG.random(shape) < share, values, np.float32(0))
