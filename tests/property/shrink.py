"""Makes a failing case small: fewer flags, runs and outputs; nodes cut out, their results being inputs from there on, or passed by;
bodies without what their outputs do not need. Whatever keeps the case failing is kept, until nothing does or the time is over."""

import re
import time

import onnx
from onnx import helper

from case import Case
from judge import Declined, bodies, reads

SECONDS = 90


def without_dead(graph, inputs=True):
    """Nodes, weights and inputs that outputs do not need, taken out in place."""
    needed, kept = {value.name for value in graph.output}, []
    for node in reversed(graph.node):
        for body in bodies(node):
            without_dead(body, inputs=False)
        if needed & set(node.output):
            kept.append(node)
            needed |= set(reads(node))
    kept.reverse()
    del graph.node[:]
    graph.node.extend(kept)
    for field in (graph.initializer, graph.input) if inputs else (graph.initializer,):
        rest = [value for value in field if value.name in needed]
        del field[:]
        field.extend(rest)


def _parted(flags):
    """Flags with their operands, '' where these are part of the flag."""
    words = iter(flags)
    return [(flag, next(words) if flag in ("--alias", "--dim", "--bucket") else "") for flag in words]


def _tidied(model, runs, flags):
    """The case of the model without what is dead; feeds and aliases of what is left."""
    without_dead(model.graph)
    names = {value.name for value in model.graph.input}
    outputs = {value.name for value in model.graph.output}
    symbols = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim}
    kept = []
    for flag, operand in _parted(flags):
        left, _, right = operand.partition("=")
        if flag == "--alias" and not (left in names and right in outputs) or flag in ("--dim", "--bucket") and left not in symbols:
            continue
        kept += [flag, operand] if operand else [flag]
    return Case(model, [{name: array for name, array in feeds.items() if name in names} for feeds in runs], kept)


def _copy(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _smaller(case):
    """Cases that are smaller, the boldest first."""
    model, runs, flags = case.model, case.runs, case.flags
    for feeds in runs if len(runs) > 1 else ():
        yield Case(model, [feeds], flags)
    pairs = _parted(flags)
    for i in range(len(pairs)):
        yield Case(model, runs, [word for pair in pairs[:i] + pairs[i + 1 :] for word in pair if word])
    for i in range(len(model.graph.output)) if len(model.graph.output) > 1 else ():
        copy = _copy(model)
        rest = [value for k, value in enumerate(copy.graph.output) if k == i]
        del copy.graph.output[:]
        copy.graph.output.extend(rest)
        yield _tidied(copy, runs, flags)
    for i in range(len(model.graph.output)) if len(model.graph.output) > 1 else ():
        copy = _copy(model)
        del copy.graph.output[i]
        yield _tidied(copy, runs, flags)
    yield from _cut(case)
    yield from _other_outputs(case)
    yield from _bypassed(case)


def _values(case):
    """What the names of the graph are in each run, None where they cannot be judged."""
    try:
        return case.values()
    except Declined:
        return None


def _cut(case):
    """Nodes whose results are inputs instead, late ones first: all before them may be dead then."""
    if not (values := _values(case)):
        return
    nodes = case.model.graph.node
    for count in (len(nodes) // 2, len(nodes) // 4, 1) if len(nodes) > 8 else (1,):
        for first in range(len(nodes) - count, -1, -max(count, 1)):
            chosen = nodes[first : first + count]
            copy, runs = _copy(case.model), [dict(feeds) for feeds in case.runs]
            outputs = {value.name for value in copy.graph.output}
            rest = [node for i, node in enumerate(copy.graph.node) if not first <= i < first + count]
            used = {name for node in rest for name in reads(node)}
            made = [name for node in chosen for name in node.output if name in used]
            if any(name in outputs for node in chosen for name in node.output):
                continue
            del copy.graph.node[:]
            copy.graph.node.extend(rest)
            for name in made:
                arrays = [scope[name].array for scope in values]
                free = len({array.shape for array in arrays}) > 1
                shape = [f"{name}_{axis}" for axis in range(arrays[0].ndim)] if free else arrays[0].shape
                copy.graph.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[0].dtype), shape))
                for feeds, array in zip(runs, arrays):
                    feeds[name] = array
            yield _tidied(copy, runs, case.flags)


def _other_outputs(case):
    """The last node's operand as the output instead of its result."""
    if len(case.model.graph.output) != 1 or not (values := _values(case)):
        return
    output = case.model.graph.output[0].name
    node = next((node for node in case.model.graph.node if output in node.output), None)
    made = {name for other in case.model.graph.node for name in other.output}
    for name in reads(node) if node else ():
        if name in made:
            copy, array = _copy(case.model), values[0][name].array
            del copy.graph.output[:]
            copy.graph.output.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim))
            yield _tidied(copy, case.runs, case.flags)


def _bypassed(case):
    """Nodes that hand on an operand of the same type and shape."""
    if not (values := _values(case)):
        return
    for i, node in enumerate(case.model.graph.node):
        for name in node.input:
            same = lambda scope: scope[name].array.dtype == scope[node.output[0]].array.dtype and scope[name].array.shape == scope[node.output[0]].array.shape
            if name and node.op_type != "Identity" and all(map(same, values)):
                copy = _copy(case.model)
                copy.graph.node[i].CopyFrom(helper.make_node("Identity", [name], [node.output[0]]))
                if len(node.output) == 1:
                    yield _tidied(copy, case.runs, case.flags)


def shrink(case, fails):
    """The smallest case found for which `fails` says the same."""
    end = time.monotonic() + SECONDS
    tried = set()
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for smaller in _smaller(case):
            key = (smaller.model.SerializeToString(), tuple(smaller.flags), len(smaller.runs))
            if key in tried or time.monotonic() > end:
                continue
            tried.add(key)
            if fails(smaller):
                case, progress = smaller, True
                break
    return case


def text(case):
    """The case in ONNX's text form, with the shapes of its feeds."""
    runs = [f"run {i}: {name} {array.dtype}{list(array.shape)}" for i, feeds in enumerate(case.runs) for name, array in feeds.items()]
    model = re.sub(r"(= +)\{[^{}]{160,}\}", r"\1{...}", onnx.printer.to_text(case.model))  # weights of many numbers
    return "\n".join([model, f"flags: {' '.join(case.flags)}", *runs])
