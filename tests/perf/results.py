"""Rows that compare.py measures: their ratios, their groups, and the tables that are made of them.

A model's group follows from what ptc's manifest counts at the sizes measured and what its ONNX file holds. The first that holds:

    quantised    has products of 8-bit or 4-bit weights; not among "all"
    generated    nodes make its weights, all elements of one value (the "light" models): whether such a weight is stored is not what
                 the others are about; not among "all"
    small        holds a Loop, Scan, If or a recurrent operator, or ptc needs less than a millisecond at batch 1 on one thread
    3x3          at least half of the flops of its products are in 3x3 convolutions of stride 1, not grouped
    convolution  at least half of them are in convolutions, or it has convolutions and no attention
    transformer  the others. Attention is the operator, or a Softmax whose result a product takes

A row whose comparison of onnxruntime with itself is NOISY counts as one of the models, but neither as won nor in a mean; so does
one that ptc fails at.
"""

import json
import math
import os
import platform
import re
import statistics
import subprocess
import time
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parents[2]
NOISY = 0.02  # of a row's comparison of onnxruntime with itself
SMALL = 1.0  # milliseconds
BASE = ("onnxruntime", "openvino")  # whose better one a ratio is against
WORDS = {"onnxruntime": "onnxruntime", "openvino": "OpenVINO", "inductor": "torch.compile"}
QUANTISED = {"DequantizeLinear", "MatMulInteger", "ConvInteger", "MatMulNBits", "QLinearConv", "QLinearMatMul", "QGemm", "DynamicQuantizeLinear"}
CONTROL = {"If", "Loop", "Scan", "LSTM", "GRU", "RNN"}
ATTENTION = {"Attention", "MultiHeadAttention", "GroupQueryAttention"}
CONVOLUTIONS = {"Conv", "ConvTranspose"}
PRODUCTS = {"MatMul", "Gemm", "Einsum"} | ATTENTION
PASSING = {"Cast", "Where", "IsNaN", "Dropout", "Identity", "Mul", "Reshape", "Transpose"}  # between a Softmax and its product
GROUPS = {"3x3": "mostly 3x3 convolutions", "convolution": "other convolutional", "transformer": "transformers", "small": "small, control flow, recurrent",
          "quantised": "quantised, not among all", "generated": "generated weights, not among all"}
BESIDE = {"quantised", "generated"}  # groups that are not among "all"
MARKED = re.compile(r"(<!-- benchmarks -->\n).*?(<!-- end -->)", re.S)


def group_of(path, manifest):
    """By its operators, or the flops of the kernels that compute its products; "small" may still come of the time."""
    graph = onnx.load(path, load_external_data=False).graph
    operators = {node.op_type for node in graph.node}
    if QUANTISED & operators:
        return "quantised"
    if _generates(graph):
        return "generated"
    if CONTROL & operators:
        return "small"
    nodes = {name: node for node in graph.node for name in (node.name, *node.output)}
    flops = {"3x3": 0, "convolution": 0, "matmul": 0}
    for kernel in manifest["kernels"]:
        for names in kernel["launch_nodes"]:
            if kind := next(filter(None, (_kind(nodes.get(name)) for name in names)), None):
                flops[kind] += kernel["flops"]["at_hint"]
    if 2 * flops["3x3"] >= sum(flops.values()) > 0:
        return "3x3"
    mostly = 2 * (flops["3x3"] + flops["convolution"]) >= sum(flops.values()) > 0
    return "convolution" if mostly or CONVOLUTIONS & operators and not _attends(graph) else "transformer"


def _generates(graph):
    made = {node.output[0] for node in graph.node if node.op_type == "ConstantOfShape"}
    return any(node.op_type in CONVOLUTIONS | PRODUCTS and made.intersection(node.input[1:2]) for node in graph.node)


def _attends(graph):
    users = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    ways = [node for node in graph.node if node.op_type == "Softmax"]
    seen = set()
    while ways:
        for user in users.get(ways.pop().output[0], ()):
            if user.op_type in PRODUCTS:
                return True
            if user.op_type in PASSING and user.output[0] not in seen:
                seen.add(user.output[0])
                ways.append(user)
    return any(node.op_type in ATTENTION for node in graph.node)


