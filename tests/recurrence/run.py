"""LSTM, GRU, RNN and loops like them in compiled libraries against onnxruntime; see README.md."""

import json
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "python"), str(Path(__file__).resolve().parent)]
import models  # noqa: E402
import ptc  # noqa: E402
import unittests  # noqa: E402

SIZES = [(1, 1), (2, 3), (7, 1), (5, 9), (33, 2)]
LBR = "linear_before_reset"
TWO = {"direction": "bidirectional"}

CASES = {
    "lstm": dict(op="LSTM"),
    "lstm_wide": dict(op="LSTM", features=40, hidden=100, scale=0.1),
    "lstm_tiny": dict(op="LSTM", features=1, hidden=1),
    "lstm_no_bias": dict(op="LSTM", bias=False, hidden=17),
    "lstm_peepholes": dict(op="LSTM", peepholes=True, initial=True),
    "lstm_clip_coupled": dict(op="LSTM", clip=0.3, input_forget=1, hidden=9),
    "lstm_lengths": dict(op="LSTM", lengths=True, initial=True),
    "lstm_reverse": dict(op="LSTM", direction="reverse", initial=True),
    "lstm_reverse_lengths": dict(op="LSTM", direction="reverse", lengths=True),
    "lstm_both": dict(op="LSTM", hidden=16, initial=True, **TWO),
    "lstm_both_lengths": dict(op="LSTM", lengths=True, initial=True, peepholes=True, **TWO),
    "lstm_activations": dict(op="LSTM", activations=["HardSigmoid", "Softsign", "Relu"]),
    "gru": dict(op="GRU"),
    "gru_wide": dict(op="GRU", features=30, hidden=70, scale=0.1),
    "gru_linear_first": dict(op="GRU", initial=True, hidden=12, **{LBR: 1}),
    "gru_lengths": dict(op="GRU", lengths=True, initial=True),
    "gru_both": dict(op="GRU", hidden=16, initial=True, **TWO, **{LBR: 1}),
    "gru_both_lengths": dict(op="GRU", lengths=True, **TWO),
    "gru_activations": dict(op="GRU", activations=["HardSigmoid", "Softsign"], activation_alpha=[0.3], activation_beta=[0.4]),
    "rnn": dict(op="RNN", hidden=33, scale=0.15),
    "rnn_reverse": dict(op="RNN", direction="reverse", initial=True),
    "rnn_both_lengths": dict(op="RNN", lengths=True, initial=True, **TWO),
    "rnn_both_parameters": dict(op="RNN", activations=["LeakyRelu", "HardSigmoid"], activation_alpha=[0.03, 0.3], activation_beta=[0.6], **TWO),
    "rnn_leaky": dict(op="RNN", activations=["LeakyRelu"], activation_alpha=[0.2], clip=1.5),
}


