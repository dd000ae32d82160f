"""Runs the tests of this folder; see README.md."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "runtime" / "python")]

import unittests  # noqa: E402

if __name__ == "__main__":
    sys.exit(unittests.run_folder(HERE, __doc__, unittests.CLASSES))
