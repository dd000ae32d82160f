"""Generated cases of every operator and type against onnxruntime, the ONNX reference evaluator and the specification.

    python tests/sweep/run.py                        what CI runs: 2,000 cases
    python tests/sweep/run.py --cases 20000          all
    python tests/sweep/run.py --filter '^Resize$'    some operators
    python tests/sweep/run.py --device=emulated      on a GPU that is emulated; =cuda: on this machine's
    python tests/sweep/run.py --device=cuda --gpu=sm_90a --sanitizer=memcheck     under compute-sanitizer
    python tests/sweep/run.py --case 1234            one, with its model and arrays in BUILD/tests/sweep/case-1234
"""

import argparse
import collections
import concurrent.futures
import json
import multiprocessing
import os
import re
import sys
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy starts threads: the workers fork
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402

import batch  # noqa: E402
import oracle  # noqa: E402
from case import build, feeds, size_flags  # noqa: E402
from draw import Draw  # noqa: E402
from rows import ROWS, available  # noqa: E402

import classical  # noqa: E402, F401
import contributed  # noqa: E402, F401
import elementwise  # noqa: E402, F401
import movement  # noqa: E402, F401
import neural  # noqa: E402, F401
import quantized  # noqa: E402, F401
import reductions  # noqa: E402, F401
import text  # noqa: E402, F401

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "ptx"))
import devices  # noqa: E402
import sanitizer  # noqa: E402

SEED, ALL, BLOCK = 1, 20000, 50
NEWEST = onnx.defs.onnx_opset_version()
OPSETS = (NEWEST,) * 10 + (26, 24, 23, 22, 21, 20, 19, 18, 17, 15, 13, 13, 11, 9, 7)
FAILURES, SHOWN = ("wrong", "crash", "status"), 5
DRAWS = 20  # attempts of a number to draw a case: a row may have nothing for the types it drew


