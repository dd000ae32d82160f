"""Random graphs, compiled and judged node by node: what is rewritten must compute what was written.

    python tests/property/run.py                       the fixed seeds of the suite, of both kinds
    python tests/property/run.py --kind mixed --seeds 1000:9000     others; FROM: without TO, until it is stopped
    python tests/property/run.py --kind mixed --seeds 1042 --keep . leaves the graph of a seed, and what it was shrunk to if it fails
    python tests/property/run.py --device=emulated     on a GPU that is emulated; =cuda: on this machine's
    python tests/property/run.py --device=cuda --gpu=sm_90a --sanitizer=racecheck     under compute-sanitizer

One thread and two must give the same bits, on a GPU two runs.
"""

import argparse
import collections
import itertools
import os
import sys
import tempfile
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy starts threads: the workers fork
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "conformance"), str(ROOT / "tests" / "ptx")]
import devices  # noqa: E402
import execute  # noqa: E402
import fused  # noqa: E402
import mixed  # noqa: E402
import sanitizer  # noqa: E402
import shrink  # noqa: E402
import workers  # noqa: E402
from execute import FAILED, PASS, UNSUPPORTED, Outcome, ptc  # noqa: E402
from judge import Declined, difference  # noqa: E402

KINDS = {"fused": fused.draw, "mixed": mixed.draw}
SUITE = {"fused": "0:150", "mixed": "0:100"}
WATCHED = 10  # seeds of a process under compute-sanitizer


def compare(case, wanted, library):
    """The runs one after another, of one thread and of two, and the first one again."""
    one, two = (ptc.load(library, threads=n) for n in (1, 2))
    first = None
    for feeds, values in zip(case.runs, wanted):
        got, same = one(**feeds), two(**feeds)
        first = first or got
        for name, value in values.items():
            if problem := difference(got[name], value):
                return [FAILED, "wrong", f"{name}: {problem}"]
            if got[name].tobytes() != same[name].tobytes():
                return [FAILED, "threads", f"{name}: one thread and two give other bits"]
    again = one(**case.runs[0])
    differ = [name for name in first if first[name].tobytes() != again[name].tobytes()]
    return [FAILED, "again", f"{differ[0]}: the first run and the last give other bits"] if differ else [PASS, "", ""]


def examine(case, program, flags, tell=lambda step: None):
    try:
        tell("judging")
        wanted = case.wanted()
    except Declined as error:
        return Outcome(UNSUPPORTED, "declined", str(error))
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        path, library = Path(folder) / "model.onnx", Path(folder) / "model.so"
        onnx.save(case.model, path)
        tell("compiling and running")
        refused = execute.compile_model(program, path, library, ["-j1", *case.flags, *flags])
        return refused or execute.isolated(compare, case, wanted, library)


def keep(case, stem):
    onnx.save(case.model, stem.with_suffix(".onnx"))
    for i, feeds in enumerate(case.runs):
        np.savez(stem.with_suffix(f".{i}.npz"), **feeds)


def check(kind, seed, program, folder, flags, smaller, tell=lambda step: None):
    """The outcome of a seed, and if it fails what it was shrunk to. `tell` is told what is done next."""
    tell("drawing")
    case = KINDS[kind](seed)
    outcome = examine(case, program, flags, tell)
    if folder:
        keep(case, folder / f"{kind}{seed}")
    if outcome.word != FAILED or not smaller:
        return seed, outcome, ""

    def fails(other):
        found = examine(other, program, flags, lambda step: tell(f"shrinking, {step}"))
        return (found.word, found.cause) == (outcome.word, outcome.cause)

    case = shrink.shrink(case, fails)
    if folder:
        keep(case, folder / f"{kind}{seed}-small")
    return seed, outcome, f"{examine(case, program, flags).text.strip()[:600]}\n{shrink.text(case)}"


def outcomes(kind, seeds, args, flags):
    rest = (args.program, args.keep, flags, args.shrink)
    if args.in_process:
        execute.isolated = execute.on_device
        yield from (check(kind, seed, *rest) for seed in seeds)
        return
    # A process that draws and judges runs neither ptc nor its libraries: where it dies, onnxruntime or onnx did.
    for seed, (result, death) in workers.examine(lambda seed, tell: check(kind, seed, *rest, tell), seeds, args.jobs):
        yield result or (seed, Outcome(FAILED, "judge", death), "")


def run_kind(kind, seeds, args):
    """How many graphs passed, failed and were skipped."""
    if args.sanitizer:
        same = [f"--build={args.build}", f"--device={args.device}", f"--gpu={args.gpu}", f"--kind={kind}", "--no-shrink"]
        parts = [seeds[first:first + WATCHED] for first in range(0, len(seeds), WATCHED)]
        return collections.Counter(dict(zip((PASS, FAILED), sanitizer.check(args, parts, lambda part: [*same, f"--seeds={part[0]}:{part[-1] + 1}"]))))
    counts = collections.Counter()
    for seed, outcome, small in outcomes(kind, seeds, args, devices.target_flags(args)):
        counts[outcome.word] += 1
        if outcome.word == FAILED or args.verbose and outcome.word != PASS:
            print(f"{kind} {seed}: {outcome.word} {outcome.cause} {outcome.text.strip()[:400]}", flush=True)
        if small:
            print(f"{small}\nagain: {Path(sys.argv[0])} --kind {kind} --seeds {seed} --keep .\n", flush=True)
    return counts


def seeds_of(text):
    first, colon, last = text.partition(":")
    return itertools.count(int(first)) if colon and not last else range(int(first), int(last or int(first) + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where the program lies")
    parser.add_argument("--ptc", type=Path, help="the program (default: BUILD/bin/ptc)")
    parser.add_argument("--kind", choices=KINDS, help="of the graphs (default: both)")
    parser.add_argument("--seeds", metavar="FROM[:[TO]]", help="default: the suite's")
    parser.add_argument("--keep", type=Path, help="folder in which to leave the graphs")
    parser.add_argument("--no-shrink", action="store_false", dest="shrink", help="a failing graph as it is")
    parser.add_argument("--models", action="store_true", help="changes nothing here")
    parser.add_argument("-v", "--verbose", action="store_true", help="also what is refused, and what cannot be judged")
    devices.add_arguments(parser)
    sanitizer.add_arguments(parser)
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    args = parser.parse_args()
    args.program = (args.ptc or args.build / "bin" / "ptc").resolve()
    counts = sum((run_kind(kind, seeds_of(args.seeds or SUITE[kind]), args) for kind in ([args.kind] if args.kind else KINDS)), collections.Counter())
    print(f"{counts[PASS]} passed, {counts[FAILED]} failed, {counts[UNSUPPORTED]} skipped")
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
