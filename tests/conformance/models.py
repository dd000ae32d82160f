"""The real models of models.toml: compiled, run, and compared with onnxruntime.

Of each model: two compiles, with other folders and other numbers of threads, give the same bytes; every CPU level agrees
with onnxruntime within |a-b| <= 1e-3 |b| + 1e-5 max|b|, integers exactly; one thread and two give the same bits. Kernels,
planned memory and code stay within their bounds, and the files that two exporters wrote of one model give nearly the same
number of kernels. A row whose state is not "passes" names a reason, must fail, and fails the suite once it passes.
"""

import collections
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import execute
from execute import FAILED, PASS, Outcome, levels, ptc

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))
import sources  # noqa: E402


def far_off(got, expected):
    """'' if the arrays agree, else how far they are apart."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind != "f":
        wrong = int((got != expected).sum())
        return f"{wrong} of {got.size} elements differ" if wrong else ""
    if not np.isfinite(got).all():
        return "not all elements are finite"
    a, b = got.astype(np.float64), expected.astype(np.float64)
    limit = 1e-3 * np.abs(b) + 1e-5 * np.abs(b).max(initial=0)
    bad = int((np.abs(a - b) > limit).sum())
    return f"{bad} of {a.size} elements differ, by up to {np.abs(a - b).max():.3g} of {np.abs(b).max():.3g}" if bad else ""


def _matched(got, expected):
    """Results whose rows belong together, in the order of those that they are nearest to: scores that are nearly the same
    may come in either order."""
    table = [np.concatenate([out[name].reshape(len(out[name]), int(np.prod(out[name].shape[1:]))).astype(np.float64) for name in sorted(out)], 1)
             for out in (got, expected)]
    assert len(table[0]) == len(table[1])
    is_taken, order = np.zeros(len(table[0]), bool), []
    for wanted in table[1]:
        distances = np.nan_to_num(np.abs(table[0] - wanted).max(1), nan=np.finfo(float).max)
        nearest = np.where(is_taken, np.inf, distances).argmin()
        is_taken[nearest] = True
        order.append(nearest)
    return {name: array[order] for name, array in got.items()}


def differs(row, got, expected):
    """'' if all outputs of a run agree, else which does not, and how."""
    if row.get("unordered") and all(got[name].shape == expected[name].shape for name in expected):
        got = _matched(got, expected)
    return next((f"output {name}: {problem}" for name in expected if (problem := far_off(got[name], expected[name]))), "")


def _sequence(row, call):
    """Results of the row's runs; outputs named in `carry` are inputs of the next run."""
    results, carried = [], {}
    for run in row["run"]:
        out = call({name: sources.make_input(spec) for name, spec in run.items()} | carried)
        carried = {target: out[source] for source, target in row.get("carry", {}).items()}
        results.append(out)
    return results


def _reference(path, row, optimised=True):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return _sequence(row, lambda feeds: dict(zip(names, session.run(None, feeds))))


def _mean_apart(got, expected):
    """Root mean square of the difference of all results of a run that are no integers."""
    squares = [((got[name].astype(np.float64) - expected[name]) ** 2).ravel() for name in expected if expected[name].dtype.kind == "f"]
    return float(np.sqrt(np.concatenate(squares).mean()))


ROUNDED_APART = 1.5  # of how far onnxruntime is from itself


def _judge(row, path, expected):
    """What says of a run's number and results how they differ, '' if they do not. Where values are rounded to 8 bits
    inside, a last bit becomes a step: then results may be as far from onnxruntime's as those are, at any of the sizes, from
    what it gives without optimisations."""
    if not row.get("rounds"):
        return lambda number, got: differs(row, got, expected[number])
    limit = ROUNDED_APART * max(_mean_apart(plain, best) for plain, best in zip(_reference(path, row, False), expected))

    def judge(number, got):
        found = _mean_apart(got, expected[number])
        return "" if found <= limit else f"{found:.3g} apart in the mean, more than {limit:.3g}"

    return judge


