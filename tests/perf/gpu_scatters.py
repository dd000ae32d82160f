"""gpu.py scatters: updates that meet, by rows and by elements, in order and in any."""

import torch
from gpu_nodes import Nodes, measure

MI = 1 << 20


def rows(name, updates, places, width, text=None):
    """Rows added to rows that indices choose."""
    graph = f"({{f}}[{places}, {width}] x, int64[{text or updates}, 1] i, {{f}}[{text or updates}, {width}] u) => ({{f}}[{places}, {width}] y)"
    return Nodes(name, f'{graph} {{ y = ScatterND <reduction = "add"> (x, i, u) }}', [lambda x, i, u: x.index_add(0, i[:, 0], u)],
                 dims={text: updates}, make={"i": lambda shape: torch.randint(places, shape, device="cuda")})


def elements(name, updates, places, peer, reduction="add", axis=0, kind="{f}", make=None, exact=None):
    """Elements along an axis; `make` makes the indices."""
    text = lambda shape: ", ".join(map(str, shape))
    graph = f"({kind}[{text(places)}] x, int64[{text(updates)}] i, {kind}[{text(updates)}] u) => ({kind}[{text(places)}] y)"
    draw = {"i": make or (lambda shape: torch.randint(places[axis], shape, device="cuda"))}
    if kind != "{f}":
        draw |= {name: lambda shape: torch.randint(-1000, 1000, shape, device="cuda", dtype=torch.int32) for name in "xu"}
    return Nodes(name, f'{graph} {{ y = ScatterElements <axis = {axis}, reduction = "{reduction}"> (x, i, u) }}', [peer], exact, make=draw)


def crowded(shape):
    """Half of them at one place."""
    index = torch.randint(MI, shape, device="cuda")
    return torch.where(torch.rand(shape, device="cuda") < 0.5, 7, index)


def last(x, i, u):
    """As numpy's assignment: of updates that meet, the last one stays."""
    number = torch.full(x.shape, -1, device="cuda").scatter_reduce(0, i, torch.arange(len(i), device="cuda"), "amax")
    return torch.where(number < 0, x, u[number.clamp(min=0)])


def cases():
    add = lambda axis: lambda x, i, u: x.scatter_add(axis, i, u)
    return [
        rows("20,000 rows of 64 added to 10,000", 20000, 10000, 64),
        rows("100,000 rows of 64 added to 10,000", 100000, 10000, 64),
        rows("n rows of 64 added to 10,000, 20,000 of them", 20000, 10000, 64, "n"),
        rows("8,192 rows of 768 added to 30,522", 8192, 30522, 768),
        rows("100,000 rows of 3 added to 50,000", 100000, 50000, 3),
        elements("1000 x 1000 elements added along rows", (1000, 1000), (1000, 1000), add(1), axis=1),
        elements("1 Mi elements added to 1 Mi", (MI,), (MI,), add(0)),
        elements("1 Mi elements added to 1,000", (MI,), (1000,), add(0)),
        elements("1 Mi elements added to 1 Mi, half of them to one", (MI,), (MI,), add(0), make=crowded),
        elements("8 Mi elements added to 8 Mi", (8 * MI,), (8 * MI,), add(0)),
        elements("1 Mi elements, the last one stays", (MI,), (MI,), lambda x, i, u: x.scatter(0, i, u), "none", exact=last),
        elements("1 Mi elements, the largest stays", (MI,), (MI,), lambda x, i, u: x.scatter_reduce(0, i, u, "amax"), "max"),
        elements("1 Mi integers added to 1 Mi", (MI,), (MI,), add(0), kind="int32"),
    ]


def scatters(arguments):
    measure(arguments, "scatter", cases())