def _kind(node):
    if node is None or node.op_type not in CONVOLUTIONS | PRODUCTS:
        return None
    if node.op_type not in CONVOLUTIONS:
        return "matmul"
    values = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    is_square = list(values.get("kernel_shape", ())) == [3, 3] and set(values.get("strides", [1])) == {1} and values.get("group", 1) == 1
    return "3x3" if is_square and node.op_type == "Conv" else "convolution"


def ratios(samples, peer, other="ptc"):
    return [x / y for x, y in zip(samples[peer], samples[other])]


def better(samples):
    """The quicker of those that a ratio is against; none: no peer could run it."""
    found = [peer for peer in BASE if peer in samples]
    return min(found, key=lambda peer: statistics.median(samples[peer]), default=None)


def bound(values):
    """What the median of the distribution exceeds with 95 %: the k-th smallest value, where as many coins show fewer than k
    heads with at most 5 %."""
    count, rank, below = len(values), 0, 0.5 ** len(values)
    while (total := below + math.comb(count, rank + 1) * 0.5 ** count) <= 0.05:
        below, rank = total, rank + 1
    return sorted(values)[rank]


def noise(samples):
    return abs(statistics.median(ratios(samples, "onnxruntime", "again")) - 1) if "again" in samples else 0.0


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def milliseconds(row, name):
    return statistics.median(row["samples"][name]) if name in row["samples"] else None


def ratio(row, peer=None):
    peer = peer or better(row["samples"])
    return statistics.median(ratios(row["samples"], peer)) if peer in row["samples"] else None


def lower(row):
    peer = better(row["samples"])
    return bound(ratios(row["samples"], peer)) if peer else None


def is_noisy(row):
    return noise(row["samples"]) > NOISY


def is_won(row):
    return better(row["samples"]) is not None and not is_noisy(row) and lower(row) > 1


def key(row):
    return row["model"], row["threads"], row["batch"]


def final_groups(rows):
    """By model: of a row at batch 1 and one thread where there is one."""
    groups = {}
    for row in sorted((row for row in rows if "failed" not in row), key=lambda row: (row["batch"], row["threads"])):
        is_small = milliseconds(row, "ptc") < SMALL and row["group"] not in BESIDE
        groups.setdefault(row["model"], "small" if is_small else row["group"])
    return groups


def show(value, form=".3g"):
    return "-" if value is None else format(value, form)


def line(row):
    where = f"{row['model']}, {row['threads']} thread{'s' * (row['threads'] > 1)}, batch {row['batch']}"
    if "failed" in row:
        return f"{where}: fails: {row['failed']}"
    times = ", ".join(f"{name} {statistics.median(values):.3g} ms" for name, values in row["samples"].items() if name != "again")
    return f"{where} ({row['group']}): {times}; ratio {show(ratio(row), '.2f')}, bound {show(lower(row), '.2f')}, noise {noise(row['samples']):.3f}"


def read(path):
    rows = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    if any("batch" not in row for row in rows):
        raise SystemExit(f"{path}: its rows are of an earlier compare.py; start another file")
    return rows


def latest(rows):
    """The last row of each model, number of threads and batch."""
    return list({key(row): row for row in rows}.values())


def append(path, row):
    rounded = {"samples": {name: [round(x, 6) for x in values] for name, values in row["samples"].items()}} if "samples" in row else {}
    with path.open("a") as file:
        file.write(json.dumps(row | rounded) + "\n")


def summary(rows):
    """A table of geometric means: a line for each group, number of threads and batch."""
    groups = final_groups(rows)
    yield "| models | threads | batch | won | against the better of onnxruntime and OpenVINO | worst | onnxruntime | OpenVINO | torch.compile |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for batch, threads in sorted({(row["batch"], row["threads"]) for row in rows}):
        at = [row for row in rows if (row["batch"], row["threads"]) == (batch, threads)]
        for group, words in [("", "all"), *GROUPS.items()]:
            own = [row for row in at if (groups.get(row["model"]) == group if group else groups.get(row["model"]) not in BESIDE)]
            if not own:
                continue
            quiet = [row for row in own if "failed" not in row and better(row["samples"]) and not is_noisy(row)]
            found = {peer: [value for row in quiet if (value := ratio(row, peer)) is not None] for peer in (None, *WORDS)}
            means = {peer: f"{geometric(values):.2f}" if values else "-" for peer, values in found.items()}
            worst = show(min(found[None], default=None), ".2f")
            yield (f"| {words} | {threads} | {batch} | {sum(map(is_won, quiet))} of {len(own)} | {means[None]} | {worst} | "
                   f"{' | '.join(means[peer] for peer in WORDS)} |")