def opset_of(seed, number):
    rng = np.random.default_rng([seed, number // BLOCK, 7])
    return int(rng.choice(OPSETS))


def open_dims(d, case):
    """Symbols for all dims, 0 and 1 among them, or for some: one for each size, or one for each dim."""
    share, is_shared = d.choice([1, 0.5]), d.often(0.5)
    given = [(i, array.shape) for i, array in enumerate(case.inputs) if array is not None and i not in case.constants]
    dims = [(i, axis, size) for i, shape in given for axis, size in enumerate(shape)]
    return {(i, axis): f"c{case.number}_{f'n{size}' if is_shared else f'd{i}_{axis}'}" for i, axis, size in dims
            if d.often(share) and not case.closed(i, axis, size)}


def draw_case(seed, number, only=None):
    """The case of this number. It depends on the tables, not on what is run beside it."""
    opset = opset_of(seed, number)
    table = [key for key in available(opset) if not only or re.search(only, key[1])]
    if not table:
        return None
    order = np.random.default_rng([seed, 11]).permutation(len(table))
    domain, operator = table[order[number % len(table)]]
    for attempt in range(DRAWS):
        d = Draw(seed, number * DRAWS + attempt, operator, domain, opset)
        if case := ROWS[domain, operator](d):
            case.number = number
            if d.often(0.1):  # the compiler computes the node itself
                case.constants = frozenset(i for i, array in enumerate(case.inputs) if array is not None)
            elif d.often(0.3):
                case.open = open_dims(d, case)
            return case
    raise LookupError(f"{operator} at opset {opset} draws nothing in {DRAWS} attempts")


def check_block(numbers, seed, only, program, flags):
    cases = [case for case in (draw_case(seed, number, only) for number in numbers) if case]
    known = [case for case in cases if oracle.knows_results(case)]
    found = batch.check(known, program, flags)
    found |= {case.number: batch.Outcome("unjudged", str(case.wanted)[:500]) for case in cases if case.number not in found}
    return [(case.number, case.domain, case.operator, case.opset, case.type, found[case.number]) for case in cases]


def all_results(args, blocks):
    """Those of each block as they come; in this process a run's death is this process's."""
    if args.in_process:
        batch.run_apart = batch.in_process
        yield from (check_block(block, args.seed, args.filter, args.ptc, args.flags) for block in blocks)
        return
    with concurrent.futures.ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        for done in [pool.submit(check_block, block, args.seed, args.filter, args.ptc, args.flags) for block in blocks]:
            yield done.result()


def worker(args):
    """The flags with which this script runs a part of a block."""
    filters = [f"--filter={args.filter}"] if args.filter else []
    same = [f"--build={args.build}", f"--ptc={args.ptc}", f"--device={args.device}", f"--gpu={args.gpu}", f"--seed={args.seed}", *filters]
    return lambda numbers: [*same, f"--first={numbers[0]}", f"--cases={len(numbers)}", "--flags", *args.more_flags]


def report(results, verbose, shown):
    """A line for each failure, for a few of each operator."""
    for number, domain, operator, opset, kind, outcome in results:
        if outcome.word in FAILURES or verbose and outcome.word != "pass":
            shown[operator, outcome.word] += 1
            if shown[operator, outcome.word] > SHOWN:
                continue
            place = f"{number} {domain + '.' if domain else ''}{operator}-{opset} {kind}"
            lines = [line for line in outcome.text.strip().splitlines() if line.strip()] or [""]
            print(f"{place}: {outcome.word} {('(' + outcome.oracle + ') ') if outcome.oracle else ''}{lines[0][:230]}", flush=True)


def show(case, args):
    """One case with its files."""
    folder = args.build / "tests" / "sweep" / f"case-{case.number}"
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(build([case]), folder / "model.onnx")
    np.savez(folder / "inputs.npz", **{name: array for name, array in feeds(case).items() if array.dtype.kind not in "OV"})
    print(onnx.printer.to_text(build([case])))
    np.set_printoptions(threshold=200, linewidth=160)
    for i, array in enumerate(case.inputs):
        print(f"input {i}: {'left out' if array is None else f'{array.dtype}{list(array.shape)} {array}'}")
    outcome = batch.check([case], args.ptc, args.flags)[case.number]
    print(f"{outcome.word} {outcome.oracle} {outcome.text}\nworst error {outcome.ulp:.3g} ulp\n{folder}/model.onnx {' '.join(size_flags(case))}")
    return 0 if outcome.word == "pass" else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where the program and the caches lie")
    parser.add_argument("--ptc", type=Path, help="the program (default: BUILD/bin/ptc)")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--turn", type=int, default=0, help="window of --cases numbers: 0 is what CI runs, 1 the next ones, round all 20,000")
    parser.add_argument("--first", type=int, help="number of the first case")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--filter", metavar="REGEX", help="only operators whose name it finds; numbers mean other cases then")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="one case, with its files")
    parser.add_argument("--flags", nargs="*", default=[], help="more flags of ptc compile")
    devices.add_arguments(parser)
    sanitizer.add_arguments(parser)
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("-v", "--verbose", action="store_true", help="also what is refused and what no oracle computes")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.ptc = (args.ptc or args.build / "bin" / "ptc").resolve()
    if args.sanitizer and args.device != "cuda":
        parser.error("--sanitizer is for --device=cuda")
    args.more_flags, args.flags = args.flags, [*args.flags, *devices.target_flags(args)]
    if args.case is not None:
        return show(draw_case(args.seed, args.case, args.filter), args)
    first = args.first if args.first is not None else args.turn * args.cases % ALL
    print(f"seed {args.seed}, cases {first} to {first + args.cases - 1}", flush=True)
    numbers = range(first, first + args.cases)
    blocks = [[n for n in numbers if n // BLOCK == b] for b in range(numbers[0] // BLOCK, numbers[-1] // BLOCK + 1)]
    if args.sanitizer:
        passed, failed = sanitizer.check(args, blocks, worker(args))
        print(f"{passed} passed, {failed} failed")
        return 1 if failed else 0
    results, shown = [], collections.Counter()
    for done in all_results(args, blocks):
        results += done
        report(done, args.verbose, shown)
    words = collections.Counter(outcome.word for *_, outcome in results)
    more = {key: count for key, count in shown.items() if count > SHOWN}
    print("".join(f"{operator}: {count} {word} in all\n" for (operator, word), count in more.items()), end="")
    if not args.in_process:
        log = args.build / "tests" / "sweep"
        log.mkdir(parents=True, exist_ok=True)
        (log / "results.json").write_text(json.dumps([[*row[:5], row[5].__dict__] for row in results]))
    print(f"{sum(outcome.is_open for *_, outcome in results)} with open dims")
    failed = words["wrong"] + words["crash"] + words["status"]
    print(f"{words['pass']} passed, {failed} failed, {words['refused'] + words['unjudged']} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
