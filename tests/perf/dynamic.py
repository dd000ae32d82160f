"""A library with free dims beside libraries compiled for one size each: what being general costs.

    build/venv/bin/python tests/perf/dynamic.py bert          BERT-base (an export of models/models.toml), batch and sequence free
    build/venv/bin/python tests/perf/dynamic.py FILE.onnx --dim batch=1..8:1 --dim seq=1..512:128 --at batch=1,seq=32 --at batch=4,seq=64

The model is compiled once with the ranges given, and once more for every size asked for, pinned. Both run in one process
and take turns as in compare.py; the pinned library runs a second time in each turn and is compared with itself, which tells
what a ratio is worth at the time. The hint is always the first size.

`ratio` is the general library's time / the pinned one's: 1.10 is 10 % slower. Bars: 1.10 at the hint, 1.25 elsewhere.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "runtime" / "python"), str(Path(__file__).parent)]
import ptc  # noqa: E402
import sources  # noqa: E402
from results import NOISY  # noqa: E402
from turns import slice_of  # noqa: E402

AT_HINT, ELSEWHERE = 1.10, 1.25  # the bars


@dataclass
class Preset:
    export: str
    dims: list
    sizes: list


TEXT = Preset("", ["batch=1..8:1", "seq=1..512:128"],
              ["batch=1,seq=32", "batch=1,seq=384", "batch=4,seq=64", "batch=8,seq=128", "batch=3,seq=77", "batch=1,seq=7"])
PRESETS = {
    "bert": Preset("bert_base", TEXT.dims, TEXT.sizes),
    "minilm": Preset("minilm_l6", TEXT.dims, TEXT.sizes),
    "vit": Preset("vit_b_16", ["batch=1..8:1"], ["batch=2", "batch=4", "batch=7"]),
}


def sizes_of(text):
    return {name: int(size) for name, size in (part.split("=") for part in text.split(","))}


def hints_of(dims):
    """`batch=1..8:1` is the size 1 of batch."""
    return {name: int(text.rsplit(":", 1)[-1].split("..")[0]) for name, text in (dim.split("=") for dim in dims)}


def inputs_of(path, sizes):
    """Random floats, or ones: valid as tokens, masks and positions alike."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in weights:
            continue
        kind = value.type.tensor_type
        shape = [dim.dim_value or sizes[dim.dim_param] for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        isFloat = np.issubdtype(dtype, np.floating)
        inputs[value.name] = np.random.default_rng(0).normal(0, 1, shape).astype(dtype) if isFloat else np.ones(shape, dtype)
    return inputs


def compile_model(program, path, flags, library):
    library.parent.mkdir()
    command = [program, "compile", path, "-o", library, "-q", "--cpu=native", *flags]
    subprocess.run([str(word) for word in command], check=True)
    return library


def compare(general, pinned, inputs, threads, seconds):
    """Medians over the turns: the general library's time over the pinned one's, milliseconds of both, and the noise."""
    subjects = {name: ptc.load(library, threads=threads).prepare(**inputs)
                for name, library in (("general", general), ("pinned", pinned))}
    subjects["again"] = subjects["pinned"]
    samples = {name: [] for name in subjects}
    for run in subjects.values():
        slice_of(run)
    end = time.monotonic() + seconds
    turn = 0
    while turn < 7 or time.monotonic() < end:
        for name in list(subjects)[:: -1 if turn % 2 else 1]:
            samples[name].append(slice_of(subjects[name]))
        turn += 1
    ratio = lambda a, b: statistics.median(x / y for x, y in zip(samples[a], samples[b]))
    times = {name: min(values) * 1e3 for name, values in samples.items()}
    return ratio("general", "pinned"), times, abs(ratio("again", "pinned") - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help=f"{', '.join(PRESETS)}, or a file")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--exporter", default="dynamo", help="of the export: dynamo or script")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=MIN..MAX:HINT")
    parser.add_argument("--at", action="append", default=[], metavar="NAME=N,...", help="a size to measure at, besides the hint")
    parser.add_argument("--flag", action="append", default=[], help="a flag for the general library alone: --flag=--bucket=seq=32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6, help="of measuring a size")
    arguments = parser.parse_args()
    preset = PRESETS.get(arguments.model)
    path = Path(arguments.model)
    if preset:
        rows = [row for row in sources.rows(True)
                if row.get("export") == preset.export and row.get("exporter") == arguments.exporter]
        path = sources.fetch(rows[0], arguments.build)
    dims = arguments.dim or preset.dims
    points = [hints_of(dims), *map(sizes_of, arguments.at or preset.sizes)]
    failed = 0
    print(f"| {path.stem} | general ms | pinned ms | ratio |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        program = arguments.build / "bin" / "ptc"
        flags = [f"--dim={dim}" for dim in dims] + arguments.flag
        general = compile_model(program, path, flags, Path(folder) / "general" / "model.so")
        for number, sizes in enumerate(points):
            pins = [f"--dim={name}={size}" for name, size in sizes.items()]
            pinned = compile_model(program, path, pins, Path(folder) / str(number) / "model.so")
            ratio, times, noise = compare(general, pinned, inputs_of(path, sizes), arguments.threads, arguments.seconds)
            pinned.unlink()
            bar = ELSEWHERE if number else AT_HINT
            failed += ratio > bar
            words = " ".join(f"{name}={size}" for name, size in sizes.items())
            print(f"| {words}{'' if number else ' (hint)'} | {times['general']:.2f} | {times['pinned']:.2f} "
                  f"| {ratio:.2f}{' above ' + str(bar) if ratio > bar else ''}{' (noisy)' if noise > NOISY else ''} |", flush=True)
    print(f"\n{'all sizes' if not failed else f'all but {failed} sizes'} within their bars, {arguments.threads} thread(s)")


if __name__ == "__main__":
    main()
