#!/bin/sh
# A ptxas of an older toolkit.
echo "ptxas fatal   : Value '${1#-arch=}' is not defined for option 'gpu-name'" >&2
exit 255
