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
    sizes = SIZES + ((48, 64, 65, 96, 130) if b.is_large else ())
    shape = [b.choose(sizes) for _ in range(b.choose((0, 1, 2, 2, 3, 3, 4, 4)))]
    if shape and b.often(0.03):
        shape[b.integer(0, len(shape) - 1)] = 0
    while np.prod(shape) > b.most // 4:
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


def _updated(b, state):
    """What becomes of a state: rows of it written anew, a part of it, all of it, or all but the oldest moved up."""
    kind, shape = b.integer(0, 3), b.shape(state)
    if kind == 0 or not shape or not shape[0]:
        return b.node(b.choose(("Add", "Mul", "Max", "Sub")), [state, b.like(state)])
    rows = b.integer(1, shape[0])
    new = b.node("Slice", [b.like(state), b.ints(0), b.ints(rows), b.ints(0)])
    if kind == 1:
        return b.node("ScatterND", [state, b.constant(b.random.permutation(shape[0])[:rows, None], np.int64), new])
    if kind == 2:
        return b.node("Concat", [b.node("Slice", [state, b.ints(rows), b.ints(shape[0]), b.ints(0)]), new], axis=0)
    return b.node("Concat", [new, b.node("Slice", [state, b.ints(rows), b.ints(shape[0]), b.ints(0)])], axis=0)


def _alias(b, inputs, outputs):
    """--alias for inputs and outputs of one type and shape, of some that are updates of the input."""
    flags, taken = [], set()
    for name in inputs:
        made = []
        if b.often(0.5) and b.attempt(lambda b: made.append(_updated(b, name))):
            outputs += made
        fits = made or [other for other in outputs if b.dtype(other) == b.dtype(name) and b.shape(other) == b.shape(name) and other not in taken]
        if fits and b.often(0.7):
            output = b.choose(fits)
            taken.add(output)
            flags += ["--alias", f"{name}={output}"]
    return flags


def _named(b, inputs):
    """Names for sizes of inputs: one for each size, or for each dim."""
    by_size = b.often(0.6)
    return {(name, axis): f"n{extent}" if by_size else f"{name}_{axis}" for name in inputs for axis, extent in enumerate(b.shape(name)) if extent > 1}


def _feeds(b, inputs, symbols, extents):
    shape = lambda name: [extents.get(symbols.get((name, axis)), extent) for axis, extent in enumerate(b.shape(name))]
    return {name: numbers(b.random, b.dtype(name), shape(name)) for name in inputs}


def _opened(b, inputs, graph, judge):
    """Sizes of inputs that the graph leaves open, with their names, and feeds at others of them that it makes sense at."""
    def tried(symbols, free):
        # Not 1, which would broadcast: what broadcasts is decided before a run.
        feeds = _feeds(b, inputs, symbols, {symbol: b.choose((2, 3, 4, 6, 7, 8, 11, 16, 18, 35)) for symbol in free})
        try:
            judge.graph(graph, feeds)
            return feeds
        except Declined:
            return None

    symbols = _named(b, inputs)
    names = sorted(set(symbols.values()))
    free = [symbol for symbol in names if b.often(0.8) and tried(symbols, [symbol])]
    for chosen in (free, free[: len(free) // 2], free[-1:]):
        if chosen and (found := [feeds for _ in range(2) if (feeds := tried(symbols, chosen))]):
            return {spot: symbol for spot, symbol in symbols.items() if symbol in chosen}, found
    return {}, []


def draw(seed):
    """The case of a seed."""
    random = np.random.default_rng([seed, 2])
    flags = list(FLAGS[random.integers(len(FLAGS))])
    judge = Judge.of(flags, OPSET)
    b = Builder(random, judge)
    b.is_open = b.often(0.35)
    b.is_large = b.often(0.08)  # so that threads share the work
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
    flags += _alias(b, inputs, outputs) if not b.is_open and "--dynamic=on" not in flags and b.often(0.35) else []
    empty = {(name, axis): f"{name}_{axis}" for name in inputs for axis, extent in enumerate(b.shape(name)) if not extent}
    for symbol in empty.values():  # a size of 0 in a file is one that is open
        flags += ["--dim", symbol + b.choose(("=0", "=0..9"))]
    is_closed = not b.is_open and not b.has_found_sizes()
    results = [b.info(name, None if is_closed else b.open_shape(name)) for name in outputs]
    make = lambda symbols: b.graph("mixed", [b.info(name, [symbols.get((name, axis), extent) for axis, extent in enumerate(b.shape(name))]) for name in inputs], results)
    graph, runs = make(empty), [feeds]
    symbols, others = _opened(b, inputs, graph, judge) if b.is_open else ({}, [])
    if symbols:
        runs += others
        graph = make(symbols | empty)
        if b.often(0.3):
            (name, axis), symbol = b.choose(sorted(symbols.items()))
            extent = b.shape(name)[axis]
            flags += ["--dim", f"{symbol}=1..{max(extent, 64)}", "--bucket", f"{symbol}={extent}"]  # a size that branches not taken are right at too
    return Case(model(graph, OPSET), runs, flags)
