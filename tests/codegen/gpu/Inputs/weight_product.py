"""Writes a model of a row times a weight."""

import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

weight = numpy_helper.from_array(np.ones((512, 256), np.float16), "w")
value = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT16, shape)
graph = helper.make_graph([helper.make_node("MatMul", ["a", "w"], ["y"])], "m", [value("a", (1, 512))], [value("y", (1, 256))], [weight])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
