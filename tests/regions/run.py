"""If, Loop and Scan in compiled libraries against onnxruntime; see README.md."""

import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [*(str(ROOT / "tests" / name) for name in ("", "ptx", "conformance")), str(ROOT / "runtime" / "python"), str(Path(__file__).resolve().parent)]
import cases  # noqa: E402
import devices  # noqa: E402
import ptc  # noqa: E402
import unittests  # noqa: E402



class RegionsTest(unittest.TestCase):
    """One test a row of cases.py."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "m.onnx"
        self.rng = np.random.default_rng(zlib.crc32(self.id().encode()))

    def compile(self, text):
        model = onnx.parser.parse_model(cases.HEADER + text)
        onnx.save(model, self.path)
        command = [self.program, "compile", self.path, "-o", self.path.with_suffix(".so"), "-q", *self.flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return model, ptc.load(self.path.with_suffix(".so"), threads=2)

    def check(self, text, feeds):
        model, library = self.compile(text)
        onnx.checker.check_model(model)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        for draw in feeds:
            inputs = draw(self.rng)
            found = library(**inputs)
            for output, expected in zip(session.get_outputs(), session.run(None, inputs)):
                with self.subTest(output=output.name, shapes={k: v.shape for k, v in inputs.items()}):
                    self.assertEqual(found[output.name].dtype, expected.dtype)
                    self.assertEqual(found[output.name].shape, expected.shape)
                    tolerance = 2e-3 if expected.dtype == np.float16 else 1e-5
                    np.testing.assert_allclose(found[output.name], expected, rtol=tolerance, atol=tolerance)

    def check_impossible(self, text, draw, draw_impossible, sentence):
        _, library = self.compile(text)
        library(**draw(self.rng))
        with self.assertRaisesRegex(Exception, sentence):
            library(**draw_impossible(self.rng))
        library(**draw(self.rng))


def add(name, method, row):
    setattr(RegionsTest, "test_" + "".join(c if c.isalnum() else "_" for c in name),
            lambda self: getattr(self, method)(*row))


for title, values in cases.CASES.items():
    add(title, "check", values)
for title, values in cases.IMPOSSIBLE.items():
    add(title, "check_impossible", values)


if __name__ == "__main__":
    sys.exit(unittests.run_class(RegionsTest, __doc__, devices))
