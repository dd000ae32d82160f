"""ptc's libraries beside onnxruntime, OpenVINO and torch.compile: speed, compile time, memory and size of code.

    build/venv/bin/python tests/perf/compare.py [--models]                   all models (exports too), as a Markdown table
    build/venv/bin/python tests/perf/compare.py --filter 'real|light_res'    some
    build/venv/bin/python tests/perf/compare.py --folder DIR --dim batch=1   every .onnx of a folder besides

    build/venv-torch/bin/python tests/perf/compare.py --models --threads 1 --samples rows.jsonl --report tests/perf/results.md

The environment of `.ci/setup.sh --models` has all peers, build/venv onnxruntime alone (peers.py). `--samples` adds each row to a
file and takes those that are there as measured, so that a run of hours may be cut off and taken up again; `--report` writes the
table of all rows of that file, and its summary into README.md.

Method. The machine may be shared, and its clock drifts: a time means something only beside another of the same second. So
all run in one process, pinned to as many cores as threads, and take turns in slices of some 20 ms (the order reverses every
other time). A slice tells its fastest run, a turn gives one ratio, and the median of the turns' ratios is told; `bound` is
what that median exceeds with 97.5 % (by order statistics). onnxruntime runs a second time in each turn and is compared with
itself: `noise` is how far the median of those ratios is from 1. A row with more than 2 % is measured up to twice again.

`ratio` is the time of the better of onnxruntime and OpenVINO / ptc's: above 1, ptc is faster. A model is won if its bound is.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test import loader

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "runtime" / "python")]
import peers  # noqa: E402
import ptc  # noqa: E402
import results  # noqa: E402
import sources  # noqa: E402

SLICE = 0.02  # seconds
ATTEMPTS = 3  # at a row that is noisy
CORES = os.sched_getaffinity(0)


@dataclass
class Model:
    name: str
    path: Path
    flags: list
    inputs: dict
    export: str = ""  # what models/export.py calls it


@dataclass
class Compiled:
    seconds: float
    megabytes: float  # most anonymous memory
    code: int  # bytes of the largest level


# Models


def rows_of_models(build, exported, pattern):
    """The first row of each model of models.toml: later ones vary flags or the exporter. Only what the pattern finds is exported."""
    seen = set()
    for row in sources.rows(exported):
        file = row.get("file") or row["export"]
        if file not in seen and row["state"] == "passes":
            seen.add(file)
            name = f"{'torch' if 'export' in row else 'real'}/{row['name']}"
            if not re.search(pattern, name):
                continue
            inputs = {key: sources.make_input(spec) for key, spec in row["run"][0].items()}
            yield Model(name, sources.fetch(row, build), row.get("flags", []), inputs, row.get("export", ""))


def _input(value, dims):
    """Random floats, or ones: valid as tokens, masks and positions alike."""
    kind = value.type.tensor_type
    shape = [dim.dim_value or dims.get(dim.dim_param, 1) for dim in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if np.issubdtype(dtype, np.floating):
        return np.random.default_rng(0).normal(0, 1, shape).astype(dtype)
    return np.ones(shape, dtype)


def file_model(kind, path, dims):
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    values = [value for value in graph.input if value.name not in weights]
    inputs = {value.name: _input(value, dims) for value in values}
    flags = [f"--shape={value.name}={'x'.join(map(str, inputs[value.name].shape))}" for value in values
             if not all(dim.dim_value for dim in value.type.tensor_type.shape.dim)]
    return Model(f"{kind}/{path.stem}", path, flags, inputs)


def all_models(build, exported, folders, dims, pattern):
    """The models whose names the pattern finds, one by one."""
    yield from rows_of_models(build, exported, pattern)
    files = [("light", path, {}) for path in sorted((Path(loader.DATA_DIR) / "light").glob("light_*.onnx"))]
    files += [(Path(folder).name, path, dims) for folder in folders for path in sorted(Path(folder).glob("*.onnx"))]
    yield from (file_model(*file) for file in files if re.search(pattern, f"{file[0]}/{file[1].stem}"))


# Compiling


def _anonymous(pid):
    """Megabytes of a process's anonymous memory."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+)", text)
    return int(found[1]) / 1024 if found else 0


def compile_model(program, model, library):
    command = [program, "compile", model.path, "-o", library, "-q", "-j2", *model.flags]
    started = time.monotonic()
    running = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    most = 0
    while running.poll() is None:
        most = max(most, _anonymous(running.pid))
        time.sleep(0.005)
    seconds = time.monotonic() - started
    if running.returncode:
        raise RuntimeError(f"{model.name}: ptc exits with {running.returncode}: {running.stderr.read()[-500:]}")
    return Compiled(seconds, most, code_of(library))


