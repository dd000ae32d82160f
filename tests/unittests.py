"""What the run.py of a suite of unittest cases shares: its flags, and the closing line that suites.py counts."""

import argparse
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def parse(description, add=None):
    """The flags of every suite, and what `add` adds; `build` is absolute, `j` is the number of jobs of what a test starts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("-k", default="", help="only tests with this in their names")
    parser.add_argument("-j", type=int, default=1, help="jobs of one build, where a test has any")
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    if add:
        add(parser)
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    return arguments


def run(arguments, load):
    """Runs what `load(loader)` finds and prints the counts; whether a test failed."""
    loader = unittest.TestLoader()
    if arguments.k:
        loader.testNamePatterns = [f"*{arguments.k}*"]
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(load(loader))
    # A test counts once, however many of its subtests failed.
    failed = len({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed, {len(result.skipped)} skipped")
    return failed != 0


def run_folder(folder, description):
    """The whole of a suite whose folder has test_*.py files, and a models.py that is told where ptc is."""
    import models

    arguments = parse(description)
    models.PTC = arguments.build / "bin" / "ptc"
    return run(arguments, lambda loader: loader.discover(str(folder)))


def run_class(cases, description, devices=None):
    """The whole of a suite that is one class, or those derived from it, whose attribute `program` is ptc. With ptx/devices.py it has
    `--device`, and `flags` are those of `ptc compile`."""
    arguments = parse(description, devices and devices.add_arguments)
    cases.program = arguments.build / "bin" / "ptc"
    cases.flags = devices.target_flags(arguments) if devices else []
    classes = [cases, *cases.__subclasses__()]
    return run(arguments, lambda loader: unittest.TestSuite(map(loader.loadTestsFromTestCase, classes)))
