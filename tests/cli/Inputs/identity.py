"""identity.py write FOLDER: TYPE.onnx (y = transposed x) and TYPE.npy for each type; check FOLDER: TYPE.out.npy is
right. TYPE.fortran.npy is the same array transposed in memory, TYPE.big.npy with bytes from the first to the last."""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
folder = Path(sys.argv[2])


def example(name):
    x = np.arange(6).reshape(2, 3)
    return (x % 2 == 0) if name == "bool" else (x + 0.5 if "float" in name else x * 7).astype(name)


def write():
    folder.mkdir(parents=True)
    for name in TYPES:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(name))
        graph = helper.make_graph([helper.make_node("Transpose", ["x"], ["y"], name="t", perm=[1, 0])], name,
                                  [helper.make_tensor_value_info("x", kind, [2, 3])],
                                  [helper.make_tensor_value_info("y", kind, [3, 2])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  folder / f"{name}.onnx")
        np.save(folder / f"{name}.npy", example(name))
        np.save(folder / f"{name}.fortran.npy", np.asfortranarray(example(name)))
        np.save(folder / f"{name}.big.npy", example(name).astype(np.dtype(name).newbyteorder(">")))
    (folder / "cut.npy").write_bytes((folder / "float32.npy").read_bytes()[:-8])


def check():
    for name in TYPES:
        for file in (f"{name}.out.npy", f"{name}.fortran.out.npy", f"{name}.big.out.npy"):
            np.testing.assert_array_equal(np.load(folder / file), example(name).T, err_msg=file, strict=True)


{"write": write, "check": check}[sys.argv[1]]()
