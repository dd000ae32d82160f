"""Rows that compare.py measures: their ratios, their groups, and the tables that are made of them.

A model's group follows from what ptc's manifest counts of it and what its ONNX file holds:

    quantised    has products of 8-bit or 4-bit weights; not among "all"
    small        holds a Loop, Scan, If or a recurrent operator, or ptc needs less than a millisecond on one thread
    3x3          at least half of the multiply-adds of its products are in 3x3 convolutions of stride 1
    convolution  at least half are in convolutions
    matmul       the others: transformers above all
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
QUANTISED = {"DequantizeLinear", "MatMulInteger", "ConvInteger", "MatMulNBits", "QLinearConv", "QLinearMatMul", "QGemm", "DynamicQuantizeLinear"}
CONTROL = {"If", "Loop", "Scan", "LSTM", "GRU", "RNN"}
GROUPS = {"3x3": "mostly 3x3 convolutions", "convolution": "other convolutional", "matmul": "transformers and other products", "small": "small, control flow, recurrent",
          "quantised": "quantised, not among all"}
MARKED = re.compile(r"(<!-- benchmarks -->\n).*?(<!-- end -->)", re.S)


def group_of(path, manifest):
    """By its operators, or the flops of the kernels that compute its products; "small" may still come of the time."""
    graph = onnx.load(path, load_external_data=False).graph
    operators = {node.op_type for node in graph.node}
    if QUANTISED & operators:
        return "quantised"
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
    return "convolution" if flops["3x3"] + flops["convolution"] > flops["matmul"] else "matmul"


def _kind(node):
    if node is None or node.op_type not in ("Conv", "ConvTranspose", "MatMul", "Gemm", "Attention", "Einsum"):
        return None
    if node.op_type not in ("Conv", "ConvTranspose"):
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
    """What the median of the distribution exceeds with 97.5 %: the lower end of its interval of 95 % by order statistics."""
    count, rank, below = len(values), 0, 0.5 ** len(values)
    while (total := below + math.comb(count, rank + 1) * 0.5 ** count) <= 0.025:
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


def final_group(row, rows):
    single = next((other for other in rows if other["model"] == row["model"] and other["threads"] == 1), row)
    return "small" if milliseconds(single, "ptc") < SMALL and row["group"] != "quantised" else row["group"]


def show(value, form=".3g"):
    return "-" if value is None else format(value, form)


def line(row):
    times = ", ".join(f"{name} {statistics.median(values):.3g} ms" for name, values in row["samples"].items() if name != "again")
    return f"{row['model']}, {row['threads']} ({row['group']}): {times}; ratio {show(ratio(row), '.2f')}, bound {show(lower(row), '.2f')}, noise {noise(row['samples']):.3f}"


def read(path):
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def append(path, row):
    with path.open("a") as file:
        file.write(json.dumps(row | {"samples": {name: [round(x, 6) for x in values] for name, values in row["samples"].items()}}) + "\n")


def summary(rows):
    """A table of geometric means: a line for each group and number of threads."""
    counted = [row for row in rows if better(row["samples"])]
    yield "| models | threads | | won | against the better of onnxruntime and OpenVINO | onnxruntime | OpenVINO | torch.compile |"
    yield "|---|---|---|---|---|---|---|---|"
    for threads in sorted({row["threads"] for row in counted}):
        for group, words in [("", "all"), *GROUPS.items()]:
            of_group = lambda row: final_group(row, rows) == group if group else row["group"] != "quantised"
            own = [row for row in counted if row["threads"] == threads and of_group(row)]
            if not own:
                continue
            means = []
            for peer in (None, *BASE, "inductor"):
                values = [value for row in own if (value := ratio(row, peer)) is not None]
                means.append(f"{geometric(values):.2f}" if values else "-")
            won = sum(lower(row) > 1 for row in own)
            yield f"| {words} | {threads} | {len(own)} | {won} | {' | '.join(means)} |"


def table(rows):
    yield "| model | group | threads | ptc ms | onnxruntime | OpenVINO | torch.compile | ratio | bound | compile s | anon. MB | code KB |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: (row["model"], row["threads"])):
        times = " | ".join(show(milliseconds(row, name)) for name in ("ptc", *BASE, "inductor"))
        mark = " (noisy)" if noise(row["samples"]) > NOISY else ""
        yield (f"| {row['model']} | {final_group(row, rows)} | {row['threads']} | {times} | {show(ratio(row), '.2f')}{mark} | {show(lower(row), '.2f')} "
               f"| {row['compile_s']:.1f} | {row['megabytes']:.0f} | {row['code'] / 1024:.0f} |")


def report(rows, out):
    for part in (table(rows), [""], summary(rows)):
        for text in part:
            print(text, file=out)
    noises = [noise(row["samples"]) for row in rows]
    print(f"\nonnxruntime against itself: {statistics.median(noises):.3f} off in the median row; "
          f"{sum(value > NOISY for value in noises)} of {len(rows)} rows noisy (above {NOISY:.0%})", file=out)


def _processor():
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{found[1] if found else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def write(rows, path, versions):
    """The whole table to `path`, its summary to README.md."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    levels = " ".join(flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile") if f" {flag} " in Path("/proc/cpuinfo").read_text())
    about = f"{time.strftime('%Y-%m-%d')}, {_processor()} ({levels}); ptc at {commit}, {', '.join(versions)}; 32-bit floats, batch 1"
    with path.open("w") as file:
        print(f"# ptc beside its peers\n\n{about}. How it is measured, and the command: [compare.py](compare.py); how models are grouped:\n"
              "[results.py](results.py). Ratios are times of a peer / times of ptc.\n", file=file)
        report(rows, file)
    readme = ROOT / "README.md"
    text = "\n".join(summary(rows))
    link = f"{about}. [Every model]({path.resolve().relative_to(ROOT)})"
    fresh, count = MARKED.subn(lambda match: f"{match[1]}\n{text}\n\n{link}\n{match[2]}", readme.read_text())
    if not count:
        raise SystemExit(f"{readme} has no place for benchmarks: <!-- benchmarks --> and <!-- end -->")
    readme.write_text(fresh)
