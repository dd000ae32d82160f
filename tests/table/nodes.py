"""One small node of each operator, in each type that its schema allows: many of them in one model.

The nodes are those of ONNX's own tests. Of a node, one type constraint is varied at a time; inputs of rank 0 and 1 that are not
of the first input's type are constants, since they decide shapes.
"""

import copy
import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ELEMENTS = {name.lower().replace("_", ""): number for name, number in TensorProto.DataType.items()}
ELEMENTS |= {"float8e8m0": TensorProto.FLOAT8E8M0, "float4e2m1": TensorProto.FLOAT4E2M1}
NAMES = {number: name for name, number in ELEMENTS.items()}


@dataclass
class Variant:
    domain: str
    op: str
    version: int
    constraint: str
    type: str
    model: onnx.ModelProto  # of this node alone

    @property
    def key(self):
        return self.domain or "ai.onnx", self.op, self.version, self.constraint, self.type


def type_proto(text):
    """The TypeProto of "seq(tensor(float))"."""
    kind, inner = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    proto = onnx.TypeProto()
    if kind == "tensor":
        proto.tensor_type.elem_type = ELEMENTS[inner]
    elif kind == "map":
        key, kind = inner.split(", ")
        proto.map_type.key_type = ELEMENTS[key]
        proto.map_type.value_type.tensor_type.elem_type = ELEMENTS[kind]
    elif kind == "seq":
        proto.sequence_type.elem_type.CopyFrom(type_proto(inner))
    else:
        proto.optional_type.elem_type.CopyFrom(type_proto(inner))
    return proto


def element_of(text):
    """Of maps, the values'."""
    return re.search(r"(?:tensor\(|, )(\w+)\)", text)[1]


def retype(proto, element):
    """The same type with another element type, dims as they are."""
    while not proto.HasField("tensor_type"):
        proto = proto.sequence_type.elem_type if proto.HasField("sequence_type") else proto.optional_type.elem_type
    proto.tensor_type.elem_type = ELEMENTS[element]


def cast(array, element):
    number = ELEMENTS[element]
    if number == TensorProto.STRING:
        return numpy_helper.from_array(np.array([str(v) for v in array.reshape(-1)], object).reshape(array.shape))
    if array.dtype == object:
        array = np.arange(array.size).reshape(array.shape)
    return numpy_helper.from_array(array.astype(helper.tensor_dtype_to_np_dtype(number)))


def single_nodes(cases, read):
    """The smallest case of each operator's newest version: model, arrays of its inputs."""
    best = {}
    for case in cases:
        if case.suite != "node" or not case.sets:
            continue
        model = onnx.load(case.model)
        if len(model.graph.node) != 1 or model.functions or model.graph.initializer:
            continue
        node = model.graph.node[0]
        opsets = {o.domain: o.version for o in model.opset_import}
        try:
            schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
        except onnx.defs.SchemaError:
            continue
        key, rank = (node.domain, node.op_type), (-schema.since_version, len(node.input), model.ByteSize(), case.name)
        if key not in best or rank < best[key][0]:
            best[key] = rank, model, schema, case
    for (_, _), (_, model, schema, case) in sorted(best.items()):
        yield model, schema, [read(path) for path in case.sets[0][0]]


def formal_of(schema, index):
    return schema.inputs[min(index, len(schema.inputs) - 1)]


def variants(model, schema, arrays):
    node = model.graph.node[0]
    used = {formal_of(schema, i).type_str for i, name in enumerate(node.input) if name}
    constraints = [c for c in schema.type_constraints if c.type_param_str in used]
    for constraint in constraints:
        for text in sorted(constraint.allowed_type_strs):
            made = vary(model, schema, arrays, constraint.type_param_str, text)
            if made is not None:
                yield Variant(node.domain, node.op_type, schema.since_version, constraint.type_param_str, text, made)


