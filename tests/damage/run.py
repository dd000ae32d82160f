"""Official models and their inputs, truncated or with one byte changed, through `ptc compile` and `ptc run`: refused or
accepted, never a crash or a hang.

    python tests/damage/run.py                 what CI runs: 300
    python tests/damage/run.py --cases 5000    all
    python tests/damage/run.py --case 1234     one; its file stays in BUILD/tests/damage
"""

import argparse
import collections
import concurrent.futures
import io
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import suite  # noqa: E402
from suite import arguments  # noqa: E402

SEED = 1
ALLOWED = {0: "compiled", 3: "invalid", 4: "unsupported", 8: "over a limit"}
# Of runs: what is left of a file may be an input; or it is none (2), or none that the model takes (7).
RUN_ALLOWED = {0: "ran", 2: "refused", 7: "failed a check", 8: "over a limit"}
CPU_SECONDS, SECONDS, MEMORY = 60, 240, 12 << 30
LARGEST = 4 << 20  # bytes of a model: those above are the same nets with larger weights


def damaged(number, cases, seed):
    """Case, what was done, bytes of the model's file. Every third is truncated."""
    rng = np.random.default_rng([seed, number])
    case = cases[int(rng.integers(len(cases)))]
    return case, *_damage(rng, number, bytearray(Path(case.model).read_bytes()))


def damaged_input(number, cases, seed):
    """Case, which input, the suffix of its file, what was done, bytes: an official input in a format that `ptc run` reads.
    Nothing for a case without tensors as inputs."""
    rng = np.random.default_rng([seed, number])
    case = cases[int(rng.integers(len(cases)))]
    files = [(i, path) for i, path in enumerate(case.sets[0][0] if case.sets else ()) if path.endswith(".pb")]
    if not files:
        return None
    index, path = files[int(rng.integers(len(files)))]
    array, suffix = suite.read(path), [".pb", ".pb", ".npy", ".npz"][int(rng.integers(4))]
    if suffix == ".pb" or array.dtype.kind not in "fiub":
        return case, index, ".pb", *_damage(rng, number, bytearray(Path(path).read_bytes()))
    held = io.BytesIO()
    np.save(held, array) if suffix == ".npy" else (np.savez_compressed if number % 2 else np.savez)(held, x=array)
    return case, index, suffix, *_damage(rng, number, bytearray(held.getvalue()))


def _damage(rng, number, content):
    place = int(rng.integers(len(content) or 1))
    if number % 3 == 0 or not content:
        return f"truncated to {place} bytes", bytes(content[:place])
    # Half of the changed bytes lie in the first 200, which rarely are weights.
    place = int(rng.integers(min(len(content), 200))) if number % 2 else place
    value = int(rng.integers(1, 256)) ^ content[place]
    text = f"byte {place} is {value:#04x} instead of {content[place]:#04x}"
    content[place] = value
    return text, bytes(content)


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcome(command, folder, allowed):
    """A word of `allowed`, or what went wrong."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=SECONDS, preexec_fn=_limit, env=os.environ | {"TMPDIR": str(folder)})
    except subprocess.TimeoutExpired:
        return f"hangs: over {SECONDS} s"
    if done.returncode in allowed:
        said = done.returncode == 0 or "error" in done.stderr
        return allowed[done.returncode] if said else f"exit code {done.returncode} without a diagnostic"
    if done.returncode < 0:
        died = signal.Signals(-done.returncode)
        return f"hangs: over {CPU_SECONDS} s of processor time" if died == signal.SIGXCPU else f"{died.name} {done.stderr[-300:]}"
    return f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"


COMPILE = ("compile", "-q", "-j1", "-O0", "--cpu=x86-64-v3", "--color=never", "--emit=so")


def check(number, cases, seed, ptc):
    """Every fourth is an input."""
    with tempfile.TemporaryDirectory(prefix="ptc-damage-") as temporary:
        folder = Path(temporary)
        if number % 4 == 3 and (found := damaged_input(number, cases, seed)):
            return number, *_check_input(found, folder, ptc)
        case, text, content = damaged(number, cases, seed)
        path = folder / "model.onnx"
        path.write_bytes(content)
        return number, case.name, text, outcome([ptc, *COMPILE, path, "-o", folder / "model.so"], folder, ALLOWED)


def _check_input(found, folder, ptc):
    case, index, suffix, text, content = found
    library, path = folder / "model.so", folder / f"input{suffix}"
    path.write_bytes(content)
    name = arguments(onnx.load(case.model))[index].name
    text = f"input {name} ({suffix}) {text}"
    made = outcome([ptc, *COMPILE, case.model, "-o", library], folder, ALLOWED)
    if made != ALLOWED[0]:
        return case.name, text, made
    given = [f"{value.name}=@{file}" for value, file in zip(arguments(onnx.load(case.model)), case.sets[0][0]) if value.name != name]
    inputs = [word for spec in [*given, f"{name}=@{path}"] for word in ("-i", spec)]
    return case.name, text, outcome([ptc, "run", library, *inputs, "--threads=1", "--color=never", "-o", f"@{folder / 'all.npz'}"], folder, RUN_ALLOWED)


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
        found = damaged_input(args.case, cases, args.seed) if args.case % 4 == 3 else None
        path = build / "tests" / "damage" / f"case-{args.case}{found[2] if found else '.onnx'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found[-1] if found else damaged(args.case, cases, args.seed)[2])
        print(path)
    words = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for number, name, text, word in pool.map(lambda n: check(n, cases, args.seed, ptc), numbers):
            allowed = {*ALLOWED.values(), *RUN_ALLOWED.values()}
            words[word if word in allowed else "failed"] += 1
            if word not in allowed or args.case is not None:
                print(f"{number} {name}, {text}: {word}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in words.most_common()))
    failed = words.pop("failed", 0)
    print(f"{sum(words.values())} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
