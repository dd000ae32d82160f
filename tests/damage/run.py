"""Official models and their inputs with a fault in the file, through `ptc compile` and `ptc run`: refused or accepted,
never a crash, a hang or more memory than there may be.

    python tests/damage/run.py                 what CI runs: 300 files
    python tests/damage/run.py --cases 5000    the sample: every official model cut off and with a byte changed, and inputs
    python tests/damage/run.py --all           every model and every input, each with every fault
    python tests/damage/run.py --case 1234     one; its files stay in BUILD/tests/damage
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
import threading
import time
import warnings
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import faults  # noqa: E402
import suite  # noqa: E402
from suite import arguments  # noqa: E402

SEED = 1
ALLOWED = {0: "compiled", 3: "invalid", 4: "unsupported", 6: "unreadable", 8: "over a limit"}
# Of runs: what is left of a file may be an input; or it is none (2), or none that the model takes (7).
RUN_ALLOWED = {0: "ran", 2: "refused", 7: "failed a check", 8: "over a limit"}
CPU_SECONDS, SECONDS, MEMORY = 60, 240, 4 << 30
COMPILE = ("compile", "-q", "-j1", "-O0", "--cpu=x86-64-v3", "--color=never", "--emit=so")


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcome(command, folder, allowed):
    """A word of `allowed`, or what went wrong; and the most memory that it had, in bytes."""
    with tempfile.TemporaryFile(mode="w+", errors="replace") as said:
        started = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                                   preexec_fn=_limit, env=os.environ | {"TMPDIR": str(folder)})
        alarm = threading.Timer(SECONDS, started.kill)
        alarm.start()
        start = time.monotonic()
        _, status, used = os.wait4(started.pid, 0)
        alarm.cancel()
        started.returncode = code = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    return _word(code, text, time.monotonic() - start, allowed), used.ru_maxrss << 10


def _word(code, text, seconds, allowed):
    if code in allowed:
        return allowed[code] if code == 0 or "error" in text else f"exit code {code} without a diagnostic"
    if seconds >= SECONDS:
        return f"hangs: over {SECONDS} s"
    if code < 0:
        died = signal.Signals(-code)
        return f"hangs: over {CPU_SECONDS} s of processor time" if died == signal.SIGXCPU else f"{died.name} {text[-300:]}"
    return f"exit code {code}: {text.strip()[-300:]}"


def write(files, folder):
    """The first file's path."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / next(iter(files))


def check_model(number, fault, ptc, seed):
    text, files = faults.apply(fault, number, seed)
    with tempfile.TemporaryDirectory(prefix="ptc-damage-") as temporary:
        folder = Path(temporary)
        word, memory = outcome([ptc, *COMPILE, write(files, folder), "-o", folder / "model.so"], folder, ALLOWED)
    return [(number, fault, text, word, memory)]


def check_inputs(numbered, ptc, seed):
    """Damaged inputs of one test, whose model is compiled once."""
    case = numbered[0][1].case
    names = [value.name for value in arguments(onnx.load(case.model))]
    given = dict(zip(names, case.sets[0][0]))
    found = []
    with tempfile.TemporaryDirectory(prefix="ptc-damage-") as temporary:
        folder = Path(temporary)
        library = folder / "model.so"
        made, memory = outcome([ptc, *COMPILE, case.model, "-o", library], folder, ALLOWED)
        for number, fault in numbered:
            text, files = faults.apply(fault, number, seed)
            word = made
            if made == ALLOWED[0]:
                path, name = write(files, folder), names[fault.index]
                inputs = [f"-i{other}=@{file}" for other, file in (given | {name: path}).items()]
                word, memory = outcome([ptc, "run", library, *inputs, "--threads=1", "--color=never", "-o", f"@{folder / 'all.npz'}"], folder, RUN_ALLOWED)
            found.append((number, fault, f"input {names[fault.index]} ({next(iter(files))}): {text}", word, memory))
    return found


def units(numbers, planned):
    """Numbers and faults that are checked together: a model alone, inputs of one test."""
    together = collections.defaultdict(list)
    for number in numbers:
        fault = planned[number % len(planned)]
        together[fault.case.name if fault.index is not None else number].append((number, fault))
    return together.values()


def report(results, allowed, verbose):
    words, most = collections.Counter(), (0, "")
    for number, fault, text, word, memory in results:
        words[word if word in allowed else "failed"] += 1
        most = max(most, (memory, f"{number} {fault.case.name}"))
        if word not in allowed or verbose:
            print(f"{number} {fault.case.name}, {text}: {word}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in words.most_common()) + f"; at most {most[0] >> 20} MB ({most[1]})")
    failed = words.pop("failed", 0)
    print(f"{sum(words.values())} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--ptc", type=Path, help="the program (default: BUILD/bin/ptc)")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--all", action="store_true", help="every file with every fault")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int, metavar="NUMBER", help="one; its files stay")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("-v", "--verbose", action="store_true", help="what became of each")
    args = parser.parse_args()
    build = args.build.resolve()
    ptc = (args.ptc or build / "bin" / "ptc").resolve()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planned = faults.plan(suite.load(build / "tests" / "conformance"), args.seed)
    numbers = range(args.first, len(planned) if args.all else args.first + args.cases)
    if args.case is not None:
        numbers = [args.case]
        folder = build / "tests" / "damage" / f"case-{args.case}"
        folder.mkdir(parents=True, exist_ok=True)
        print(write(faults.apply(planned[args.case % len(planned)], args.case, args.seed)[1], folder))

    def check(unit):
        is_input = unit[0][1].index is not None
        return check_inputs(unit, ptc, args.seed) if is_input else check_model(*unit[0], ptc, args.seed)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = (row for rows in pool.map(check, units(numbers, planned)) for row in rows)
        return report(results, {*ALLOWED.values(), *RUN_ALLOWED.values()}, args.verbose or args.case is not None)


if __name__ == "__main__":
    sys.exit(main())