def vary(model, schema, arrays, constraint, text):
    made = copy.deepcopy(model)
    graph, node = made.graph, made.graph.node[0]
    first = formal_of(schema, 0).type_str if schema.inputs else ""
    values = dict(zip([value.name for value in graph.input], zip(graph.input, arrays)))
    kept = []
    for i, name in enumerate(node.input):
        if not name or name not in values:
            continue
        value, array = values[name]
        formal = formal_of(schema, i).type_str
        mine = formal == constraint
        if mine and text.split("(")[0] != {"tensor_type": "tensor", "sequence_type": "seq", "optional_type": "optional",
                                           "map_type": "map", "sparse_tensor_type": "sparse_tensor"}[value.type.WhichOneof("value")]:
            return None  # another kind of value than the test has
        is_constant = isinstance(array, np.ndarray) and array.ndim <= 1 and formal != first
        if is_constant:
            tensor = cast(array, element_of(text)) if mine else numpy_helper.from_array(array)
            tensor.name = name
            graph.initializer.append(tensor)
        else:
            if mine:
                retype(value.type, element_of(text))
            kept.append(value)
    for attribute in node.attribute:  # between strings there is nothing
        if attribute.name == "mode" and text == "tensor(string)" and attribute.s in (b"linear", b"cubic"):
            attribute.s = b"nearest"
    inputs = [copy.deepcopy(value) for value in kept]
    declared = {value.name: copy.deepcopy(value) for value in graph.output}
    del graph.input[:], graph.output[:], graph.value_info[:]
    graph.input.extend({value.name: value for value in inputs}.values())
    try:
        inferred = onnx.shape_inference.infer_shapes(made)
    except Exception:
        inferred = made
    for value in inferred.graph.value_info:  # the type is what the node makes; the test says the shape
        if value.name in declared:
            if value.type.HasField("tensor_type"):
                retype(declared[value.name].type, NAMES[value.type.tensor_type.elem_type])
            graph.output.append(declared[value.name])
    return made


# ---- Nodes whose attributes, bodies or other inputs have the type too ------------------------------------------------


def shaped(text, shape=(2, 3)):
    """A value's type with dims, where it is a tensor."""
    proto = type_proto(text)
    if proto.HasField("tensor_type"):
        for size in shape:
            proto.tensor_type.shape.dim.add().dim_value = size
    return proto


def bits(element):
    number = ELEMENTS[element]
    return {TensorProto.BOOL: 8, TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128}.get(number) or ml_bits(number)


def ml_bits(number):
    match = re.search(r"(\d+)$", NAMES[number]) if NAMES[number] not in ("float", "double", "string") else None
    known = {"float": 32, "double": 64, "float4e2m1": 4}
    return known.get(NAMES[number]) or (8 if NAMES[number].startswith("float8") else int(match[1]) if match else 0)


def identity(kind, *inputs):
    """A graph that gives what it is given; of a captured value, none."""
    values = [onnx.ValueInfoProto(name=name, type=kind) for name in inputs]
    return helper.make_graph([helper.make_node("Identity", [inputs[0] if inputs else "x"], ["r"])], "body", values, [onnx.ValueInfoProto(name="r", type=kind)])


IDENTITY = onnx.defs.get_schema("Identity").type_constraints[0].allowed_type_strs


def tensor_of(element, count=2):
    return cast(np.arange(count), element)


