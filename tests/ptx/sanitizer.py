"""`--sanitizer TOOL` of suites that run on a GPU: their cases under compute-sanitizer.

A worker is the suite's own script with `--in-process`: it runs some of the cases one after another in its process, so that CUDA is
started once for them. That process alone is watched; ptc and ptxas, which it starts, run as fast as ever. A case has errors if
the tool says so of a worker that ran nothing else: workers with errors are taken apart. Before all, the tool must find a planted fault.
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

FAULTS = Path(__file__).with_name("faults.py")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 86  # exit code of the tool if it found something
SECONDS = 900  # of a worker
APART = 6  # workers with errors whose cases run again one by one; a bug in every kernel would take hours
SUMMARY = re.compile(r"SUMMARY: (\d+) (?:error|hazard)")
NO_KERNELS = "terminated before first instrumented API call"  # all that its cases do is the host's
SHOWN = 14  # lines of what is found first


def add_arguments(parser):
    parser.add_argument("--sanitizer", choices=TOOLS, help="with --device: under compute-sanitizer (the CUDA Toolkit), with this tool of it")
    parser.add_argument("--in-process", action="store_true", help="cases one after another in this process, for tools that watch it")


def deal(cases, size):
    """Parts of at most `size` cases, with every kind of case in each."""
    count = -(-len(cases) // size)
    return [cases[first::count] for first in range(count)]


def watch(tool, command, log):
    """What is wrong with a worker, '' if nothing is, and whether it launched kernels."""
    log.unlink(missing_ok=True)
    words = ["compute-sanitizer", f"--tool={tool}", "--target-processes=application-only", f"--error-exitcode={FOUND}", "--print-limit=20",
             "--require-cuda-init=no", "--launch-timeout=0", f"--log-file={log}", *map(str, command)]
    with log.with_suffix(".out").open("w+") as out:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            code = child.wait()
        out.seek(0)
        said = out.read().splitlines()
    report = log.read_text(errors="replace") if log.exists() else ""
    if code == 0 and NO_KERNELS in report:
        return "", False
    counts = SUMMARY.findall(report)
    if code == 0 and counts and not any(map(int, counts)):
        return "", True
    lines = [line for line in report.splitlines() if line.strip("= ") and "COMPUTE-SANITIZER" not in line]
    return "\n".join([f"exit {code}", *lines[:SHOWN], *said[-4:]]), True


def check(args, parts, worker):
    """How many cases are clean and how many are not: of each part a worker's, for which `worker` gives the suite's arguments."""
    folder = args.build / "tests" / "sanitizer" / args.sanitizer
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()

    def run(number, part):
        return watch(args.sanitizer, [sys.executable, sys.argv[0], "--in-process", *worker(part)], folder / f"{number}.log")

    problem, _ = watch(args.sanitizer, [sys.executable, FAULTS, args.sanitizer], folder / "fault.log")
    if f"exit {FOUND}" not in problem:
        print(f"{args.sanitizer} does not find the fault of {FAULTS}: {problem}")
        return 0, 1
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(run, range(len(parts)), parts))
        found = {number: [(parts[number], problem)] for number, (problem, _) in enumerate(results) if problem}
        alone = [(number, [case]) for number in list(found)[:APART] if len(parts[number]) > 1 for case in parts[number]]
        again = pool.map(run, range(len(parts), len(parts) + len(alone)), [case for _, case in alone])
        for (number, case), (problem, _) in zip(alone, again):
            if problem:  # what all of them had is this one's
                found[number] = [pair for pair in found[number] if pair[0] is not parts[number]] + [(case, problem)]
    bad = [pair for pairs in found.values() for pair in pairs]
    for part, problem in bad:
        print(f"{', '.join(map(str, part))}: {problem}", flush=True)
    cases, failed = (sum(len(part) for part in some) for some in (parts, [part for part, _ in bad]))
    print(f"{args.sanitizer}: {cases} cases in {len(parts)} processes, {sum(not launched for _, launched in results)} of them without kernels, "
          f"{time.monotonic() - started:.0f} s; logs in {folder}")
    return cases - failed, failed
