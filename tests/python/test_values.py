"""Strings, sequences and optional values."""

import re

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import TensorProto, helper

STRING = TensorProto.STRING
BAD = b"\xff\xc3".decode("utf-8", "surrogateescape")  # bytes that are no UTF-8


def strings(*texts):
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def sequence(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_sequence_value_info(name, kind, shape)


def optional(name, shape, kind=TensorProto.FLOAT):
    inner = helper.make_tensor_type_proto(kind, shape)
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


class Values(ModelTest):
    def load(self, nodes, inputs, outputs, *flags, weights=None, opset=21):
        return ptc.load(self.compile(model(nodes, inputs, outputs, weights, opset), *flags))

    def test_strings_move_as_numbers_do(self):
        nodes = [helper.make_node("Transpose", ["x"], ["t"]),
                 helper.make_node("Gather", ["t", "i"], ["g"], axis=0),
                 helper.make_node("Concat", ["g", "g"], ["c"], axis=1),
                 helper.make_node("Where", ["m", "c", "d"], ["y"]),
                 helper.make_node("Equal", ["y", "d"], ["e"])]
        loaded = self.load(nodes, [value("x", ["n", 3], STRING), value("i", [2], TensorProto.INT64), value("m", [2, 1], TensorProto.BOOL)],
                           [value("y", [2, "m"], STRING), value("e", [2, "m"], TensorProto.BOOL)], "--dim", "n=0..9:2",
                           weights={"d": np.array("other", object)})
        x = strings("a", "", "bc", BAD, "déf", "x" * (1 << 20)).reshape(2, 3)
        got = loaded(x, np.array([2, 1]), np.array([[True], [False]]))
        want = np.concatenate([x.T[[2, 1]]] * 2, axis=1)
        want[1] = "other"
        self.assertEqual(got["y"].tolist(), want.tolist())
        np.testing.assert_array_equal(got["e"], want == "other")
        self.assertEqual(loaded(x[:0], np.array([2, 1]), np.array([[True], [False]]))["y"].shape, (2, 0))
        self.assertEqual((loaded.inputs[0].dtype, loaded.inputs[0].shape), ("string", ("n", 3)))

    def test_regular_expressions_match_as_in_python(self):
        texts = strings("", "a", "ab", "abab", "foo@bar.com", "x_1", "A-Z", "a\nb", "été", "12:34", "aaaaaaaaaaaaaaaaaaaaaaaac", BAD, "[x]", "a.b")
        patterns = ["", "a|ab|b", "(ab)+", r"\w+@\w+\.com", r"[a-z]\w*", r"[^a-z]+", "a.b", r"(?s)a.b", r"\d{2}:\d{1,2}", "(a*)*b",
                    "é(té)?", r"\[x\]", r"(?i)A-z", r"^a$", r"a\b.*", r"(?:a|b){2,4}", r"[\d\-A-Z]+", "a{0}b?", r"\x61\x{62}", "(?P<n>a)b"]
        for pattern in patterns:
            loaded = self.load([helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], [value("x", [len(texts)], STRING)],
                               [value("y", [len(texts)], TensorProto.BOOL)])
            expression = re.compile(pattern.replace(r"\x{62}", "b"), re.ASCII)
            want = [text != BAD and bool(expression.fullmatch(text)) for text in texts]
            self.assertEqual(loaded(texts)["y"].tolist(), want, pattern)

    def test_casts_read_and_write_numbers(self):
        node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE)
        loaded = self.load([node], [value("x", [5], STRING)], [value("y", [5], TensorProto.DOUBLE)])
        texts = strings("3.14", " -1e-5 ", "NaN", "-INF", "9007199254740993")
        np.testing.assert_array_equal(loaded(texts)["y"], [3.14, -1e-5, np.nan, -np.inf, 9007199254740992.0])
        with self.assertRaisesRegex(ptc.Error, "element 1, 'Hello', is no number") as caught:
            loaded(strings("1", "Hello", "1", "1", "1"))
        self.assertEqual(caught.exception.status, 1)
        back = self.load([helper.make_node("Cast", ["x"], ["y"], to=STRING)], [value("x", [4])], [value("y", [4], STRING)])
        self.assertEqual(back(np.array([0.1, 1e20, np.inf, 16777216], np.float32))["y"].tolist(), ["0.1", "1e+20", "INF", "16777216"])

    def test_results_of_runs_do_not_depend_on_runs_before(self):
        loaded = self.load([helper.make_node("StringConcat", ["x", "x"], ["y"])], [value("x", ["n"], STRING)], [value("y", ["n"], STRING)],
                           "--dim", "n=0..1000")
        first = loaded(strings("a", "b"))["y"]
        for count in (1000, 0, 3):
            texts = [f"{i}" * (i % 7) for i in range(count)]
            self.assertEqual(loaded(strings(*texts))["y"].tolist(), [t + t for t in texts])
        self.assertEqual(first.tolist(), ["aa", "bb"])

    def test_sequences_in_and_out(self):
        nodes = [helper.make_node("SequenceInsert", ["s", "x", "p"], ["t"]), helper.make_node("SequenceErase", ["t", "z"], ["u"]),
                 helper.make_node("SequenceLength", ["u"], ["n"]), helper.make_node("SequenceAt", ["s", "z"], ["first"])]
        scalar = lambda name: value(name, [], TensorProto.INT64)
        loaded = self.load(nodes, [sequence("s", [2]), value("x", [3]), scalar("p"), scalar("z")],
                           [sequence("u", None), scalar("n"), value("first", [2])])
        a, b, x = np.float32([1, 2]), np.float32([3, 4]), np.float32([5, 6, 7])
        got = loaded([a, b], x, np.int64(-1), np.int64(0))
        self.assertEqual([t.tolist() for t in got["u"]], [[5, 6, 7], [3, 4]])
        self.assertEqual((got["n"].item(), got["first"].tolist()), (2, [1, 2]))
        for wrong, sentence in (([a, x], "dim 0 of tensor 1 is 3"), ([], "position"), ([a[None]], "rank 2, not 1")):
            with self.assertRaisesRegex(ptc.Error, sentence):
                loaded(wrong, x, np.int64(-1), np.int64(0))
        element = loaded.inputs[0].element
        self.assertEqual((element.dtype, element.shape), ("float32", (2,)))

    def test_sequences_of_strings(self):
        loaded = self.load([helper.make_node("SequenceInsert", ["s", "x"], ["t"])], [sequence("s", [3], STRING), value("x", [3], STRING)],
                           [sequence("t", [3], STRING)])
        array = strings("", BAD, "c")
        for item in loaded([array], array)["t"]:
            self.assertEqual(item.tolist(), array.tolist())

    def test_optional_values(self):
        nodes = [helper.make_node("OptionalHasElement", ["x"], ["y"]), helper.make_node("Identity", ["x"], ["z"])]
        loaded = self.load(nodes, [optional("x", [2])], [value("y", [], TensorProto.BOOL), optional("z", [2])])
        self.assertTrue(loaded.inputs[0].optional)
        got = loaded(np.float32([1, 2]))
        self.assertEqual((got["y"].item(), got["z"].tolist()), (True, [1, 2]))
        got = loaded(None)
        self.assertEqual((got["y"].item(), got["z"]), (False, None))

    def test_complex_numbers_move(self):
        kinds = ((TensorProto.COMPLEX64, np.complex64), (TensorProto.COMPLEX128, np.complex128))
        for kind, numpy_type in kinds:
            with self.subTest(numpy_type.__name__):
                branch = lambda name, operator: helper.make_graph([helper.make_node(operator, ["s"], [name])], name, [], [value(name, ["r", "c"], kind)])
                nodes = [helper.make_node("SequenceConstruct", ["x", "w"], ["all"]),
                         helper.make_node("SequenceAt", ["all", "i"], ["s"]),
                         helper.make_node("If", ["flag"], ["b"], then_branch=branch("t", "Identity"), else_branch=branch("e", "Transpose")),
                         helper.make_node("Where", ["flag", "b", "w"], ["y"])]
                w = (np.arange(9) - 4j).reshape(3, 3).astype(numpy_type)
                loaded = self.load(nodes, [value("x", ["n", "n"], kind), value("i", [], TensorProto.INT64), value("flag", [], TensorProto.BOOL)],
                                   [value("y", ["r", "c"], kind), sequence("all", [None, None], kind)], "--dim", "n=3", weights={"w": w})
                x = np.empty((3, 3), numpy_type)
                x.real, x.imag = np.arange(9).reshape(3, 3), np.array([np.nan, np.inf, -0.0])
                for i in (0, 1):
                    for flag in (True, False):
                        got = loaded(x, np.array(i), np.array(flag))
                        want = (x, w)[i] if flag else w
                        self.assertEqual(got["y"].dtype, numpy_type)
                        self.assertEqual(got["y"].tobytes(), want.tobytes())
                        self.assertEqual([item.tobytes() for item in got["all"]], [x.tobytes(), w.tobytes()])
                self.assertEqual(loaded.inputs[0].dtype, np.dtype(numpy_type).name)

    def test_complex_numbers_that_are_not_moved_alone(self):
        x = np.array([2 - 1j, 0, 1 + 3j, complex(0, -0.0), 1 + 2j, 2 - 1j, 1 + 3j])
        for kind, numpy_type in ((TensorProto.COMPLEX64, np.complex64), (TensorProto.COMPLEX128, np.complex128)):
            with self.subTest(numpy_type.__name__):
                nodes = [helper.make_node("NonZero", ["x"], ["where"]), helper.make_node("Unique", ["x"], ["unique", "first", "inverse", "counts"]),
                         helper.make_node("ScatterElements", ["x", "i", "u"], ["sums"], reduction="add")]
                loaded = self.load(nodes, [value("x", [7], kind), value("i", [3], TensorProto.INT64), value("u", [3], kind)],
                                   [value("where", [1, None], TensorProto.INT64), value("unique", [None], kind), value("first", [None], TensorProto.INT64),
                                    value("inverse", [None], TensorProto.INT64), value("counts", [None], TensorProto.INT64), value("sums", [7], kind)])
                given, i, u = x.astype(numpy_type), np.array([1, 1, 4]), np.array([1j, 2, -1 - 1j], numpy_type)
                got = loaded(given, i, u)
                unique, first, inverse, counts = np.unique(given, True, True, True)
                sums = given.copy()
                np.add.at(sums, i, u)
                for name, want in (("where", np.nonzero(given)[0][None]), ("unique", unique), ("first", first), ("inverse", inverse), ("counts", counts), ("sums", sums)):
                    np.testing.assert_array_equal(got[name], want, name)