def _apart(row, got, expected):
    """The largest difference of any result, as part of the largest value of it."""
    if row.get("unordered"):
        got = _matched(got, expected)
    scale = {name: np.abs(array.astype(np.float64)).max(initial=0) or 1 for name, array in expected.items() if array.dtype.kind == "f"}
    return max((np.abs(got[name].astype(np.float64) - expected[name]).max(initial=0) / scale[name] for name in scale), default=0.0)


def _compare(row, path, library):
    """A pass's text is the worst error, in digits."""
    expected, worst = _reference(path, row), 0.0
    judge = _judge(row, path, expected)
    for level in sorted(set(ptc.load(library).levels) & set(levels.usual())):
        one, two = (_sequence(row, lambda feeds, m=ptc.load(library, threads=n, cpu_level=level): m(**feeds)) for n in (1, 2))
        for number, (alone, both, wanted) in enumerate(zip(one, two, expected)):
            where = f"{level}, run {number}"
            if problem := judge(number, alone):
                return [FAILED, "wrong", f"{where}, {problem}"]
            worst = max(worst, _apart(row, alone, wanted))
            for name in wanted:
                if alone[name].tobytes() != both[name].tobytes():
                    return [FAILED, "threads", f"{where}, output {name}: one thread and two give other bits"]
    return [PASS, "", f"{worst:.0e}"]


RUN_TIMEOUT = 900  # seconds of the clock for all runs of a row: a loaded machine makes no row fail
PEAK_OVER_BOUND = 1.10  # of planned memory, where the lower bound is above
SMALL_PEAK = 1 << 20  # bytes
LEVEL_CODE = 1 << 20  # bytes of kernels of one CPU level
FILE_OVER_PARTS = 1.05  # a library over its weights and code
OTHER_BYTES = 128 << 10  # constants of at most 4 KB (biases), which are no weights; names, relocations, pages
LAUNCH_BYTES = 32  # of a launch's description and its relocations: eight images have thousands
LARGE_WEIGHTS, LARGE_ALIGNMENT = 32 << 20, 2 << 20  # bytes: so many weights start on a huge page of the file
EXPORTERS_APART = 0.05  # kernels of two exporters' files


def launches(manifest):
    """Kernels of one inference: a kernel that twelve layers share counts twelve times."""
    return sum(kernel["launches"] for kernel in manifest["kernels"])


def over_bounds(row, manifest):
    """'' if what the manifest states is within bounds, else what is not."""
    count = launches(manifest)
    if count > row.get("kernels", count):
        return f"{count} kernels instead of at most {row['kernels']}"
    for plan in manifest["memory"]:
        peak, bound = plan["peak"]["at_hint"], plan["lower_bound"]["at_hint"]
        if bound > SMALL_PEAK and peak > PEAK_OVER_BOUND * bound:
            return f"a planned peak of {peak} bytes, lower bound {bound}"
    for level in manifest["levels"]:
        code = sum(kernel["code_bytes"].get(level, 0) for kernel in manifest["kernels"])
        if code > LEVEL_CODE:
            return f"{code} bytes of code for {level}"
    parts = manifest["weights"]["bytes"] + manifest["code_bytes"]
    other = OTHER_BYTES + LAUNCH_BYTES * count + (LARGE_ALIGNMENT if manifest["weights"]["bytes"] >= LARGE_WEIGHTS else 0)
    if manifest["file_bytes"] > FILE_OVER_PARTS * parts + other:
        return f"a library of {manifest['file_bytes']} bytes for {parts} of weights and code"
    return ""


def _compile(row, program, path, folder, quick):
    """The library, or why there is none; two compiles give the same bytes."""
    first, second = folder / "a" / "model.so", folder / "b" / "model.so"
    for library, flags in (((first, ["-j2", f"--cpu={levels.usual()[-1]}"]),) if quick else ((first, ["-j2"]), (second, ["-j1"]))):
        library.parent.mkdir()
        if refused := execute.compile_model(program, path, library, [*row.get("flags", ()), *flags], "so,json"):
            return None, refused
    if not quick and first.read_bytes() != second.read_bytes():
        return None, Outcome(FAILED, "bytes", "two compiles differ")
    return first, None


