#!/bin/bash
# Installs what ptc's build and tests need and this machine lacks: Debian packages (as root or through sudo) and
# a Python environment in build/venv. Quick and silent when everything is there.
#
#   .ci/setup.sh [--models]
#
# --models adds PyTorch, in an environment of its own (build/venv-torch, about 3 GB), which exports models.
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
  # Another installation may run: apt-get waits for it, where it would fail at once.
  apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600)
  say "installing ${#missing[@]} packages"
  mkdir -p build
  if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } > build/apt.log 2>&1; then
    tail -20 build/apt.log >&2
    say "apt-get failed; the whole output is in build/apt.log"
    exit 1
  fi
fi

# environment FOLDER LIST: an environment's stamp holds the list it was made from, so a changed list installs again.
environment() {
  cmp -s "$2" "$1/requirements.txt" && return
  say "installing the Python packages of $2 into $1"
  mkdir -p build
  [ -x "$1/bin/python" ] || /usr/bin/python3 -m venv "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
  cp "$2" "$1/requirements.txt"
}

environment build/venv .ci/requirements.txt
[ "${1:-}" != --models ] || environment build/venv-torch .ci/requirements-torch.txt