def table(rows):
    groups = final_groups(rows)
    yield f"| model | group | threads | batch | ptc ms | {' | '.join(WORDS.values())} | ratio | bound | noise | compile s | anon. MB | code KB |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: (row["batch"], row["model"], row["threads"])):
        start = f"| {row['model']} | {groups.get(row['model'], '-')} | {row['threads']} | {row['batch']} |"
        if "failed" in row:
            yield f"{start} {' | '.join('-' * 10)} |"
            continue
        times = " | ".join(show(milliseconds(row, name)) for name in ("ptc", *WORDS))
        yield (f"{start} {times} | {show(ratio(row), '.2f')} | {show(lower(row), '.2f')} | {noise(row['samples']):.3f}{' (noisy)' * is_noisy(row)} "
               f"| {row['compile_s']:.1f} | {row['megabytes']:.0f} | {row['code'] / 1024:.0f} |")


def report(rows, out):
    for part in (table(rows), [""], summary(rows)):
        for text in part:
            print(text, file=out)
    measured = [row for row in rows if "failed" not in row]
    if noises := [noise(row["samples"]) for row in measured if "again" in row["samples"]]:
        print(f"\nonnxruntime against itself: {statistics.median(noises):.3f} off in the median row; "
              f"{sum(map(is_noisy, measured))} of {len(measured)} rows noisy (above {NOISY:.0%})", file=out)
    for row in rows:
        if "failed" in row:
            print(f"\n{line(row)}", file=out)


def machine():
    """The day, the processor, and the commit that ptc is at."""
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"^model name\s*: (.*)$", text, re.M)
    levels = " ".join(flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile") if f" {flag} " in text)
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"date": time.strftime("%Y-%m-%d"), "ptc": commit or "no commit",
            "processor": f"{found[1] if found else platform.machine()}, {len(os.sched_getaffinity(0))} cores ({levels})"}


def about(rows):
    """Where the rows come from; several values of one thing are all told."""
    told = lambda values: " and ".join(dict.fromkeys(values))
    peers = {peer for row in rows for peer in row["versions"]}
    versions = [f"{WORDS[peer]} {told(row['versions'][peer] for row in rows if peer in row['versions'])}" for peer in WORDS if peer in peers]
    dates = sorted({row["date"] for row in rows})
    return (f"{' to '.join(dict.fromkeys([dates[0], dates[-1]]))}, {told(row['processor'] for row in rows)}; "
            f"ptc at {told(row['ptc'] for row in rows)}, {', '.join(versions)}; 32-bit floats where not quantised")


def write(rows, path):
    """The whole table to `path`, its summary to README.md."""
    readme = ROOT / "README.md"
    text = "\n".join(summary(rows))
    link = f"{about(rows)}.\n[Every model]({os.path.relpath(path.resolve(), ROOT)})"
    fresh, count = MARKED.subn(lambda match: f"{match[1]}\n{text}\n\n{link}\n{match[2]}", readme.read_text())
    if not count:
        raise SystemExit(f"{readme} has no place for the summary: a line <!-- benchmarks --> and one <!-- end -->")
    commands = "\n".join(dict.fromkeys(f"    {row['command']}" for row in rows))
    with path.open("w") as file:
        print(f"# ptc beside its peers\n\n{about(rows)}.\n\n{commands}\n\nHow it is measured: [compare.py](compare.py); how models are grouped and what is won: "
              "[results.py](results.py).\nTimes are milliseconds, ratios times of a peer / times of ptc.\n", file=file)
        report(rows, file)
    readme.write_text(fresh)
