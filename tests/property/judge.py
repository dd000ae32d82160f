"""What a graph's values are, node by node, and how far from them a compiled graph's may lie.

A whole graph would be computed by one program, with that program's own rewrites; here each node is a model of its own for
onnxruntime, whose optimiser is off, or for the reference evaluator of `onnx` where onnxruntime has not the type. Casts
are numpy's. The bodies of If, Loop and Scan are walked by this file. Nodes of 16-bit floats are computed in f32 and rounded.

Every value has a bound on its error, one number for the whole tensor, 0 where all bits are sure. It says what honest
arithmetic in another order could make of it, and is measured rather than derived: a node's floats are moved by a few units
in the last place of the largest of each operand, and what that does to its results, cancellation and division by small
numbers included, is what rounding inside of it may do; they are moved by their own bounds, which is how bounds go on.
Sums and products of numbers on a coarse grid are sure: no order of adding up rounds them. Where a last bit would become a step
(a comparison, a rounding, an index) the operands must be sure, else the graph is `Declined`.
"""

import collections
import zlib
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
# Nodes that move elements or choose among them: a bound stays what it is.
MOVES = {"Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Max", "Min", "Neg", "Abs", "Relu", "Pad",
         "ReduceMax", "ReduceMin", "Reshape", "ScatterND", "ScatterElements", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze",
         "Where", "DepthToSpace", "SpaceToDepth", "Compress", "ReverseSequence", "MaxPool", "Clip", "CenterCropPad"}
# A last bit of an operand is a step of the result.
STEPS = {"ArgMax", "ArgMin", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Round", "Floor", "Ceil", "Sign", "TopK", "NonZero",
         "Mod", "Unique", "OneHot", "IsNaN", "IsInf", "Hardmax"}
SUMS = {"Add", "Sub", "Mul", "MatMul", "Gemm", "ReduceSum", "CumSum", "Sum", "Einsum"}  # sure for numbers on a grid
PRODUCTS = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "LSTM", "GRU", "RNN"}  # whose operands --autocast rounds
WINDOWED = {"Conv", "ConvTranspose", "MaxPool", "AveragePool"}
QUANTIZED = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv"}  # a product of scales may round the other way
READ_AS_CONSTANT = {"QLinearConv", "QLinearMatMul"}
GRID, WIDEST = 16, 64  # operands: multiples of 1/16 up to 64
FRESH, SAFETY = 4.0, 8.0  # units that operands are moved by; how much more than the response to it is allowed
MOST = 0.05  # of the largest element of what a node computes with, and of its result: a looser bound would say nothing
LEAST, LARGEST = 0.01, 3e4  # graphs compute with numbers of about 1: what is left of them is judged as a hundredth at least

_OPTIONS = onnxruntime.SessionOptions()
_OPTIONS.intra_op_num_threads = 1
_OPTIONS.log_severity_level = 4
_OPTIONS.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


class Declined(Exception):
    """No program computes the node, or no bound says anything of its results."""


@dataclass
class Value:
    array: np.ndarray
    error: float = 0.0
    is_constant: bool = False


def is_float(dtype):
    return dtype.kind == "f" or dtype in HALVES


def unit(dtype):
    return float(ml_dtypes.finfo(dtype).eps) if is_float(dtype) else 0.0


def size(array):
    """The largest absolute value of it."""
    return float(np.abs(array.astype(np.float64)).max(initial=0.0))


def _bound(array):
    """What a few roundings do to results: at least the smallest normal number, since programs may take smaller ones for 0."""
    units = (2 if array.dtype in HALVES else 4) * unit(array.dtype) * size(array)
    return max(units, float(ml_dtypes.finfo(array.dtype).tiny)) if units else 0.0


def bodies(node):
    return [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]


def attributes(node):
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def reads(node):
    """Names of the values that a node reads, those that its bodies read of the graph around them included."""
    names = [name for name in node.input if name]
    for body in bodies(node):
        own = {value.name for value in body.input} | {weight.name for weight in body.initializer}
        own |= {name for inner in body.node for name in inner.output}
        names += [name for inner in body.node for name in reads(inner) if name not in own]
        names += [value.name for value in body.output if value.name not in own]
    return list(dict.fromkeys(names))


