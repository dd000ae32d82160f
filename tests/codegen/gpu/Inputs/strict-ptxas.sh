#!/bin/sh
# A ptxas that finds fault with the text.
echo "ptxas kernel.ptx, line 7; error   : Arguments mismatch for instruction 'mov'" >&2
exit 255
