"""Runs the tests of this folder; see README.md."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "runtime" / "python")]

import models  # noqa: E402
import unittests  # noqa: E402


def main():
    arguments = unittests.parse(__doc__)
    models.PTC = arguments.build / "bin" / "ptc"
    return unittests.run(arguments, lambda loader: loader.discover(str(HERE)))


if __name__ == "__main__":
    sys.exit(main())
