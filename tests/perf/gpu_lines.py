"""gpu.py lines: running sums and sorts along few long lines."""

import onnx.parser
import torch
from gpu_device import TYPES, Table, compile_both, error, in_turns, load, microseconds, record
from gpu_nodes import NAMES


def scan(axis, shape, text=None):
    dims = text or ", ".join(map(str, shape))
    graph = f"({{f}}[{dims}] x) => ({{f}}[{dims}] y) {{ z = Constant <value = int64 {{{axis}}}> ()\ny = CumSum (x, z) }}"
    return graph, lambda x: torch.cumsum(x, axis), shape


def top(rows, length, kept):
    graph = (f"({{f}}[{rows}, {length}] x) => ({{f}}[{rows}, {kept}] y, int64[{rows}, {kept}] i)"
             f" {{ k = Constant <value = int64[1] {{{kept}}}> ()\ny, i = TopK (x, k) }}")
    if kept == length:
        return graph, lambda x: torch.sort(x, dim=1, descending=True, stable=True)[0], (rows, length)
    return graph, lambda x: torch.topk(x, kept, dim=1)[0], (rows, length)


# The graph's text, what torch does, dims of the input.
CASES = {
    "sum along 1 x 16 Mi": scan(1, (1, 1 << 24)), "sum along 4 x 1 Mi": scan(1, (4, 1 << 20)),
    "sum along 1 x 131072": scan(1, (1, 1 << 17)), "sum along 1024 x 4096": scan(1, (1024, 4096)),
    "sum along 65536 x 256": scan(1, (1 << 16, 256)), "sum along lines of 8 of 1 Mi": scan(0, (1 << 20, 8)),
    "sum along n x len, 4 x 1 Mi": scan(1, (4, 1 << 20), "n, len"),
    "sort 1 x 1 Mi": top(1, 1 << 20, 1 << 20), "sort 1 x 8 Mi": top(1, 1 << 23, 1 << 23), "sort 4096 x 1000": top(4096, 1000, 1000),
    "first 50 of 1 x 131072": top(1, 1 << 17, 50), "first 100 of 1 x 1 Mi": top(1, 1 << 20, 100), "first 50 of 64 x 32768": top(64, 1 << 15, 50),
}


def lines(arguments):
    table = Table(arguments, f"line, {arguments.dtype}", "ptc", "torch", "torch / ptc", "error", "torch's")
    for number, (name, (graph, function, shape)) in enumerate(CASES.items()):
        if arguments.names and not any(word in name for word in arguments.names):
            continue
        torch.manual_seed(0)
        x = torch.randn(shape, device="cuda").to(TYPES[arguments.dtype])
        model = arguments.folder / f"line{number}.onnx"
        onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\nm {graph.replace("{f}", NAMES[arguments.dtype])}'), model)
        libraries = load(compile_both(arguments, model), [x])
        try:
            peer = record(lambda: function(x))
        except RuntimeError:  # sorts that torch refuses to record
            peer = lambda: function(x)
        times = in_turns({**libraries, "torch": peer})
        exact = function(x.double())
        table.row(name, microseconds(times, "ptc"), microseconds(times, "torch"), f"{times['torch'] / times['ptc']:.2f}",
                  f"{error(libraries['ptc'].outputs[0], exact):.1e}", f"{error(function(x), exact):.1e}", before=microseconds(times))
