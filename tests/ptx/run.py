"""Runs what `ptc compile --target=cuda` makes: the official node tests in an emulation of a GPU's threads.

    python tests/ptx/run.py [--filter REGEX] [-v]        the suite
    python tests/ptx/run.py --device DIR [--time]        on this machine's GPU: DIR as make_cases.py wrote it
    python tests/ptx/run.py --device DIR --sanitizer TOOL   the same under compute-sanitizer
    python tests/ptx/run.py --emulate DIR                the same cases in the emulation

Models that have kernels without code for the target yet are counted, and left out.
"""

import argparse
import concurrent.futures
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WATCHED = 6  # cases of a process under compute-sanitizer
# For which official tests are too small; whose symbols have ranges; of doubles.
MADE = "^(scatter-(sorted|any-order|source|last)|sort-digits-)(?!.*-ranged)|^(attention|layernorm|matmul|scan|softmax|split)-symbolic-ranged|^remainder"
RANDOM = "bernoulli|training_dropout"  # what they draw is every runtime's own

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy starts threads: the workers fork
    os.environ[name] = "1"

import numpy as np  # noqa: E402

import program  # noqa: E402
import sanitizer  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))
sys.path.insert(0, str(HERE.parents[1] / "runtime" / "python"))


def tolerance(dtype):
    return 2e-2 if dtype == np.float16 else 1e-3


def check_outputs(found, expected, exact=False):
    for name, value in expected.items():
        problem = program.difference(found[name], value, tolerance(found[name].dtype))
        if exact and not problem and found[name].tobytes() != value.tobytes():
            problem = "other bits"
        if problem:
            return f"{name}: {problem}"
    return ""


def cases_in(folder, pattern):
    return [case for case in sorted(folder.iterdir()) if re.search(pattern, case.name)]


def check_folders(device, folder, pattern, time):
    failed = passed = 0
    for case in cases_in(folder, pattern):

        def watch(name, size, launch):
            elapsed = device.measure(launch)
            print(f"     {name}: {elapsed:.2f} us, {size / elapsed / 1e3:.0f} GB/s")

        try:
            compiled = program.Program(device, (case / "model.ptx").read_text(), (case / "model.plan-memory.mlir").read_text(),
                                       case / "model.onnx")
            found = compiled.run(dict(np.load(case / "inputs.npz")), watch if time else None)
            problem = check_outputs(found, dict(np.load(case / "expected.npz")), exact=case.name.startswith("scatter"))  # a loop's bits
        except (RuntimeError, KeyError, ValueError, TypeError, program.NotKnown) as error:
            problem = f"{type(error).__name__}: {error}"
        print(f"{'FAIL' if problem else 'ok  '} {case.name} {problem}", flush=True)
        failed, passed = failed + bool(problem), passed + (not problem)
    return passed, failed


def compile_case(model, path, ptc, flags):
    """ptc's exit code and what it said."""
    command = [ptc, "compile", model, "--target=cuda", "--emit=ptx,mlir:plan-memory", "-j1", "-o", path, *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr


@functools.cache
def install_driver():
    import emulated
    emulated.install()


def check_library(case, ptc):
    """The same of the library, whose program does what program.py knows nothing of."""
    import execute
    install_driver()
    execute.on_device = execute.isolated
    _, outcome = execute.check(case, ptc, [("--target=cuda", "--gpu=ptx")])
    word = {execute.PASS: "ok", execute.UNSUPPORTED: "refused"}.get(outcome.word, "FAIL")
    return case.name, word, outcome.text


def check_case(case, ptc):
    """The case's name, a word (ok, refused, FAIL) and a sentence."""
    import onnx
    from emulator import Emulator
    from ptc.backend import pins, with_constants
    import suite
    read = [tuple([suite.read(path) for path in side] for side in pair) for pair in case.sets]
    model = onnx.load(case.model)
    are_tensors = all(value.type.HasField("tensor_type") for value in (*model.graph.input, *model.graph.output))
    if not are_tensors or not all(isinstance(value, np.ndarray) and value.dtype != object for pair in read for side in pair for value in side):
        return check_library(case, ptc)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in weights]
    outputs = [value.name for value in model.graph.output]
    sets = [(dict(zip(inputs, given)), dict(zip(outputs, wanted))) for given, wanted in read]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ptx"
        flags = pins(model, list(sets[0][0].values()))
        code, text = compile_case(case.model, path, ptc, flags)
        plan = path.with_suffix(".plan-memory.mlir")
        if code == 4 and ("PTC0305" in text or "PTC0408" in text):  # shapes that depend on inputs: known ones will do
            fixed, chosen = with_constants(model, sets[0][0], False)
            onnx.save(fixed, Path(folder) / "model.onnx")
            left = [flag for flag in flags if not any(flag.startswith(f"--shape={name}=") for name in chosen)]
            code, text = compile_case(Path(folder) / "model.onnx", path, ptc, left)
        if code:
            return case.name, "refused" if code == 4 else "FAIL", text
        ptx, plan = path.read_text(), plan.read_text()
    try:
        for given, wanted in sets:
            compiled = program.Program(Emulator(), ptx, plan)
            if problem := check_outputs(compiled.run(given), wanted):
                return case.name, "FAIL", problem
    except program.OnlyLibrary:
        return check_library(case, ptc)
    except program.NotKnown as error:
        return case.name, "refused", str(error)
    except (RuntimeError, KeyError, ValueError, TypeError, IndexError) as error:
        return case.name, "FAIL", f"{type(error).__name__}: {error}"
    return case.name, "ok", ""


