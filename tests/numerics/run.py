"""Runs ptc-numerics and counts its cases. --full takes every f32 value (minutes a function)."""
import argparse
import os
import re
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    program = os.path.join(arguments.build, "bin", "ptc-numerics")
    run = subprocess.run([program, "[.full]" if arguments.full else "~[.]"], capture_output=True, text=True)
    print(run.stdout, end="")
    print(run.stderr, end="", file=sys.stderr)
    counts = re.search(r"test cases:.*", run.stdout)
    every = re.search(r"All tests passed \(.* in (\d+) test cases?\)", run.stdout)
    if every:
        passed, failed = int(every.group(1)), 0
    else:
        count = lambda word: int((re.search(r"(\d+) " + word, counts.group(0)) or [0, 0])[1]) if counts else 0
        passed, failed = count("passed"), max(1, count("failed"))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
