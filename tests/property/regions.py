"""Steps of random graphs that have bodies: If, Loop, Scan, and recurrent layers, which are loops of their own."""

import numpy as np

import steps
from builder import Builder
from judge import Declined, Value

DEPTH = 2  # of bodies in bodies


def _fill(b, count):
    """Up to so many steps; those of the body, or with bodies of their own."""
    depth, outer = 0, b
    while outer := outer.around:
        depth += 1
    known = steps.ALL + (ALL if depth < DEPTH else ())
    for _ in range(count):
        b.attempt(b.choose(known))


def _fitted(b, dtype, shape):
    """A value of the type and shape, of those that the body has made if it can be, and small enough to go round."""
    made = [name for name in b.names if b.dtype(name) == dtype and b.shape(name) == shape and b.is_small(name)]
    if made:
        x = b.choose(made)
        return b.node("Tanh", [x]) if dtype.kind == "f" and b.often(0.5) else x
    x = b.pick(lambda name: b.dtype(name) == dtype and b.shape(name) == shape and b.is_small(name))
    return b.node("Tanh", [x]) if dtype.kind == "f" else b.node("Identity", [x])


def _condition(b):
    """A computed flag, of one element."""
    flags = [name for name in b.fits(lambda name: b.dtype(name).kind == "b" and b.array(name).size == 1)]
    if flags and b.often(0.6):
        return b.node("Reshape", [b.choose(flags), b.constant(np.zeros([0]), np.int64)])
    x = b.pick(lambda name: b.is_sure(name) and b.dtype(name).kind in "fi" and b.array(name).size)
    one = b.node("Gather", [b.node("Reshape", [x, b.ints(-1)]), b.constant(b.integer(0, b.array(x).size - 1), np.int64)], axis=0)
    return b.node(b.choose(("Greater", "Less")), [one, b.constant(0, b.dtype(x))])


def branch(b):
    """An If whose branches give values of the same type and mostly of the same shape."""
    condition = _condition(b)
    branches = [Builder(b.random, b.judge, around=b) for _ in range(2)]
    for inner in branches:
        _fill(inner, b.integer(1, 4))
    pairs = []
    for name in branches[0].names[::-1]:
        for other in branches[1].names[::-1]:
            if branches[0].dtype(name) == branches[1].dtype(other) and branches[0].shape(name) == branches[1].shape(other):
                pairs.append((name, other))
    if not pairs:
        like = b.pick()
        pairs = [tuple(_fitted(inner, b.dtype(like), b.shape(like)) for inner in branches)]
    chosen = [b.choose(pairs) for _ in range(b.integer(1, min(2, len(pairs))))]
    graphs = [inner.graph(kind, [], [inner.inner_info(pair[i]) for pair in chosen]) for i, (inner, kind) in enumerate(zip(branches, ("then", "else")))]
    b.node("If", [condition], outputs=len(chosen), then_branch=graphs[0], else_branch=graphs[1])


def _argument(b, value, inputs):
    name = b.name("a")
    b.scope[name] = value
    inputs.append(b.inner_info(name))
    return name


def loop(b):
    """State that starts at computed values or weights, values that are stacked, and what the body reads around it."""
    states = [b.pick(lambda name: b.is_small(name)) for _ in range(b.integer(0, 2))]
    if b.often(0.2) and states:
        states[0] = b.weight(b.shape(states[0]), b.dtype(states[0]), 0, 1)
    inner, inputs = Builder(b.random, b.judge, around=b), []
    _argument(inner, Value(np.array(0, np.int64)), inputs)
    going = _argument(inner, Value(np.array(True)), inputs)
    for state in states:
        _argument(inner, Value(b.array(state), b.scope[state].error), inputs)
    _fill(inner, b.integer(2, 6))
    results = [_fitted(inner, b.dtype(state), b.shape(state)) for state in states]
    stacked = list(dict.fromkeys(inner.choose(inner.names) for _ in range(b.integer(0 if states else 1, 2))))
    trips = b.choose((1, 2, 3, 5, 9))
    more = inner.node("Less", [inputs[0].name, inner.constant(b.integer(0, 6), np.int64)]) if b.often(0.3) else inner.node("Identity", [going])
    outputs = [inner.inner_info(more)] + [inner.inner_info(name) for name in results + stacked]
    body = inner.graph("body", inputs, outputs)
    count = _count(b, trips)
    condition = _condition(b) if b.often(0.2) else ""
    b.node("Loop", [count, condition, *states], outputs=len(states) + len(stacked), body=body)


