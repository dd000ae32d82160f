#!/bin/bash
# Installs what is missing, builds ptc (build/bin/ptc), and runs all tests.
#
#   tests/run.sh [--models] [SUITE...]
#
# SUITE is lint, lit, unit or a folder of tests/ that holds a run.py; all of them by default.
# --models adds the models that PyTorch exports (downloads about 3 GB once).
set -euo pipefail
cd "$(dirname "$0")/.."

.ci/setup.sh
if [ ! -f build/build.ninja ]; then
  cmake --preset release > build/configure.log 2>&1 || { cat build/configure.log >&2; exit 1; }
fi
cmake --build build > build/build.log 2>&1 || { tail -60 build/build.log >&2; exit 1; }
exec build/venv/bin/python tests/suites.py "$@"
