"""Each planted regression is caught by `ptc gate check`, named by the user's nodes and with a reason; a clean compile passes.

    build/venv/bin/python tests/planted/run.py [--build BUILD] [-j N] [NAME...]

A row of CASES: the plant, the model, and findings that have to be there: the kind, words that have to be in its nodes or its
subject, and words of its message. NODES has all nodes that findings name, where naming too many would be wrong.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CASES = {
    "fusion": [("fusion", "wide/sigmoid", "control flow is not fused")],
    "copy": [("kernel", "scores/matmul", "")],
    "scalar": [("vectorization", "gate", "")],
    "exp": [("accuracy", "output y", "99th percentile"), ("accuracy", "soft", "first differs at node 'side/sigmoid' (Sigmoid")],
    "alignment": [("alignment", "join", "vectors straddle cache lines")],
    "life": [("live-range", "join", "read for the last time"), ("peak-memory", "function main", "bytes of the arena")],
    "work": [("kernel", "side/matmul", "")],
}
# All nodes of a kind of finding, where others in the same kernels are right.
NODES = {"exp": ("accuracy", ["side/sigmoid", "soft", "gate", "wide/sigmoid"])}
CLEAN = 3  # checks of an unchanged compiler


def run(*words):
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def check(build, folder, plant):
    """Exit code and findings of the gate with that compiler."""
    result = run(build / "bin" / "ptc-planted", plant, "gate", "check", folder / "block.json", "--format=json", "-j1", "-q")
    if result.returncode not in (0, 1):
        return result.returncode, [], result.stderr
    findings = [finding for one in json.loads(result.stdout)["checks"] for finding in one["findings"]]
    return result.returncode, findings, result.stdout


def holds(finding, kind, where, words):
    places = [finding["subject"], *finding["nodes"]]
    return (finding["finding"] == kind and finding["direction"] != "improvement" and any(where in place for place in places)
            and words in finding["message"])


def problem_of(build, folder, name):
    """What is wrong with a case; nothing: it passes."""
    if name.startswith("clean"):
        code, findings, text = check(build, folder, "none")
        return f"an unchanged compiler fails the gate: {text}" if code or findings else None
    code, findings, text = check(build, folder, name)
    if code != 1:
        return f"exit code {code}, where a regression has to be found: {text}"
    missing = [wanted for wanted in CASES[name] if not any(holds(finding, *wanted) for finding in findings)]
    told = "\n".join(f"    {finding['finding']}: {finding['subject']} {finding['nodes']}: {finding['message']}" for finding in findings)
    if missing:
        return f"no finding like {missing} among\n{told}"
    kind, nodes = NODES.get(name, (None, []))
    others = [finding for finding in findings if finding["finding"] == kind and finding["nodes"] != nodes]
    return f"other nodes than {nodes} in\n{told}" if others else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    parser.add_argument("--models", action="store_true", help="accepted for all suites; there are no more")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    names = arguments.names or [*CASES, *(f"clean{number}" for number in range(CLEAN))]
    with tempfile.TemporaryDirectory(prefix="ptc-") as temporary:
        folder = Path(temporary)
        made = run(sys.executable, ROOT / "tests" / "planted" / "models.py", folder)
        recorded = run(build / "bin" / "ptc", "gate", "record", folder / "block.onnx", "-o", folder / "block.json",
                       "--cpu=x86-64-v2,x86-64-v3")
        if made.returncode or recorded.returncode:
            print(made.stderr + recorded.stderr)
            print(f"0 passed, {len(names)} failed, 0 skipped")
            return 1
        with ThreadPoolExecutor(arguments.jobs) as pool:
            problems = dict(zip(names, pool.map(lambda name: problem_of(build, folder, name), names)))
    failed = {name: problem for name, problem in problems.items() if problem}
    for name, problem in failed.items():
        print(f"{name}: {problem}")
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
