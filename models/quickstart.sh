#!/bin/bash
# Installs what is missing, builds ptc, compiles a real text recogniser, and reads a drawn line of text with it.
#
#   models/quickstart.sh ["text to read"]
#
# PTC=path/to/ptc uses that program instead of building one; BUILD is the folder for caches (default: build).
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS

if [ -n "${PTC:-}" ]; then
  .ci/setup.sh
else
  .ci/build.sh ptc
  PTC=build/bin/ptc
fi
echo "ptc        $PTC, $(($(stat -c %s "$PTC") / 1000000)) MB, ready after $((SECONDS - started)) s"
build/venv/bin/python models/read_text.py --ptc "$PTC" --build "${BUILD:-build}" "$@"
