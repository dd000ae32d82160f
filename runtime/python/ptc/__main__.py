"""`python -m ptc VERB`: the program ptc, whatever PATH says."""

import os
import sys

from ._program import program

if __name__ == "__main__":
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
