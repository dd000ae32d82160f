"""ptc verify --per-node."""

import re
import tempfile
import unittest
from pathlib import Path

import models


class PerNode(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def write(self, name, model):
        return models.write(model, self.folder / f"{name}.onnx")

    def planted(self, right, wrong, *options):
        """The report on a library of `wrong`, verified against the graph of `right`."""
        library = self.folder / "wrong.so"
        models.ptc("compile", self.write("wrong", wrong), "-o", library, "--tap", "all", *options)
        return models.ptc("verify", library, "--per-node", "--against", self.write("right", right), code=1)

    def agrees(self, model, *options):
        return models.ptc("verify", self.write("model", model), "--per-node", *options)

    def test_wrong_node_in_a_fused_kernel_is_named(self):
        for node, op, value in [("relu1", "LeakyRelu", "r1"), ("conv2", "Conv", "c2"), ("relu2", "LeakyRelu", "r2")]:
            report = self.planted(models.convolutions(), models.convolutions(wrong=node))
            self.assertIn(f"first node that differs: node '{node}' ({op} → {value})", report)
            self.assertRegex(report, r"at \[0, \d+, \d+, \d+\]: ")
            kernel = re.search(r"kernel (\w+), launch \d+, of (.*)", report)
            self.assertIn(node, kernel[2].split(", "))
            self.assertGreater(len(kernel[2].split(", ")), 1, "the node stands in a kernel with others")
            self.assertNotIn("later value", report, "what follows is right, given what it reads")
            self.assertIn("1 of 10 values differ", report)

    def test_wrong_layer_among_equal_ones_is_named(self):
        report = self.planted(models.layers(), models.layers(wrong=7))
        self.assertIn("node 'layer7/bias' (Add → s7)", report)
        launches = set()
        for layer in (3, 7):
            report = self.planted(models.layers(), models.layers(wrong=layer))
            launches.add(re.search(r"kernel (\w+), launch (\d+)", report).groups())
        kernels = {kernel for kernel, _ in launches}
        self.assertEqual((len(kernels), len(launches)), (1, 2), "one kernel, two launches")

    def test_two_faults_are_two(self):
        wrong = models.layers(wrong=3)
        for weight in wrong.graph.initializer:
            if weight.name == "w9":
                weight.CopyFrom(models.numpy_helper.from_array(models.numpy_helper.to_array(weight) * 1.5, "w9"))
        report = self.planted(models.layers(), wrong)
        self.assertIn("node 'layer3/bias'", report)
        self.assertIn("1 later value(s) differ too", report)

    def test_right_models_agree(self):
        self.assertIn("10 of 10 values compared, all agree", self.agrees(models.convolutions()))
        self.assertIn("36 of 36 values compared, all agree", self.agrees(models.layers(), "--at", "batch=5"))
        self.assertIn("all agree", self.agrees(models.narrow(), "--at", "n=3"))
        for value in (1, -1):
            npz = self.folder / "x.npz"
            models.np.savez(npz, x=models.np.full(4, value, models.np.float32))
            report = self.agrees(models.branches(), "-i", f"@{npz}")
            self.assertIn("all agree", report)
            self.assertIn(f"1 not compared, not shown by the library: '{'n' if value > 0 else 't'}'", report)

    def test_a_loop_is_compared_by_what_it_leaves(self):
        for count in ("ones", "zeros"):
            report = self.agrees(models.rounds(), "-i", f"count={count}")
            self.assertIn("2 of 5 values compared, all agree", report)
            self.assertIn("3 not compared, another value in each round of a loop, whose results are compared: 'product', 'next', 'still'", report)

    def test_all_levels_of_optimisation_agree(self):
        for options in (["-O0"], ["-O3"], ["--fp=strict"]):
            self.assertIn("all agree", self.agrees(models.convolutions(), *options))

    def test_attention_stays_a_kernel_and_its_inside_is_counted(self):
        report = self.agrees(models.attention(), "--at", "batch=2", "--at", "length=9")
        self.assertIn("all agree", report)
        self.assertRegex(report, r"3 not compared, .*: 's0', 's1', 's2'")
        self.assertIn("taps changed no kernel's nodes", report)

    def test_a_library_without_taps_is_refused(self):
        model = self.write("model", models.layers(2))
        models.ptc("compile", model, "-o", self.folder / "plain.so")
        report = models.ptc("verify", self.folder / "plain.so", "--per-node", "--against", model, code=2)
        self.assertIn("compile it with --tap all", report)
        report = models.ptc("verify", self.folder / "plain.so", "--per-node", code=2)
        self.assertIn("--against=MODEL.onnx", report)
