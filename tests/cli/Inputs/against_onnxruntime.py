"""against_onnxruntime.py PTC MODEL.onnxtxt: compiles the model, runs both on the same inputs, prints how far they are apart."""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime

ptc, path = sys.argv[1:]
model = onnx.parser.parse_model(Path(path).read_text())
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    onnx.save(model, folder / "m.onnx")
    subprocess.run([ptc, "compile", folder / "m.onnx", "-o", folder / "m.so"], check=True)
    rng = np.random.default_rng(1)
    feeds = {v.name: rng.standard_normal([d.dim_value or 3 for d in v.type.tensor_type.shape.dim]).astype(np.float32)
             for v in model.graph.input}
    np.savez(folder / "in.npz", **feeds)
    subprocess.run([ptc, "run", "-q", folder / "m.so", "-i", f"@{folder}/in.npz", "-o", f"@{folder}/out.npz"], check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = np.load(folder / "out.npz")
    for value, expected in zip(model.graph.output, session.run(None, feeds)):
        np.testing.assert_allclose(got[value.name], expected, rtol=1e-5, atol=1e-6)
print("equal")
