# bash complete.sh SCRIPT LINE: what SCRIPT's function completes LINE to, a candidate a line.
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_ptc
printf '%s\n' "${COMPREPLY[@]}"
