"""Runs the official ONNX tests through `ptc compile` and the library it writes, then the real models of models.toml.

    python tests/conformance/run.py                                     all, with build/bin/ptc
    python tests/conformance/run.py --filter '^node/test_softmax' -v    some, with what went wrong
    python tests/conformance/run.py --dynamic                           with free dims; how many pass so is reported
    python tests/conformance/run.py --update                            writes expected.txt anew
    python tests/conformance/run.py --device=cuda --gpu=sm_90a --suite node --sanitizer=racecheck     under compute-sanitizer

expected.txt lists the tests that do not pass. A listed test that passes is an error, as is an unlisted one that does not,
or one that was refused and now fails. Every outcome lies in BUILD/tests/conformance/results.txt.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import re
import sys
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy starts threads: the workers fork
    os.environ[name] = "1"
sys.path.append(str(Path(__file__).resolve().parents[1] / "ptx"))

import contrib  # noqa: E402
import devices  # noqa: E402
import execute  # noqa: E402
import models  # noqa: E402
import sanitizer  # noqa: E402
import suite  # noqa: E402
from execute import FAILED, PASS, UNSUPPORTED  # noqa: E402

HERE = Path(__file__).resolve().parent
LIST = HERE / "expected.txt"
CUDA_LIST = HERE / "expected-cuda.txt"
WATCHED = 40  # cases of a process under compute-sanitizer
HEADER = "# Tests that do not pass yet: name, word, cause. Written by run.py --update; it may only get shorter.\n"


def read_list(path):
    if not path.exists():
        return {}
    rows = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {row[0]: (row[1], row[2]) for row in rows}


def write_list(path, rows):
    lines = [f"{name} {word} {cause}\n" for name, (word, cause) in sorted(rows.items())]
    path.write_text(HEADER + "".join(lines))


def outcomes(cases, args, usable):
    if args.in_process:
        yield from (execute.check(case, args.ptc, usable, args.dynamic) for case in cases)
        return
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
        # Light models take longest: they go first.
        ordered = sorted(cases, key=lambda case: case.suite != "light")
        for future in [pool.submit(execute.check, case, args.ptc, usable, args.dynamic) for case in ordered]:
            yield future.result()


def run_cases(cases, args, usable):
    results = []
    for case, outcome in outcomes(cases, args, usable):
        results.append((case, outcome))
        if args.verbose:
            print(f"{len(results)}/{len(cases)} {outcome.word:12}{case.name} {outcome.cause} {outcome.seconds:.2f} s {outcome.text.strip()}", flush=True)
    return sorted(results, key=lambda pair: pair[0].name)


def worker(args):
    """The flags with which this script runs some of the cases only."""
    suites = [f"--suite={name}" for name in args.suites]
    same = [f"--build={args.build}", f"--ptc={args.ptc}", f"--device={args.device}", f"--gpu={args.gpu}", *suites, *["--dynamic"] * args.dynamic]
    return lambda names: [*same, f"--filter=^({'|'.join(map(re.escape, names))})$"]


def deviations(results, listed):
    for case, outcome in results:
        expected = listed.get(case.name, (PASS, ""))[0]
        if outcome.word == PASS and expected != PASS:
            yield f"{case.name}: passes; take it off the list (--update)"
        elif outcome.word != PASS and expected == PASS or outcome.word == FAILED and expected == UNSUPPORTED:
            first = next(iter(outcome.text.strip().splitlines()), "").replace(case.model, "model")
            yield f"{case.name}: {outcome.word} ({outcome.cause}) {first[:200]}"


def summarize(results):
    table = collections.defaultdict(collections.Counter)
    for case, outcome in results:
        table[case.suite][outcome.word] += 1
        if case.tier1 and case.suite == "node":
            table["node, tier 1 on plain types"][outcome.word] += 1
    for name, counts in table.items():
        total = sum(counts.values())
        print(f"{name}: {counts[PASS]} of {total} pass, {counts[UNSUPPORTED]} are refused, {counts[FAILED]} fail")
    constants = sum(outcome.cause == execute.CONSTANTS for _, outcome in results)
    print(f"{constants} of those that pass do so with inputs that decide shapes made constants")
    free = collections.Counter(outcome.cause for _, outcome in results if outcome.word == PASS)
    if free[execute.FREE] + free[execute.FIRST_FREE]:
        print(f"{free[execute.FREE]} of those that pass do so with all dims free, {free[execute.FIRST_FREE]} with the first of each input free")
    causes = collections.Counter(outcome.cause for _, outcome in results if outcome.word != PASS)
    print("causes: " + ", ".join(f"{cause} {count}" for cause, count in causes.most_common()))
    slowest = sorted(results, key=lambda pair: -pair[1].seconds)[:3]
    print("slowest: " + ", ".join(f"{case.name} {outcome.seconds:.1f} s" for case, outcome in slowest))


def official(args):
    cache = args.build / "tests" / "conformance"
    cases = suite.load(cache) + (contrib.load(args.ptc, cache) if "contrib" in args.suites else [])
    cases = [case for case in cases
             if case.suite in args.suites and (not args.filter or re.search(args.filter, case.name))]
    if not cases:
        return 0, 0
    if args.sanitizer:
        return sanitizer.check(args, sanitizer.deal([case.name for case in cases], WATCHED), worker(args))
    results = run_cases(cases, args, (args.flags,) if args.flags else execute.level_flags())
    path = LIST if args.device == "cpu" else CUDA_LIST
    if not args.in_process:
        log = args.build / "tests" / "conformance" / "results.txt"
        log.write_text("".join(f"{case.name} {out.word} {out.cause} {out.text.strip()!r}\n" for case, out in results))
    listed = read_list(path)
    if args.update:
        names = {case.name for case in cases}
        kept = {name: row for name, row in listed.items() if name not in names}
        listed = kept | {case.name: (out.word, out.cause) for case, out in results if out.word != PASS}
        write_list(path, listed)
    summarize(results)
    found = list(deviations(results, listed))
    print("".join(f"{line}\n" for line in found[:200]), end="")
    return sum(outcome.word == PASS for _, outcome in results), len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"), help="where the program and the caches lie")
    parser.add_argument("--ptc", type=Path, help="the program (default: BUILD/bin/ptc)")
    parser.add_argument("--filter", metavar="REGEX", help="only cases whose suite/name it finds")
    parser.add_argument("--suite", action="append", dest="suites", choices=[*suite.SUITES, "contrib", "real"])
    parser.add_argument("--update", action="store_true", help="rewrite expected.txt")
    devices.add_arguments(parser)
    sanitizer.add_arguments(parser)
    parser.add_argument("--models", action="store_true", help="also the models that PyTorch exports (tests/run.sh --models installs it)")
    parser.add_argument("--quick", action="store_true", help="real models: one compile, for this machine's CPU level alone")
    parser.add_argument("--report", type=Path, metavar="FILE", help="real models at several sizes: write each into FILE's table")
    parser.add_argument("--dynamic", action="store_true", help="with free dims where the shapes of a test allow: all, else the first of each input")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("-v", "--verbose", action="store_true", help="every case, with its reason")
    args = parser.parse_args()
    if args.sanitizer and args.device != "cuda":
        parser.error("--sanitizer is for --device=cuda")
    args.flags = devices.target_flags(args)
    if args.device == "emulated":
        execute.on_device = execute.isolated  # no context that takes time to make
    args.build = args.build.resolve()
    args.ptc = (args.ptc or args.build / "bin" / "ptc").resolve()
    args.suites = args.suites or [*suite.SUITES, "contrib", "real"]
    passed, failed = official(args)
    if "real" in args.suites and args.device == "cpu":
        more, worse = models.check_all(args.ptc, args.build, args.models, args.filter, args.quick, args.report)
        passed, failed = passed + more, failed + worse
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