def tied(schema, constraint, text, allowed):
    """Inputs by name, initializers, node, output type; None where the operator has no such form."""
    op, kind = schema.name, type_proto(text)
    x = {"x": shaped(text)}
    if op in ("If", "Loop") and constraint == "V" and text not in IDENTITY:
        return None  # no operator makes a value of it
    if op in ("Identity", "RandomNormalLike", "RandomUniformLike") and constraint in ("V", "T1"):
        return x, [], helper.make_node(op, ["x"], ["y"], **({} if op == "Identity" else {"dtype": 1})), kind if op == "Identity" else type_proto("tensor(float)")
    if op == "GlobalLpPool" and constraint == "T":
        return {"x": shaped(text, (1, 2, 3, 3))}, [], helper.make_node(op, ["x"], ["y"]), shaped(text, (1, 2, 1, 1))
    if op == "Multinomial" and constraint == "T1":
        return x, [], helper.make_node(op, ["x"], ["y"]), type_proto("tensor(int32)")
    truth = numpy_helper.from_array(np.array(True), "flag")
    if op == "BitCast":
        partners = [t for t in allowed if t != text and bits(element_of(t)) == bits(element_of(text))] or [text]
        source, target = (text, partners[0]) if constraint == "T1" else (partners[0], text)
        return {"x": shaped(source)}, [], helper.make_node(op, ["x"], ["y"], to=ELEMENTS[element_of(target)]), type_proto(target)
    if op == "SequenceInsert" and constraint in ("S", "T"):
        item = text if constraint == "T" else text[4:-1]
        return {"s": type_proto(f"seq({item})"), "x": shaped(item)}, [], helper.make_node(op, ["s", "x"], ["y"]), type_proto(f"seq({item})")
    if op == "LabelEncoder" and constraint in ("T1", "T2"):
        key, value = (element_of(text), "int64") if constraint == "T1" else ("int64", element_of(text))
        node = helper.make_node(op, ["x"], ["y"], domain=schema.domain, keys_tensor=tensor_of(key), values_tensor=tensor_of(value), default_tensor=tensor_of(value, 1))
        return {"x": shaped(f"tensor({key})")}, [], node, type_proto(f"tensor({value})")
    if op == "If" and constraint == "V":
        return x, [truth], helper.make_node(op, ["flag"], ["y"], then_branch=identity(kind), else_branch=identity(kind)), kind
    if op == "Loop" and constraint == "V":
        body = identity(kind, "s")
        for name, element in (("i", TensorProto.INT64), ("c", TensorProto.BOOL)):
            body.input.insert(len(body.input) - 1, helper.make_tensor_value_info(name, element, []))
        body.node.append(helper.make_node("Identity", ["c"], ["c_next"]))
        body.output.insert(0, helper.make_tensor_value_info("c_next", TensorProto.BOOL, []))
        return x, [truth, numpy_helper.from_array(np.array(7), "m")], helper.make_node(op, ["m", "flag", "x"], ["y"], body=body), kind
    if op == "Scan" and constraint == "V":
        return x, [], helper.make_node(op, ["x"], ["y"], num_scan_inputs=1, body=identity(shaped(text, (3,)), "e")), kind
    if op == "SequenceMap" and constraint == "S":
        item = shaped(text[4:-1])
        kind = onnx.TypeProto(sequence_type=onnx.TypeProto.Sequence(elem_type=item))
        return {"x": kind}, [], helper.make_node(op, ["x"], ["y"], body=identity(item, "e")), kind
    if op in ("DictVectorizer", "CastMap") and constraint == "T1":
        key, value = re.fullmatch(r"map\((\w+), (\w+)\)", text).groups()
        words = {"string_vocabulary": ["a"]} if key == "string" else {"int64_vocabulary": [1]}
        node = helper.make_node(op, ["x"], ["y"], domain=schema.domain, **(words if op == "DictVectorizer" else {}))
        return x, [], node, type_proto(f"tensor({value if op == 'DictVectorizer' else 'float'})")
    if op == "ZipMap" and constraint == "T":
        labels = {"classlabels_strings": ["a", "b", "c"]} if "string" in text else {"classlabels_int64s": [4, 5, 6]}
        return {"x": shaped("tensor(float)")}, [], helper.make_node(op, ["x"], ["y"], domain=schema.domain, **labels), kind
    return None


