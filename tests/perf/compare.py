"""The benchmark set: ptc's libraries beside onnxruntime, OpenVINO and torch.compile.

    build/venv/bin/python tests/perf/compare.py [--models]                   all models (exports too), as a Markdown table
    build/venv/bin/python tests/perf/compare.py --filter 'real|light_res'    some
    build/venv/bin/python tests/perf/compare.py --folder DIR --dim batch=1   every .onnx of a folder besides

    build/venv-torch/bin/python tests/perf/compare.py --models --samples rows.jsonl
    build/venv-torch/bin/python tests/perf/compare.py --models --samples rows.jsonl --threads 1 --batch 8 --report tests/perf/results.md

The environment of `.ci/setup.sh --models` has all peers, build/venv onnxruntime alone (peers.py). `--samples` adds each row to a
file and takes those that are there as measured: a run of hours may be cut off and taken up again by the same command, and the
second command above adds its rows to those of the first. `--report` writes the table of all rows of that file and its summary
into README.md; with `--report-only` from what is there.

Method. The machine may be shared, and its clock drifts: a time means something only beside another of the same second. So
all run in one process, pinned to as many cores as threads, and take turns in slices of some 20 ms (turns.py). A slice tells its
fastest run, a turn gives one ratio, and the median of the turns' ratios is told; `bound` is what that median exceeds with 95 %,
whatever its distribution (by order statistics). onnxruntime runs a second time in each turn and is compared with itself:
`noise` is how far the median of those ratios is from 1. A row with more than 2 % is measured up to twice again; if it stays
noisy it is marked, is not won, and no mean has it. All know the sizes of the inputs when they compile: the dims that the file
leaves open are pinned, at --batch N that of the batch to N. Models that fix it are left out there, but for
detectors, which are exported again for eight images.

`ratio` is the time of the better of onnxruntime and OpenVINO / ptc's: above 1, ptc is faster. A model is won if its bound is.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test import loader

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "runtime" / "python")]
import peers  # noqa: E402
import results  # noqa: E402
import sources  # noqa: E402
import turns  # noqa: E402
from architectures import quantized  # noqa: E402


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


def _values(path):
    """The inputs that are no weights."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _dims(value):
    """Numbers, names, and None for dims that have neither."""
    return [dim.dim_value if dim.dim_value > 0 else dim.dim_param or None for dim in value.type.tensor_type.shape.dim]


def _batched(values, inputs, batch, named=()):
    """The inputs with their first element as often as `batch` says; the batch is `named` (inputs and axes), the dim of that name,
    or the first one of a model of one input. None if it is fixed at another number."""
    named = set(named) or {(value.name, axis) for value in values for axis, dim in enumerate(_dims(value)) if dim == "batch"}
    if not named and len(values) == 1 and _dims(values[0]) and not isinstance(_dims(values[0])[0], int):
        named = {(values[0].name, 0)}
    if not named and batch != 1:
        return None
    made = {}
    for name, array in inputs.items():
        for axis in range(array.ndim):
            if (name, axis) in named:
                array = array.take([0], axis).repeat(batch, axis)
        made[name] = np.array(array, order="C")  # peers read it in place
    return made


def _model(name, path, inputs, batch, flags=(), export="", named=()):
    """The model with all its dims pinned; None if it does not have that batch."""
    values = _values(path)
    inputs = _batched(values, inputs, batch, named)
    if inputs is None:
        return None
    pins = [f"--shape={value.name}={'x'.join(map(str, inputs[value.name].shape))}" for value in values
            if not all(isinstance(dim, int) for dim in _dims(value))]
    kept = [flag for flag in flags if not flag.startswith(("--shape=", "--dim="))]
    return Model(name, path, [*kept, *pins], inputs, export)


def _row(name, row, build, batch):
    inputs = {key: sources.make_input(spec) for key, spec in row["run"][0].items()}
    batch = 1 if "batch" in row else batch  # its inputs have it
    return _model(name, sources.fetch(row, build), inputs, batch, row.get("flags", ()), row.get("export", ""), sources.axes(row, "batch"))


def rows_of_models(build, exported, batch=1, is_quantised=True):
    """The first row of each model of models.toml, by its name: later ones vary flags or the exporter. Made when it is asked for."""
    seen = set() if is_quantised else set(quantized.MODELS)
    for row in sources.rows(exported):
        file = row.get("file") or row["export"]
        if file not in seen and row["state"] == "passes" and row.get("batch", batch) == batch:
            seen.add(file)
            name = f"{'torch' if 'export' in row else 'real'}/{row['name']}"
            yield name, partial(_row, name, row, build, batch)


def _input(value, dims):
    """Random floats; whole numbers as the value's text says ("below N": layers.py), else ones: valid as tokens, masks and positions."""
    kind = value.type.tensor_type
    shape = [dim if isinstance(dim, int) else dims.get(dim, 1) for dim in _dims(value)]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if np.issubdtype(dtype, np.floating):
        return np.random.default_rng(0).normal(0, 1, shape).astype(dtype)
    if below := re.fullmatch(r"below (\d+)", value.doc_string):
        return np.random.default_rng(0).integers(0, int(below[1]), shape).astype(dtype)
    return np.ones(shape, dtype)


def file_model(kind, path, dims, batch=None):
    """`dims` has sizes of free dims, 1 if not said; `batch` comes before it."""
    inputs = {value.name: _input(value, dims) for value in _values(path)}
    return _model(f"{kind}/{path.stem}", path, inputs, dims.get("batch", 1) if batch is None else batch)