def code_of(library):
    """Bytes of code of the largest CPU level."""
    sizes = {}
    for kernel in json.loads(library.with_suffix(".json").read_text())["kernels"]:
        for level, size in kernel["code_bytes"].items():
            sizes[level] = sizes.get(level, 0) + size
    return max(sizes.values(), default=0)


# Running


def slice_of(run):
    """The fastest run of a slice; the first one warms the caches and counts only if it is alone in filling the slice."""
    started = time.perf_counter()
    best = math.inf
    count = 0
    while True:
        before = time.perf_counter()
        run()
        after = time.perf_counter()
        count += 1
        if count > 1 or after - started > 10 * SLICE:
            best = min(best, after - before)
        if after - started >= SLICE and best < math.inf:
            return best


def make_runs(model, library, threads, wanted):
    """What takes turns, by name; peers that cannot run the model are told and left out."""
    runs = {"ptc": ptc.load(library, threads=threads).prepare(**model.inputs)}
    for peer in wanted:
        if peer == "inductor" and not model.export:
            continue  # there is no module to compile
        try:
            runs[peer] = peers.RUNS[peer](model, threads)
            runs[peer]()
        except Exception as error:  # of any kind: it is another library's
            runs.pop(peer, None)
            print(f"{model.name}: {peer} fails: {' '.join(str(error).split())[:200]}", file=sys.stderr)
    return runs


def compare(model, library, threads, seconds, wanted):
    """Times of each, slice by slice, in milliseconds; "again" are those of onnxruntime once more."""
    os.sched_setaffinity(0, sorted(CORES)[-threads:])
    runs = make_runs(model, library, threads, wanted)
    if "onnxruntime" in runs:
        runs["again"] = runs["onnxruntime"]
    for attempt in range(ATTEMPTS):
        samples = {name: [] for name in runs}
        for run in runs.values():
            slice_of(run)
        end = time.monotonic() + seconds
        turn = 0
        while turn < 10 or time.monotonic() < end:
            for name in list(runs)[:: -1 if turn % 2 else 1]:
                samples[name].append(slice_of(runs[name]) * 1e3)
            turn += 1
        if results.noise(samples) <= results.NOISY:
            break
    os.sched_setaffinity(0, CORES)
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--filter", default="", help="of the models' names: a regular expression")
    parser.add_argument("--models", action="store_true", help="the exports from PyTorch too")
    parser.add_argument("--folder", action="append", default=[], help="a folder of .onnx files to measure besides")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a free dim of those files (default: 1)")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=3, help="of measuring a row")
    parser.add_argument("--peers", default=",".join(peers.available()), help="of onnxruntime, openvino, inductor (default: those that are installed)")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="take the rows that are in it as measured, and add new ones")
    parser.add_argument("--report", type=Path, metavar="FILE.md", help="write the table there, and its summary into README.md")
    arguments = parser.parse_args()
    wanted = [peer for peer in arguments.peers.split(",") if peer]
    if unknown := set(wanted) - set(peers.available()):
        parser.error(f"--peers: {', '.join(sorted(unknown))}: no such peer, or not installed; build/venv-torch has all (.ci/setup.sh --models)")
    threads = [int(number) for number in arguments.threads.split(",")]
    if max(threads) > len(CORES):
        parser.error(f"--threads: this machine has {len(CORES)} cores to pin them to")
    dims = {name: int(number) for name, number in (dim.split("=") for dim in arguments.dim)}
    rows = results.read(arguments.samples) if arguments.samples else []
    known = {(row["model"], row["threads"]) for row in rows}
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        for number, model in enumerate(all_models(arguments.build, arguments.models, arguments.folder, dims, arguments.filter)):
            if all((model.name, count) in known for count in threads):
                continue
            library = Path(folder) / f"m{number}" / "model.so"
            library.parent.mkdir()
            compiled = compile_model(arguments.build / "bin" / "ptc", model, library)
            group = results.group_of(model.path, json.loads(library.with_suffix(".json").read_text()))
            for count in threads:
                row = {"model": model.name, "threads": count, "group": group, "compile_s": compiled.seconds, "megabytes": compiled.megabytes,
                       "code": compiled.code, "samples": compare(model, library, count, arguments.seconds, wanted)}
                rows.append(row)
                print(results.line(row), file=sys.stderr, flush=True)
                if arguments.samples:
                    results.append(arguments.samples, row)
            library.unlink()
    if not rows:
        parser.error(f"no model's name has '{arguments.filter}'")
    results.report(rows, sys.stdout)
    if arguments.report:
        results.write(rows, arguments.report, [peers.version(peer) for peer in wanted])


if __name__ == "__main__":
    main()
