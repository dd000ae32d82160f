"""What a library costs around its runs: creation, the first call, memory, and other processes on the same cores.

    python tests/perf/service.py model.onnx... [--dim NAME=N] [--build BUILD]

For each model, ptc and onnxruntime in processes of their own, since what one has touched the other would find:

  create      milliseconds of the fastest of some creations (onnxruntime: sessions), the library loaded already
  first       the first call after create, in median calls
  memory      anonymous memory in use after the calls, in MB, what the allocator can give back given back; ptc's planned peak beside it
  resident    what the process holds in MB after one creation and some calls, over what it held before it had loaded library or
              onnxruntime: as the system counts it, and after the allocator has given back what it can

and of ptc alone, on two cores, in ratios to the time of one thread on quiet cores:

  busy        two threads while another process computes on one of the cores
  contexts    calls a second of four contexts, called from four threads, each on one thread, over those of one

A line a model; --json prints the figures. Times are medians unless they say otherwise.
"""

import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "runtime" / "python")]
import ptc  # noqa: E402

SECONDS = 2  # of one measurement


def known_dims(program, model, dims):
    """`--dim` flags of those dims, each NAME=N, that the model has."""
    shown = subprocess.run([program, "inspect", model], capture_output=True, text=True).stdout
    return [part for dim in dims if re.search(rf"\b{re.escape(dim.split('=')[0])}\b", shown) for part in ("--dim", dim)]


def inputs(values):
    """Zeros, which every model takes: times of these do not depend on values."""
    sizes = lambda shape: [n if isinstance(n, int) and n > 0 else 1 for n in shape]
    return {value.name: np.zeros(sizes(value.shape), value.dtype) for value in values}


def memory():
    """Anonymous and all resident memory of this process, in MB."""
    text = Path("/proc/self/smaps_rollup").read_text()
    field = lambda name: int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) / 1024
    return field("Anonymous"), field("Rss")


def trim():
    ctypes.CDLL(None).malloc_trim(0)


def times_of(run, seconds=SECONDS, fewest=5):
    times, end = [], time.monotonic() + seconds
    while len(times) < fewest or time.monotonic() < end:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return times


def fastest_creation(create):
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        made = create()
        times.append(time.perf_counter() - begin)
        del made
    return min(times)


def child_ptc(library, model):
    ptc.load(library).close()  # the file is mapped, the code of ctypes is warm
    create = fastest_creation(lambda: ptc.load(library, threads=1))
    trim()
    before = memory()
    loaded = ptc.load(library, threads=1)
    feeds = inputs(loaded.inputs)
    run = loaded.prepare(**feeds)
    first = times_of(run, 0, 1)[0]
    times = times_of(run)
    trim()
    after = memory()
    return {"create": create, "first": first / statistics.median(times), "median": statistics.median(times),
            "anonymous": after[0] - before[0], "planned": loaded.workspace_size(**feeds) / 2**20}


def child_onnxruntime(library, model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    make = lambda: onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = inputs(ptc.load(library, threads=1).inputs)
    create = fastest_creation(make)
    trim()
    before = memory()
    session = make()
    run = lambda: session.run(None, feeds)
    first = times_of(run, 0, 1)[0]
    times = times_of(run)
    trim()
    after = memory()
    return {"create": create, "first": first / statistics.median(times), "median": statistics.median(times),
            "anonymous": after[0] - before[0]}


def resident(make):
    """What `make` and some calls of the function that it returns leave in memory, as is and trimmed."""
    before = memory()[1]
    run = make()
    for _ in range(4):
        run()
    held = memory()[1] - before
    trim()
    return {"held": held, "trimmed": memory()[1] - before}


def child_ptc_resident(library, model):
    def make():
        loaded = ptc.load(library, threads=1)
        return loaded.prepare(**inputs(loaded.inputs))

    return resident(make)


def child_onnxruntime_resident(library, model):
    feeds = inputs(ptc.load(library, threads=1).inputs)

    def make():
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, feeds)

    return resident(make)


def child_threads(library, model):
    """Two threads beside a busy process, and four contexts, over one thread that is alone."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cores)
    one, two = ptc.load(library, threads=1), ptc.load(library, threads=2)
    feeds = inputs(one.inputs)
    alone, both = one.prepare(**feeds), two.prepare(**feeds)
    quiet, pair = statistics.median(times_of(alone)), statistics.median(times_of(both))
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, cores[1:]))
    try:
        time.sleep(0.2)
        disturbed = statistics.median(times_of(both))
    finally:
        busy.kill()
        busy.wait()
    runs = [one.prepare(**feeds) for _ in range(4)]
    counts = [0] * len(runs)
    end = time.monotonic() + SECONDS

    def call(number):
        while time.monotonic() < end:
            runs[number]()
            counts[number] += 1

    threads = [threading.Thread(target=call, args=[number]) for number in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"pair": pair / quiet, "busy": disturbed / quiet, "contexts": sum(counts) / SECONDS * quiet, "cores": len(cores)}


CHILDREN = {"ptc": child_ptc, "onnxruntime": child_onnxruntime, "ptc_resident": child_ptc_resident,
            "onnxruntime_resident": child_onnxruntime_resident, "threads": child_threads}


def measure(kind, library, model):
    done = subprocess.run([sys.executable, __file__, "--child", kind, str(library), str(model)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model}: {kind}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def main():
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(CHILDREN[sys.argv[2]](*sys.argv[3:5])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--dim", action="append", default=[], help="as of ptc compile; those that a model lacks are left out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    program = arguments.build / "bin" / "ptc"
    rows = []
    if not arguments.json:
        print("| model | create ms | onnxruntime | first call | onnxruntime | anonymous MB | planned peak | onnxruntime | resident MB | onnxruntime | trimmed | onnxruntime "
              "| 2 threads | beside a busy process | 4 contexts |")
        print("|---" * 15 + "|")
    for model in arguments.models:
        with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
            library = Path(folder) / "model.so"
            subprocess.run([program, "compile", model, "-q", "-o", library, *known_dims(program, model, arguments.dim)], check=True)
            row = {kind: measure(kind, library, model.resolve()) for kind in CHILDREN}
        rows.append({"model": model.name, **row})
        mine, theirs, threads = row["ptc"], row["onnxruntime"], row["threads"]
        held, others = row["ptc_resident"], row["onnxruntime_resident"]
        if not arguments.json:
            print(f"| {model.stem} | {mine['create'] * 1e3:.1f} | {theirs['create'] * 1e3:.0f} | {mine['first']:.2f} | {theirs['first']:.2f} "
                  f"| {mine['anonymous']:.1f} | {mine['planned']:.1f} | {theirs['anonymous']:.0f} | {held['held']:.0f} | {others['held']:.0f} "
                  f"| {held['trimmed']:.0f} | {others['trimmed']:.0f} "
                  f"| {threads['pair']:.2f} | {threads['busy']:.2f} | {threads['contexts']:.2f} |", flush=True)
    if arguments.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
