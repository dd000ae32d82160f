"""Runs the tests of this folder; see README.md."""

import argparse
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", type=Path)
    parser.add_argument("-k", default="", help="only tests with this in their names")
    parser.add_argument("-j", type=int, default=1, help="accepted, without effect")
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    arguments = parser.parse_args()
    sys.path[:0] = [str(HERE), str(HERE.parents[1] / "runtime" / "python")]
    import models

    models.PTC = arguments.build.resolve() / "bin" / "ptc"
    loader = unittest.TestLoader()
    if arguments.k:
        loader.testNamePatterns = [f"*{arguments.k}*"]
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(loader.discover(str(HERE)))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed, {len(result.skipped)} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