def _count(b, trips):
    """A number of rounds that is a weight, or found in the graph."""
    if b.often(0.6):
        return b.constant(trips, np.int64)
    n = b.pick(lambda name: b.dtype(name) == np.int64 and b.array(name).size)
    one = b.node("Gather", [b.node("Reshape", [n, b.ints(-1)]), b.constant(0, np.int64)], axis=0)
    return b.node("Mod", [one, b.constant(7, np.int64)])


def scan(b):
    """Slices of one or two values along some axis, forwards or backwards."""
    x = b.pick(lambda name: b.array(name).ndim and 0 < b.array(name).size <= 3000)
    axis = b.integer(0, b.array(x).ndim - 1)
    rounds = b.shape(x)[axis]
    sequences, axes = [x], [axis]
    others = b.fits(lambda name: rounds in b.shape(name) and b.array(name).size <= 3000)
    if others and b.often(0.5):
        y = b.choose(others)
        sequences.append(y)
        axes.append(b.choose([i for i, extent in enumerate(b.shape(y)) if extent == rounds]))
    states = [b.pick(lambda name: b.is_small(name) and b.array(name).size <= 3000) for _ in range(b.integer(0, 1))]
    inner, inputs = Builder(b.random, b.judge, around=b), []
    for state in states:
        _argument(inner, Value(b.array(state), b.scope[state].error), inputs)
    for name, along in zip(sequences, axes):
        _argument(inner, Value(np.take(b.array(name), 0, along), b.scope[name].error), inputs)
    _fill(inner, b.integer(2, 5))
    results = [_fitted(inner, b.dtype(state), b.shape(state)) for state in states]
    stacked = list(dict.fromkeys(inner.choose(inner.names) for _ in range(b.integer(0 if states else 1, 2))))
    body = inner.graph("body", inputs, [inner.inner_info(name) for name in results + stacked])
    given = {"scan_input_axes": axes, "scan_input_directions": [b.integer(0, 1) for _ in axes],
             "scan_output_directions": [b.integer(0, 1) for _ in stacked], "scan_output_axes": [b.integer(0, inner.array(name).ndim) for name in stacked]}
    b.node("Scan", states + sequences, outputs=len(states) + len(stacked), body=body, num_scan_inputs=len(sequences), **given)


def recurrent(b):
    """A layer over the rows of a value, with lengths or not, and with a state that is there or computed."""
    x = b.pick(lambda name: b.dtype(name) == np.float32 and b.array(name).ndim == 3 and 0 < b.array(name).size)
    length, batch, width = b.shape(x)
    kind, size, ways = b.choose(("LSTM", "GRU", "RNN")), b.choose((1, 3, 5, 8, 17)), b.choose(("forward", "reverse", "bidirectional"))
    gates, two = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 1 + (ways == "bidirectional")
    weight = lambda *shape: b.weight(shape, np.float32, -0.6, 0.6)
    inputs = [x, weight(two, gates * size, width), weight(two, gates * size, size), weight(two, 2 * gates * size) if b.often(0.6) else ""]
    lengths = b.often(0.4)
    inputs.append(b.constant(b.random.integers(1, length + 1, batch), np.int32) if lengths else "")
    states = [weight(two, batch, size) if b.often(0.6) else "" for _ in range(2 if kind == "LSTM" else 1)]
    given = {"linear_before_reset": b.integer(0, 1)} if kind == "GRU" else {}
    results = b.node(kind, inputs + states, outputs=3 if kind == "LSTM" else 2, hidden_size=size, direction=ways, **given)
    if b.often(0.6):
        b.node("Reshape", [b.node("Transpose", [results[0]], perm=[0, 2, 1, 3]), b.ints(length, batch, -1)])


ALL = (branch, branch, loop, loop, scan, recurrent)