def named_models(build, exported, folders, dims, pattern, batch=1, is_quantised=True):
    """Those whose names the pattern finds: each with its name, and a function that makes it, or None if it does not have that batch."""
    found = list(rows_of_models(build, exported, batch, is_quantised))
    files = [("light", path, {}, batch) for path in sorted((Path(loader.DATA_DIR) / "light").glob("light_*.onnx"))]
    files += [(Path(folder).name, path, dims, batch if batch > 1 else None) for folder in folders for path in sorted(Path(folder).glob("*.onnx"))]
    found += [(f"{kind}/{path.stem}", partial(file_model, kind, path, sizes, count)) for kind, path, sizes, count in files]
    return [(name, make) for name, make in found if re.search(pattern, name)]


def all_models(build, exported, folders, dims, pattern):
    """The models whose names the pattern finds, one by one, at batch 1."""
    return (make() for _, make in named_models(build, exported, folders, dims, pattern))


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


def measure(program, model, threads, arguments, wanted):
    """The rows of a model, one for each number of threads."""
    if not model.export:
        wanted = [peer for peer in wanted if peer != "inductor"]  # there is no module to compile
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        library = Path(folder) / "model.so"
        compiled = compile_model(program, model, library)
        group = results.group_of(model.path, json.loads(library.with_suffix(".json").read_text()))
        for count in threads:
            samples, reasons = turns.measure(model, library, count, arguments.seconds, wanted)
            for peer, reason in reasons.items():
                print(f"{model.name}: {peer} has no time: {reason}", file=sys.stderr)
            yield {"model": model.name, "threads": count, "group": group, "compile_s": compiled.seconds, "megabytes": compiled.megabytes,
                   "code": compiled.code, "samples": samples}


def measure_all(arguments, threads, dims, wanted, rows):
    """Adds a row to `rows` for each model and number of threads that has none; a model that fails has one that says why."""
    words = [re.sub("^(--[a-z-]+=)?/.*/", r"\1", word) for word in sys.argv[1:]]  # without the folders of this machine
    about = {"command": shlex.join(["compare.py", *words]), "versions": {peer: peers.version(peer) for peer in wanted}} | results.machine()
    known = {results.key(row) for row in rows if "failed" not in row}
    models = named_models(arguments.build, arguments.models, arguments.folder, dims, arguments.filter, arguments.batch, arguments.quantised)
    for name, make in models:
        missing = [count for count in threads if (name, count, arguments.batch) not in known]
        found = []
        try:
            if missing and (model := make()):
                found = measure(arguments.build / "bin" / "ptc", model, list(missing), arguments, wanted)
            for row in found:
                missing.remove(row["threads"])
                yield row | {"batch": arguments.batch} | about
        except Exception as error:  # of its export, its compile or its library; the other models go on
            for count in missing:
                yield {"model": name, "threads": count, "batch": arguments.batch, "failed": " ".join(str(error).split())[-300:]} | about


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder: its program, its models and environments")
    parser.add_argument("--filter", default="", metavar="REGEX", help="of the models' names")
    parser.add_argument("--models", action="store_true", help="the exports from PyTorch too")
    parser.add_argument("--quantised", action="store_true", help="of those also the forms in 8 and 4 bits; no mean of all has them")
    parser.add_argument("--folder", action="append", default=[], metavar="DIR", help="a folder of .onnx files to measure besides")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a free dim of those files (default: 1)")
    parser.add_argument("--threads", default="1,2", metavar="N,...", help="a row for each of these numbers (default: 1,2)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="elements of a batch, in models that leave it open (default: 1)")
    parser.add_argument("--seconds", type=float, default=3, help=f"of measuring a row, at least {turns.TURNS} turns (default: 3)")
    parser.add_argument("--peers", default=",".join(peers.available()), help="of onnxruntime, openvino, inductor (default: those that are installed)")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="take the rows that are in it as measured, and add new ones")
    parser.add_argument("--report", type=Path, metavar="FILE.md", help="write the table there, and its summary into README.md")
    parser.add_argument("--report-only", action="store_true", help="measure nothing: tell the rows of --samples")
    arguments = parser.parse_args()
    wanted = [peer for peer in arguments.peers.split(",") if peer]
    if unknown := set(wanted) - set(peers.available()):
        parser.error(f"--peers: {', '.join(sorted(unknown))}: no such peer, or not installed; build/venv-torch has all (.ci/setup.sh --models)")
    threads = [int(number) for number in arguments.threads.split(",")]
    if max(threads) > len(peers.CORES):
        parser.error(f"--threads: this machine has {len(peers.CORES)} cores to pin them to")
    if arguments.report_only and not (arguments.samples and arguments.samples.exists()):
        parser.error("--report-only: --samples names the file of rows to tell")
    dims = {name: int(number) for name, number in (dim.split("=") for dim in arguments.dim)}
    return arguments, wanted, threads, dims


def main():
    arguments, wanted, threads, dims = parse()
    rows = results.read(arguments.samples) if arguments.samples else []
    if not arguments.report_only:
        for row in measure_all(arguments, threads, dims, wanted, list(rows)):
            rows.append(row)
            print(results.line(row), file=sys.stderr, flush=True)
            if arguments.samples:
                results.append(arguments.samples, row)
    rows = results.latest(rows)
    if not rows:
        sys.exit(f"compare.py: no model at batch {arguments.batch} has a name that '{arguments.filter}' finds")
    results.report(rows, sys.stdout)
    if arguments.report:
        results.write(rows, arguments.report)


if __name__ == "__main__":
    main()
