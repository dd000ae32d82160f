"""`--sanitizer` of the suites, with a compute-sanitizer that runs what it is given and finds what the test says."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
BUILD = TESTS.parent / "build"  # where the official tests are written once

# Notes what it is to watch; the first word of $FINDS says which cases have errors, the second how many of them it takes for that.
TOOL = """#!{python}
import os, re, subprocess, sys
log = next(word for word in sys.argv if word.startswith("--log-file=")).partition("=")[2]
command = sys.argv[sys.argv.index(log_word := f"--log-file={{log}}") + 1:]
if "faults.py" not in command[1]:
    with open(os.environ["NOTES"], "a") as notes:
        print(*sys.argv[1:], file=notes)
code = subprocess.run(command).returncode if "script.py" in command[1] else 0
cases, needed = os.environ["FINDS"].split()
found = len(re.findall(rf"\\b({{cases}})\\b", command[-1])) >= int(needed) or "faults.py" in command[1] and cases != "nothing"
with open(log, "w") as report:
    print("========= COMPUTE-SANITIZER", file=report)
    if "idle" in command[-1]:
        print("========= Target application terminated before first instrumented API call", file=report)
    else:
        print("========= Invalid __global__ read of size 4 bytes\\n" * found + f"========= ERROR SUMMARY: {{int(found)}} errors", file=report)
sys.exit(code or (86 if found else 0))
"""

# A suite of six cases, of which `ill` fails by itself.
SCRIPT = f"""
import argparse, sys
from pathlib import Path
sys.path.insert(0, {str(TESTS / "ptx")!r})
import sanitizer
parser = argparse.ArgumentParser()
parser.add_argument("--cases", default="a,b,c,d,e")
sanitizer.add_arguments(parser)
args = parser.parse_args()
args.build, args.jobs = Path(sys.argv[0]).parent, 2
cases = args.cases.split(",")
if args.in_process:
    print("ran", *cases)
    sys.exit("ill" in cases)
print(*sanitizer.check(args, sanitizer.deal(cases, 2), lambda part: ["--cases=" + ",".join(part)]))
"""


class Sanitizer(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="ptc-sanitizer-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        tool = self.folder / "compute-sanitizer"
        tool.write_text(TOOL.format(python=sys.executable))
        tool.chmod(0o755)
        (self.folder / "script.py").write_text(SCRIPT)

    def call(self, script, *flags, finds="none 1"):
        """What the script prints, and what the tool was to watch."""
        notes = self.folder / "notes"
        notes.unlink(missing_ok=True)
        env = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}", "NOTES": str(notes), "FINDS": finds}
        done = subprocess.run([sys.executable, str(script), *flags], capture_output=True, text=True, env=env)
        self.assertNotIn("Error", done.stderr)
        return done.stdout, sorted(notes.read_text().splitlines()) if notes.exists() else []

    def suite(self, *flags, **more):
        return self.call(self.folder / "script.py", "--sanitizer=racecheck", *flags, **more)

    def test_clean_cases_pass_many_at_a_time(self):
        said, watched = self.suite()
        self.assertIn("racecheck: 5 cases in 3 processes, 0 of them without kernels", said)
        self.assertTrue(said.endswith("5 0\n"), said)
        self.assertEqual(["a,d", "b,e", "c"], [line.rpartition("=")[2] for line in watched])
        self.assertIn("--tool=racecheck --target-processes=application-only", watched[0])

    def test_a_tool_that_finds_nothing_planted_is_no_witness(self):
        said, watched = self.suite(finds="nothing 1")
        self.assertRegex(said, r"racecheck does not find the fault of .*faults.py")
        self.assertTrue(said.endswith("0 1\n"), said)
        self.assertEqual([], watched)

    def test_an_error_is_found_to_be_one_cases(self):
        said, watched = self.suite(finds="d 1")
        self.assertRegex(said, r"(?m)^d: exit 86\n=+ Invalid __global__ read")
        self.assertTrue(said.endswith("4 1\n"), said)
        self.assertEqual(5, len(watched))

    def test_an_error_of_no_case_alone_is_all_of_theirs(self):
        said, _ = self.suite(finds="a|d 2")
        self.assertRegex(said, r"(?m)^a, d: exit 86$")
        self.assertTrue(said.endswith("3 2\n"), said)

    def test_a_case_that_fails_is_no_clean_one(self):
        said, _ = self.suite("--cases=a,ill")
        self.assertRegex(said, r"(?m)^ill: exit 1$")
        self.assertIn("ran ill", said)
        self.assertTrue(said.endswith("1 1\n"), said)

    def test_work_of_the_host_alone_is_counted(self):
        said, _ = self.suite("--cases=idle")
        self.assertIn("1 cases in 1 processes, 1 of them without kernels", said)
        self.assertTrue(said.endswith("1 0\n"), said)

    def test_suites_hand_workers_some_of_their_cases(self):
        for name in ("one", "two"):
            (self.folder / "cases" / name).mkdir(parents=True)
        device = ("--device=cuda", "--gpu=sm_90a")
        for suite, build, flags, wanted in (
                ("ptx", self.folder, (f"--device={self.folder}/cases",), [r"--filter=^(one|two)$"]),
                ("sweep", self.folder, (*device, "--first=30", "--cases=40"), ["--first=30 --cases=20", "--first=50 --cases=20"]),
                ("property", self.folder, (*device, "--kind=mixed", "--seeds=5:17"), ["--kind=mixed --no-shrink --seeds=5:15", "--kind=mixed --no-shrink --seeds=15:17"]),
                ("conformance", BUILD, (*device, "--suite=node", "--filter=^node/test_a?sinh$"), ["--suite=node --filter=^(node/test_asinh|node/test_sinh)$"])):
            said, watched = self.call(TESTS / suite / "run.py", f"--build={build}", "--sanitizer=initcheck", "-j2", *flags)
            self.assertEqual(len(wanted), len(watched), said)
            for line, part in zip(watched, wanted):
                self.assertIn(part, line)
                self.assertIn(f"{suite}/run.py --in-process", line)
                self.assertIn("--tool=initcheck", line)
            self.assertRegex(said, r"\d+ passed, 0 failed")
