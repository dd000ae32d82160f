"""Random graphs of all that a compiler rewrites together: element types, views of views, reductions, products with long
epilogues, 8-bit tensors, bodies of control flow, recurrent layers, state that is updated in place, sizes that are free; and the
flags of `ptc compile` that go with them.

A graph follows from its seed alone. Each has a bias of its own towards some steps, so that they meet more often.
"""

import numpy as np

import regions
import steps
from builder import SIZES, Builder, model
from case import Case
from judge import Declined, Judge, reads

OPSET = 23
FLAGS = ([],) * 8 + (["--fp=strict"], ["-O0"], ["-O1"], ["-O3"], ["--mode=reduce-overhead"], ["--threads=none"], ["--threads=openmp"], ["--weights=file"],
                     ["--cpu=x86-64-v2"], ["--cpu=native"], ["--autocast=bf16"], ["--autocast=f16"], ["--dynamic=on"])
THEMES = ((), (), steps.MOVING, steps.POINTWISE, steps.REDUCING, steps.PRODUCTS, regions.ALL)


def _input(b, kinds):
    """An input of the graph: floats of the judge's grid or not, integers that do not overflow soon."""
    shape = [b.choose(SIZES) for _ in range(b.choose((0, 1, 2, 2, 3, 3, 4, 4)))]
    if shape and b.often(0.03):
        shape[b.integer(0, len(shape) - 1)] = 0
    while np.prod(shape) > 6000:
        shape[int(np.argmax(shape))] = 2
    return np.dtype(b.choose(kinds)), shape


def numbers(random, dtype, shape):
    if dtype.kind == "b":
        drawn = random.random(shape) < 0.5
    elif dtype.kind in "iu":
        drawn = random.integers(0 if dtype.kind == "u" else -9, 10, shape)
    else:
        drawn = random.uniform(-1, 1, shape)
        drawn = np.rint(drawn * 16) / 8 if random.random() < 0.4 else drawn
    return np.asarray(drawn).astype(dtype)


def _outputs(b):
    """Whatever nothing reads, some values in the middle, and now and then one twice under another name, or an input as it is."""
    read = {name for node in b.nodes for name in reads(node)}
    chosen = [name for name in b.names if name not in read or b.often(0.1)]
    if b.often(0.1):
        chosen.append(b.node("Identity", [b.pick()]))
    return chosen


def _alias(b, inputs, outputs):
    """--alias for inputs and outputs of one type and shape."""
    flags, taken = [], set()
    for name in inputs:
        fits = [other for other in outputs if b.dtype(other) == b.dtype(name) and b.shape(other) == b.shape(name) and other not in taken]
        if fits and b.often(0.5):
            output = b.choose(fits)
            taken.add(output)
            flags += ["--alias", f"{name}={output}"]
    return flags


def _symbols(b, inputs):
    """Names for some sizes of inputs: one for each size, or for each dim."""
    by_size, share = b.often(0.6), b.choose((0.3, 1))
    symbols = {}
    for name in inputs:
        for axis, extent in enumerate(b.shape(name)):
            symbol = f"n{extent}" if by_size else f"{name}_{axis}"
            if extent > 1 and (symbol in symbols.values() or b.often(share)):
                symbols[name, axis] = symbol
    return symbols


def _other_feeds(b, inputs, symbols, graph, judge):
    """Feeds at other sizes that the graph makes sense at, each with the values that are wanted."""
    found = []
    for _ in range(2):
        extents = {symbol: b.choose((1, 2, 3, 4, 6, 7, 8, 11, 16, 18, 35)) for symbol in symbols.values()}
        feeds = {}
        for name in inputs:
            shape = [extents.get(symbols.get((name, axis)), extent) for axis, extent in enumerate(b.shape(name))]
            feeds[name] = numbers(b.random, b.dtype(name), shape)
        try:
            judge.graph(graph, feeds)
            found.append(feeds)
        except Declined:
            continue
    return found


def draw(seed):
    """The case of a seed."""
    random = np.random.default_rng([seed, 2])
    flags = list(FLAGS[random.integers(len(FLAGS))])
    judge = Judge.of(flags, OPSET)
    b = Builder(random, judge)
    b.is_open = b.often(0.35)
    kinds = steps.FLOATS + (np.float32,) * 6 + steps.INTEGERS + (np.bool_,) if b.often(0.7) else (np.float32,)
    inputs = []
    for _ in range(b.integer(1, 4)):
        name = b.name("x")
        b.add_input(name, numbers(random, *_input(b, kinds)))
        inputs.append(name)
    theme = b.choose(THEMES)
    known = steps.ALL + regions.ALL[: 0 if b.often(0.5) else None]
    for _ in range(b.integer(4, 30)):
        b.attempt(b.choose(theme if theme and b.often(0.5) else known))
    if not b.names:
        b.node("Identity", [inputs[0]])
    outputs = _outputs(b)
    feeds = {name: b.array(name) for name in inputs}
    flags += _alias(b, inputs, outputs) if not b.is_open and b.often(0.35) else []
    empty = {(name, axis): f"{name}_{axis}" for name in inputs for axis, extent in enumerate(b.shape(name)) if not extent}
    for symbol in empty.values():  # a size of 0 in a file is one that is open
        flags += ["--dim", symbol + b.choose(("=0", "=0..9"))]
    is_closed = not b.is_open and not b.has_found_sizes()
    results = [b.info(name, None if is_closed else b.open_shape(name)) for name in outputs]
    make = lambda symbols: b.graph("mixed", [b.info(name, [symbols.get((name, axis), extent) for axis, extent in enumerate(b.shape(name))]) for name in inputs], results)
    graph, runs = make(empty), [feeds]
    symbols = _symbols(b, inputs) if b.is_open else {}
    if others := _other_feeds(b, inputs, symbols, graph, judge) if symbols else []:
        runs += others
        graph = make(symbols | empty)
        if b.often(0.3):
            (name, axis), symbol = b.choose(sorted(symbols.items()))
            flags += ["--dim", f"{symbol}=1..64", "--bucket", f"{symbol}={b.choose(runs)[name].shape[axis]}"]
    return Case(model(graph, OPSET), runs, flags)