def _check(row, program, build, counts, quick):
    path = sources.fetch(row, build)
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder:
        started = time.monotonic()
        library, refused = _compile(row, program, path, Path(folder), quick)
        seconds = (time.monotonic() - started) / (1 if quick else 2)
        if refused:
            return refused
        manifest = json.loads(library.with_suffix(".json").read_text())
        counts[row["name"]] = launches(manifest)
        outcome = execute.isolated(_compare, row, path, library, timeout=RUN_TIMEOUT)
        if outcome.word == PASS and (problem := over_bounds(row, manifest)):
            return Outcome(FAILED, "bounds", problem, seconds)
        return Outcome(outcome.word, outcome.cause, outcome.text, seconds)


def _exporters_apart(rows, counts):
    """Models whose exporters' files give too different numbers of kernels."""
    pairs = collections.defaultdict(list)
    for row in rows:
        if "exporter" in row and row["name"] in counts:
            pairs[row["name"].removesuffix(row["exporter"])].append(counts[row["name"]])
    return [(name, found) for name, found in pairs.items() if max(found) > (1 + EXPORTERS_APART) * min(found)]


HEADER = ("| model | free dims | at | result | worst error | kernels |", "|---|---|---|---|---|---|")


def _line(row, outcome, kernels):
    """What was checked of a row, as a line of a table."""
    named = {dim: None for spec in row.get("inputs", {}).values() for dim in spec.get("shape", ()) if isinstance(dim, str)}
    at = "; ".join("×".join(str(sizes[dim]) for dim in named) for sizes in row.get("sizes", ()))
    if outcome.cause == "bounds":  # looked at once the results agree
        result = f"as onnxruntime, with {outcome.text}"
    else:
        result = "as onnxruntime" if outcome.word == PASS else f"{outcome.word} {outcome.cause}".strip()
    error = outcome.text.strip() if outcome.word == PASS else ""
    return f"| {row['name']} | {' '.join(named)} | {at} | {result} | {error} | {kernels} |"


def _report(path, lines):
    """Puts the lines into the table of a file, each in its model's place; models of rows that did not run keep theirs."""
    old = path.read_text().splitlines() if path.exists() else []
    table = {line.split(" | ")[0]: line for line in old if line.startswith("| ") and line not in HEADER} | {line.split(" | ")[0]: line for line in lines}
    text = [line for line in old if not line.startswith("|")]
    path.write_text("\n".join([*text, *HEADER, *(table[name] for name in sorted(table))]) + "\n")


def check_all(program, build, exported, pattern=None, quick=False, report=None):
    """Checks the rows whose name, with 'real/' before it, matches; returns how many behaved and how many did not."""
    rows = [row for row in sources.rows(exported) if not pattern or re.search(pattern, f"real/{row['name']}")]
    good, bad, counts = 0, 0, {}
    for row in rows:
        outcome = _check(row, program, build, counts, quick)
        behaved = (outcome.word == PASS) == (row["state"] == "passes")
        good, bad = good + behaved, bad + (not behaved)
        print(f"real/{row['name']}: {outcome.word} {outcome.cause} ({outcome.seconds:.1f} s a compile, {counts.get(row['name'], 0)} kernels) "
              + outcome.text.strip()[:300] + ("" if behaved else f" -- expected: {row['state']}"), flush=True)
        if report and "sizes" in row:
            _report(report, [_line(row, outcome, counts.get(row["name"], 0))])
    for name, found in _exporters_apart(rows, counts):
        bad += 1
        print(f"real/{name}*: the exporters' files give {' and '.join(map(str, found))} kernels")
    return good, bad
