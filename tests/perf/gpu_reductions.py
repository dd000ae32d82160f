"""gpu.py reductions: from few long rows to many short ones, and columns."""

import torch
from gpu_nodes import Nodes, measure

MI = 1 << 20


def reduce(name, operator, shape, axis, peer, dims=None):
    """Along one axis, whose dim goes."""
    dims, out = dims or {}, [extent for at, extent in enumerate(shape) if at != axis]
    text = lambda extents: f"{{f}}[{', '.join(map(str, extents))}]" if extents else "{f}"
    graph = f"({text(shape)} x) => ({text(out)} y) {{ a = Constant <value = int64[1] {{{axis}}}> () y = {operator} <keepdims = 0> (x, a) }}"
    return Nodes(name, graph, [peer], dims=dims)


def cases():
    f = torch.nn.functional
    whole = lambda name, shape, body, out, peer: Nodes(name, f"({{f}}[{shape}] x) => ({out} y) {{ y = {body} (x) }}", [peer])
    return [
        reduce("sum of 16 Mi", "ReduceSum", (16 * MI,), 0, lambda x: x.sum()),
        reduce("maximum of 4 rows of 4 Mi", "ReduceMax", (4, 4 * MI), 1, lambda x: x.amax(1)),
        reduce("sum of 4 rows of 4 Mi, both symbols", "ReduceSum", ("n", "k"), 1, lambda x: x.sum(1), {"n": 4, "k": 4 * MI}),
        reduce("sum of 16,384 rows of 1,024", "ReduceSum", (16384, 1024), 1, lambda x: x.sum(1)),
        reduce("sum of 16,384 rows of 1,024, both symbols", "ReduceSum", ("n", "k"), 1, lambda x: x.sum(1), {"n": 16384, "k": 1024}),
        whole("index of the largest of 4 Mi", 4 * MI, "ArgMax <axis = 0, keepdims = 0>", "int64", lambda x: x.argmax()),
        reduce("mean of 1 Mi lines of 8", "ReduceMean", (MI, 8), 0, lambda x: x.mean(0)),
        reduce("mean of 100,000 lines of 300", "ReduceMean", (100000, 300), 0, lambda x: x.mean(0)),
        reduce("mean of 49 lines of 2,048", "ReduceMean", (49, 2048), 0, lambda x: x.mean(0)),
        whole("softmax of 2 rows of 2 Mi", f"2, {2 * MI}", "Softmax <axis = 1>", f"{{f}}[2, {2 * MI}]", lambda x: f.softmax(x, 1)),
        Nodes("layer normalisation of 4 rows of 4 Mi", f"({{f}}[4, {4 * MI}] x, {{f}}[{4 * MI}] s) => ({{f}}[4, {4 * MI}] y)"
              " { y = LayerNormalization <axis = 1> (x, s) }", [lambda x, s: f.layer_norm(x, s.shape, s)]),
    ]


def reductions(arguments):
    measure(arguments, "reduction", cases())
