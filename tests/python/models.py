"""Small models for these tests, compiled in a folder that lives as long as the test."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import onnx
import ptc
from onnx import TensorProto, helper, numpy_helper

PTC = None  # the command; run.py sets it


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=None, opset=21):
    initializers = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


class ModelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.count = 0

    def compile(self, proto, *flags, name=None):
        """The path of the library: another each time, since the loader knows a library by its path."""
        self.count += 1
        name = name or ("model" if self.count == 1 else f"model{self.count}")
        onnx.save(proto, self.folder / f"{name}.onnx")
        library = self.folder / f"{name}.so"
        command = [PTC, "compile", self.folder / f"{name}.onnx", "-o", library, *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return library

    def run_levels(self, library, threads=0, **inputs):
        """A level and its y, for each level of the library that this processor runs; threads: 0: one per processor."""
        results = []
        for level in ptc.load(library).levels:
            try:
                results.append((level, ptc.load(library, cpu_level=level, threads=threads)(**inputs)["y"]))
            except ptc.Error as error:
                self.assertIn("this processor lacks what CPU level", str(error))
        self.assertGreater(len(results), 0)
        return results
