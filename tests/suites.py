"""Runs the test suites side by side and adds up their results.

A suite is a command whose last line of the form `N passed, N failed[, N skipped]` counts. Three are built in;
every other is a folder of tests/ with a run.py, called as

    python tests/NAME/run.py --build BUILD -j N [--models]

and free to print what it likes before that line. A suite that fails without counting a failure, or that counts
nothing, is one failure: no result may be lost.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")
LIT_COUNTS = re.compile(r"^\s*(Passed|Expectedly Failed|Failed|Unresolved|Timed Out|Unexpectedly Passed"
                        r"|Unsupported|Skipped)\s*:\s*(\d+)", re.M)
CATCH_PASSED = re.compile(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)")
CATCH_MIXED = re.compile(r"test cases:\s*(\d+) \|\s*(?:(\d+) passed \|\s*)?(\d+) failed")


def count_plain(text):
    found = COUNTS.findall(text)
    return tuple(int(n or 0) for n in found[-1]) if found else None


def count_lit(text):
    found = dict(LIT_COUNTS.findall(text))
    if not found:
        return None
    total = lambda *names: sum(int(found.get(name, 0)) for name in names)
    return (total("Passed", "Expectedly Failed"),
            total("Failed", "Unresolved", "Timed Out", "Unexpectedly Passed"),
            total("Unsupported", "Skipped"))


def count_catch(text):
    if match := CATCH_PASSED.search(text):
        return int(match[1]), 0, 0
    if match := CATCH_MIXED.search(text):
        return int(match[2] or 0), int(match[3]), 0
    return None


def suites(build, jobs, models):
    """Name, command and counting rule of every suite, the quick ones first."""
    python = sys.executable
    lint = ROOT / "tests" / "lint" / "run.py"
    yield "lint", [python, lint], count_plain
    yield "unit", [build / "bin" / "ptc-unit"], count_catch
    yield "lit", [Path(python).parent / "lit", "-sv", "-j", str(jobs), "--param", f"build={build}", ROOT / "tests"], count_lit
    for script in sorted(ROOT.glob("tests/*/run.py")):
        if script != lint:
            extra = ["--models"] if models else []
            yield script.parent.name, [python, script, "--build", build, "-j", str(jobs), *extra], count_plain


def run(suite, build):
    name, command, count = suite
    log = build / "tests" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("w") as out:
        try:
            code = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT).returncode
        except OSError as error:
            print(error, file=out)
            code = 127
    text = log.read_text(errors="replace")
    result = count(text)
    lost = result is None or (code != 0 and result[1] == 0)
    passed, failed, skipped = result or (0, 0, 0)
    return name, passed, failed + lost, skipped, time.monotonic() - started, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SUITE")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--models", action="store_true", help="also the models that PyTorch exports")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    args = parser.parse_args()
    build = args.build.resolve()
    chosen = [s for s in suites(build, args.jobs, args.models) if not args.names or s[0] in args.names]
    if unknown := set(args.names) - {s[0] for s in chosen}:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")

    # The built-in suites run beside each other; the others use all cores themselves and may time things.
    quick = [s for s in chosen if s[0] in ("lint", "unit", "lit")]
    slow = [s for s in chosen if s not in quick]
    totals = [0, 0, 0]
    for group, width in ((quick, 3), (slow, 1)):
        with concurrent.futures.ThreadPoolExecutor(width) as pool:
            for name, *counts, seconds, text in pool.map(lambda suite: run(suite, build), group):
                if counts[1]:
                    print("\n".join(text.splitlines()[-60:]))
                print(f"{name}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped   {seconds:.1f} s", flush=True)
                totals = [total + n for total, n in zip(totals, counts)]
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
