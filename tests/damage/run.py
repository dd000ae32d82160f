"""Official models, truncated or with one byte changed, through `ptc compile`: refused or compiled, never a crash or a hang.

    python tests/damage/run.py                 what CI runs: 300
    python tests/damage/run.py --cases 5000    all
    python tests/damage/run.py --case 1234     one; its file stays in BUILD/tests/damage
"""

import argparse
import collections
import concurrent.futures
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import suite  # noqa: E402

SEED = 1
ALLOWED = {0: "compiled", 3: "invalid", 4: "unsupported", 8: "over a limit"}
CPU_SECONDS, SECONDS, MEMORY = 60, 240, 12 << 30
LARGEST = 4 << 20  # bytes of a model: those above are the same nets with larger weights


def damaged(number, cases, seed):
    """Name, what was done, bytes. Every third is truncated."""
    rng = np.random.default_rng([seed, number])
    case = cases[int(rng.integers(len(cases)))]
    content = bytearray(Path(case.model).read_bytes())
    place = int(rng.integers(len(content)))
    if number % 3 == 0:
        return case.name, f"truncated to {place} bytes", bytes(content[:place])
    # Half of the changed bytes lie in the first 200, which rarely are weights.
    place = int(rng.integers(min(len(content), 200))) if number % 2 else place
    value = int(rng.integers(1, 256)) ^ content[place]
    text = f"byte {place} is {value:#04x} instead of {content[place]:#04x}"
    content[place] = value
    return case.name, text, bytes(content)


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcome(ptc, path, verb):
    """A word of ALLOWED, or what went wrong."""
    command = [ptc, *verb, path] + (["-o", path.with_suffix(".so"), "--emit=so"] if verb[0] == "compile" else [])
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=SECONDS, preexec_fn=_limit, env=os.environ | {"TMPDIR": str(path.parent)})
    except subprocess.TimeoutExpired:
        return f"hangs: over {SECONDS} s"
    if done.returncode in ALLOWED:
        said = done.returncode == 0 or "error" in done.stderr
        return ALLOWED[done.returncode] if said else f"exit code {done.returncode} without a diagnostic"
    if done.returncode < 0:
        died = signal.Signals(-done.returncode)
        return f"hangs: over {CPU_SECONDS} s of processor time" if died == signal.SIGXCPU else f"{died.name} {done.stderr[-300:]}"
    return f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"


def check(number, cases, seed, ptc):
    name, text, content = damaged(number, cases, seed)
    with tempfile.TemporaryDirectory(prefix="ptc-damage-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(content)
        return number, name, text, outcome(ptc, path, ("compile", "-q", "-j1", "-O0", "--cpu=x86-64-v3", "--color=never"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--ptc", type=Path, help="the program (default: BUILD/bin/ptc)")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int, metavar="NUMBER", help="one; its file stays")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    args = parser.parse_args()
    build = args.build.resolve()
    ptc = (args.ptc or build / "bin" / "ptc").resolve()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = suite.load(build / "tests" / "conformance")
    cases = [case for case in loaded if os.path.getsize(case.model) <= LARGEST]
    numbers = [args.case] if args.case is not None else range(args.first, args.first + args.cases)
    if args.case is not None:
        path = build / "tests" / "damage" / f"case-{args.case}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damaged(args.case, cases, args.seed)[2])
        print(path)
    words = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for number, name, text, word in pool.map(lambda n: check(n, cases, args.seed, ptc), numbers):
            words[word if word in ALLOWED.values() else "failed"] += 1
            if word not in ALLOWED.values() or args.case is not None:
                print(f"{number} {name}, {text}: {word}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in words.most_common()))
    failed = words.pop("failed", 0)
    print(f"{sum(words.values())} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
