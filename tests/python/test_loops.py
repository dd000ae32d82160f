"""Bodies of loops and branches of conditions that compute what nothing else depends on, against onnxruntime."""

import numpy as np
import onnxruntime
import ptc
from models import ModelTest, model, value
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(8)


def node(kind, inputs, output, **how):
    return helper.make_node(kind, inputs.split(), output.split(), **how)


class Loops(ModelTest):
    def check(self, nodes, inputs, outputs, weights=None):
        proto = model(nodes, [value(name, x.shape, helper.np_dtype_to_tensor_dtype(x.dtype)) for name, x in inputs.items()],
                      [value(name, None) for name in outputs], weights)
        wanted = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(outputs, inputs)
        for flags in ((), ("-O0",), ("-O1",)):
            with self.subTest(flags=flags):
                found = ptc.load(self.compile(proto, *flags))(**inputs)
                for name, one in zip(outputs, wanted):
                    np.testing.assert_allclose(found[name], one, rtol=1e-5, atol=1e-6)

    def test_values_of_no_state(self):
        """Sums, extremes and what is computed of them, in each round anew."""
        for kind in ("Softmax", "LogSoftmax", "LayerNormalization", "Tanh"):
            for ends in (False, True):
                with self.subTest(kind=kind, ends=ends):
                    inputs = "x one" if kind == "LayerNormalization" else "x"
                    body = helper.make_graph(
                        [node("Less" if ends else "LessOrEqual", "round last", "go"), node("Neg", "s", "t"), node(kind, inputs, "k")], "body",
                        [value("round", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("s", [2])],
                        [value("go", [], TensorProto.BOOL), value("t", [2]), value("k", [4])],
                        [numpy_helper.from_array(np.int64(3 if ends else 9), "last")])
                    weights = {"true": np.array(True), "one": np.ones(4, np.float32), "rounds": np.array(5, np.int64)}
                    nodes = [node("Loop", "rounds true z", "last_s all", body=body)]
                    self.check(nodes, {"z": np.ones(2, np.float32), "x": np.arange(4, dtype=np.float32)}, ["last_s", "all"], weights)

    def test_unused_results_of_branches(self):
        """What a branch computes for a result that nobody takes is left out, with all that it reads."""
        weights = {"w": RNG.standard_normal((1, 16, 3), np.float32), "shape": np.array([12, 4], np.int64)}
        branches = []
        for name, nodes in (("a", [node("Relu", "y", "r"), node("Conv", "r w", "c", pads=[1, 1]), node("Concat", "v c", "d", axis=0),
                                   node("Reshape", "d shape", "e"), node("Neg", "e", "f"), node("Tanh", "x", "g")]),
                            ("b", [node("ReduceSum", "y", "r", keepdims=0), node("Expand", "r shape", "f"), node("Exp", "x", "g")])):
            branches.append(helper.make_graph(nodes, name, [], [value("f", [12, 4]), value("g", [4, 8])]))
        nodes = [node("If", "on", "f0 f1", then_branch=branches[0], else_branch=branches[1]), node("Identity", "f1", "z")]
        inputs = {"x": RNG.standard_normal((4, 8), np.float32), "y": RNG.standard_normal((11, 16, 4), np.float32),
                  "v": RNG.standard_normal((1, 1, 4), np.float32)}
        for on in (True, False):
            self.check(nodes, {"on": np.array(on), **inputs}, ["z"], weights)