def check_suite(args):
    import suite
    cases = [case for case in suite.load(args.build / "tests" / "conformance")
             if case.suite == "node" and re.search(args.filter, case.name) and not re.search(RANDOM, case.name)]
    counts = {"ok": 0, "refused": 0, "FAIL": 0}
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for name, word, text in pool.map(check_case, cases, [args.build / "bin" / "ptc"] * len(cases), chunksize=4):
            counts[word] += 1
            if word == "FAIL" or args.verbose:
                print(word, name, next(iter(text.strip().splitlines()), "")[:300], flush=True)
    print(f"{counts['refused']} of {len(cases)} have work that there is no PTX for yet, or types that numpy lacks")
    return counts["ok"], counts["FAIL"]


def check_made(args):
    """Cases of make_cases.py, of what CI has nothing else."""
    from emulator import Emulator
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "make_cases.py", "--build", args.build, "--filter", MADE, folder], check=True)
        return check_folders(Emulator(), Path(folder), "", False)


def check_generated(args):
    """Cases that other suites have for the CPU, some of each."""
    passed = failed = 0
    for name, which in (("sweep", "--cases=500"), ("property", "--seeds=0:50"), ("regions", "-k=row")):
        command = [sys.executable, HERE.parent / name / "run.py", "--device=emulated", which, "--build", args.build, "-j", str(args.jobs)]
        text = subprocess.run([str(word) for word in command], capture_output=True, text=True).stdout
        print(f"{name}:", text, sep="\n", flush=True)
        counts = re.findall(r"(\d+) passed, (\d+) failed", text)
        passed, failed = passed + int(counts[-1][0] if counts else 0), failed + int(counts[-1][1] if counts else 1)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parent.parent / "build")
    parser.add_argument("--filter", metavar="REGEX", default="")
    parser.add_argument("--device", metavar="DIR", type=Path)
    parser.add_argument("--emulate", metavar="DIR", type=Path)
    sanitizer.add_arguments(parser)
    parser.add_argument("--time", action="store_true", help="measure every launch on the device")
    parser.add_argument("--models", action="store_true", help="no more models here; every suite takes this")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if args.sanitizer and not args.device:
        parser.error("--sanitizer is for --device")
    if args.sanitizer:
        parts = sanitizer.deal([case.name for case in cases_in(args.device, args.filter)], WATCHED)
        passed, failed = sanitizer.check(args, parts, lambda names: [f"--device={args.device}", f"--filter=^({'|'.join(map(re.escape, names))})$"])
    elif args.device:
        from driver import Driver
        passed, failed = check_folders(Driver(fills=not args.in_process), args.device, args.filter, args.time)
    elif args.emulate:
        from emulator import Emulator
        passed, failed = check_folders(Emulator(), args.emulate, args.filter, False)
    else:
        passed, failed = check_suite(args)
        if not args.filter:
            passed, failed = (sum(counts) for counts in zip((passed, failed), check_made(args), check_generated(args)))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
