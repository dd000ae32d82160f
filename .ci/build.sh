#!/bin/bash
# Installs what is missing and builds the named targets (all by default) in build/: one static program, build/bin/ptc.
set -euo pipefail
cd "$(dirname "$0")/.."

.ci/setup.sh
if [ ! -f build/build.ninja ]; then
  echo "build: configuring (the first time also builds ONNX's library: 2-4 minutes)" >&2
  cmake --preset release > build/configure.log 2>&1 || { tail -40 build/configure.log >&2; exit 1; }
fi
echo "build: ninja -C build $*" >&2
ninja -C build "$@" > build/build.log 2>&1 || { grep -E -A8 'error:|FAILED' build/build.log | tail -80 >&2; exit 1; }
