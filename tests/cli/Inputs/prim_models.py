"""Models of primitives that are wrong: python prim_models.py MODEL FOLDER."""
import copy
import sys
from pathlib import Path

import onnx
from onnx import helper

model, folder = onnx.load(sys.argv[1]), Path(sys.argv[2])


def node_of(graph, kind):
    return next(node for node in graph.node if node.op_type == kind)


def drop(node, name):
    node.attribute.remove(next(a for a in node.attribute if a.name == name))


def save(name, change):
    made = copy.deepcopy(model)
    change(made, made.graph)
    onnx.save(made, folder / f"{name}.onnx")


save("unknown", lambda m, g: setattr(node_of(g, "add"), "op_type", "plus"))
save("weight", lambda m, g: setattr(node_of(g, "add"), "op_type", "weight"))
save("domain", lambda m, g: setattr(node_of(g, "add"), "domain", "") or m.opset_import.append(helper.make_opsetid("", 17)))
save("operand", lambda m, g: node_of(g, "matmul").input.pop())
save("axes", lambda m, g: node_of(g, "broadcast").attribute[0].ints.append(7))
save("none", lambda m, g: drop(node_of(g, "broadcast"), "axes"))
save("extra", lambda m, g: node_of(g, "matmul").attribute.append(helper.make_attribute("axis", 1)))
save("kind", lambda m, g: next(a for a in node_of(g, "reduce").attribute if a.name == "kind").__setattr__("s", b"most"))
save("reduced", lambda m, g: next(a for a in node_of(g, "reduce").attribute if a.name == "axes").ints.__setitem__(0, -1))
save("type", lambda m, g: setattr(g.value_info[1].type.tensor_type, "elem_type", onnx.TensorProto.INT8))
save("dim", lambda m, g: setattr(g.value_info[0].type.tensor_type.shape.dim[0], "dim_param", "batch +"))
save("symbol", lambda m, g: m.metadata_props.__delitem__(0))
save("bounds", lambda m, g: setattr(m.metadata_props[0], "value", "1 2 three"))
save("newer", lambda m, g: setattr(m.opset_import[0], "version", 99))
save("end", lambda m, g: g.node.__delitem__(len(g.node) - 1) or g.ClearField("output"))
