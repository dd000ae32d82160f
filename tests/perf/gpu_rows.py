"""gpu.py rows: what memory binds, over 64 Mi elements in rows of 1,024, beside a copy of as many."""

import onnx
import torch
from gpu_device import ONNX_TYPES, TYPES, Table, compile_both, error, in_turns, load
from onnx import helper
from onnx.helper import make_node


def row_cases():
    """By name: nodes from x (and b, of one row) to y, and the same in torch."""
    f = torch.nn.functional
    return {
        "gelu": ([make_node("Add", ["x", "b"], ["s"]), make_node("Gelu", ["s"], ["y"])], lambda x, b: f.gelu(x + b)),
        "softmax": ([make_node("Softmax", ["x"], ["y"])], lambda x, b: f.softmax(x, -1)),
        "layernorm": ([make_node("LayerNormalization", ["x", "b"], ["y"])], lambda x, b: f.layer_norm(x, b.shape, b)),
        "residual_layernorm": ([make_node("Mul", ["x", "b"], ["s"]), make_node("Add", ["x", "s"], ["r"]), make_node("LayerNormalization", ["r", "b"], ["y"])],
                               lambda x, b: f.layer_norm(x + x * b, b.shape, b)),
    }


def rows(arguments):
    kind, onnx_kind = TYPES[arguments.dtype], ONNX_TYPES[arguments.dtype]
    value = lambda name, shape: helper.make_tensor_value_info(name, onnx_kind, shape)
    torch.manual_seed(0)
    x = torch.randn(1 << 16, 1 << 10, device="cuda").to(kind)
    b = torch.randn(1 << 10, device="cuda").to(kind)
    target, moved = torch.empty_like(x), 2 * x.numel() * x.element_size()
    table = Table(arguments, "64 Mi elements, TB/s", "ptc", "copy", "torch.compile", "ptc / copy", "error", "torch's")
    for name, (nodes, function) in row_cases().items():
        if arguments.names and name not in arguments.names:
            continue
        inputs = [value("x", x.shape)] + ([value("b", b.shape)] if any("b" in node.input for node in nodes) else [])
        model = arguments.folder / f"{name}.onnx"
        onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, [value("y", x.shape)]), opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
        libraries = load(compile_both(arguments, model), [x, b][:len(inputs)])
        compiled = torch.compile(function)
        times = in_turns({**libraries, "copy": lambda: target.copy_(x), "torch": lambda: compiled(x, b)})
        rate = {who: moved / us * 1e-6 for who, us in times.items()}
        part = slice(0, 4096)
        exact = function(x[part].double(), b.double())
        table.row(f"{name} {arguments.dtype}", *(f"{rate[who]:.2f}" for who in ("ptc", "copy", "torch")), f"{rate['ptc'] / rate['copy']:.3f}",
                  f"{error(libraries['ptc'].outputs[0][part], exact):.1e}", f"{error(compiled(x, b)[part], exact):.1e}",
                  before=f"{rate['before']:.2f}" if arguments.against else "-")
