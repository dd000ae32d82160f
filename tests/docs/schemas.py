"""What ptc writes as JSON is what its schemas say: the manifest, and what verbs print.

Each schema is strict (no key that it does not name) and complete (every key is described), so that a key that is added to
ptc has to be added here, and one that a page explains exists. Manifests are those of every model in tests/ that compiles, in
several forms of the library.
"""
import json
import subprocess
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMAS = {"manifest": ROOT / "compiler/artifact/manifest.schema.json",
           **{path.name.split(".")[0]: path for path in sorted((ROOT / "cli/docs/schemas").glob("*.schema.json"))}}

# Flags that change what a manifest says.
VARIANTS = [["mlp.onnx"], ["mlp.onnx", "-O0"], ["mlp.onnx", "-O3", "--fp=strict"], ["mlp.onnx", "--dim", "batch=1..64:8"],
            ["mlp.onnx", "--dim", "batch=2"], ["mlp.onnx", "--cpu=x86-64-v2"], ["mlp.onnx", "--threads=none"],
            ["mlp.onnx", "-o", "mlp.a"], ["mlp.onnx", "--emit=json", "-o", "alone.json"], ["mlp.onnx", "--emit=o,json"],
            ["wide.onnx", "--weights=file"], ["wide.onnx", "--weights=none"],
            ["cumulate.onnx", "--alias", "state=stateN"], ["axpy.onnx"]]

# Element types in and out of a model.
DTYPES = ["float", "double", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
          "uint64", "bool", "float8e4m3fn", "float8e5m2", "int4", "uint4"]

COMMANDS = {"stats": [["compile", "mlp.onnx", "-q", "--stats=-"], ["compile", "mlp.onnx", "-q", "--emit=mlir:loop", "-o", "x.mlir", "--stats=-"]],
            "bench": [["bench", "mlp.so", "--json", "--min-time=0.01", "--dim", "batch=1,2", "--per-kernel"],
                      ["bench", "mlp.so", "--json", "--min-time=0.01", "--ab", "mlp.so", "--percentile=50,99.9"],
                      ["bench", "mlp.so", "--json", "--ab", "mlp.so", "--tolerance=900", "--dim", "batch=64"]],
            "check": [["check", "mlp.onnx", "--json"], ["check", "unknown.onnx", "--json"], ["check", "missing.onnx", "--json"],
                      ["check", "mlp.onnx", "--shape=x=2x3", "--json"]],
            "quantize": [["quantize", "mlp.onnx", "-i", "random:0", "--report=-", "-o", "q.onnx"],
                         ["quantize", "mlp.onnx", "-i", "random:0", "--report=-", "--no-report", "--keep=fc1", "-o", "q.onnx"]],
            "tuning": [["tune", "mlp.onnx", "--budget=1", "-o", "-"]],
            "ops": [["ops", "--json"], ["ops", "Conv", "--json"]], "targets": [["targets", "--json"]], "doctor": [["doctor", "--json"]], "version": [["version", "--json"]], "licenses": [["version", "--licenses", "--json"]],
            "diagnostics": [["check", "unknown.onnx", "--diag=json"], ["check", "missing.onnx", "--diag=json"],
                            ["check", "mlp.onnx", "--dim", "batch=0..a", "--diag=json"], ["check", "mlp.onnx", "--diag=json"],
                            ["compile", "mlp.onnx", "-q", "--remarks", "--diag=json"]]}


def incomplete(name, schema):
    """Objects that admit unnamed keys, and keys without a description."""
    def walk(place, node):
        if isinstance(node, dict):
            if "properties" in node:
                if node.get("additionalProperties") is not False:
                    yield f"{name}: {place}: additionalProperties is not false"
                for key, field in {**node["properties"], **node.get("patternProperties", {})}.items():
                    if not field.get("description"):
                        yield f"{name}: {place}.{key} has no description"
            for key, child in node.items():
                yield from walk(f"{place}.{key}", child)
        elif isinstance(node, list):
            for child in node:
                yield from walk(place, child)
    return list(walk("", schema))


def wrong(validator, text, what):
    try:
        value = json.loads(text)
    except ValueError as error:
        return [f"{what}: not JSON: {error}: {text[:200]!r}"]
    return [f"{what}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator.iter_errors(value)]


def models(folder):
    """A small model for each element type, and the text models of other tests."""
    for dtype in DTYPES:
        (folder / f"type-{dtype}.onnx").write_text(
            f'<ir_version: 11, opset_import: ["" : 23]>\ntypes ({dtype}[n, 3] x) => ({dtype}[3, n] y) {{ y = Transpose (x) }}\n')
        yield folder / f"type-{dtype}.onnx"
    yield from sorted(ROOT.glob("tests/**/*.onnxtxt"))


def check(folder, build):
    """All problems, and how many documents were validated."""
    validators, problems, count = {}, [], 0
    for name, path in SCHEMAS.items():
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[name] = jsonschema.Draft202012Validator(schema)
        problems += incomplete(name, schema)

    def ptc(*arguments):
        return subprocess.run([build / "bin" / "ptc", *map(str, arguments)], cwd=folder, capture_output=True, text=True)

    for variant in VARIANTS:
        done = ptc("compile", *variant, "-q")
        manifests = list(folder.glob("*.json"))
        if done.returncode or len(manifests) != 1:
            problems.append(f"ptc compile {' '.join(variant)}: {done.stderr or manifests}")
        for manifest in manifests:
            problems += wrong(validators["manifest"], manifest.read_text(), " ".join(variant))
            manifest.unlink()
            count += 1
    refused = 0
    for model in models(folder):
        done = ptc("compile", model, "-q", "-O1", "--cpu=x86-64-v2", "-o", "model.json", "--emit=json")
        if done.returncode:
            refused += 1
            continue
        problems += wrong(validators["manifest"], (folder / "model.json").read_text(), model.name)
        count += 1
    for name, commands in COMMANDS.items():
        for command in commands:
            done = ptc(*command)
            problems += wrong(validators[name], done.stderr if "--diag=json" in command else done.stdout, " ".join(command))
            count += 1
    if count < 40:
        problems.append(f"only {count} documents were validated; {refused} models were refused")
    return problems
