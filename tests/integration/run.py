"""Runs the tests of this folder; see README.md."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "models")]

import project  # noqa: E402
import unittests  # noqa: E402


def main():
    arguments = unittests.parse(__doc__)
    project.BUILD = arguments.build
    project.JOBS = arguments.j
    return unittests.run(arguments, lambda loader: loader.discover(str(HERE)), unittests.NOTHING)


if __name__ == "__main__":
    sys.exit(main())
