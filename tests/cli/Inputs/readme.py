"""readme.py README FOLDER: runs the commands of a README's examples in FOLDER and finds in their output what the README shows.

An example is an indented block whose first line begins with `$ `. The lines after a command are looked for in its output, in
that order; `…` stands for anything, a line of `…` alone for any lines.
"""
import re
import subprocess
import sys
from pathlib import Path

text, folder = Path(sys.argv[1]).read_text(), sys.argv[2]


def examples():
    """Commands and the lines shown after them."""
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M):
        lines = [line[4:].rstrip() for line in block.splitlines() if line.strip()]
        if not lines[0].startswith("$ "):
            continue
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
        for begin, end in zip(starts, [*starts[1:], len(lines)]):
            yield lines[begin][2:], [line for line in lines[begin + 1 : end] if line.strip() != "…"]


def as_pattern(line):
    return re.compile(r".*?".join(re.escape(part) for part in re.split(r"\s*…\s*", line.strip())))


count = 0
for command, shown in examples():
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    output, at = done.stdout + done.stderr, 0
    if done.returncode:
        sys.exit(f"$ {command}\nexits with {done.returncode}:\n{output}")
    for line in shown:
        match = as_pattern(line).search(output, at)
        if not match:
            sys.exit(f"$ {command}\ndoes not print (any more, or not here):\n{line}\nIt prints:\n{output}")
        at = match.end()
    count += 1
print(f"{count} examples hold")
