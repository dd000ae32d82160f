#!/bin/bash
# Installs what ptc's build and tests need and this machine lacks: Debian packages (as root or through sudo) and
# a Python environment in build/venv. Quick and silent when everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }

missing=()
while read -r package; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done < .ci/packages.txt

if [ ${#missing[@]} -gt 0 ]; then
  root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { say "these packages are missing, and there is no sudo: ${missing[*]}"; exit 1; }
    root=(sudo)
  fi
  say "installing ${#missing[@]} packages"
  mkdir -p build
  if ! { "${root[@]}" apt-get update && "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
         apt-get install -y --no-install-recommends "${missing[@]}"; } > build/apt.log 2>&1; then
    tail -20 build/apt.log >&2
    say "apt-get failed; the whole output is in build/apt.log"
    exit 1
  fi
fi

# The environment's stamp holds the list it was made from: a changed list installs again.
stamp=build/venv/requirements.txt
if ! cmp -s .ci/requirements.txt "$stamp"; then
  say "installing the Python packages into build/venv"
  mkdir -p build
  [ -x build/venv/bin/python ] || /usr/bin/python3 -m venv build/venv
  build/venv/bin/pip install --quiet --disable-pip-version-check -r .ci/requirements.txt
  cp .ci/requirements.txt "$stamp"
fi
