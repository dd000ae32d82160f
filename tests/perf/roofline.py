"""How near ptc's libraries come to what the machine allows: the benchmark set of compare.py, kernel by kernel.

    build/venv/bin/python tests/perf/roofline.py [--models] [--filter REGEX] [--folder DIR --dim NAME=N]
    build/venv/bin/python tests/perf/roofline.py --models --prefix 'chrt -f 50 taskset -c 0' --samples rows.jsonl --report tests/perf/rooflines.md

`ptc bench --per-kernel` sets each kernel's time beside the least that its work can take: floating-point operations at the measured
peak or bytes at the measured bandwidth, whichever takes longer (convolutions by Winograd's algorithm count those of direct sums and may
exceed it). A model's `share` is the sum of these bounds over the sum of times. Memory is read in turns with the runs, and medians of both
count; of operations and caches the best slice does. Of --repeats runs the one of the middle share is told. One thread, batch 1.

`lost` names the kernels whose time above their bound is the largest part of the model's: nodes, part of the time, share of the bound.
Below the table stand the models over --long milliseconds whose share is below --bar.

--compared names the page of compare.py. A second table then tells of the models that torch.compile runs how many times as long it takes as ptc, and as code
that reaches the bound of every kernel: no 32-bit code is further ahead of it, but by algorithms with fewer operations (a share above 1 counts as 1).
--shares takes the shares from an earlier report instead of measuring, and prints this table alone.

--prefix runs before each measurement: on a busy machine real-time priority and a core of its own. `--samples` and `--report` are as of
compare.py: rows of a file are taken as measured, and the table goes into a file.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import compare
import results

LOST = 3  # kernels that a row names


def measure(program, prefix, library, inputs, seconds):
    """One row of `ptc bench --per-kernel --json`."""
    command = [*prefix, program, "bench", library, "--threads", "1", "--per-kernel", "--json", "--min-time", seconds, "-i", f"@{inputs}"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    return json.loads(done.stdout)["rows"][0]


def lost(kernels):
    """The kernels that take longest beyond their bounds, as (nodes, share of the time, share of the bound)."""
    known = [kernel for kernel in kernels if kernel.get("bound_share") is not None]
    known.sort(key=lambda kernel: -kernel["share"] * max(1 - kernel["bound_share"], 0))
    return [(kernel["nodes"] or kernel["kernel"], kernel["share"], kernel["bound_share"]) for kernel in known[:LOST] if kernel["bound_share"] < 1]


def row_of(model, program, arguments):
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        library, inputs = Path(folder) / "model.so", Path(folder) / "inputs.npz"
        compare.compile_model(program, model, library)
        np.savez(inputs, **model.inputs)
        rows = [measure(program, shlex.split(arguments.prefix), library, inputs, arguments.seconds) for _ in range(arguments.repeats)]
    rows = sorted((row for row in rows if row.get("bound_share") is not None), key=lambda row: row["bound_share"])
    if not rows:
        raise RuntimeError("no kernel has a bound")
    row = rows[len(rows) // 2]
    return {"share": row["bound_share"], "us": row["p50_us"], "lost": lost(row["kernels"]),
            "range": [rows[0]["bound_share"], rows[-1]["bound_share"]], "batch": 1}


def measure_all(arguments, known):
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    about = {"command": shlex.join(word for word in words if not word.startswith("/"))} | results.machine()
    dims = {name: int(number) for name, number in (dim.split("=") for dim in arguments.dim)}
    models = compare.named_models(arguments.build, arguments.models, arguments.folder, dims, arguments.filter, 1, arguments.quantised)
    for name, make in models:
        if name in known:
            continue
        try:
            yield {"model": name} | row_of(make(), arguments.build / "bin" / "ptc", arguments) | about
        except Exception as error:  # of its export, its compile or its library; the other models go on
            yield {"model": name, "failed": " ".join(str(error).split())[-300:], "batch": 1} | about


def line(row):
    if "failed" in row:
        return f"| {row['model']} | - | - | {row['failed']} |"
    parts = [f"{shorten(nodes)} {share:.0%} at {bound:.0%}" for nodes, share, bound in row["lost"]]
    return f"| {row['model']} | {row['us'] / 1e3:.3g} | {row['share']:.0%} | {'; '.join(parts)} |"


def shorten(nodes):
    """The first node and how many follow."""
    first, *others = nodes.split(", ")
    name = first if len(first) <= 40 else "…" + first[-39:]
    return f"`{name}`" + (f" + {len(others)}" if others else "")


def report(rows, arguments, file):
    print("| model | ms | share | lost: kernel, part of the time, share of its bound |\n|---|---|---|---|", file=file)
    for row in sorted(rows, key=lambda row: row["model"]):
        print(line(row), file=file)
    measured = [row for row in rows if "failed" not in row]
    long = [row for row in measured if row["us"] > arguments.long * 1e3]
    below = sorted((row for row in long if row["share"] < arguments.bar), key=lambda row: row["share"])
    names = ", ".join(f"{row['model']} ({row['share']:.0%})" for row in below) or "none"
    print(f"\nOf {len(long)} models over {arguments.long:g} ms, below {arguments.bar:.0%}: {names}.", file=file)


def read_table(page):
    """The rows of a page's first table, by the names of its columns."""
    lines = [text.strip("| ").split(" | ") for text in page.read_text().splitlines() if text.startswith("| ")]
    return [dict(zip(lines[0], cells)) for cells in lines[1:] if len(cells) == len(lines[0])]


