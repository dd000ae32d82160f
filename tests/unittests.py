"""What the run.py of a suite of unittest cases shares: its flags, and the closing line that suites.py counts.

Tests run side by side, each in a fork of a process that has only imported them: what one does to a random generator, or
to the process, reaches no other, whatever the number of jobs; one that crashes is one failure. A single one runs where it is, for debuggers.
"""

import argparse
import io
import multiprocessing
import multiprocessing.connection
import os
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What has a process of its own: each test; each class, whose tests draw from one generator; or nothing, where tests share
# what one of them makes, or time things.
TESTS, CLASSES, NOTHING = "tests", "classes", "nothing"


def parse(description, add=None):
    """The flags of every suite, and what `add` adds; `build` is absolute."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("-k", default="", help="only tests with this in their names")
    parser.add_argument("-j", type=int, default=1, help="tests that run side by side, or jobs of one build")
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    if add:
        add(parser)
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.j = max(arguments.j, 1)
    return arguments


def _tests(suite):
    for test in suite:
        yield from _tests(test) if isinstance(test, unittest.TestSuite) else [test]


def _units(suite, apart):
    """Lists of tests: of a class, or one where its class has no setUpClass that they share."""
    units = {}
    for test in _tests(suite):
        is_shared = type(test).setUpClass.__func__ is not unittest.TestCase.setUpClass.__func__
        units.setdefault(type(test) if is_shared or apart == CLASSES else test, []).append(test)
    return list(units.values())


def _run_tests(tests, stream):
    """How many ran, the names of those that failed (a test counts once, however many of its subtests did), and how many
    were left out."""
    result = unittest.TextTestRunner(stream=stream, verbosity=2).run(unittest.TestSuite(tests))
    failed = {getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors}
    return result.testsRun, failed, len(result.skipped)


def _serve(tests, folder, pipe):
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    text = io.StringIO()
    counts = _run_tests(tests, text)
    lines = text.getvalue()
    pipe.send((lines if counts[1] else lines.split("\n" + "-" * 70)[0], counts))


class _Process:
    """Runs a unit; what its tests leave behind goes with it."""

    def __init__(self, tests):
        context = multiprocessing.get_context("fork")
        self.tests, self.started = tests, time.monotonic()
        self.folder = tempfile.mkdtemp(prefix="ptc-")
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=_serve, args=(tests, self.folder, other))
        self.process.start()
        other.close()

    def finish(self):
        try:
            text, counts = self.pipe.recv()
        except EOFError:
            text, counts = None, (len(self.tests), {test.id() for test in self.tests}, 0)
        self.process.join()
        shutil.rmtree(self.folder, ignore_errors=True)
        print(f"{text or f'{self.tests[0].id()}: its process ended with {self.process.exitcode}'.rstrip()}"
              f"   {time.monotonic() - self.started:.1f} s", flush=True)
        return counts


def _run_side_by_side(units, jobs):
    waiting, busy = units[::-1], {}
    while waiting or busy:
        while waiting and len(busy) < jobs:
            process = _Process(waiting.pop())
            busy[process.pipe] = process
        for pipe in multiprocessing.connection.wait(busy):
            yield busy.pop(pipe).finish()


def run(arguments, load, apart=TESTS):
    """Runs what `load(loader)` finds and prints the counts; whether a test failed."""
    loader = unittest.TestLoader()
    if arguments.k:
        loader.testNamePatterns = [f"*{arguments.k}*"]
    suite = load(loader)
    units = _units(suite, apart)
    if apart == NOTHING or len(units) < 2:
        counts = [_run_tests([suite], sys.stdout)]
    else:
        counts = list(_run_side_by_side(units, arguments.j))
    ran, failed, skipped = sum(c[0] for c in counts), len(set().union(*(c[1] for c in counts))), sum(c[2] for c in counts)
    print(f"{ran - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed != 0


def run_folder(folder, description, apart=TESTS):
    """The whole of a suite whose folder has test_*.py files, and a models.py that is told where ptc is."""
    import models

    arguments = parse(description)
    models.PTC = arguments.build / "bin" / "ptc"
    return run(arguments, lambda loader: loader.discover(str(folder)), apart)


def run_class(cases, description, devices=None, apart=TESTS):
    """The whole of a suite that is one class, or those derived from it, whose attribute `program` is ptc. With ptx/devices.py it has
    `--device`, and `flags` are those of `ptc compile`."""
    arguments = parse(description, devices and devices.add_arguments)
    cases.program = arguments.build / "bin" / "ptc"
    cases.flags = devices.target_flags(arguments) if devices else []
    classes = [cases, *cases.__subclasses__()]
    return run(arguments, lambda loader: unittest.TestSuite(map(loader.loadTestsFromTestCase, classes)), apart)
