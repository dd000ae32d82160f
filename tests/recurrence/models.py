"""Recurrent models as ONNX: one LSTM, GRU or RNN with free time and batch, and cells written by hand."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}


def recurrent(op, features=5, hidden=8, direction="forward", bias=True, lengths=False, initial=False, peepholes=False,
              seed=0, scale=0.5, **attributes):
    """A model with inputs x, [lengths,] [h0,] [c0] and outputs y, h, [c]."""
    rng = np.random.default_rng(seed)
    directions, gates = 2 if direction == "bidirectional" else 1, GATES[op]
    draw = lambda *shape: (rng.standard_normal(shape) * scale).astype(np.float32)
    weights = {"w": draw(directions, gates * hidden, features), "r": draw(directions, gates * hidden, hidden)}
    if bias:
        weights["b"] = draw(directions, 2 * gates * hidden)
    if peepholes:
        weights["p"] = draw(directions, 3 * hidden)
    is_batch_first = attributes.get("layout", 0) == 1
    state = ["batch", directions, hidden] if is_batch_first else [directions, "batch", hidden]
    float_value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    inputs = [float_value("x", ["batch", "time", features] if is_batch_first else ["time", "batch", features])]
    if lengths:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]))
    if initial:
        inputs += [float_value(name, state) for name in ("h0", "c0")[: 2 if op == "LSTM" else 1]]
    y = ["batch", "time", directions, hidden] if is_batch_first else ["time", directions, "batch", hidden]
    outputs = [float_value("y", y), float_value("h", state)] + ([float_value("c", state)] if op == "LSTM" else [])
    names = ["x", "w", "r", "b" if bias else "", "lengths" if lengths else "", "h0" if initial else ""]
    if op == "LSTM":
        names += ["c0" if initial else "", "p" if peepholes else ""]
    while not names[-1]:
        names.pop()
    node = helper.make_node(op, names, [value.name for value in outputs], "cell", hidden_size=hidden,
                            direction=direction, **attributes)
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def feeds(model, time, batch, rng, lengths=None):
    """Random inputs of these sizes."""
    sizes, result = {"time": time, "batch": batch}, {}
    for value in model.graph.input:
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.name == "lengths":
            result[value.name] = np.asarray(rng.integers(1, max(time, 1) + 1, batch) if lengths is None else lengths, np.int32)
        else:
            result[value.name] = rng.standard_normal(shape).astype(np.float32)
    return result


HEADER = '<ir_version: 9, opset_import: ["" : 17]>\n'

# Cells written by hand. What an onnx.parser text cannot hold, the weights, are constants of the graph made by `weights`.
GRU_AS_SCAN = HEADER + """g (float[time, batch, 24] x, float[batch, 8] h0, float[8, 24] r) => (float[batch, 8] h, float[time, batch, 8] y) {
  h, y = Scan <num_scan_inputs: int = 1, body: graph = cell (float[batch, 8] before, float[batch, 24] xw) => (float[batch, 8] after, float[batch, 8] row) {
    product = MatMul(before, r)
    sizes = Constant <value: tensor = int64[3] {8, 8, 8}> ()
    xz, xr, xn = Split <axis: int = 1> (xw, sizes)
    hz, hr, hn = Split <axis: int = 1> (product, sizes)
    sz = Add(xz, hz)
    z = Sigmoid(sz)
    sr = Add(xr, hr)
    reset = Sigmoid(sr)
    kept = Mul(reset, hn)
    sn = Add(xn, kept)
    candidate = Tanh(sn)
    difference = Sub(before, candidate)
    part = Mul(z, difference)
    after = Add(candidate, part)
    row = Identity(after)
  }> (h0, x)
}"""

FILTER_AS_LOOP = HEADER + """g (float[time, width] x, float[width] s0) => (float[width] s, float[time, width] y) {
  shape = Shape <start: int = 0, end: int = 1> (x)
  axis = Constant <value: tensor = int64[1] {0}> ()
  trips = Squeeze(shape, axis)
  go = Constant <value: tensor = bool {1}> ()
  rate = Constant <value: tensor = float {0.9}> ()
  s, y = Loop <body: graph = step (int64 i, bool c, float[width] before) => (bool c2, float[width] after, float[width] row) {
    c2 = Identity(c)
    element = Gather(x, i)
    scaled = Mul(before, rate)
    after = Add(scaled, element)
    row = Tanh(after)
  }> (trips, go, s0)
}"""

ROWS_AS_SCAN = HEADER + """g (float[time, batch, 6] x, float[batch, 6] s0) => (float[batch, 6] s, float[time, batch, 6] y) {
  s, y = Scan <num_scan_inputs: int = 1, scan_input_directions: ints = [1], scan_output_directions: ints = [1], body: graph = step (float[batch, 6] before, float[batch, 6] element) => (float[batch, 6] after, float[batch, 6] row) {
    sum = Add(before, element)
    after = Softmax <axis: int = 1> (sum)
    row = Identity(before)
  }> (s0, x)
}"""


def by_hand(text):
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    return model
