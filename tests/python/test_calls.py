"""Interface and calls."""

import threading

import ml_dtypes
import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import TensorProto, helper
from ptc import _abi


def scaled_sum():
    """y = x + b, z = -x over a symbolic dim."""
    nodes = [helper.make_node("Add", ["x", "b"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    return model(nodes, [value("x", ["n", 3]), value("b", [3])], [value("y", ["n", 3]), value("z", ["n", 3])])


class Calls(ModelTest):
    def test_interface_shows_names_types_and_dims(self):
        loaded = ptc.load(self.compile(scaled_sum(), "--dim", "n=1..8:2"))
        self.assertEqual([v.name for v in loaded.inputs], ["x", "b"])
        self.assertEqual([v.name for v in loaded.outputs], ["y", "z"])
        self.assertEqual(loaded.inputs[0].shape, ("n", 3))
        self.assertEqual(loaded.inputs[0].dtype, "float32")
        (symbol,) = loaded.symbols
        self.assertEqual((symbol.name, symbol.min, symbol.max, symbol.hint), ("n", 1, 8, 2))
        self.assertIn(loaded.cpu_level, loaded.levels)
        self.assertGreaterEqual(loaded.threads, 1)
        self.assertTrue(loaded.compiler.startswith("ptc "))

    def test_inputs_by_position_and_by_name(self):
        loaded = ptc.load(self.compile(scaled_sum(), "--dim", "n=0..8"))
        x, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
        for outputs in (loaded(x, b), loaded(x, b=b), loaded(b=b, x=x)):
            np.testing.assert_array_equal(outputs["y"], x + b)
            np.testing.assert_array_equal(outputs["z"], -x)
        np.testing.assert_array_equal(loaded(x[:, ::-1], b)["z"], -x[:, ::-1])  # not contiguous
        np.testing.assert_array_equal(loaded(x[:0], b)["z"], -x[:0])

    def test_calls_of_other_shapes_take_turns(self):
        loaded = ptc.load(self.compile(scaled_sum(), "--dim", "n=0..8"))
        b, kept = np.ones(3, np.float32), []
        for rows in (2, 5, 0, 2, 5):
            x = np.full((rows, 3), len(kept), np.float32)
            if rows == 5:
                x.flags.writeable = False
            kept.append((x, loaded(x, b)["y"], loaded.run({"b": b, "x": x})["z"]))
        for x, y, z in kept:  # results of earlier calls stay
            np.testing.assert_array_equal(y, x + b)
            np.testing.assert_array_equal(z, -x)
        with self.assertRaisesRegex(ptc.Error, "x"):
            loaded(np.zeros((2, 4), np.float32), b)
        np.testing.assert_array_equal(loaded(x=x, b=b)["y"], x + b)

    def test_more_shapes_than_are_kept(self):
        loaded = ptc.load(self.compile(scaled_sum()))
        b = np.ones(3, np.float32)
        for rows in [*range(1, 80), *range(1, 80)]:
            x = np.full((rows, 3), rows, np.float32)
            np.testing.assert_array_equal(loaded(x, b)["y"], x + b)

    def test_large_outputs_begin_with_a_line_of_the_cache(self):
        loaded = ptc.load(self.compile(scaled_sum()))
        b = np.ones(3, np.float32)
        for rows in (1, 5000, 100000):
            x = np.ones((rows, 3), np.float32)
            for outputs in (loaded(x, b), loaded.prepare(x, b)()):
                y = outputs["y"]
                self.assertTrue(y.flags.c_contiguous and y.flags.writeable)
                self.assertTrue(rows == 1 or y.ctypes.data % 64 == 0)
                np.testing.assert_array_equal(y, x + b)

    def test_shapes_that_each_run_finds(self):
        nodes = [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Neg", ["x"], ["z"])]
        loaded = ptc.load(self.compile(model(nodes, [value("x", [6])], [value("i", [1, "k"], TensorProto.INT64), value("z", [6])])))
        kept = []
        for mask in (0b101101, 0, 0b111111, 0b000010):
            x = np.array([mask >> place & 1 for place in range(6)], np.float32)
            kept.append((x, loaded(x)))
        for x, outputs in kept:
            self.assertEqual(list(outputs), ["i", "z"])
            np.testing.assert_array_equal(outputs["i"], np.array(np.nonzero(x)))
            np.testing.assert_array_equal(outputs["z"], -x)

    def test_wrong_arguments_are_type_errors(self):
        loaded = ptc.load(self.compile(scaled_sum()))
        x, b = np.zeros((2, 3), np.float32), np.zeros(3, np.float32)
        for call in (lambda: loaded(x), lambda: loaded(x, b, b), lambda: loaded(x, c=b), lambda: loaded(x, x=x, b=b),
                     lambda: loaded(x.astype(np.float64), b)):
            self.assertRaises(TypeError, call)

    def test_wrong_dims_are_errors_of_the_library(self):
        loaded = ptc.load(self.compile(scaled_sum(), "--dim", "n=1..8:2"))
        b = np.zeros(3, np.float32)
        with self.assertRaisesRegex(ptc.Error, "x") as caught:
            loaded(np.zeros((2, 4), np.float32), b)
        self.assertEqual(caught.exception.status, 3)
        with self.assertRaisesRegex(ptc.Error, "n") as caught:
            loaded(np.zeros((9, 3), np.float32), b)
        self.assertIn(caught.exception.status, (3, 4))

    def test_a_closed_model_refuses_every_call(self):
        loaded = ptc.load(self.compile(scaled_sum()))
        x, b = np.zeros((2, 3), np.float32), np.zeros(3, np.float32)
        prepared = loaded.prepare(x, b)
        loaded(x, b)
        loaded.close()
        loaded.close()
        for call in (lambda: loaded(x, b), prepared, lambda: loaded.prepare(x, b), lambda: loaded.workspace_size(x, b),
                     lambda: loaded.set_weight("b", b), lambda: loaded.threads, lambda: loaded.cpu_level):
            self.assertRaisesRegex(ValueError, "closed", call)

    def test_another_kind_of_library_is_refused(self):
        with self.assertRaisesRegex(ValueError, "is no library of a model"):
            ptc.load(ml_dtypes._ml_dtypes_ext.__file__)

    def test_spans_of_a_profiled_model(self):
        loaded = ptc.load(self.compile(scaled_sum()), threads=1, profile=100)
        x, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
        for expected in (2, 1):
            for _ in range(expected):
                loaded(x, b)
            spans = loaded.take_spans()
            self.assertEqual([span.kind for span in spans].count("run"), expected)
        launch = next(span for span in spans if span.kind == "launch")
        self.assertTrue(launch.kernel and launch.nodes and launch.begin_ns <= launch.end_ns <= spans[-1].end_ns)
        self.assertEqual((spans[-1].kind, spans[-1].kernel, loaded.take_spans()), ("run", None, []))

    def test_unknown_level_and_missing_file(self):
        library = self.compile(scaled_sum())
        self.assertRaises(ptc.Error, ptc.load, library, cpu_level="x86-64-v9")
        self.assertRaises(OSError, ptc.load, self.folder / "none.so")

    def test_alias_pairs_copy_the_state(self):
        add = model([helper.make_node("Add", ["state", "x"], ["next"])], [value("state", [4]), value("x", [4])],
                    [value("next", [4])])
        loaded = ptc.load(self.compile(add, "--alias", "state=next"))
        state, x = np.zeros(4, np.float32), np.ones(4, np.float32)
        np.testing.assert_array_equal(loaded(state, x)["next"], x)
        np.testing.assert_array_equal(state, np.zeros(4))
        run = loaded.prepare(state, x)
        run()
        np.testing.assert_array_equal(run()["next"], 2 * x)  # goes on from its last state

    def test_a_prepared_run_reads_inputs_where_they_are(self):
        loaded = ptc.load(self.compile(scaled_sum()))
        wide, b = np.arange(12, dtype=np.float32).reshape(2, 6), np.ones(3, np.float32)
        dense, turned = np.ascontiguousarray(wide[:, :3]), wide[:, ::2]
        in_place, copied = loaded.prepare(dense, b), loaded.prepare(turned, b)
        before = turned.copy()
        dense += 5
        wide += 5
        np.testing.assert_array_equal(in_place()["z"], -dense)
        np.testing.assert_array_equal(copied()["z"], -before)
        b += 1
        outputs = in_place()
        np.testing.assert_array_equal(outputs["y"], dense + b)
        self.assertIs(in_place(), outputs)

    def test_a_prepared_run_of_an_earlier_compilers_library(self):
        loaded = ptc.load(self.compile(scaled_sum()))
        x, b = np.ones((2, 3), np.float32), np.zeros(3, np.float32)
        now = loaded.prepare(x, b)
        loaded._table = _abi.ModelTable.from_buffer_copy(loaded._table)
        loaded._table.struct_size = _abi.ModelTable.run_call.offset
        loaded._table.run_call = type(loaded._table.run_call)()  # not there
        _abi.check(loaded._table)
        before = loaded.prepare(x, b)
        for run in (now, before):
            np.testing.assert_array_equal(run()["z"], -x)
        loaded._table.struct_size -= 1
        self.assertRaises(ImportError, _abi.check, loaded._table)

    def test_prepared_runs_give_their_contexts_back(self):
        loaded = ptc.load(self.compile(scaled_sum(), "--dim", "n=1..8:2"))
        b = np.zeros(3, np.float32)
        for _ in range(3):
            loaded.prepare(np.ones((2, 3), np.float32), b)()
            self.assertRaises(ptc.Error, loaded.prepare, np.ones((9, 3), np.float32), b)
        self.assertEqual(len(loaded._contexts), 1)
        both = [loaded.prepare(np.full((2, 3), n, np.float32), b) for n in (1, 2)]
        self.assertEqual([run()["z"][0, 0] for run in both], [-1, -2])
        self.assertEqual((len(loaded._contexts), loaded._idle), (2, []))

    def test_calls_at_once(self):
        loaded = ptc.load(self.compile(scaled_sum()), threads=1)
        b = np.zeros(3, np.float32)
        wrong = []

        def work(seed):
            x = np.random.default_rng(seed).standard_normal((50, 3), np.float32)
            for _ in range(50):
                if not np.array_equal(loaded(x, b)["z"], -x):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_output_shapes_without_a_run(self):
        loaded = ptc.load(self.compile(scaled_sum(), "--dim", "n=1..8:2"))
        x, b = np.zeros((5, 3), np.float32), np.zeros(3, np.float32)
        self.assertEqual(loaded.output_shapes(x, b), {"y": (5, 3), "z": (5, 3)})
        self.assertEqual(loaded.output_shapes(b=b, x=x[:2]), {"y": (2, 3), "z": (2, 3)})
        with self.assertRaisesRegex(ptc.Error, "n"):
            loaded.output_shapes(np.zeros((9, 3), np.float32), b)
        loaded.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            loaded.output_shapes(x, b)

    def test_output_shapes_that_a_run_finds(self):
        nodes = [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("SequenceConstruct", ["x", "x"], ["all"])]
        many = helper.make_value_info("all", helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)))
        loaded = ptc.load(self.compile(model(nodes, [value("x", ["n", 3])], [value("at", [2, "k"], TensorProto.INT64), many])))
        self.assertEqual(loaded.output_shapes(np.ones((5, 3), np.float32)), {"at": (2, 15), "all": None})

    def test_large_results_that_a_run_finds_keep_their_values(self):
        nodes = [helper.make_node("NonZero", ["x"], ["at"])]
        loaded = ptc.load(self.compile(model(nodes, [value("x", ["n", 100])], [value("at", [2, "k"], TensorProto.INT64)])))
        x = (np.arange(20000).reshape(200, 100) % 3).astype(np.float32)
        run = loaded.prepare(x)
        first, again = run()["at"], loaded(1 - x)["at"]
        x[:] = 0
        x[7, 9] = 1
        np.testing.assert_array_equal(run()["at"], [[7], [9]])
        x[:] = 1
        self.assertEqual(run()["at"].shape, (2, 20000))
        loaded.close()
        rest = np.arange(20000).reshape(200, 100) % 3
        np.testing.assert_array_equal(first, np.nonzero(rest))
        np.testing.assert_array_equal(again, np.nonzero(1 - rest))
        first[:] = 0  # its own

    def test_workspace(self):
        loaded = ptc.load(self.compile(scaled_sum()))
        self.assertGreaterEqual(loaded.workspace_size(np.zeros((2, 3), np.float32), np.zeros(3, np.float32)), 0)

    def test_types_that_numpy_lacks(self):
        for name in ("bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "int4", "uint4", "float4_e2m1fn"):
            with self.subTest(name):
                numpy_type = np.dtype(getattr(ml_dtypes, name))
                kind = helper.np_dtype_to_tensor_dtype(numpy_type)
                turn = model([helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])], [value("x", [3, 5], kind)],
                             [value("y", [5, 3], kind)], opset=24)
                loaded = ptc.load(self.compile(turn, name=name))
                x = np.arange(15).astype(np.uint8).reshape(3, 5) % 8
                x = x.astype(np.int32).astype(numpy_type)
                y = loaded(x)["y"]
                self.assertEqual(y.dtype, numpy_type)
                np.testing.assert_array_equal(y.astype(np.float32), x.T.astype(np.float32))
                np.testing.assert_array_equal(loaded.prepare(x)()["y"].astype(np.float32), x.T.astype(np.float32))

    def test_floats_of_six_bits(self):
        for name in ("float6_e2m3fn", "float6_e3m2fn"):
            with self.subTest(name):
                numpy_type = np.dtype(getattr(ml_dtypes, name))
                kind = helper.np_dtype_to_tensor_dtype(numpy_type)
                nodes = [helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT), helper.make_node("Mul", ["wide", "factor"], ["more"]),
                         helper.make_node("Cast", ["more"], ["y"], to=kind), helper.make_node("Cast", ["w"], ["z"], to=TensorProto.FLOAT)]
                every = np.arange(64, dtype=np.uint8).view(numpy_type)
                x = np.concatenate([every, every[:7]])  # 71: the last byte is part filled
                loaded = ptc.load(self.compile(model(nodes, [value("x", ["n"], kind)], [value("y", ["n"], kind), value("z", [71])],
                                                     {"factor": np.float32(1.3), "w": x}, opset=28), "--dim", "n=0..100", name=name))
                got = loaded(x)
                want = (x.astype(np.float32) * np.float32(1.3)).astype(numpy_type)
                self.assertEqual(got["y"].tobytes(), want.tobytes())
                np.testing.assert_array_equal(got["z"], x.astype(np.float32))

    def test_half_and_bool(self):
        equal = model([helper.make_node("Equal", ["x", "y"], ["z"])],
                      [value("x", [7], TensorProto.FLOAT16), value("y", [7], TensorProto.FLOAT16)],
                      [value("z", [7], TensorProto.BOOL)])
        loaded = ptc.load(self.compile(equal))
        x = np.arange(7).astype(np.float16)
        np.testing.assert_array_equal(loaded(x, np.full(7, 3, np.float16))["z"], x == 3)