TIED = {"BitCast": "", "SequenceInsert": "", "LabelEncoder": "ai.onnx.ml", "If": "", "Loop": "", "Scan": "", "SequenceMap": "",
        "DictVectorizer": "ai.onnx.ml", "CastMap": "ai.onnx.ml", "ZipMap": "ai.onnx.ml", "Identity": "", "RandomNormalLike": "",
        "RandomUniformLike": "", "GlobalLpPool": "", "Multinomial": ""}

PLAIN = {  # of operators without a type of their own to vary, and without a test of ONNX's whose inputs may be arguments
    "Constant": "g () => (float y) { y = Constant <value_float = 1.0> () }",
    "MelWeightMatrix": "g (int64 rate, float low, float high) => (float[33, 8] y) <int64 bins = {8}, int64 size = {64}> "
                       "{ y = MelWeightMatrix (bins, size, rate, low, high) }",
    "NonMaxSuppression": "g (float[1, 6, 4] b, float[1, 1, 6] s, int64[1] k) => (int64[n, 3] y) { y = NonMaxSuppression (b, s, k) }",
    "OptionalHasElement": "g (float[3] x) => (bool y) { y = OptionalHasElement (x) }",
    "RandomNormal": "g () => (float[2, 3] y) { y = RandomNormal <shape = [2, 3]> () }",
    "RandomUniform": "g () => (float[2, 3] y) { y = RandomUniform <shape = [2, 3]> () }",
    "ai.onnx.ml.CategoryMapper": "g (int64[3] x) => (string[3] y) { y = ai.onnx.ml.CategoryMapper <cats_strings = [\"a\"], cats_int64s = [1]> (x) }",
}


def plain_models():
    """(name of the operator, model)"""
    for name, text in PLAIN.items():
        yield name, onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 22, "ai.onnx.ml": 1]>' + text)


def tied_variants():
    """Of the newest version of each operator of TIED."""
    for op, domain in TIED.items():
        schema = onnx.defs.get_schema(op, domain)
        for constraint in schema.type_constraints:
            for text in sorted(constraint.allowed_type_strs):
                made = tied(schema, constraint.type_param_str, text, sorted(constraint.allowed_type_strs))
                if made is None:
                    continue
                inputs, weights, node, kind = made
                kind = copy.deepcopy(kind)
                if kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape"):
                    kind.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension()] * 2)
                values = [onnx.ValueInfoProto(name=name, type=proto) for name, proto in inputs.items()]
                graph = helper.make_graph([node], op, values, [onnx.ValueInfoProto(name="y", type=kind)], weights)
                imports = [helper.make_opsetid("", onnx.defs.onnx_opset_version())] + ([helper.make_opsetid(domain, schema.since_version)] if domain else [])
                model = helper.make_model(graph, opset_imports=imports, ir_version=11)
                yield Variant(domain, op, schema.since_version, constraint.type_param_str, text, model)


def rename(graph, prefix):
    for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        value.name = prefix + value.name
    for node in graph.node:
        node.input[:] = [name and prefix + name for name in node.input]
        node.output[:] = [name and prefix + name for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename(attribute.g, prefix)


def joined(variants):
    """(model, variants by node's name): all nodes of the same opsets in one model."""
    groups = defaultdict(list)
    for variant in variants:
        groups[tuple(sorted((o.domain, o.version) for o in variant.model.opset_import))].append(variant)
    for opsets, members in groups.items():
        whole = onnx.GraphProto(name="all")
        names = {}
        for number, variant in enumerate(members):
            graph = copy.deepcopy(variant.model.graph)
            rename(graph, f"n{number}_")
            graph.node[0].name = f"node{number}"
            names[f"node{number}"] = variant
            for field in ("node", "input", "output", "initializer"):
                getattr(whole, field).extend(getattr(graph, field))
        made = helper.make_model(whole, opset_imports=[helper.make_opsetid(*row) for row in opsets],
                                 ir_version=max(10, *(v.model.ir_version for v in members)))  # constants need not be inputs
        yield made, names
