#!/bin/bash
# A compiler launcher: ccache over compilations that use a precompiled header, shared between build folders and
# between checkouts whose build folders lie alike.
#
# Two things keep ccache from recognising a compilation of another folder. Paths differ: compilations run inside the
# build folder, so its prefix is cut off, and ccache makes those into the checkout relative. And a precompiled header
# holds its own folder's name: so it is not cached, and its identity for those that use it (FILE.pch.sum, which ccache
# reads instead of the header's bytes) is the hash of the text it was made from.
#
#   cached-compile.sh CCACHE COMPILER ARGUMENT...
set -euo pipefail

ccache=$1
shift
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
CCACHE_BASEDIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export CCACHE_BASEDIR

arguments=("${@//"$PWD"\//}")
arguments=("${arguments[@]/#-I$PWD/-I.}")
[[ " $* " == *" -emit-pch "* ]] || exec "$ccache" "${arguments[@]}"

# The same command, but to text: without the flags that name an output or ask for dependencies.
"${arguments[@]}"
text=()
skip=0
for ((i = 0; i < ${#arguments[@]}; ++i)); do
  word=${arguments[i]}
  if ((skip)); then skip=0; continue; fi
  case $word in
  -o) output=${arguments[i + 1]}; skip=1 ;;
  -MF | -MT | -MQ) skip=1 ;;
  -MD | -c) ;;
  -Xclang) [[ ${arguments[i + 1]} == -emit-pch ]] && skip=1 || text+=("$word") ;;
  *) text+=("$word") ;;
  esac
done
"${text[@]}" -E -P -o - | sha256sum > "$output.sum"
