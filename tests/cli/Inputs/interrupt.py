"""interrupt.py PTC: compiles a model large enough to be caught at work, and interrupts it once files have been begun."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    # Weights of 128 MB in a sparse file: writing them takes a while, and begins when all else is done.
    side = 4096
    weights = folder / "w.bin"
    with weights.open("wb") as file:
        file.truncate(2 * side * side * 4)
    initializers = []
    for i in range(2):
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[side, side],
                             data_location=TensorProto.EXTERNAL)
        for key, value in {"location": "w.bin", "offset": i * side * side * 4, "length": side * side * 4}.items():
            tensor.external_data.add(key=key, value=str(value))
        initializers.append(tensor)
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h"]), helper.make_node("MatMul", ["h", "w1"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [1, side])],
                              [helper.make_tensor_value_info("y", 1, [1, side])], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    out = folder / "out"
    out.mkdir()
    (out / "m.so").write_text("old")
    process = subprocess.Popen([sys.argv[1], "compile", folder / "m.onnx", "-o", out / "m.so"], stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(f.startswith(".m.so") for f in os.listdir(out)):
        time.sleep(0.001)  # for the event, not for a time
    process.send_signal(signal.SIGINT)
    process.wait()
    print("interrupted" if process.returncode == -signal.SIGINT else f"ended with {process.returncode}", end=", ")
    print("nothing left" if os.listdir(out) == ["m.so"] else f"left {os.listdir(out)}", end=", ")
    print("the old file kept" if (out / "m.so").read_text() == "old" else "the old file changed")
