"""A folder with a user's project, and commands in it."""

import os
import re
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
        self.environment = os.environ | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}:/usr/lib/llvm-22/bin", "LC_ALL": "C"}
        for name in ("MAKEFLAGS", "MAKELEVEL", "CMAKE_PREFIX_PATH", "CXXFLAGS", "LDFLAGS", "DESTDIR"):
            self.environment.pop(name, None)

    def sh(self, *command, cwd=None):
        """Standard output and error of the command, in `cwd` or the project; Failed if it fails."""
        done = subprocess.run([str(word) for word in command], cwd=cwd or self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Failed(f"{command}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def write(self, **files):
        """Files by name, `_` for the dot before a suffix: main_cpp="...", CMakeLists_txt="..."."""
        for name, text in files.items():
            path = self.folder / ".".join(name.rsplit("_", 1))
            path.write_text(text)

    def configure(self, *arguments, generator="Ninja", prefix=None):
        """A build folder `build` of the CMake project."""
        return self.sh("cmake", "-G", generator, "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix or BUILD}", *arguments)

    def build(self):
        """What the build prints; the names of models that were compiled are in `self.compiled`."""
        text = self.sh("cmake", "--build", "build", "-j", JOBS)
        self.compiled = sorted(re.findall(r"with ptc: (\S+)\.\w+", text))
        return text

    def install_ptc(self, prefix):
        """ptc as an installed prefix holds it, its program and the files for builds."""
        link_or_copy(BUILD / "bin" / "ptc", prefix / "bin" / "ptc")
        shutil.copytree(BUILD / "share", prefix / "share")

    def need_gate(self):
        if not re.search(r"^  gate\b", self.sh("ptc", "--help"), re.M):
            self.skipTest("this ptc has no gate")

    def fails(self, *command):
        """What a command prints that must fail."""
        with self.assertRaises(Failed) as caught:
            self.sh(*command)
        return str(caught.exception)


def link_or_copy(source, target):
    """A second name for a large file, a copy where the two are on different disks."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def stamp(path):
    return path.stat().st_mtime_ns


def touch(path):
    """A time stamp later than of anything that has been built."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))
