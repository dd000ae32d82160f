"""ptc's libraries beside onnxruntime: speed on one thread and two, compile time, memory and size of code.

    build/venv/bin/python tests/perf/compare.py [--models]                   all models (exports too), as a Markdown table
    build/venv/bin/python tests/perf/compare.py --filter 'real|light_res'    some
    build/venv/bin/python tests/perf/compare.py --folder DIR --dim batch=1   every .onnx of a folder besides

Method. The machine may be shared, and its clock drifts: a time means something only beside another of the same second. So
both run in one process and take turns in slices of some 20 ms (the order reverses every other time). A slice tells its
fastest run, a turn gives one ratio, and the median of the turns' ratios is told. onnxruntime runs a second time in each turn
and is compared with itself: `noise` is how far the median of those ratios is from 1. Its threads stop spinning at the end
of a run, as ptc's do soon after: those of a library that waits must not take a core from the other.

`ratio` is onnxruntime's time / ptc's: above 1, ptc is faster.
"""

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx.backend.test import loader

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "runtime" / "python")]
import ptc  # noqa: E402
import sources  # noqa: E402

SLICE = 0.02  # seconds
NOISY = 0.08  # of a row's comparison of onnxruntime with itself


@dataclass
class Model:
    name: str
    path: Path
    flags: list
    inputs: dict


@dataclass
class Compiled:
    seconds: float
    megabytes: float  # most anonymous memory
    code: int  # bytes of the largest level


@dataclass
class Row:
    model: str
    threads: int
    times: dict = field(default_factory=dict)  # milliseconds, by subject
    ratio: float = 0.0
    noise: float = 0.0


# Models


def rows_of_models(build, exported, pattern):
    """The first row of each file of models.toml: later rows of a file vary its flags. Only what the pattern finds is exported."""
    seen = set()
    for row in sources.rows(exported):
        file = row.get("file") or (row["export"], row["exporter"])
        if file not in seen and row["state"] == "passes":
            seen.add(file)
            name = f"{'torch' if 'export' in row else 'real'}/{row['name']}"
            if not re.search(pattern, name):
                continue
            inputs = {key: sources.make_input(spec) for key, spec in row["run"][0].items()}
            yield Model(name, sources.fetch(row, build), row.get("flags", []), inputs)


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


def run_of_onnxruntime(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in model.inputs.items():
        binding.bind_cpu_input(name, array)
    for value in session.get_outputs():
        binding.bind_output(value.name)
    return lambda: session.run_with_iobinding(binding)


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


def compare(model, library, threads, seconds):
    prepared = ptc.load(library, threads=threads).prepare(**model.inputs)
    subjects = {"ptc": prepared, "ort": run_of_onnxruntime(model, threads)}
    subjects["again"] = subjects["ort"]
    samples = {name: [] for name in subjects}
    for run in subjects.values():
        slice_of(run)
    end = time.monotonic() + seconds
    turn = 0
    while turn < 5 or time.monotonic() < end:
        for name in list(subjects)[:: -1 if turn % 2 else 1]:
            samples[name].append(slice_of(subjects[name]))
        turn += 1
    ratio = lambda a, b: statistics.median(x / y for x, y in zip(samples[a], samples[b]))
    times = {name: statistics.median(values) * 1e3 for name, values in samples.items()}
    return Row(model.name, threads, times, ratio("ort", "ptc"), abs(ratio("ort", "again") - 1))


# Telling


def mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def report(rows, compiled, threads):
    print(f"\n| model | {' | '.join(f'ptc ms, {n} thr. | ORT ms | ratio' for n in threads)} | compile s | anon. MB | code KB |")
    print("|---|" + "---|" * (3 * len(threads) + 3))
    for name in compiled:
        own = [row for row in rows if row.model == name]
        cells = [f"{row.times['ptc']:.3g} | {row.times['ort']:.3g} | {row.ratio:.2f}{' (noisy)' if row.noise > NOISY else ''}"
                 for row in own]
        what = compiled[name]
        print(f"| {name} | {' | '.join(cells)} | {what.seconds:.1f} | {what.megabytes:.0f} | {what.code / 1024:.0f} |")
    for number in threads:
        own = [row for row in rows if row.threads == number]
        worst = min(own, key=lambda row: row.ratio)
        print(f"\n{number} thread{'s' * (number > 1)}: geometric mean {mean([row.ratio for row in own]):.3f} over {len(own)} models, "
              f"worst {worst.ratio:.2f} ({worst.model}); noise {statistics.median(row.noise for row in own):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--filter", default="")
    parser.add_argument("--models", action="store_true", help="the exports from PyTorch too")
    parser.add_argument("--folder", action="append", default=[], help="a folder of .onnx files to measure besides")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a free dim of those files (default: 1)")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=3, help="of measuring a row")
    arguments = parser.parse_args()
    threads = [int(number) for number in arguments.threads.split(",")]
    dims = {name: int(number) for name, number in (dim.split("=") for dim in arguments.dim)}
    rows, compiled = [], {}
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        for number, model in enumerate(all_models(arguments.build, arguments.models, arguments.folder, dims, arguments.filter)):
            library = Path(folder) / f"m{number}" / "model.so"
            library.parent.mkdir()
            compiled[model.name] = compile_model(arguments.build / "bin" / "ptc", model, library)
            for count in threads:
                rows.append(compare(model, library, count, arguments.seconds))
                row = rows[-1]
                print(f"{model.name}, {count}: ptc {row.times['ptc']:.3f} ms, onnxruntime {row.times['ort']:.3f} ms, "
                      f"ratio {row.ratio:.2f}, noise {row.noise:.2f}", file=sys.stderr, flush=True)
    report(rows, compiled, threads)


if __name__ == "__main__":
    main()
