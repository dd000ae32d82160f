"""ptc.backend under the test runner of the onnx package, as the ONNX scoreboard runs it; tests/conformance runs all tests."""

import functools
import unittest
import warnings

import models
import numpy as np
import onnx
from onnx import TensorProto, helper

import ptc
import ptc.backend

CHOSEN = ("test_add_bcast_cpu", "test_softmax_axis_1_cpu", "test_reshape_negative_dim_cpu", "test_Conv2d_padding_cpu", "test_dropout_default_mask_cpu",
          "test_cast_FLOAT_to_BFLOAT16_cpu", "test_single_relu_model_cpu", "test_range_int32_type_negative_delta_cpu", "test_reduce_prod_empty_set_cpu",
          "test_sequence_model8_cpu")


def compile_file(model, library, flags):
    ptc.backend.compile_file(model, library, flags, models.PTC)


class Tested(ptc.backend.Backend):
    """The backend with the program under test."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return super().prepare(model, device, compiler=compile_file, threads=1, **kwargs)


@functools.cache
def official():
    """Cases of onnx.backend.test, which take seconds to make."""
    import onnx.backend.test

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = onnx.backend.test.BackendTest(Tested, __name__)
    for name in CHOSEN:
        tests.include(f"^{name}$")
    return tests.test_suite


class BackendTest(unittest.TestCase):
    def test_onnx_runner(self):
        result = unittest.TestResult()
        official().run(result)
        self.assertEqual(result.failures + result.errors, [])
        ran = result.testsRun - len(result.skipped)
        self.assertEqual(ran, len(CHOSEN), "every chosen test exists and runs")

    def test_run_node(self):
        x = np.array([[3, -1], [0, 2]], np.int32)
        (y,) = Tested.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])
        np.testing.assert_array_equal(y, np.maximum(x, 0))

    def test_values_that_decide_shapes(self):
        value = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("Reshape", ["x", "s"], ["y"])], "g", [
            value("x", TensorProto.FLOAT, ["n", 6]), value("s", TensorProto.INT64, [2])], [value("y", TensorProto.FLOAT, None)])
        graph.output[0].type.tensor_type.shape.Clear()
        graph.output[0].type.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension() for _ in range(2)])
        prepared = Tested.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        for shape in ([3, 4], [-1, 2], [3, 4]):
            (y,) = prepared.run([x, np.array(shape, np.int64)])
            np.testing.assert_array_equal(y, x.reshape(shape))

    def test_refusals(self):
        unknown = helper.make_model(helper.make_graph([helper.make_node("Nothing", ["x"], ["y"], domain="nowhere")], "g", [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]),
            opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("nowhere", 1)], ir_version=10)
        with self.assertRaisesRegex(ptc.CompileError, "Nothing"):
            Tested.prepare(unknown)
        self.assertFalse(Tested.is_compatible(unknown))
        self.assertTrue(Tested.supports_device("CPU"))
        self.assertFalse(Tested.supports_device("CUDA"))
