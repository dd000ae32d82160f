"""3x3 convolutions by Winograd's algorithm beside direct ones and onnxruntime.

    build/venv/bin/python tests/perf/winograd.py [--threads 1,2] [--seconds 4] [FILE.onnx ...]

Without files: chains of four equal 3x3 convolutions with ReLU between two 1x1 ones, which keep inputs and outputs of the
model (channels first) away from them. Each chain or file is compiled with --fp=contract and with --fp=strict, which has
no Winograd, and all three take turns as in compare.py. `direct` and `ORT` are that time / the time with Winograd.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import compare
import flags

SHAPES = [(56, 64, 1, 1), (28, 128, 1, 1), (14, 256, 1, 1), (7, 512, 1, 1), (112, 64, 1, 1), (56, 256, 1, 1),  # side, channels, groups, dilation
          (28, 192, 3, 1), (14, 512, 8, 1), (14, 896, 8, 1), (28, 256, 8, 1), (28, 216, 9, 1), (28, 256, 16, 1),
          (28, 256, 1, 2), (28, 512, 1, 4), (64, 64, 1, 2), (65, 256, 1, 2), (32, 512, 1, 6), (100, 24, 1, 8)]


def chain(side, channels, groups, dilation, path):
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for layer, window in enumerate([1, 3, 3, 3, 3, 1]):
        taken = channels // groups if window == 3 else channels
        w = random.normal(0, (2 / (taken * window * window)) ** 0.5, (channels, taken, window, window))
        weights += [numpy_helper.from_array(w.astype(np.float32), f"w{layer}"),
                    numpy_helper.from_array(random.normal(0, 0.1, channels).astype(np.float32), f"b{layer}")]
        pads = [window // 2 * dilation] * 4
        nodes.append(helper.make_node("Conv", [last, f"w{layer}", f"b{layer}"], [f"c{layer}"], f"conv{layer}", pads=pads,
                                      dilations=[dilation] * 2, group=channels // taken))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"], f"relu{layer}"))
        last = f"r{layer}"
    shape = [1, channels, side, side]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    name = f"{side}x{side}x{channels}" + (f" in {groups} groups" if groups > 1 else "") + (f", {dilation} apart" if dilation > 1 else "")
    return compare.file_model(name, path, {})


def kinds(library):
    counts = {}
    for kernel in json.loads(library.with_suffix(".json").read_text())["kernels"]:
        counts[kernel["kind"]] = counts.get(kernel["kind"], 0) + kernel["launches"]
    return ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts) if "winograd" in kind) or "none"


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
        models = models or [chain(*shape, folder / ("x".join(map(str, shape)) + ".onnx")) for shape in SHAPES]
        print("| model | threads | ms | direct | ORT | noise | kernels | compile s (strict) |\n|---|---|---|---|---|---|---|---|")
        for number, model in enumerate(models):
            made = {rule: flags.compiled(program, model, folder / str(number) / rule, [f"--fp={rule}"]) for rule in ("contract", "strict")}
            libraries = {rule: library for rule, (library, _) in made.items()}
            for threads in map(int, arguments.threads.split(",")):
                samples = flags.measure(model, libraries, threads, arguments.seconds)
                direct, ort = (flags.ratio(samples, other, "contract") for other in ("strict", "ort"))
                print(f"| {model.name} | {threads} | {statistics.median(samples['contract']):.2f} | {direct:.2f} | {ort:.2f} "
                      f"| {flags.noise(samples):.2f} | {kinds(libraries['contract'])} "
                      f"| {made['contract'][1].seconds:.1f} ({made['strict'][1].seconds:.1f}) |", flush=True)


if __name__ == "__main__":
    main()
