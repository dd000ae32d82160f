"""A case: one node with its inputs and how its results are judged; models of one case and of many."""

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from draw import ML, MS, onnx_type, opset_in

IR_VERSION = 13


@dataclass(frozen=True)
class Rule:
    """|got - want| <= ulp * (spacing of the type at want) + slack * (epsilon of the type) * scale.

    `wide`: what is wanted is computed in f64. `scale` is "" (0), "output" (the largest finite result), "magnitude" (the same
    operator on absolute values: what cancellation may cost), or a function of the inputs. Integers are exact, but for
    `steps`: results that are rounded from a float and may round the other way.
    """

    ulp: float = 0
    slack: float = 0
    scale: Any = ""
    wide: bool = False
    zero: bool = True  # the sign of zero counts
    steps: int = 0


EXACT = Rule()


@dataclass
class Case:
    operator: str
    domain: str
    opset: int
    inputs: list  # arrays; None: left out
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    constants: frozenset = frozenset()  # inputs whose values the model holds
    rule: Rule = EXACT
    oracle: Callable | None = None  # from the specification, in numpy: inputs -> list of outputs
    avoid: str = ""  # "onnxruntime" or "reference": one that is known to be wrong here (README.md says where)
    number: int = 0
    results: tuple = ()  # (element type, rank) of the outputs, where onnx does not infer them
    wanted: Any = None  # what the oracle said, once it has been asked
    stand_in: Any = None  # the type in which a program that lacks the case's own is asked; it holds all values
    open: dict = field(default_factory=dict)  # (input, axis): the symbol of a dim that the model leaves open
    closed: Callable = lambda i, axis, size: False  # dims that say what is computed, and stay as they are

    @property
    def type(self):
        first = next((array for array in self.inputs if array is not None), None)
        return "" if first is None else first.dtype.name


def names_of(case, prefix):
    return [f"{prefix}x{i}" if array is not None else "" for i, array in enumerate(case.inputs)]


def _input(case, i, name):
    array = case.inputs[i]
    shape = [case.open.get((i, axis), size) for axis, size in enumerate(array.shape)]
    return helper.make_tensor_value_info(name, onnx_type(array.dtype), shape)


def build(cases, opset=None, ir_version=IR_VERSION):
    """One model with a node a case. Node n is called cN, its inputs cN_x0, ..., its outputs cN_y0, ..."""
    nodes, inputs, outputs, weights = [], [], [], []
    for case in cases:
        prefix = f"c{case.number}_"
        names = names_of(case, prefix)
        results = [f"{prefix}y{i}" for i in range(case.outputs)]
        while names and not names[-1]:
            names.pop()
        nodes.append(helper.make_node(case.operator, names, results, name=prefix[:-1], domain=case.domain, **case.attributes))
        for i, name in enumerate(names):
            if name and i in case.constants:
                weights.append(numpy_helper.from_array(case.inputs[i], name))
            elif name:
                inputs.append(_input(case, i, name))
        outputs += [onnx.ValueInfoProto(name=result) for result in results]
    domains = {"": opset or cases[0].opset} | {domain: opset_in(domain, cases[0].opset) for domain in (ML, MS)}
    used = {""} | {case.domain for case in cases}
    graph = helper.make_graph(nodes, "sweep", inputs, outputs, weights)
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items() if domain in used]
    model = helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
    _type_outputs(model, cases)
    return model


def _type_outputs(model, cases):
    """Outputs need an element type and a rank: what onnx infers, else what the row says (`results`)."""
    inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.output}
    stated = {f"c{case.number}_y{i}": (case, i) for case in cases for i in range(case.outputs)}
    for value in model.graph.output:
        case, index = stated[value.name]
        found = inferred[value.name].type.tensor_type
        if index < len(case.results):
            kind, rank = case.results[index]
            value.CopyFrom(helper.make_tensor_value_info(value.name, onnx_type(kind), [None] * rank))
        elif found.elem_type and found.HasField("shape"):
            rank = len(found.shape.dim)
            value.CopyFrom(helper.make_tensor_value_info(value.name, found.elem_type, [None] * rank))


def feeds(case):
    """What a caller of the model gives, by name."""
    names = names_of(case, f"c{case.number}_")
    return {name: array for i, (name, array) in enumerate(zip(names, case.inputs)) if name and i not in case.constants}


def size_flags(case):
    """Flags for inputs with a dim of 0, which a model cannot say: 0 means open there. An open one may be empty; every other case has
    ranges for its other symbols."""
    flags = []
    for i, name in enumerate(names_of(case, f"c{case.number}_")):
        shape = case.inputs[i].shape if name and i not in case.constants else ()
        open_there = {axis: case.open[i, axis] for axis in range(len(shape)) if (i, axis) in case.open}
        if 0 in [size for axis, size in enumerate(shape) if axis not in open_there]:
            flags.append(f"--shape={name}={'x'.join('?' if axis in open_there else str(size) for axis, size in enumerate(shape))}")
        flags += [f"--dim={symbol}=0.." for axis, symbol in open_there.items() if shape[axis] == 0]
        flags += [f"--dim={symbol}=1..{3 * shape[axis]}" for axis, symbol in open_there.items() if shape[axis] and case.number % 2]
    return list(dict.fromkeys(flags))
