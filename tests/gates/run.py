"""The gate on ptc's own kernels: every model of models.toml, and small graphs, against the baselines in this folder.

    python tests/gates/run.py [--build B] [-j N] [--models] [--filter REGEX]    one line a model, then counts
    python tests/gates/run.py --update [...]                                  records all anew; review the diff

A failure prints what `ptc gate check` found. Models that PyTorch exports are recorded and checked with --models; those without a
baseline are skipped. The last test compiles one small model again and again: a clean recompile never fails.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BASELINES = HERE / "baselines"
REPEATS = 20

sys.path.insert(0, str(ROOT / "models"))
import sources  # noqa: E402

# Small graphs of tests/cli/Inputs/models.py that stand for a kind of interface or program, with flags.
SMALL = {"mlp": ["--dim=batch=1..64:8"]}


def baseline_of(name):
    return BASELINES / f"{name}.json"


def small_models(folder):
    """Writes the small graphs; yields name, file and flags."""
    spec = importlib.util.spec_from_file_location("small", ROOT / "tests" / "cli" / "Inputs" / "models.py")
    subprocess.run([sys.executable, spec.origin, folder], check=True, stdout=subprocess.DEVNULL)
    for name, flags in SMALL.items():
        yield name, Path(folder) / f"{name}.onnx", flags


def models(args, folder):
    yield from small_models(folder)
    for row in sources.rows(exported=args.models):
        if row["state"] == "passes" and re.search(args.filter, row["name"]):
            if args.update or "export" not in row or baseline_of(row["name"]).exists():
                yield row["name"], sources.fetch(row, args.build), row.get("flags", [])
            else:
                yield row["name"], None, []


def gate(args, *words):
    command = [args.build / "bin" / "ptc", "gate", *words, f"-j{args.jobs}"]
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def has_results(path):
    """Whether the baseline holds how far its outputs are from the reference."""
    try:
        return bool(json.loads(path.read_text()).get("numerics"))
    except ValueError:
        return False


def record(args, name, model, flags):
    """Anew where there is no baseline of this format; else an update, which keeps waivers."""
    path = baseline_of(name)
    if path.exists():
        done = gate(args, "update", path, f"--model={model}", *([] if has_results(path) else ["--seed=0"]), *flags)
        if done.returncode != 2:  # not a baseline of this format
            return done
    return gate(args, "record", model, *flags, "-o", path)


def check(args, name, model, flags):
    path = baseline_of(name)
    missing = "baseline" if not path.exists() else "results in" if not has_results(path) else ""
    if missing:
        return f"no {missing} {path.relative_to(ROOT)}: python tests/gates/run.py --update --filter '^{name}$'"
    done = gate(args, "check", path, f"--model={model}", *flags)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def check_repeatedly(args, folder):
    """What failed in many checks of one small model against a baseline that was recorded a moment ago."""
    name, model, flags = next(small_models(folder))
    path = Path(folder) / "again.json"
    done = gate(args, "record", model, *flags, "-o", path)
    for _ in range(REPEATS):
        if done.returncode:
            return done.stdout + done.stderr
        done = gate(args, "check", path, f"--model={model}")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("--models", action="store_true", help="also the models that PyTorch exports")
    parser.add_argument("--filter", default="", metavar="REGEX", help="models whose name matches")
    parser.add_argument("--update", action="store_true", help="record all anew")
    args = parser.parse_args()
    args.build = args.build.resolve()
    passed = failed = skipped = 0

    def count(name, problem):
        nonlocal passed, failed
        passed, failed = passed + (not problem), failed + bool(problem)
        print(f"{'FAIL' if problem else 'ok'} {name}" + (f"\n{problem}" if problem else ""), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for name, model, flags in models(args, folder):
            if not re.search(args.filter, name):
                continue
            if model is None:
                skipped += 1
                print(f"skipped {name}: no baseline")
            elif args.update:
                done = record(args, name, model, flags)
                count(name, done.stderr if done.returncode else "")
            else:
                count(name, check(args, name, model, flags))
        if not args.update and not args.filter:
            count("a clean recompile never fails", check_repeatedly(args, folder))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
