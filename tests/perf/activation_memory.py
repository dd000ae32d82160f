"""Memory for activations: ptc's planned peak beside its lower bound and onnxruntime's, as a Markdown table.

    build/venv/bin/python tests/perf/activation_memory.py [--models] [--filter REGEX]

onnxruntime's is the most that its heap grows by during a run, its outputs included: every allocation is counted
(heap_peak.c, preloaded). Its arena and memory patterns are off, so that it holds only what is alive; its defaults
take more. ptc's is the arena that the library allocates; the outputs are the caller's, and `with outputs` adds them. Where
sizes stay free, peak and bound are those at the hints and onnxruntime's those of the row's first run.
"""

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "runtime" / "python")]
import sources  # noqa: E402


def onnxruntime_peak(path, row):
    """Bytes; called in a process into which heap_peak.c is preloaded."""
    import onnxruntime

    heap = ctypes.CDLL(None)
    heap.heap_peak.restype = ctypes.c_long
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = {name: sources.make_input(spec) for name, spec in row["run"][0].items()}
    inputs = {value.name: onnxruntime.OrtValue.ortvalue_from_numpy(inputs[value.name]) for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    session.run_with_ort_values(names, inputs)
    heap.heap_peak_reset()
    outputs = session.run_with_ort_values(names, inputs)
    sizes = sum(value.numpy().nbytes for value in outputs)
    return heap.heap_peak(), sizes


def measure(row, args, folder, counter):
    path, library = sources.fetch(row, args.build), Path(folder) / "model.so"
    subprocess.run([args.build / "bin" / "ptc", "compile", path, "-o", library, "--emit=so,json", "-q", *row.get("flags", ())], check=True)
    plan = json.loads(library.with_suffix(".json").read_text())["memory"]
    child = subprocess.run([sys.executable, __file__, "--child", path, row["name"]], env=os.environ | {"LD_PRELOAD": str(counter)},
                           capture_output=True, text=True, check=True)
    theirs, outputs = map(int, child.stdout.split())
    return sum(p["peak"]["at_hint"] for p in plan), sum(p["lower_bound"]["at_hint"] for p in plan), outputs, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--models", action="store_true", help="also the models that PyTorch exports")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        row = next(row for row in sources.rows(True) if row["name"] == args.child[1])
        print(*onnxruntime_peak(args.child[0], row))
        return 0
    args.build = args.build.resolve()
    print("| model | planned peak, MB | lower bound | with outputs | onnxruntime | peak / bound | / onnxruntime | with outputs |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        counter = Path(folder) / "heap_peak.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", Path(__file__).with_name("heap_peak.c"), "-o", counter], check=True)
        for row in sources.rows(args.models):
            if row["state"] != "passes" or not re.search(args.filter, row["name"]):
                continue
            peak, bound, outputs, theirs = measure(row, args, folder, counter)
            cells = [f"{size / 1e6:.2f}" for size in (peak, bound, peak + outputs, theirs)]
            ratios = [f"{a / b:.2f}" for a, b in ((peak, bound), (peak, theirs), (peak + outputs, theirs))]
            print(f"| {row['name']} | {' | '.join(cells + ratios)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
