"""Writes models with external data: python external.py FOLDER.

    net.onnx       x [4] -> y = x + small, small in net.weights beside it (16 bytes, read when it is imported)
    negative.onnx  the same with an offset of "-4"; word.onnx: "abc"
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def save(name, offset):
    small = numpy_helper.from_array(np.arange(4, dtype=np.float32), "small")
    small.ClearField("raw_data")
    small.data_location = TensorProto.EXTERNAL
    for key, value in [("location", "net.weights"), ("offset", offset), ("length", "16")]:
        small.external_data.add(key=key, value=value)
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "small"], ["y"], name="add")], name, values[:1], values[1:],
                              [small])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


(folder / "net.weights").write_bytes(np.arange(4, dtype=np.float32).tobytes())
save("net", "0")
save("negative", "-4")
save("word", "abc")
