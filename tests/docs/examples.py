"""Examples in Markdown: what a page tells its reader to write and to run, and what comes of it.

Three kinds of blocks count:

    ```c main.c         a fence whose info string ends with a file name: the file, as it has to be written
    ```console          a fence whose first line begins with `$ `: commands, and all that each prints
        $ ptc …         the same, indented: commands, and excerpts of what each prints, in order

Lines after a command that begin with `> ` continue it. `…` in an output line stands for anything, a line of `…` alone for
any lines. A command has to succeed unless the next one asks for its exit code with `echo $?`. All commands of a page
run in one shell, in one folder, in the page's order, so that `cd` and variables hold.
"""
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class File:
    line: int
    name: str
    text: str


@dataclass
class Command:
    line: int  # of the page, from 1
    text: str
    indent: str
    is_excerpt: bool
    shown: list[str] = field(default_factory=list)
    shown_at: int = 0  # index of the first output line in the page
    printed: str = ""
    status: int = 0


def commands(lines, first, indent, is_excerpt):
    """The commands of a block whose first line has the index `first`."""
    found = []
    for i, line in enumerate(lines):
        if line.startswith("$ "):
            found.append(Command(first + i + 1, line[2:], indent, is_excerpt, shown_at=first + i + 1))
        elif line.startswith("> ") and found and not found[-1].shown:
            found[-1].text += "\n" + line[2:]
            found[-1].shown_at += 1
        elif found and not (is_excerpt and not line.strip()):
            found[-1].shown.append(line)
    return found


def parse(text):
    """The steps of a page, files and commands, in order."""
    lines, steps, i = text.splitlines(), [], 0
    while i < len(lines):
        if fence := re.match(r"( *)(```+)(.*)$", lines[i]):
            end = next((j for j in range(i + 1, len(lines)) if lines[j].strip() == fence[2]), len(lines))
            block = [line.removeprefix(fence[1]) for line in lines[i + 1:end]]
            words = fence[3].split()
            if len(words) == 2:
                steps.append(File(i + 1, words[1], "\n".join(block) + "\n"))
            elif block and block[0].startswith("$ "):
                steps += commands(block, i + 1, fence[1], False)
            i = end
        elif lines[i].startswith("    $ ") and (i == 0 or not lines[i - 1].strip()):
            end = next((j for j in range(i, len(lines)) if lines[j].strip() and not lines[j].startswith("    ")), len(lines))
            steps += commands([line[4:].rstrip() for line in lines[i:end]], i, "    ", True)
            i = end - 1
        i += 1
    return steps


# Pages are of a machine that runs every level.
OF_THIS_MACHINE = re.compile(r"^.*: warning: this machine does not run .*\n(?:  help: .*\n)?", re.M)


def pattern(line):
    return r"[^\n]*?".join(re.escape(part) for part in line.split("…"))


def matches(command):
    """Whether the output is what the page shows."""
    printed = "".join(line.rstrip() + "\n" for line in command.printed.splitlines())
    shown = [line.rstrip() for line in command.shown]
    if command.is_excerpt:
        at = 0
        for line in shown:
            if line.strip() == "…":
                continue
            found = re.compile(re.sub(r"(\\ )*…(\\ )*", r"[^\\n]*?", re.escape(line.strip()))).search(printed, at)
            if not found:
                return False
            at = found.end()
        return True
    whole = "".join(r"(?:[^\n]*\n)*?" if line == "…" else pattern(line) + r"\n" for line in shown)
    return re.fullmatch(whole, printed) is not None


def run(steps, folder, environment, limit=300):
    """Runs all steps of a page; fills in what the commands print."""
    results = folder / ".results"
    results.mkdir()
    script = ["exec 9>&1", "status=0"]
    for i, step in enumerate(steps):
        if isinstance(step, File):
            script += [f"mkdir -p \"$(dirname '{step.name}')\"", f"cp '{results}/{i}.file' '{step.name}'"]
            (results / f"{i}.file").write_text(step.text)
            continue
        script += [f"exec >'{results}/{i}.out' 2>&1", "(exit $status)", step.text, "status=$?",
                   f"echo $status >'{results}/{i}.status'"]
    try:
        subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        pass  # the command that hangs has no status
    for i, step in enumerate(steps):
        if isinstance(step, Command):
            out, status = results / f"{i}.out", results / f"{i}.status"
            step.printed = OF_THIS_MACHINE.sub("", out.read_text(errors="replace")) if out.exists() else ""
            step.status = int(status.read_text()) if status.exists() else None


def problems(page, steps):
    """What does not hold, each with its place."""
    asked = [step for step in steps if isinstance(step, Command)]
    for step, after in zip(asked, [*asked[1:], None]):
        place = f"{page}:{step.line}: $ {step.text}\n"
        if step.status is None:
            yield place + f"did not end. It printed:\n{step.printed}"
        elif step.status and not (after and after.text.startswith("echo $?")):
            yield place + f"exits with {step.status}. It printed:\n{step.printed}"
        elif not matches(step):
            shown = "\n".join(step.shown)
            yield place + f"the page shows:\n{shown}\nIt prints{' not all of that in this order' if step.is_excerpt else ''}:\n{step.printed}"


def updated(text, steps):
    """The page with the real output of each fenced command whose shown output is not it."""
    lines = text.splitlines()
    for step in reversed(steps):
        if isinstance(step, Command) and not step.is_excerpt and not matches(step):
            new = [(step.indent + line).rstrip() for line in step.printed.splitlines()]
            lines[step.shown_at:step.shown_at + len(step.shown)] = new
    return "\n".join(lines) + "\n"
