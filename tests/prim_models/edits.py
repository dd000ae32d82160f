"""Models of primitives that somebody has edited: random edits, and some that are known to be wrong with what is said of them.

An edit changes one thing that the format has: an attribute's value, an operand, a value's type or dims, an operator, an
output, a node's place, what is known of a symbol. What is left is a file that onnx reads and ptc must refuse or compile.
"""

import onnx
from onnx import AttributeProto, TensorProto, helper

NUMBERS = (-1, 0, 1, 2, 7, -(2**63), 2**63 - 1, 2**31, -(2**31))
EXPRESSIONS = (b"", b"0", b"1", b"-1", b"9223372036854775807", b"-9223372036854775808", b"floordiv(7, 0)", b"mod(b, 0)", b"n", b"n * n", b"sum",
               b"max", b"zz", b"u0", b"u0 + 1")
DIMS = ("n", "N", "u0", "-1", "floordiv(n, 0)", "mod(1, 0)", "9223372036854775807 * 2")
SIZES = (0, 1, 2, 7, -1, 2**31, 2**40, 2**62)
OPERATORS = ("add select cast matmul bind guard iota reshape broadcast slice pad concat transpose gather_nd scatter_elements nms sort if loop call yield"
             " attention scan convolution window_reduce dim topk reduce exprs constant").split()
BOUNDS = ("0 0 1 0", "1 5 0 1", "-5 -1 1 -3", "1 9223372036854775807 9223372036854775807 1", "0", "x")


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def _change_list(values, draw, options):
    way = draw.random()
    if way < 0.3 and values:
        del values[-1]
    elif way < 0.5 or not values:
        values.append(draw.choice(options))
    else:
        values[draw.randrange(len(values))] = draw.choice(options)


def attribute(model, graph, draw):
    kinds = (AttributeProto.INT, AttributeProto.INTS, AttributeProto.STRING, AttributeProto.STRINGS)
    found = [(node, a) for node in graph.node for a in node.attribute if a.type in kinds]
    if not found:
        return None
    node, one = draw.choice(found)
    if one.type == AttributeProto.INT:
        one.i = draw.choice(NUMBERS)
    elif one.type == AttributeProto.STRING:
        one.s = draw.choice(EXPRESSIONS)
    elif one.type == AttributeProto.INTS:
        _change_list(one.ints, draw, NUMBERS)
    else:
        _change_list(one.strings, draw, EXPRESSIONS)
    return f"{node.op_type}.{one.name} is {str(helper.get_attribute_value(one))[:60]}"


def operand(model, graph, draw):
    nodes = [node for node in graph.node if node.input]
    names = [name for node in graph.node for name in node.output] + [v.name for v in (*graph.input, *graph.initializer)]
    if not nodes:
        return None
    node = draw.choice(nodes)
    place, name = draw.randrange(len(node.input)), draw.choice(names)
    node.input[place] = name
    return f"operand {place} of {node.op_type} is '{name}'"


def type_of(model, graph, draw):
    values = [v for v in (*graph.input, *graph.value_info) if v.type.HasField("tensor_type")]
    if not values:
        return None
    value = draw.choice(values)
    kind, way = value.type.tensor_type, draw.random()
    if way < 0.3:
        kind.elem_type = draw.choice([number for number in TensorProto.DataType.values() if number])
    elif way < 0.5 and kind.shape.dim:
        del kind.shape.dim[-1]
    elif way < 0.6 or not kind.shape.dim:
        kind.shape.dim.add().dim_value = draw.choice((0, 1, 3))
    else:
        dim = draw.choice(kind.shape.dim)
        dim.Clear()
        if draw.random() < 0.5:
            dim.dim_value = draw.choice(SIZES)
        else:
            dim.dim_param = draw.choice(DIMS)
    return f"'{value.name}' is {' '.join(str(kind).split())[:100]}"


def operator(model, graph, draw):
    node, name = draw.choice(graph.node), draw.choice(OPERATORS)
    old, node.op_type = node.op_type, name
    return f"{old} is {name}"


def removal(model, graph, draw):
    node = draw.choice(graph.node)
    side = node.output if node.output and draw.random() < 0.5 else node.input
    if not side:
        return None
    del side[-1]
    return f"{node.op_type} has {len(node.input)} operands and {len(node.output)} results"


def order(model, graph, draw):
    place, other = draw.randrange(len(graph.node)), draw.randrange(len(graph.node))
    moved = onnx.NodeProto()
    moved.CopyFrom(graph.node[place])
    del graph.node[place]
    graph.node.insert(other, moved)
    return f"{moved.op_type} stands at {other} instead of {place}"


