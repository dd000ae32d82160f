"""few_bits.py MODEL [ROWS]: writes a model of one product of a row, or more, with a weight of 4 bits."""

import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

K, N, BLOCK = 512, 256 * 4, 32
M = int(sys.argv[2]) if len(sys.argv) > 2 else 1
value = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
rng = np.random.default_rng(0)
weights = [numpy_helper.from_array(rng.integers(0, 256, (N, K // BLOCK, BLOCK // 2), dtype=np.uint8), "w"),
           numpy_helper.from_array(rng.random(N * K // BLOCK, dtype=np.float32), "s")]
node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=K, N=N, bits=4, block_size=BLOCK)
graph = helper.make_graph([node], "g", [value("x", [M, K])], [value("y", [M, N])], weights)
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), sys.argv[1])
