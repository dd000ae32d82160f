"""What kinds of threads cost: an empty parallel loop, and models on the library's pool, on OpenMP and on a program's pool.

    python tests/perf/threads.py [MODEL.onnx ...] [--dim NAME=N] [--threads 2] [--prefix 'chrt -f 50']

The first line tells how long it takes to fork and join while the threads are awake: the median of many loops with
nothing to do. Nobody waits for a thread of the pool that is late: on a busy machine, without --prefix, this may be what
the caller takes alone. Of each model follow the times of a run on OpenMP and through the hook for a pool of the program's own,
over that on the library's pool. Kinds run in turns, each in a process of its own: threads of OpenMP that wait for the
next loop would take the cores of others. Medians of the turns. Dims that are left open must be given.
"""

import argparse
import shlex
import statistics
import subprocess
import tempfile
from pathlib import Path

from service import ROOT, known_dims

TURNS = 7


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--dim", action="append", default=[], help="as of ptc compile; those that a model lacks are left out")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--prefix", default="", help="in front of what is measured: chrt -f 50")
    arguments = parser.parse_args()
    ptc, program = arguments.build / "bin" / "ptc", arguments.build / "bin" / "ptc-perf-threads"
    subprocess.run(["ninja", "-C", arguments.build, program.name], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        def measure(*words):
            done = subprocess.run([*shlex.split(arguments.prefix), program, *map(str, words)], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(done.stderr.strip())
            return int(done.stdout)

        forks = {kind: statistics.median(measure("fork", kind, arguments.threads) for _ in range(TURNS)) / 1e3 for kind in ("pool", "openmp")}
        print(f"fork and join of {arguments.threads} threads: pool {forks['pool']:.2f} us, OpenMP {forks['openmp']:.2f} us")
        for model in arguments.models:
            dims, libraries = known_dims(ptc, model, arguments.dim), {}
            for kind in ("pool", "openmp"):
                libraries[kind] = Path(folder) / f"{kind}.so"
                subprocess.run([ptc, "compile", model, "-q", f"--threads={kind}", "-o", libraries[kind], *dims], check=True)
            times = {"pool": [], "openmp": [], "host": []}
            for _ in range(TURNS):
                for kind, own in times.items():
                    how = ("host" if kind == "host" else "own", arguments.threads, arguments.seconds)
                    own.append(measure("run", libraries["pool" if kind == "host" else kind], *how))
            pool, openmp, host = (statistics.median(times[kind]) for kind in times)
            print(f"{model.stem}: pool {pool / 1e3:.0f} us, OpenMP {openmp / pool:.2f}, the program's pool {host / pool:.2f}", flush=True)


if __name__ == "__main__":
    main()
