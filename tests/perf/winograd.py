"""3x3 convolutions by Winograd's algorithm beside direct ones and onnxruntime.

    build/venv/bin/python tests/perf/winograd.py [--threads 1,2] [--seconds 4] [FILE.onnx ...]

Without files: chains of four equal 3x3 convolutions with ReLU between two 1x1 ones, which keep inputs and outputs of the
model (channels first) away from them. Each chain or file is compiled with --fp=contract and with --fp=strict, which has
no Winograd, and all three take turns as in compare.py. `direct` and `ORT` are that time / the time with Winograd.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path[:0] = [str(Path(__file__).resolve().parent)]
import compare  # noqa: E402

SHAPES = [(56, 64), (28, 128), (14, 256), (7, 512), (112, 64), (56, 256)]  # side, channels


def chain(side, channels, path):
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for layer, window in enumerate([1, 3, 3, 3, 3, 1]):
        w = random.normal(0, (2 / (channels * window * window)) ** 0.5, (channels, channels, window, window))
        weights += [numpy_helper.from_array(w.astype(np.float32), f"w{layer}"),
                    numpy_helper.from_array(random.normal(0, 0.1, channels).astype(np.float32), f"b{layer}")]
        pads = [window // 2] * 4
        nodes.append(helper.make_node("Conv", [last, f"w{layer}", f"b{layer}"], [f"c{layer}"], f"conv{layer}", pads=pads))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"], f"relu{layer}"))
        last = f"r{layer}"
    shape = [1, channels, side, side]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return compare.file_model(f"{side}x{side}x{channels}", path, {})


def kinds(library):
    counts = {}
    for kernel in json.loads(library.with_suffix(".json").read_text())["kernels"]:
        counts[kernel["kind"]] = counts.get(kernel["kind"], 0) + kernel["launches"]
    return ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts) if "winograd" in kind) or "none"


def compiled(program, model, folder, rule):
    library = Path(folder) / rule / "model.so"
    library.parent.mkdir(parents=True)
    flagged = compare.Model(model.name, model.path, [*model.flags, f"--fp={rule}"], model.inputs)
    return library, compare.compile_model(program, flagged, library)


def measure(model, libraries, threads, seconds):
    subjects = {rule: compare.ptc.load(library, threads=threads).prepare(**model.inputs)
                for rule, library in libraries.items()}
    subjects["ort"] = compare.run_of_onnxruntime(model, threads)
    subjects["again"] = subjects["ort"]
    samples = {name: [] for name in subjects}
    for run in subjects.values():
        compare.slice_of(run)
    end, turn = time.monotonic() + seconds, 0
    while turn < 5 or time.monotonic() < end:
        for name in list(subjects)[:: -1 if turn % 2 else 1]:
            samples[name].append(compare.slice_of(subjects[name]))
        turn += 1
    ratio = lambda a, b: compare.statistics.median(x / y for x, y in zip(samples[a], samples[b]))
    return (compare.statistics.median(samples["contract"]) * 1e3, ratio("strict", "contract"), ratio("ort", "contract"),
            abs(ratio("ort", "again") - 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--build", type=Path, default=compare.ROOT / "build")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    program = arguments.build / "bin" / "ptc"
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        folder = Path(folder)
        models = [compare.file_model("file", path, {}) for path in arguments.files]
        models = models or [chain(side, channels, folder / f"{side}x{channels}.onnx") for side, channels in SHAPES]
        print("| model | threads | ms | direct | ORT | noise | kernels | compile s (strict) |\n|---|---|---|---|---|---|---|---|")
        for number, model in enumerate(models):
            made = {rule: compiled(program, model, folder / str(number), rule) for rule in ("contract", "strict")}
            libraries = {rule: library for rule, (library, _) in made.items()}
            for threads in map(int, arguments.threads.split(",")):
                ms, direct, ort, noise = measure(model, libraries, threads, arguments.seconds)
                print(f"| {model.name} | {threads} | {ms:.2f} | {direct:.2f} | {ort:.2f} | {noise:.2f} | {kinds(libraries['contract'])} "
                      f"| {made['contract'][1].seconds:.1f} ({made['strict'][1].seconds:.1f}) |", flush=True)


if __name__ == "__main__":
    main()
