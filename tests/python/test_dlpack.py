"""Tensors of other libraries go in through DLPack, in place where their layout allows it; outputs come out as exporters."""

import gc
import weakref

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import TensorProto, helper
from ptc import _dlpack


class Tensor:
    """A tensor of another library, as far as DLPack shows it."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.array.__dlpack__()


class Convertible(Tensor):
    """A tensor of a library that converts to arrays itself, torch's way: not where it cannot show its memory."""

    conversions = 0

    def __array__(self, *unused, **options):
        self.conversions += 1
        if self.device[0] != 1:
            raise AssertionError("a copy from a device that nobody asked for")
        if self.array.dtype == np.float64:
            raise TypeError("an element type that arrays do not have")
        return self.array


class Owned(np.ndarray):
    """An array that can be referred to weakly."""


class DlpackTest(ModelTest):
    def double(self, kind=TensorProto.FLOAT):
        proto = model([helper.make_node("Add", ["x", "x"], ["y"])], [value("x", ["n", 3], kind)], [value("y", ["n", 3], kind)])
        return ptc.load(self.compile(proto))

    def test_memory_is_read_in_place(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        seen = _dlpack.to_array(Tensor(array), "input 'x'")
        self.assertEqual(seen.ctypes.data, array.ctypes.data)
        self.assertFalse(seen.flags.writeable)
        np.testing.assert_array_equal(self.double()(Tensor(array))["y"], 2 * array)

    def test_strides_offsets_and_empty_tensors(self):
        double, whole = self.double(), np.arange(48, dtype=np.float32).reshape(6, 8)
        for array in (whole.T[2:5].T, whole[::2, 1:7:2], whole[:, 2:5], whole[::-1, 2::-1]):
            np.testing.assert_array_equal(double(Tensor(array))["y"], 2 * array)
        self.assertEqual(_dlpack.to_array(Tensor(whole[:0]), "input 'x'").shape, (0, 8))

    def test_read_only_arrays(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        array.flags.writeable = False
        np.testing.assert_array_equal(self.double()(array)["y"], 2 * array)

    def test_types_are_checked(self):
        with self.assertRaisesRegex(TypeError, "input 'x' must be an array of float32, not float64"):
            self.double()(Tensor(np.zeros((2, 3))))

    def test_a_conversion_of_its_own_is_used_where_it_serves(self):
        double, array = self.double(), np.arange(6, dtype=np.float32).reshape(2, 3)
        for tensor in (Convertible(array), Convertible(array[:, ::-1])):  # the second is not dense
            for outputs in (double(tensor), double.run({"x": tensor})):
                np.testing.assert_array_equal(outputs["y"], 2 * tensor.array)
            self.assertEqual(tensor.conversions, 2)
        with self.assertRaisesRegex(TypeError, "input 'x' must be an array of float32, not float64"):
            double(Convertible(np.zeros((2, 3))))
        with self.assertRaisesRegex(TypeError, "input 'x' is in the memory of CUDA, number 1"):
            double(Convertible(array, device=(2, 1)))

    def test_other_devices_are_refused(self):
        with self.assertRaisesRegex(TypeError, "input 'x' is in the memory of CUDA, number 1; the model runs on the CPU"):
            self.double()(Tensor(np.zeros((2, 3), np.float32), device=(2, 1)))

    def test_outputs_export(self):
        array = np.ones((2, 3), np.float32)
        output = self.double()(Tensor(array))["y"]
        shared = np.from_dlpack(output)
        self.assertEqual(shared.ctypes.data, output.ctypes.data)

    def test_the_exporter_is_released(self):
        array = np.zeros(100, np.float32).view(Owned)
        gone = weakref.ref(array)
        seen = _dlpack.to_array(Tensor(array), "input 'x'")
        part = seen[10:20]
        del array, seen
        gc.collect()
        self.assertIsNotNone(gone())
        del part
        gc.collect()
        self.assertIsNone(gone())

    def test_outputs_of_the_caller(self):
        double, array = self.double(), np.arange(6, dtype=np.float32).reshape(2, 3)
        for target in (np.zeros((2, 3), np.float32), Tensor(np.zeros((2, 3), np.float32))):
            results = double.run({"x": Tensor(array)}, {"y": target})
            self.assertIs(results["y"], target)
            np.testing.assert_array_equal(getattr(target, "array", target), 2 * array)
        np.testing.assert_array_equal(double.run({"x": array})["y"], 2 * array)

    def test_outputs_that_do_not_fit_are_refused(self):
        double, array, right = self.double(), np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
        frozen = right.copy()
        frozen.flags.writeable = False
        for target in (right.astype(np.float64), right.T.copy().T, frozen):
            with self.assertRaisesRegex(TypeError, "output 'y' must be a dense writable array of float32"):
                double.run({"x": array}, {"y": target})
        with self.assertRaisesRegex(ptc.Error, "output 'y' dim 0 is 3, not 2"):
            double.run({"x": array}, {"y": np.zeros((3, 3), np.float32)})
        with self.assertRaisesRegex(TypeError, "'main' has no output 'z'; it has y"):
            double.run({"x": array}, {"z": right})
        with self.assertRaisesRegex(TypeError, "a stream is of a model on a GPU"):
            double.run({"x": array}, stream=7)

    def test_outputs_that_the_run_makes_are_its_own(self):
        proto = model([helper.make_node("NonZero", ["x"], ["i"])], [value("x", ["n"])], [value("i", [1, "k"], TensorProto.INT64)])
        find = ptc.load(self.compile(proto))
        self.assertEqual(find.run({"x": np.float32([0, 2])})["i"].tolist(), [[1]])
        with self.assertRaisesRegex(TypeError, "output 'i' .int64. is made by the run"):
            find.run({"x": np.float32([0, 2])}, {"i": np.zeros((1, 1), np.int64)})

    def test_state_is_updated_in_place_where_that_is_asked_for(self):
        proto = model([helper.make_node("Add", ["x", "s"], ["t"])], [value("x", [3]), value("s", [3])], [value("t", [3])])
        add, x, state = ptc.load(self.compile(proto, "--alias", "s=t")), np.ones(3, np.float32), np.ones(3, np.float32)
        self.assertIs(add.run({"x": x, "s": state}, {"t": state})["t"], state)
        np.testing.assert_array_equal(state, [2, 2, 2])
        np.testing.assert_array_equal(add.run({"x": x, "s": state})["t"], [3, 3, 3])
        np.testing.assert_array_equal(state, [2, 2, 2])
        with self.assertRaisesRegex(TypeError, "output 't' shares the buffer of an input"):
            add.run({"x": x, "s": state}, {"t": x})

    def test_aliases_are_copied(self):
        proto = model([helper.make_node("Add", ["x", "s"], ["t"])], [value("x", [3]), value("s", [3])], [value("t", [3])])
        add = ptc.load(self.compile(proto, "--alias", "s=t"))
        state = np.ones(3, np.float32)
        np.testing.assert_array_equal(add(np.ones(3, np.float32), Tensor(state))["t"], [2, 2, 2])
        np.testing.assert_array_equal(state, [1, 1, 1])
