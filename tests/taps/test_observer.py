"""What an observer is shown."""

import json
import tempfile
import unittest
from pathlib import Path

import models
import numpy as np
import ptc


class Observer(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def compile(self, model, *options, name="model"):
        path = models.write(model, self.folder / f"{name}.onnx")
        library = self.folder / f"{name}.so"
        models.ptc("compile", path, "-o", library, *options)
        return library

    def taps(self, library, **inputs):
        seen = []
        outputs = ptc.load(library, tap=seen.append)(**inputs)
        return {tap.output: tap for tap in seen}, outputs

    def test_values_are_those_of_numpy(self):
        library = self.compile(models.layers(3), "--tap", "all")
        x = np.random.default_rng(0).standard_normal((5, 32), np.float32)
        weights = {w.name: models.numpy_helper.to_array(w) for w in models.layers(3).graph.initializer}
        seen, _ = self.taps(library, x=x)
        for i in range(3):
            x = x @ weights[f"w{i}"]
            np.testing.assert_allclose(seen[f"p{i}"].array, x, rtol=1e-4, atol=1e-5)
            x = x + weights[f"b{i}"]
            np.testing.assert_allclose(seen[f"s{i}"].array, x, rtol=1e-4, atol=1e-5)
            x = np.tanh(x)
            np.testing.assert_allclose(seen[f"h{i}"].array, x, rtol=1e-4, atol=1e-5)
        self.assertEqual(seen["s1"].node, "layer1/bias")
        self.assertEqual(seen["s1"].op, "Add")
        self.assertIn("layer1/bias", seen["s1"].nodes)
        self.assertNotEqual(seen["s0"].launch, seen["s1"].launch)
        self.assertEqual([seen[f"{v}{i}"].number for i in range(3) for v in "psh"], list(range(9)))

    def test_views_are_strided(self):
        library = self.compile(models.attention(), "--tap", "all")
        x = np.random.default_rng(0).standard_normal((2, 7, 16), np.float32)
        seen, outputs = self.taps(library, x=x)
        split = seen["k0"].array.reshape(2, 7, 2, 8)
        np.testing.assert_array_equal(seen["k1"].array, split)
        np.testing.assert_array_equal(seen["k2"].array, split.transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(seen["o2"].array, seen["o0"].array.transpose(0, 2, 1, 3).reshape(2, 7, 16))
        np.testing.assert_array_equal(seen["y"].array, outputs["y"])
        self.assertNotIn("s2", seen, "attention is one kernel")

    def test_a_named_value_inside_attention_is_computed(self):
        library = self.compile(models.attention(), "--tap", "weights")
        seen, _ = self.taps(library, x=np.ones((1, 4, 16), np.float32))
        self.assertEqual(list(seen), ["s2"])
        np.testing.assert_allclose(seen["s2"].array.sum(-1), 1, rtol=1e-5)

    def test_narrow_types_and_reversed_slices(self):
        library = self.compile(models.narrow(), "--tap", "all")
        x = np.arange(18, dtype=np.float32).reshape(3, 6) / 4
        seen, _ = self.taps(library, x=x)
        self.assertEqual(seen["half"].array.dtype, np.float16)
        np.testing.assert_array_equal(seen["q"].array, (x * 4 + 128).astype(np.uint8))
        np.testing.assert_array_equal(seen["back"].array, x[:, ::-1])
        np.testing.assert_array_equal(seen["large"].array, x[[2, 0, 0, 1]][:, ::-1] > 0.25)

    def test_the_branch_that_runs_and_every_round_are_shown(self):
        path = models.write(models.branches(), self.folder / "branches.onnx")
        models.ptc("compile", path, "-o", self.folder / "branches.so", "--tap", "all")
        seen = []
        ptc.load(self.folder / "branches.so", tap=seen.append)(x=np.ones(4, np.float32))
        rounds = [tap.array[0] for tap in sorted(seen, key=lambda tap: tap.number) if tap.output == "next"]
        np.testing.assert_allclose(rounds, np.e * np.array([2, 4, 8]), rtol=1e-5)
        self.assertIn("t", [tap.output for tap in seen])
        self.assertNotIn("n", [tap.output for tap in seen])

    def test_results_are_the_same_bits_and_nothing_is_shown_without_observer(self):
        for name, model, shape in [("a", models.convolutions(), (1, 3, 12, 12)), ("b", models.layers(4), (3, 32))]:
            x = np.random.default_rng(0).standard_normal(shape, np.float32)
            plain = ptc.load(self.compile(model, name=name))(x=x)
            tapped = self.compile(model, "--tap", "all", name=name + "-tapped")
            for outputs in (ptc.load(tapped)(x=x), self.taps(tapped, x=x)[1]):
                for key in plain:
                    np.testing.assert_array_equal(plain[key], outputs[key])

    def test_a_tapped_value_lives_no_longer_than_it_is_looked_at(self):
        library = self.compile(models.layers(12), "--tap", "all", "--dim", "batch=64")
        peak = json.loads(library.with_suffix(".json").read_text())["memory"][0]["peak"]["at_hint"]
        self.assertLessEqual(peak, 5 * 64 * 32 * 4)

    def test_names_patterns_and_mistakes(self):
        seen, _ = self.taps(self.compile(models.layers(3), "--tap", "layer1/*", "--tap", "p2"), x=np.ones((1, 32), "f"))
        self.assertEqual(sorted(seen), ["h1", "p1", "p2", "s1"])
        path = models.write(models.layers(3), self.folder / "model.onnx")
        report = models.ptc("compile", path, "-o", self.folder / "x.so", "--tap", "layer1/tahn", code=2)
        self.assertIn("did you mean 'layer1/tanh'?", report)
        for far in ("x", "another name altogether"):
            report = models.ptc("compile", path, "-o", self.folder / "x.so", "--tap", far, code=2)
            self.assertIn("`ptc inspect MODEL.onnx` lists the nodes", report)

    def test_run_writes_files(self):
        library = self.compile(models.layers(2), "--tap", "all")
        models.ptc("run", library, "-i", "x=ones", "--tap-dir", self.folder / "taps")
        self.assertEqual(sorted(p.name for p in (self.folder / "taps").iterdir()),
                         [f"{v}{i}.npy" for v in "hps" for i in range(2)])
        x = np.load(self.folder / "taps" / "s1.npy")
        np.testing.assert_allclose(np.load(self.folder / "taps" / "h1.npy"), np.tanh(x), rtol=1e-5)
        plain = self.compile(models.layers(2), name="plain")
        report = models.ptc("run", plain, "-i", "x=ones", "--tap-dir", self.folder / "none", code=2)
        self.assertIn("--tap", report)

    def test_no_file_is_written_over_another(self):
        library = self.compile(models.chain("v/a", "v_a", "v_a.1"), "--tap", "all")
        models.ptc("run", library, "-i", "x=ones", "--tap-dir", self.folder / "taps")
        first = [np.load(path).flat[0] for path in (self.folder / "taps").iterdir()]
        np.testing.assert_allclose(sorted(first), [np.tanh(1), np.tanh(np.tanh(1)), np.tanh(np.tanh(np.tanh(1)))][::-1], rtol=1e-4)
