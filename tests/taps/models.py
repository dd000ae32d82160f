"""Models of these tests, as onnx.ModelProto, and how they are compiled."""

import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PTC = None  # run.py sets it


def ptc(*arguments, code=0):
    """Runs ptc; returns its standard output and error together."""
    done = subprocess.run([PTC, *map(str, arguments)], capture_output=True, text=True)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"exit code {done.returncode}, not {code}:\n{text}"
    return text


def write(model, path):
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def _value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def _model(nodes, inputs, outputs, weights=None):
    initializers = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _random(*shape, seed=1):
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return values / np.float32(np.sqrt(np.prod(shape[1:], initial=1)))


def convolutions(wrong=None):
    """Two convolutions with Relu, a residual, a concat, a pool and a classifier. `wrong` doubles the slope of a node."""
    slope = lambda name: 0.2 if wrong == name else 0.1
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="conv1", pads=[1] * 4),
        helper.make_node("LeakyRelu", ["c1"], ["r1"], name="relu1", alpha=slope("relu1")),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="conv2", pads=[1] * 4),
        helper.make_node("Add", ["c2", "r1"], ["sum"], name="residual"),
        helper.make_node("LeakyRelu", ["sum"], ["r2"], name="relu2", alpha=slope("relu2")),
        helper.make_node("Concat", ["r1", "r2"], ["both"], name="concat", axis=1),
        helper.make_node("GlobalAveragePool", ["both"], ["pool"], name="pool"),
        helper.make_node("Flatten", ["pool"], ["flat"], name="flatten"),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], name="classifier"),
        helper.make_node("Softmax", ["logits"], ["y"], name="softmax"),
    ]
    weights = {"w1": _random(16, 3, 3, 3), "w2": _random(16, 16, 3, 3), "b2": _random(16), "w3": _random(32, 5)}
    weights["b3"] = _random(5)
    if wrong == "conv2":
        weights["w2"][3, 5, 1, 1] += 1
    return _model(nodes, [_value("x", [1, 3, 12, 12])], [_value("y", [1, 5])], weights)


def layers(count=12, wrong=None):
    """Equal layers with a free batch: all launch the same kernel."""
    nodes, weights = [], {}
    for i in range(count):
        before = f"h{i - 1}" if i else "x"
        nodes.append(helper.make_node("MatMul", [before, f"w{i}"], [f"p{i}"], name=f"layer{i}/product"))
        nodes.append(helper.make_node("Add", [f"p{i}", f"b{i}"], [f"s{i}"], name=f"layer{i}/bias"))
        nodes.append(helper.make_node("Tanh", [f"s{i}"], [f"h{i}"], name=f"layer{i}/tanh"))
        weights[f"w{i}"] = _random(32, 32, seed=i) * 2
        weights[f"b{i}"] = _random(32, seed=100 + i) + (1 if wrong == i else 0)
    return _model(nodes, [_value("x", ["batch", 32])], [_value(f"h{count - 1}", ["batch", 32])], weights)


def chain(*names):
    """Tanh of Tanh of ..., with these names of values."""
    nodes = [helper.make_node("Tanh", [before], [name]) for before, name in zip(("x", *names), names)]
    return _model(nodes, [_value("x", [4])], [_value(names[-1], [4])])


def attention():
    """Heads split by reshape and transpose, softmax of scaled products, heads joined again; free batch and length."""
    nodes = []
    for name in "qkv":
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"], name=f"{name}/product"),
            helper.make_node("Reshape", [f"{name}0", "heads"], [f"{name}1"], name=f"{name}/split"),
            helper.make_node("Transpose", [f"{name}1"], [f"{name}2"], name=f"{name}/order",
                             perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
        ]
    nodes += [
        helper.make_node("MatMul", ["q2", "k2"], ["s0"], name="scores"),
        helper.make_node("Mul", ["s0", "scale"], ["s1"], name="scaled"),
        helper.make_node("Softmax", ["s1"], ["s2"], name="weights", axis=-1),
        helper.make_node("MatMul", ["s2", "v2"], ["o0"], name="values"),
        helper.make_node("Transpose", ["o0"], ["o1"], name="join", perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["o1", "flat"], ["o2"], name="flatten"),
        helper.make_node("Relu", ["o2"], ["y"], name="relu"),
    ]
    weights = {f"w{name}": _random(16, 16, seed=ord(name)) for name in "qkv"}
    weights |= {"heads": np.array([0, 0, 2, 8]), "flat": np.array([0, 0, 16]), "scale": np.float32(0.35)}
    return _model(nodes, [_value("x", ["batch", "length", 16])], [_value("y", ["batch", "length", 16])], weights)


