#!/bin/bash
# Installs what is missing, builds ptc (build/bin/ptc), and runs all tests.
#
#   tests/run.sh [--models] [SUITE...]
#
# SUITE is lint, lit, unit or a folder of tests/ that holds a run.py; all of them by default. --models also installs
# PyTorch, exports the models that models.toml lists from it, and checks them.
set -euo pipefail
cd "$(dirname "$0")/.."

case " $* " in *" --models "*) .ci/setup.sh --models ;; esac

# What does not build is a failure, and no reason not to test the rest.
built=true
.ci/build.sh -k 0 || built=false
build/venv/bin/python tests/suites.py "$@" && $built
