"""Does the time tier miss a planted tenth, or cry wolf, on a busy machine?

    build/venv/bin/python tests/perf/gate_times.py [--runs 50] [--busy N] [--model MODEL.onnx --flags='--dim=batch=1']

A library is judged against a copy of itself, and one that does a tenth of its work twice (ptc-planted) against the
original, each so many times, beside processes that keep the cores busy, one a core unless told otherwise. The judge is what
`ptc bench --ab --tolerance` and the gate share. Prints what each run said, and at the end two counts: alarms on equal
libraries (none is right) and on the planted one (all are). Takes minutes; timings belong in no CI.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUSY = "while True: pass"


def run(*words, codes=(0,)):
    result = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode not in codes:
        sys.exit(result.stderr)
    return result.stdout


def compile_all(build, folder, model, flags):
    """original.so, a copy in a file of its own, and planted.so."""
    original, copy, planted = (folder / f"{name}.so" for name in ("original", "copy", "planted"))
    run(build / "bin" / "ptc", "compile", model, *flags, "-q", "-o", original)
    shutil.copy(original, copy)
    run(build / "bin" / "ptc-planted", "work", "compile", model, *flags, "-q", "-o", planted)
    return original, copy, planted


def judge(build, subject, other, tolerance, inputs):
    """Verdict, ratio and measurements of one run, and how long it took."""
    started = time.monotonic()
    text = run(build / "bin" / "ptc", "bench", subject, "--ab", other, f"--tolerance={tolerance}", "--json", *inputs,
               codes=(0, 1))
    said = json.loads(text)["verdicts"][0]
    return said["verdict"], said["ratio"]["median"], said["measurements"], time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="busy processes beside (default: one a core)")
    parser.add_argument("--model", type=Path, help="default: layers.onnx of tests/planted/models.py")
    parser.add_argument("--flags", default="--cpu=native", help="to compile with")
    parser.add_argument("--inputs", default="", help="flags of ptc bench that say what to run on")
    parser.add_argument("--tolerance", default="5", help="percent")
    arguments = parser.parse_args()
    beside = []
    with tempfile.TemporaryDirectory(prefix="ptc-") as name:
        folder = Path(name)
        model = arguments.model or folder / "layers.onnx"
        if not arguments.model:
            run(sys.executable, ROOT / "tests" / "planted" / "models.py", folder)
        original, copy, planted = compile_all(arguments.build, folder, model, arguments.flags.split())
        counts = {"equal": {}, "planted": {}}
        try:
            beside = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(arguments.busy)]
            for number in range(arguments.runs):
                for kind, subject in (("equal", copy), ("planted", planted)):
                    verdict, ratio, measurements, seconds = judge(arguments.build, subject, original, arguments.tolerance,
                                                                  arguments.inputs.split())
                    counts[kind][verdict] = counts[kind].get(verdict, 0) + 1
                    print(f"{number + 1} {kind}: {verdict}, ratio {ratio:.3f}, {measurements} measurement(s), {seconds:.1f} s",
                          flush=True)
        finally:
            for process in beside:
                process.kill()
    for kind, count in counts.items():
        told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(count.items()))
        print(f"{kind}: {count.get('slower', 0)} alarms in {arguments.runs} runs ({told})")


if __name__ == "__main__":
    main()
