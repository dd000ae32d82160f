"""Runs ptc-runtime-test, the runtime under a model written by hand, as one test."""
import argparse
import os
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", type=int, default=1, help="accepted, without effect")
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    arguments = parser.parse_args()
    failed = subprocess.run([os.path.join(arguments.build, "bin", "ptc-runtime-test")]).returncode != 0
    print(f"{int(not failed)} passed, {int(failed)} failed, 0 skipped")
    return failed


if __name__ == "__main__":
    sys.exit(main())
