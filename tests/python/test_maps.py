"""Maps: what classifiers give and vectorizers take, against onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import ptc
from models import ModelTest, value
from onnx import TensorProto, helper

ML = "ai.onnx.ml"
INT64, STRING, FLOAT, DOUBLE = TensorProto.INT64, TensorProto.STRING, TensorProto.FLOAT, TensorProto.DOUBLE


def map_type(key, kind):
    proto = onnx.TypeProto()
    proto.map_type.key_type = key
    proto.map_type.value_type.tensor_type.elem_type = kind
    return proto


def map_value(name, key, kind):
    return helper.make_value_info(name, map_type(key, kind))


def maps_value(name, key):
    proto = onnx.TypeProto()
    proto.sequence_type.elem_type.CopyFrom(map_type(key, FLOAT))
    return helper.make_value_info(name, proto)


def ml_model(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "test", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)], ir_version=8)


def expected(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in model.graph.output], session.run(None, feeds)))


class Maps(ModelTest):
    def agree(self, proto, feeds, *flags):
        loaded = ptc.load(self.compile(proto, *flags))
        got, want = loaded(**feeds), expected(proto, feeds)
        self.assertEqual(list(got), list(want))
        for name, right in want.items():
            if isinstance(right, np.ndarray):
                self.assertEqual((got[name].dtype, got[name].shape), (right.dtype, right.shape))
                self.assertEqual(got[name].tolist(), right.tolist())
                continue
            self.assertEqual([sorted(row) for row in got[name]], [sorted(row) for row in right])
            for mine, theirs in zip(got[name], right):
                np.testing.assert_allclose([mine[key] for key in theirs], list(theirs.values()), rtol=1e-5, atol=1e-6)
        return loaded

    def classifier(self, **labels):
        kind = "classlabels_strings" if isinstance(next(iter(labels.values()))[0], str) else "classlabels_int64s"
        names = next(iter(labels.values()))
        rng = np.random.default_rng(3)
        nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain=ML, multi_class=1, post_transform="SOFTMAX",
                                  coefficients=rng.standard_normal(12).astype(np.float32).tolist(), intercepts=[0.1, -0.2, 0.3],
                                  **{kind.replace("int64s", "ints"): names}),
                 helper.make_node("ZipMap", ["p"], ["output_probability"], domain=ML, **{kind: names})]
        key = STRING if kind.endswith("strings") else INT64
        return ml_model(nodes, [value("x", ["rows", 4])], [value("label", ["rows"], key), maps_value("output_probability", key)])

    def test_classifiers_end_in_a_list_of_maps(self):
        for names in (["cat", "dog", "über"], [7, -1, 2**40]):
            proto = self.classifier(names=names)
            for rows in (1, 5):
                x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
                loaded = self.agree(proto, {"x": x}, "--dim", "rows=0..9")
            self.assertEqual([output.name for output in loaded.outputs], ["label", "output_probability.keys", "output_probability.values"])
            self.assertEqual(loaded(np.zeros((0, 4), np.float32))["output_probability"], [])

    def test_one_row_may_be_a_vector(self):
        node = helper.make_node("ZipMap", ["x"], ["y"], domain=ML, classlabels_int64s=[4, 5])
        self.agree(ml_model([node], [value("x", [2])], [maps_value("y", INT64)]), {"x": np.array([1, 2], np.float32)})

    def test_vectorizers_take_maps(self):
        words, numbers = ["a", "c", "b", "z"], [10, -3, 7]
        cases = [(STRING, FLOAT, {"c": 8.5, "a": 4.0}), (INT64, FLOAT, {7: 1.0, -3: 2.5})]
        for key, kind, given in cases:
            with self.subTest(f"{key} {kind}"):
                vocabulary = {"string_vocabulary": words} if key == STRING else {"int64_vocabulary": numbers}
                node = helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, **vocabulary)
                self.agree(ml_model([node], [map_value("x", key, kind)], [value("y", [None, None], kind)]), {"x": given})

    def test_casts_of_maps(self):
        for cast, result in (("TO_FLOAT", FLOAT), ("TO_INT64", INT64)):
            for form, size in (("DENSE", 1), ("SPARSE", 6), ("SPARSE", 3)):
                with self.subTest(f"{cast} {form} {size}"):
                    node = helper.make_node("CastMap", ["x"], ["y"], domain=ML, cast_to=cast, map_form=form, max_map=size)
                    self.agree(ml_model([node], [map_value("x", INT64, FLOAT)], [value("y", [None, None], result)]), {"x": {4: 1.5, 0: 2.5, 3: -7.25}})

    def test_maps_of_other_numbers(self):  # which, as those of texts, onnxruntime's Python interface does not take
        for key, kind, given, words in ((STRING, DOUBLE, {"b": 1.5, "z": -2.1}, {"string_vocabulary": ["z", "q", "b"]}),
                                        (INT64, DOUBLE, {5: 1.5, -8: -2.1}, {"int64_vocabulary": [-8, 4, 5]}),
                                        (STRING, INT64, {"b": 2**40, "z": -2}, {"string_vocabulary": ["z", "q", "b"]})):
            node = helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, **words)
            loaded = ptc.load(self.compile(ml_model([node], [map_value("x", key, kind)], [value("y", [None, None], kind)])))
            last, first = given.values()
            self.assertEqual(loaded(given)["y"].tolist(), [[first, 0, last]])

    def test_maps_of_texts(self):
        given = {4: "1.5", 0: "2", 3: "-7"}
        cases = [("CastMap", {"cast_to": "TO_FLOAT"}, FLOAT, [2, -7, 1.5]), ("CastMap", {"cast_to": "TO_STRING"}, STRING, ["2", "-7", "1.5"]),
                 ("CastMap", {"map_form": "SPARSE", "max_map": 5}, FLOAT, [2, 0, 0, -7, 1.5]),
                 ("DictVectorizer", {"int64_vocabulary": [3, 1, 0]}, STRING, ["-7", "", "2"])]
        for operator, attributes, kind, want in cases:
            with self.subTest(f"{operator} {attributes}"):
                node = helper.make_node(operator, ["x"], ["y"], domain=ML, **attributes)
                loaded = ptc.load(self.compile(ml_model([node], [map_value("x", INT64, STRING)], [value("y", [None, None], kind)])))
                self.assertEqual(loaded(x=given)["y"].tolist(), [want])

    def test_a_map_is_two_arrays_in_the_library(self):
        node = helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, string_vocabulary=["a", "b"])
        loaded = ptc.load(self.compile(ml_model([node], [map_value("x", STRING, FLOAT)], [value("y", [None, None])])))
        self.assertEqual([(i.name, i.dtype, i.shape) for i in loaded.inputs],
                         [("x.keys", "string", ("x_entries",)), ("x.values", "float32", ("x_entries",))])
        got = loaded(**{"x.keys": np.array(["b"], object), "x.values": np.array([2], np.float32)})
        self.assertEqual(got["y"].tolist(), [[0, 2]])
        self.assertEqual(loaded({"b": 2.0, "unknown": 5.0})["y"].tolist(), [[0, 2]])
        with self.assertRaisesRegex(TypeError, "must be a dict"):
            loaded([1, 2])
