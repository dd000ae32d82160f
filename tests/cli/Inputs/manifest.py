"""manifest.py FILE.json: checks the manifest of wide.onnx."""
import json
import sys
from pathlib import Path

path = Path(sys.argv[1])
text = path.read_text()
manifest = json.loads(text)
canonical = lambda value: list(value) == sorted(value) if isinstance(value, dict) else True
for value in [manifest, *manifest["kernels"], *manifest["functions"]]:
    assert canonical(value), "keys are sorted"

assert manifest["abi"] == 1 and manifest["name"] == "net" and manifest["compiler"].startswith("ptc ")
levels = ["x86-64-v3", "x86-64-v3-zen", "x86-64-v4"]  # one row, or a few, may meet a weight of 2 MB
assert manifest["target"] == "cpu" and manifest["levels"] == levels
assert any(flag.endswith("=1") for flag in manifest["flags"]) and "--dim=batch=1..16:4" in manifest["flags"]
assert not any("aside" in flag or "-o" == flag for flag in manifest["flags"]), "files are no property of the code"
assert manifest["file_bytes"] == path.with_suffix(".so").stat().st_size
assert len(manifest["build_id"]) == 40 and len(manifest["model_digest"]) == 64
assert bytes.fromhex(manifest["build_id"]) in path.with_suffix(".so").read_bytes()

(function,) = manifest["functions"]
(symbol,) = function["symbols"]
assert symbol == {"name": "batch", "min": 1, "max": 16, "divisor": 1, "hint": 4}
(given,), (result,) = function["inputs"], function["outputs"]
assert given["shape"] == ["batch", 512] and result["shape"] == ["batch", 1024] and result["dtype"] == "float32"

(kernel,) = manifest["kernels"]
assert kernel["kind"] == "contraction" and kernel["nodes"] == ["fc"] and kernel["launches"] == 1
assert kernel["flops"] == {"at_hint": 4 * 2 * 512 * 1024, "expression": "1048576*batch"}, kernel["flops"]
assert kernel["bytes_written"]["at_hint"] == 4 * 4 * 1024
assert kernel["argument_bytes"] == {"at_hint": 4 * 4 * (512 + 1024), "expression": "6144*batch"}, kernel["argument_bytes"]
assert list(kernel["code_bytes"]) == levels and min(kernel["code_bytes"].values()) > 0

(memory,) = manifest["memory"]
assert memory["peak"]["at_hint"] >= memory["lower_bound"]["at_hint"]
weights = manifest["weights"]
assert weights["place"] == "file" and weights["file"] == "wide.weights" and weights["bytes"] == 512 * 1024 * 4
assert path.with_name("wide.weights").stat().st_size == 4096 + weights["bytes"]
assert bytes.fromhex(weights["digest"]) in path.with_name("wide.weights").read_bytes()[:4096]