def ceilings(shares, compared):
    """By model that torch.compile runs at one thread and batch 1: its time / ptc's, and / that of code at the bound. `shares`: of the bounds, by model."""
    for row in read_table(compared):
        if row.get("threads") == row.get("batch") == "1" and row["torch.compile"] != "-" and row["model"] in shares:
            ratio = float(row["torch.compile"]) / float(row["ptc ms"])
            yield row["model"], ratio, ratio / min(shares[row["model"]], 1)


def report_ceilings(shares, compared, file):
    found = list(ceilings(shares, compared))
    if not found:
        return
    print("\n| model | torch.compile / ptc | torch.compile / a library at its bound |\n|---|---|---|", file=file)
    for model, ratio, most in found:
        print(f"| {model} | {ratio:.2f} | {most:.2f} |", file=file)
    print(f"| geometric mean | {results.geometric([row[1] for row in found]):.2f} | {results.geometric([row[2] for row in found]):.2f} |", file=file)


def write(rows, arguments):
    """The page: when, where, by which commands, and the table."""
    commands = sorted({row["command"] for row in rows})
    dates, revisions, processors = ({row[key] for row in rows} for key in ("date", "ptc", "processor"))
    with open(arguments.report, "w") as file:
        print("# How near to the machine's bound\n", file=file)
        print(f"{' and '.join(sorted(dates))}, {' and '.join(sorted(processors))}; ptc at {' and '.join(sorted(revisions))}; one thread, batch 1:\n", file=file)
        print(*(f"    {command}" for command in commands), sep="\n", file=file)
        print("\nWhat the columns mean: [roofline.py](roofline.py).\n", file=file)
        report(rows, arguments, file)
        if arguments.compared:
            report_ceilings({row["model"]: row["share"] for row in rows if "failed" not in row}, arguments.compared, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=compare.ROOT / "build", help="the build folder: its program, its models and environments")
    parser.add_argument("--filter", default="", metavar="REGEX", help="of the models' names")
    parser.add_argument("--models", action="store_true", help="the exports from PyTorch too")
    parser.add_argument("--quantised", action="store_true", help="of those also the forms in 8 and 4 bits")
    parser.add_argument("--folder", action="append", default=[], metavar="DIR", help="a folder of .onnx files to measure besides")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a free dim of those files (default: 1)")
    parser.add_argument("--seconds", type=float, default=1, help="of measuring a run (default: 1)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each model (default: 3)")
    parser.add_argument("--long", type=float, default=5, metavar="MS", help="models above this are named if they are below the bar (default: 5)")
    parser.add_argument("--bar", type=float, default=0.7, help="(default: 0.7)")
    parser.add_argument("--prefix", default="", metavar="COMMAND", help="words before each measurement: 'chrt -f 50 taskset -c 0'")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="take the rows that are in it as measured, and add new ones")
    parser.add_argument("--report", type=Path, metavar="FILE.md", help="write the table there")
    parser.add_argument("--compared", type=Path, metavar="FILE.md", help="the page of compare.py: a second table, what is left beside torch.compile")
    parser.add_argument("--shares", type=Path, metavar="FILE.md", help="print that table alone, with the shares of this page of an earlier --report")
    arguments = parser.parse_args()
    if arguments.shares:
        shares = {row["model"]: float(row["share"].rstrip("%")) / 100 for row in read_table(arguments.shares) if row["share"] != "-"}
        return report_ceilings(shares, arguments.compared, sys.stdout)
    rows = [row for row in results.read(arguments.samples) if "failed" not in row] if arguments.samples else []
    for row in measure_all(arguments, {row["model"] for row in rows}):
        rows.append(row)
        print(line(row), file=sys.stderr, flush=True)
        if arguments.samples:
            results.append(arguments.samples, row)
    report(rows, arguments, sys.stdout)
    if arguments.report:
        write(rows, arguments)


if __name__ == "__main__":
    main()