def branches():
    """A branch on a value, and a loop of three rounds that is unrolled."""
    def graph(name, *nodes):
        return helper.make_graph(nodes, name, [], [_value(nodes[-1].output[0], [4])])

    then = graph("then", helper.make_node("Exp", ["x"], ["t"], name="exp"))
    other = graph("other", helper.make_node("Neg", ["x"], ["n"], name="neg"))
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "state"], ["next"], name="double"),
         helper.make_node("Identity", ["go"], ["still"], name="go on")],
        "body", [_value("i", [], TensorProto.INT64), _value("go", [], TensorProto.BOOL), _value("state", [4])],
        [_value("still", [], TensorProto.BOOL), _value("next", [4])])
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["top"], name="top", keepdims=0),
        helper.make_node("Greater", ["top", "zero"], ["positive"], name="positive"),
        helper.make_node("If", ["positive"], ["c"], name="choice", then_branch=then, else_branch=other),
        helper.make_node("Loop", ["rounds", "", "c"], ["y"], name="loop", body=body),
    ]
    weights = {"zero": np.float32(0), "rounds": np.int64(3)}
    return _model(nodes, [_value("x", [4])], [_value("y", [4])], weights)


def rounds():
    """A loop of as many rounds as an input says, and what its last one leaves."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "w"], ["product"], name="product"), helper.make_node("Tanh", ["product"], ["next"], name="bend"),
         helper.make_node("Identity", ["go"], ["still"], name="go on")],
        "body", [_value("i", [], TensorProto.INT64), _value("go", [], TensorProto.BOOL), _value("state", [2, 4])],
        [_value("still", [], TensorProto.BOOL), _value("next", [2, 4])])
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["last"], name="loop", body=body), helper.make_node("Exp", ["last"], ["y"], name="exp")]
    return _model(nodes, [_value("x", [2, 4]), _value("count", [], TensorProto.INT64)], [_value("y", [2, 4])], {"w": _random(4, 4)})


def narrow():
    """f16, integers, booleans, quantised values; a reversed slice and a gather."""
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], name="half", to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["half", "half"], ["square"], name="square"),
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], name="dequantize"),
        helper.make_node("Slice", ["d", "starts", "ends", "axes", "steps"], ["back"], name="reverse"),
        helper.make_node("Gather", ["back", "rows"], ["picked"], name="pick"),
        helper.make_node("Greater", ["picked", "scale"], ["large"], name="large"),
        helper.make_node("Cast", ["large"], ["count"], name="count", to=TensorProto.INT32),
        helper.make_node("ReduceSum", ["count"], ["total"], name="total", keepdims=0),
    ]
    weights = {"scale": np.float32(0.25), "zero": np.uint8(128), "starts": np.array([-1]), "ends": np.array([-99]),
               "axes": np.array([1]), "steps": np.array([-1]), "rows": np.array([2, 0, 0, 1])}
    outputs = [_value("square", ["n", 6], TensorProto.FLOAT16), _value("total", [], TensorProto.INT32)]
    return _model(nodes, [_value("x", ["n", 6])], outputs, weights)


def quantized():
    """A product of bytes by bytes, and a softmax of it."""
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "middle"], ["a"], name="a"),
        helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["b"], name="b"),
        helper.make_node("MatMul", ["a", "b"], ["sum"], name="product"),
        helper.make_node("Softmax", ["sum"], ["y"], name="softmax"),
    ]
    weights = {"w": np.random.default_rng(1).integers(-127, 127, (256, 96), np.int8), "scale": np.float32(0.01),
               "middle": np.uint8(128), "zero": np.int8(0)}
    return _model(nodes, [_value("x", [40, 256], TensorProto.UINT8)], [_value("y", [40, 96])], weights)