class RecurrenceTest(unittest.TestCase):
    def compile(self, model, *flags):
        """Two contexts, of one thread and two, and the kernels by the manifest."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "m.onnx"
        onnx.save(model, path)
        command = [self.program, "compile", path, "-o", path.with_suffix(".so"), "-q", *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        kernels = json.loads(path.with_suffix(".json").read_text())["kernels"]
        return [ptc.load(path.with_suffix(".so"), threads=n) for n in (1, 2)], kernels

    def check_one_kernel(self, kernels):
        launches = [kernel["launches"] for kernel in kernels if kernel["kind"] == "recurrence"]
        self.assertEqual(launches, [1], [(kernel["kind"], kernel["name"]) for kernel in kernels])

    def run_both(self, libraries, inputs):
        one, two = (library(**inputs) for library in libraries)
        for name in one:
            self.assertEqual(one[name].tobytes(), two[name].tobytes(), f"{name}: one thread and two differ")
        return one

    def check_against(self, model, libraries, inputs):
        session = onnxruntime.InferenceSession(model.SerializeToString())
        found = self.run_both(libraries, inputs)
        for output, expected in zip(session.get_outputs(), session.run(None, inputs)):
            with self.subTest(output=output.name, shapes={k: v.shape for k, v in inputs.items()}):
                self.assertEqual(found[output.name].shape, expected.shape)
                np.testing.assert_allclose(found[output.name], expected, rtol=1e-4, atol=1e-5)

    def check_case(self, name, row):
        model = models.recurrent(seed=zlib.crc32(name.encode()), **row)
        rng = np.random.default_rng(1)
        libraries, kernels = self.compile(model)
        self.check_one_kernel(kernels)
        for time, batch in SIZES:
            self.check_against(model, libraries, models.feeds(model, time, batch, rng))

    def test_layout(self):
        """onnxruntime has no batch-first layout: the same operator with time first says what is right."""
        for op in models.GATES:
            row = dict(op=op, direction="bidirectional", initial=True, seed=3)
            first, second = models.recurrent(layout=1, **row), models.recurrent(**row)
            libraries, kernels = self.compile(first)
            self.check_one_kernel(kernels)
            inputs = models.feeds(first, 6, 3, np.random.default_rng(2))
            found = self.run_both(libraries, inputs)
            turned = {name: np.ascontiguousarray(value.swapaxes(0, 1)) for name, value in inputs.items()}
            session = onnxruntime.InferenceSession(second.SerializeToString())
            for output, expected in zip(session.get_outputs(), session.run(None, turned)):
                expected = expected.transpose(2, 0, 1, 3) if expected.ndim == 4 else expected.swapaxes(0, 1)
                np.testing.assert_allclose(found[output.name], expected, rtol=1e-4, atol=1e-5)

    def test_no_steps(self):
        """Without a step the state is what it was at first."""
        for op in models.GATES:
            for initial in (True, False):
                model = models.recurrent(op, initial=initial, direction="bidirectional")
                libraries, _ = self.compile(model, "--dim=time=0..100")
                inputs = models.feeds(model, 0, 3, np.random.default_rng(4))
                found = self.run_both(libraries, inputs)
                self.assertEqual(found["y"].shape, (0, 2, 3, 8))
                for state in ("h", "c")[: 2 if op == "LSTM" else 1]:
                    np.testing.assert_array_equal(found[state], inputs.get(state + "0", np.zeros((2, 3, 8))))

    def test_no_samples(self):
        model = models.recurrent("LSTM", initial=True)
        libraries, _ = self.compile(model, "--dim=batch=0..100")
        found = self.run_both(libraries, models.feeds(model, 4, 0, np.random.default_rng(4)))
        self.assertEqual(found["y"].shape, (4, 1, 0, 8))

    def test_lengths_of_zero(self):
        """A sample without elements yields zeros and keeps its state, which onnxruntime puts to 0 and ONNX says nothing of; the
        others do not notice."""
        for direction in ("forward", "reverse", "bidirectional"):
            model = models.recurrent("LSTM", lengths=True, initial=True, direction=direction)
            libraries, _ = self.compile(model)
            rng = np.random.default_rng(5)
            inputs = models.feeds(model, 5, 3, rng, lengths=[5, 0, 2])
            found = self.run_both(libraries, inputs)
            np.testing.assert_array_equal(found["y"][:, :, 1], 0)
            for state in ("h", "c"):
                np.testing.assert_array_equal(found[state][:, 1], inputs[state + "0"][:, 1])
            session = onnxruntime.InferenceSession(model.SerializeToString())
            kept = {"x": inputs["x"][:, ::2], "lengths": inputs["lengths"][::2], "h0": inputs["h0"][:, ::2], "c0": inputs["c0"][:, ::2]}
            expected = session.run(["y"], {name: np.ascontiguousarray(value) for name, value in kept.items()})[0]
            np.testing.assert_allclose(found["y"][:, :, ::2], expected, rtol=1e-4, atol=1e-5)

    def test_known_sizes(self):
        model = models.recurrent("LSTM", features=24, hidden=48, scale=0.2, direction="bidirectional")
        libraries, kernels = self.compile(model, "--dim=time=11", "--dim=batch=1")
        self.check_one_kernel(kernels)
        self.check_against(model, libraries, models.feeds(model, 11, 1, np.random.default_rng(6)))

    def test_long_and_large(self):
        """Enough work in a step for two threads."""
        model = models.recurrent("LSTM", features=64, hidden=512, scale=0.05)
        libraries, kernels = self.compile(model)
        self.check_one_kernel(kernels)
        for time, batch in [(3, 1), (40, 4)]:
            self.check_against(model, libraries, models.feeds(model, time, batch, np.random.default_rng(7)))

    def check_by_hand(self, text, shapes):
        model = models.by_hand(text)
        libraries, kernels = self.compile(model)
        self.check_one_kernel(kernels)
        rng = np.random.default_rng(8)
        for sizes in shapes:
            inputs = {}
            for value in model.graph.input:
                dims = [sizes.get(d.dim_param, d.dim_value) for d in value.type.tensor_type.shape.dim]
                inputs[value.name] = (rng.standard_normal(dims) * 0.5).astype(np.float32)
            self.check_against(model, libraries, inputs)

    def test_gru_as_scan(self):
        self.check_by_hand(models.GRU_AS_SCAN, [{"time": t, "batch": b} for t, b in SIZES])

    def test_filter_as_loop(self):
        self.check_by_hand(models.FILTER_AS_LOOP, [{"time": t, "width": w} for t, w in [(1, 1), (6, 33), (100, 3)]])

    def test_rows_as_scan(self):
        self.check_by_hand(models.ROWS_AS_SCAN, [{"time": t, "batch": b} for t, b in SIZES])


for case, settings in CASES.items():
    setattr(RecurrenceTest, f"test_{case}", lambda self, name=case, row=settings: self.check_case(name, row))


if __name__ == "__main__":
    sys.exit(unittests.run_class(RecurrenceTest, __doc__))
