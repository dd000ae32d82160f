"""A folder with a user's project, and commands in it."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path("build")  # set by run.py
JOBS = 2
ROOT = Path(__file__).resolve().parents[2]


class Failed(Exception):
    """A command that failed; its text is what the command printed."""


class Project(unittest.TestCase):
    """Each test has an empty folder `self.folder`, and ptc on its path."""

    maxDiff = None

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="integration "))  # a space in every path
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = os.environ | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C"}
        for name in ("MAKEFLAGS", "MAKELEVEL", "CMAKE_PREFIX_PATH", "CXXFLAGS", "LDFLAGS", "DESTDIR"):
            self.environment.pop(name, None)

    def run_in(self, folder, *command):
        """Standard output and error of the command; Failed if it fails."""
        done = subprocess.run([str(word) for word in command], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Failed(f"{command} in {folder}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def run(self, *command, **keywords):  # unittest's own run takes a result
        if command and isinstance(command[0], (str, Path)):
            return self.run_in(self.folder, *command)
        return super().run(*command, **keywords)

    def write(self, **files):
        """Files by name, `_` for the dot before a suffix: main_cpp="...", CMakeLists_txt="..."."""
        for name, text in files.items():
            path = self.folder / ".".join(name.rsplit("_", 1))
            path.write_text(text)

    def fails(self, *command):
        """What a command prints that must fail."""
        with self.assertRaises(Failed) as caught:
            self.run(*command)
        return str(caught.exception)


def stamp(path):
    return path.stat().st_mtime_ns


def touch(path):
    """A time stamp later than anything that has been built."""
    time.sleep(0.02)  # make compares time stamps
    now = time.time_ns()
    os.utime(path, ns=(now, now))