class Judge:
    """Computes nodes. `autocast`: the type that the operands of products are rounded to, None: none."""

    def __init__(self, autocast=None, opset=22):
        self.autocast, self.opset = autocast, opset
        self.programs = {}

    @classmethod
    def of(cls, flags, opset):
        """That of graphs compiled with these flags."""
        kinds = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}
        found = [kinds[flag.partition("=")[2]] for flag in flags if flag.startswith("--autocast=")]
        return cls(found[0] if found else None, opset)

    # ---- graphs ----

    def graph(self, graph, feeds):
        """Values of all names of a model's graph."""
        scope = collections.ChainMap({name: Value(array) for name, array in feeds.items()})
        return self.walk(graph, scope)

    def walk(self, graph, scope):
        for weight in graph.initializer:
            scope[weight.name] = Value(numpy_helper.to_array(weight), 0.0, True)
        for node in graph.node:
            scope.update(zip(node.output, self.node(node, scope)))
        return scope

    def node(self, node, scope):
        """Its results, checked."""
        if control := {"If": self._if, "Loop": self._loop, "Scan": self._scan}.get(node.op_type):
            results = control(node, scope)
        else:
            results = self._compute(node, [scope[name] if name else None for name in node.input])
        for value in results:
            if node.op_type in WINDOWED and not value.array.size:
                raise Declined(f"{node.op_type}: nothing is left")  # what ptc refuses
            largest = size(value.array)
            if is_float(value.array.dtype):
                if not np.isfinite(largest) or largest > LARGEST:
                    raise Declined(f"{node.op_type}: values up to {largest}")
                scale = max(largest, self._operands(node, scope), LEAST)
                if value.error > self.most() * scale:
                    raise Declined(f"{node.op_type}: an error of {value.error:.3g} of {scale:.3g}")
        return results

    def most(self):
        return MOST if self.autocast is None else 4 * MOST

    def _operands(self, node, scope):
        """The size of what a node computes with: what cancels is judged by it."""
        floats = [scope[name].array for name in node.input if name and is_float(scope[name].array.dtype)]
        return max((size(array) for array in floats), default=0.0)

    # ---- control flow ----

    def _body(self, graph, arguments, scope):
        inner = scope.new_child(dict(zip([value.name for value in graph.input], arguments)))
        self.walk(graph, inner)
        return [inner[value.name] for value in graph.output]

    def _if(self, node, scope):
        results = {way: self._body(attributes(node)[way], [], scope) for way in ("then_branch", "else_branch")}  # ptc asks sizes of both
        return results["then_branch" if scope[node.input[0]].array.item() else "else_branch"]

    def _loop(self, node, scope):
        body = attributes(node)["body"]
        trips = int(scope[node.input[0]].array.item()) if node.input[0] else 1000
        more = bool(scope[node.input[1]].array.item()) if len(node.input) > 1 and node.input[1] else True
        state = [scope[name] for name in node.input[2:]]
        stacks = [[] for _ in range(len(body.output) - 1 - len(state))]
        round = 0
        while more and round < trips:
            flags = [Value(np.array(round, np.int64)), Value(np.array(more))]
            going, *results = self._body(body, [*flags, *state], scope)
            more, state = bool(going.array.item()), results[: len(state)]
            for stack, value in zip(stacks, results[len(state):]):
                stack.append(value)
            round += 1
        if not round:  # ptc asks its sizes all the same
            self._body(body, [Value(np.array(0, np.int64)), Value(np.array(True)), *state], scope)
        return [Value(value.array, value.error) for value in state] + [self._stacked(stack, 0) for stack in stacks]

    def _scan(self, node, scope):
        given = attributes(node)
        body, count = given["body"], given["num_scan_inputs"]
        state = [scope[name] for name in node.input[: len(node.input) - count]]
        axes = given.get("scan_input_axes", [0] * count)
        sequences = [scope[name] for name in node.input[len(state):]]
        parts = [[Value(part, value.error) for part in np.moveaxis(value.array, axis, 0)] for value, axis in zip(sequences, axes)]
        parts = [list(reversed(part)) if back else part for part, back in zip(parts, given.get("scan_input_directions", [0] * count))]
        if len({len(part) for part in parts}) != 1:
            raise Declined("Scan: sequences of different lengths")
        outputs = len(body.output) - len(state)
        stacks = [[] for _ in range(outputs)]
        for step in zip(*parts):
            results = self._body(body, [*state, *step], scope)
            state = results[: len(state)]
            for stack, value in zip(stacks, results[len(state):]):
                stack.append(value)
        back = given.get("scan_output_directions", [0] * outputs)
        stacks = [list(reversed(stack)) if flag else stack for stack, flag in zip(stacks, back)]
        places = given.get("scan_output_axes", [0] * outputs)
        return [Value(value.array, value.error) for value in state] + [self._stacked(stack, axis) for stack, axis in zip(stacks, places)]

    def _stacked(self, values, axis):
        if not values:
            raise Declined("no rounds: nothing says what is stacked")
        try:
            return Value(np.stack([value.array for value in values], axis), max(value.error for value in values))
        except ValueError as error:
            raise Declined(str(error)) from error

    # ---- one node ----

    def _compute(self, node, operands):
        arrays = [value.array if value else None for value in operands]
        error = max((value.error for value in operands if value), default=0.0)
        if node.op_type.startswith(("Reduce", "Arg")) and not arrays[0].size:
            raise Declined(f"{node.op_type} of nothing: onnxruntime keeps dims")
        if node.op_type == "Concat" and len({tuple(np.delete(array.shape, attributes(node)["axis"])) for array in arrays}) > 1:
            raise Declined("Concat of unlike sizes: onnxruntime passes over what is empty")
        raw = self._run(node, operands, arrays)
        results = raw if node.op_type == "Cast" else self._rounded(operands, raw)
        floats = any(is_float(array.dtype) for array in arrays if array is not None)
        if node.op_type in STEPS and error:
            raise Declined(f"{node.op_type} of what is not sure")
        if node.op_type == "Cast":
            return [self._cast(operands[0], results[0])]
        if node.op_type in MOVES or not floats and not error:
            return [Value(array, error if is_float(array.dtype) or error >= 1 else 0.0) for array in results]
        if self._is_sure(node, arrays, results, error):
            return [Value(array) for array in results]
        return [Value(array, bound) for array, bound in zip(results, self._bounds(node, operands, raw, results))]

    def _cast(self, operand, result):
        kind = result.dtype
        if not is_float(kind):
            if operand.error:
                raise Declined("Cast of what is not sure to what has steps")
            return Value(result)
        exact = operand.array.astype(np.float64) if is_float(operand.array.dtype) else operand.array
        is_same = not operand.error and np.array_equal(result.astype(exact.dtype), exact)
        return Value(result, 0.0 if is_same else operand.error + unit(kind) * size(result))

    def _is_sure(self, node, arrays, results, error):
        floats = [array for array in arrays if array is not None and is_float(array.dtype)]
        if node.op_type not in SUMS or error or self.autocast and node.op_type in PRODUCTS:
            return False
        if any(array.dtype not in (np.float32, np.float64) for array in floats):
            return False
        on_grid = lambda array, steps, most: size(array) <= most and np.array_equal(array * steps, np.rint(array * steps))
        return all(on_grid(array, GRID, WIDEST) for array in floats) and all(on_grid(array, GRID * GRID, 2**14) for array in results)

    def _bounds(self, node, operands, raw, results):
        """What rounding inside and errors of operands do to each result; `raw`: before these are rounded to 16 bits."""
        bounds = [_bound(array) for array in results]
        if node.op_type in QUANTIZED:
            bounds = [1.0 if array.dtype.itemsize == 1 else bound for array, bound in zip(results, bounds)]
        random = np.random.default_rng(zlib.crc32(node.name.encode()))  # the same moves whenever the node is computed
        for _ in range(2):
            for own, factor in ((False, 1.25), (True, SAFETY)):
                moved = [self._moved(node, value, own, random) for value in operands]
                if all(array is value.array for array, value in zip(moved, operands) if value):
                    continue
                found = self._run(node, operands, moved)
                for i, (array, wanted) in enumerate(zip(found, raw)):
                    if array.shape != wanted.shape:
                        raise Declined(f"{node.op_type}: its shape depends on last bits")
                    with np.errstate(invalid="ignore"):
                        response = np.abs(array.astype(np.float64) - wanted.astype(np.float64)).max(initial=0.0)
                    if not np.isfinite(response):
                        raise Declined(f"{node.op_type}: last bits decide whether there is a result")
                    bounds[i] += (np.ceil(response) if array.dtype.kind in "iu" else factor * response) / 2
        return bounds

    def _moved(self, node, value, own, random):
        """The operand, each element moved up or down: by rounding (`own`), or by its bound."""
        if value is None or value.is_constant and own and node.op_type not in PRODUCTS:
            return value.array if value else None
        array = value.array
        if array.dtype.kind in "iu":
            if own or not value.error:
                return array
            limits = np.iinfo(array.dtype)
            steps = random.integers(-1, 2, array.shape) * int(value.error)
            return np.asarray(np.clip(array.astype(np.int64) + steps, limits.min, limits.max)).astype(array.dtype)
        if not is_float(array.dtype):
            return array
        step = FRESH * self._rounding(node, array.dtype) * size(array) if own else value.error
        if not step:
            return array
        signs = random.choice((-1.0, 1.0), array.shape)
        wide = np.float64 if array.dtype == np.float64 else np.float32  # that of 16 bits is computed in 32
        return np.asarray(array.astype(np.float64) + signs * step).astype(wide)

    def _rounding(self, node, dtype):
        if self.autocast and node.op_type in PRODUCTS and dtype == np.float32:
            return unit(self.autocast) / FRESH / 4
        return min(unit(dtype), unit(np.dtype(np.float32)))

    # ---- programs ----

    def _run(self, node, operands, arrays):
        if node.op_type == "Cast":
            with np.errstate(all="ignore"):
                return [arrays[0].astype(helper.tensor_dtype_to_np_dtype(attributes(node)["to"]))]
        return self._by_program(node, operands, [array.astype(np.float32) if array is not None and array.dtype in HALVES else array for array in arrays])

    def _rounded(self, operands, results):
        """What was computed in f32 in the place of 16-bit floats."""
        half = next((value.array.dtype for value in operands if value and value.array.dtype in HALVES), None)
        return [array.astype(half) if half is not None and array.dtype == np.float32 else array for array in results]

    def _by_program(self, node, operands, arrays):
        fixed = [bool(value and value.is_constant and (not is_float(value.array.dtype) or node.op_type in READ_AS_CONSTANT)) for value in operands]
        key = (node.SerializeToString(), *[(array.dtype, np.ndim(array), array.tobytes() if is_fixed else b"") if array is not None else None
                                           for array, is_fixed in zip(arrays, fixed)])
        if key not in self.programs:
            self.programs[key] = self._program(node, arrays, fixed)
        feeds = {f"x{i}": np.asarray(array) for i, (array, is_fixed) in enumerate(zip(arrays, fixed)) if array is not None and not is_fixed}
        try:
            with np.errstate(all="ignore"):
                return [np.asarray(array) for array in self.programs[key](feeds)]
        except Declined:
            raise
        except Exception as error:  # both programs raise what they like
            raise Declined(f"{node.op_type}: {type(error).__name__} {str(error)[:300]}") from error

    def _program(self, node, arrays, fixed):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:], copy.output[:]
        copy.input.extend(f"x{i}" if array is not None else "" for i, array in enumerate(arrays))
        copy.output.extend(f"y{i}" if name else "" for i, name in enumerate(node.output))
        inputs = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim)
                  for i, array in enumerate(arrays) if array is not None and not fixed[i]]
        weights = [numpy_helper.from_array(array, f"x{i}") for i, array in enumerate(arrays) if fixed[i]]
        outputs = [onnx.ValueInfoProto(name=name) for name in copy.output if name]
        graph = helper.make_graph([copy], "node", inputs, outputs, weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), _OPTIONS, providers=["CPUExecutionProvider"])
            return lambda feeds: session.run(None, feeds)
        except Exception:  # of many kinds: it has not the type
            if node.op_type == "GlobalMaxPool" and arrays[0].ndim != 4:
                raise Declined("GlobalMaxPool: onnx's evaluator is right of images alone") from None
            evaluator = ReferenceEvaluator(model)
            return lambda feeds: evaluator.run(None, feeds)


def difference(got, wanted):
    """'' if an output is what the value says, else how it differs."""
    array = wanted.array
    if got.shape != array.shape or got.dtype != array.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {array.dtype}{list(array.shape)}"
    if array.dtype.kind == "b" or not wanted.error:
        apart = got != array
        limit = "any"
    else:
        a, b = got.astype(np.float64), array.astype(np.float64)
        apart = ~(np.abs(a - b) <= wanted.error)
        limit = f"{wanted.error:.3g}"
    if not apart.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(apart)[0])
    return f"{int(apart.sum())} of {apart.size} elements are off by more than {limit}, first {got[first]!r} instead of {array[first]!r} at {list(first)}"