def symbol(model, graph, draw):
    if not model.metadata_props:
        return None
    one = draw.choice(model.metadata_props)
    if draw.random() < 0.3:
        model.metadata_props.remove(one)
        return f"{one.key} is left out"
    one.value = draw.choice(BOUNDS)
    return f"{one.key} is '{one.value}'"


WEIGHTED = [attribute] * 8 + [operand] * 4 + [type_of] * 5 + [operator] * 2 + [removal, order, symbol]


def edit(model, draw):
    """Changes the model in one or two places; what was done."""
    done = []
    for _ in range(draw.choice((1, 1, 2))):
        graph = draw.choice(list(graphs(model.graph)))
        done.append(draw.choice(WEIGHTED)(model, graph, draw) if graph.node else None)
    return "; ".join(text for text in done if text) or "nothing"


# ---- edits that are known to be wrong ----


def source():
    """NonZero, whose count is a size; a loop that runs as often as a scalar says; products of sizes."""
    body = helper.make_graph([helper.make_node("Identity", ["going"], ["more"]), helper.make_node("Add", ["carried", "carried"], ["twice"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("going", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("carried", TensorProto.FLOAT, ["n"])],
                             [helper.make_tensor_value_info("more", TensorProto.BOOL, []), helper.make_tensor_value_info("twice", TensorProto.FLOAT, ["n"])])
    nodes = [helper.make_node("NonZero", ["x"], ["found"]), helper.make_node("Transpose", ["found"], ["places"]),
             helper.make_node("GatherND", ["x", "places"], ["y"]), helper.make_node("ReduceMax", ["x"], ["r"], keepdims=0),
             helper.make_node("Loop", ["t", "", "v"], ["z"], body=body)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, ["n", "m"]), value("t", TensorProto.INT64, []), value("v", TensorProto.FLOAT, ["n"])],
                              [value("y", TensorProto.FLOAT, [None]), value("r", TensorProto.FLOAT, []), value("z", TensorProto.FLOAT, ["n"])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _node(model, kind, place=0):
    return [node for node in model.graph.node if node.op_type == kind][place]


def _attribute(model, kind, name, value):
    node = _node(model, kind)
    node.attribute.remove(next(a for a in node.attribute if a.name == name))
    node.attribute.append(helper.make_attribute(name, value))


def _value(model, name):
    return next(v for v in (*model.graph.input, *model.graph.value_info) if v.name == name).type.tensor_type


def _element(model, kind, element, place=0):
    _value(model, _node(model, kind, place).output[0]).elem_type = element


def _close(model, name, axis, size):
    _value(model, name).shape.dim[axis].Clear()
    _value(model, name).shape.dim[axis].dim_value = size


def _operand(model, kind, place, name):
    _node(model, kind).input[place] = name


def _symbol(model, name, bounds):
    next(p for p in model.metadata_props if p.key == f"ptc.prim.symbol.{name}").value = bounds


NAME = "does not bind the name of a symbol"
KNOWN = {
    "a number where a symbol is bound": (lambda m: _attribute(m, "bind", "symbol", "9223372036854775807"), NAME),
    "an expression where a symbol is bound": (lambda m: _attribute(m, "bind", "symbol", "mod(n, 0)"), NAME),
    "a division by 0 where a symbol is bound": (lambda m: _attribute(m, "bind", "symbol", "floordiv(n, 0)"), NAME),
    "an expression where a loop counts": (lambda m: _attribute(m, "loop", "counter", "2*n"), NAME),
    "a size that is a float": (lambda m: _operand(m, "bind", 0, _node(m, "constant", 1).output[0]), "what it binds is no scalar of int64"),
    "a size that is a vector": (lambda m: _operand(m, "bind", 0, _node(m, "convert").output[0]), "what it binds is no scalar of int64"),
    "expressions of type float": (lambda m: _element(m, "exprs", TensorProto.FLOAT), "must be tensor of signed integer or unsigned integer values"),
    "slices of another type": (lambda m: _element(m, "slice", TensorProto.FLOAT), "its result has another element type than its operand"),
    "a broadcast of another type": (lambda m: _element(m, "broadcast", TensorProto.DOUBLE), "its result has another element type than its operand"),
    "a symbol that no input has": (lambda m: _close(m, "x", 1, 3), "nothing says what the symbol 'm' is"),
    "a size below 0": (lambda m: _close(m, "x", 0, -1), "error[PTC0219]"),
    "a size that no memory has": (lambda m: (_close(m, "x", 0, 2**62), _close(m, "x", 1, 2**62)), "one that no address space holds"),
    "bounds that exclude each other": (lambda m: _symbol(m, "n", "5 1 1 1"), "no bounds of the form MIN MAX DIVISOR HINT"),
    "a divisor of 0": (lambda m: _symbol(m, "n", "1 5 0 1"), "no bounds of the form MIN MAX DIVISOR HINT"),
}
