"""Many cases through one library: compile, run, compare, and the cause of what goes wrong down to one case.

A model of many nodes is compiled once. Nodes that ptc refuses are taken out, since its diagnostics name all of them; a model
that crashes the compiler, or whose library does not run, is halved until one case is left.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import onnx

import compare
import oracle
from case import build, feeds, size_flags

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime" / "python"))
import ptc  # noqa: E402

SECONDS = 240
NODE = re.compile(r"'c(\d+)(?:_x\d+)?'[^\n]*?\[(PTC\d+)\]:? ?([^\n]*)|\[(PTC\d+)\]: ([^\n]*?'c(\d+)_x\d+'[^\n]*)")
REFUSED = (3, 4)


@dataclass(frozen=True)
class Outcome:
    word: str  # pass, wrong, refused, crash, status, unjudged
    text: str = ""
    oracle: str = ""
    ulp: float = 0.0
    is_open: bool = False  # compiled with open dims
    has_scale: bool = False  # `ulp` is of what terms add up to


def compile_cases(cases, program, folder, flags):
    """None, or the exit code and what ptc says."""
    path, arguments = folder / "sweep.onnx", folder / "flags.rsp"
    onnx.save(build(cases), path)
    pinned = [flag for case in cases for flag in size_flags(case)]
    arguments.write_text("\n".join([*pinned, *flags]))
    command = [program, "compile", path, "-o", folder / "sweep.so", "--emit=so", "-q", "-j1", "--color=never", f"@{arguments}"]
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=SECONDS,
                              env=os.environ | {"TMPDIR": str(folder)})
    except subprocess.TimeoutExpired:
        return 124, f"over {SECONDS} s"
    return None if done.returncode == 0 else (done.returncode, done.stderr)


def judge(case, results):
    name, wanted = oracle.evaluate(case)
    if name is None:
        return Outcome("unjudged", "; ".join(wanted))
    worst = 0.0
    for i, got in enumerate(results):
        if i >= len(wanted) or wanted[i] is None:
            continue
        problem, ulp = compare.difference(case, got, wanted[i], i)
        worst = max(worst, ulp)
        if problem:
            return Outcome("wrong", f"output {i}: {problem}", name, worst)
    return Outcome("pass", "", name, worst)


def _run(cases, library):
    """Outcomes by number; runs in a fork."""
    model = ptc.load(library, threads=1)
    given = {}
    for case in cases:
        given |= feeds(case)
    results = model(**given)
    found = {}
    for case in cases:
        try:
            outcome = judge(case, [results[f"c{case.number}_y{i}"] for i in range(case.outputs)])
        except Exception as error:
            outcome = Outcome("unjudged", f"{type(error).__name__}: {error}")
        found[case.number] = outcome.__dict__ | {"is_open": bool(case.open), "has_scale": case.rule.slack > 0}
    return found


def forked(work, *args):
    """work(*args) in a process of its own: its result, or how it died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            result = {"result": work(*args)}
        except BaseException as error:
            result = {"error": f"{type(error).__name__}: {error}"[:500]}
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    parts = []
    while True:
        ready, _, _ = select.select([reader], [], [], SECONDS)
        part = os.read(reader, 1 << 20) if ready else b""
        if not part:
            break
        parts.append(part)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if not parts:
        return {"died": signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"}
    return json.loads(b"".join(parts))


def in_process(work, *args):
    """The same in this process, where a tool watches it."""
    try:
        return {"result": work(*args)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}


run_apart = forked


def _halves(cases, program, flags, word, text):
    if len(cases) == 1:
        return {cases[0].number: Outcome(word, text)}
    middle = len(cases) // 2
    return check(cases[:middle], program, flags) | check(cases[middle:], program, flags)


def _closed(cases, refused, program, flags):
    """Refused cases with open dims are tried again with their sizes; the others stay refused."""
    again = [case for case in cases if case.number in refused and case.open]
    for case in again:
        case.open = {}
    return refused | check(again, program, flags)


def check(cases, program, flags=()):
    """The outcome of each case, by number."""
    if not cases:
        return {}
    with tempfile.TemporaryDirectory(prefix="ptc-sweep-") as temporary:
        folder = Path(temporary)
        if failed := compile_cases(cases, program, folder, flags):
            code, text = failed
            found = NODE.findall(text) if code in REFUSED else ()
            refused = {int(n or n2): Outcome("refused", f"{c or c2} {why or why2}") for n, c, why, c2, why2, n2 in found}
            refused = {n: out for n, out in refused.items() if any(case.number == n for case in cases)}
            if refused:
                return _closed(cases, refused, program, flags) | check([case for case in cases if case.number not in refused], program, flags)
            word = "refused" if code in REFUSED else "crash"
            if word == "refused" and len(cases) == 1:
                return _closed(cases, {cases[0].number: Outcome(word, f"exit {code}: {text[-1500:]}")}, program, flags)
            return _halves(cases, program, flags, word, f"exit {code}: {text[-1500:]}")
        done = run_apart(_run, cases, folder / "sweep.so")
    if "result" in done:
        return {int(number): Outcome(**fields) for number, fields in done["result"].items()}
    word = "crash" if "died" in done else "status"
    return _halves(cases, program, flags, word, done.get("died") or done["error"])
