"""What is said where an operator of the user's own cannot be had, and where its library is looked for."""

import os
import shutil
import subprocess

import models
import numpy as np
import onnx
import ptc
from models import ModelTest, value
from onnx import TensorProto
from operators import DOMAIN, flags, library, model, node


def scale(**attributes):
    return model([node("Scale", ["x"], ["y"], **attributes)], [value("x", [4])], [value("y", [4])])


def nonsense(**attributes):
    return model([node("Nonsense", ["x"], ["y"], **attributes)], [value("x", ["n"])], [value("y", [None])])


class Refusals(ModelTest):
    def refused(self, proto, code, *expected, flags=()):
        onnx.save(proto, self.folder / "bad.onnx")
        done = subprocess.run([models.PTC, "compile", "bad.onnx", "-o", "bad.so", *flags], cwd=self.folder, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, code, done.stderr)
        for text in expected:
            self.assertIn(text, done.stderr)
        self.assertFalse((self.folder / "bad.so").exists())

    def test_an_unknown_operator_names_the_way_out(self):
        self.refused(scale(), 4, "PTC0301", "test.ops.Scale", f"--custom-op {DOMAIN}.Scale=LIBRARY:SYMBOL")

    def test_flags_that_say_too_little(self):
        for spec in ("Scale", f"{DOMAIN}.Scale=", f"{DOMAIN}.Scale=lib.so", f"{DOMAIN}.=lib.so:x", "=lib.so:x", ":",
                     f"{DOMAIN}.Scale=:x"):
            self.refused(scale(), 2, "--custom-op", "LIBRARY:SYMBOL", flags=[f"--custom-op={spec}"])
        self.refused(scale(), 2, "named twice", flags=[*flags("Scale"), *flags("Scale")])
        self.refused(scale(), 2, "PTC0801", f"{DOMAIN}.Shout", flags=flags("Scale", "Shout"))

    def test_libraries_that_do_not_fit(self):
        self.refused(scale(), 6, "cannot be opened", "nowhere.so", flags=flags("Scale", path="./nowhere.so"))
        self.refused(scale(), 6, "has no 'other'", flags=flags("Scale", Scale="other"))
        self.refused(scale(), 6, "version 1", flags=flags("Scale", Scale="newer_op"))
        libc = "libc.so.6"
        self.refused(scale(), 6, "is no ptc_custom_op", flags=flags("Scale", path=libc, Scale="strlen"))

    def test_infer_refuses_or_errs(self):
        integers = model([node("Scale", ["x"], ["y"])], [value("x", [4], TensorProto.INT32)],
                         [value("y", [4], TensorProto.INT32)])
        self.refused(integers, 4, "PTC0310", "my_scale", "Scale takes one tensor of float or double",
                     flags=flags("Scale"))
        for dim in ("m", "n +", "", "n / 2", "n + mod(n, 2 - n)", "floordiv(n, 0)", "n * 4611686018427387904 * 4", "9223372036854775807 + 1"):
            self.refused(nonsense(dim=dim), 4, "PTC0310", "no expression", flags=flags("Nonsense"))
        self.refused(nonsense(dim="0 - 3"), 4, "PTC0310", "which is negative", flags=flags("Nonsense"))
        self.refused(nonsense(dim="x" * 300), 4, "PTC0310", "more than 254 characters", flags=flags("Nonsense"))
        for dim in ("?", "<= n"):
            self.refused(nonsense(dim=dim), 4, "PTC0310", "no function `measure`", flags=flags("Nonsense"))
        self.refused(nonsense(crash=1), 4, "`infer` crashed", flags=flags("Nonsense"))

    def test_a_size_that_is_negative_at_run_time(self):
        loaded = ptc.load(self.compile(nonsense(dim="n - 3"), *flags("Nonsense")))
        with self.assertRaisesRegex(ptc.Error, "is needed, but"):
            loaded(np.zeros(1, np.float32))

    def test_a_size_above_64_bits_at_run_time(self):
        loaded = ptc.load(self.compile(nonsense(dim="n * n * n * n"), *flags("Nonsense")))
        self.assertEqual(loaded(np.zeros(1, np.float32))["y"].shape, (1,))
        with self.assertRaisesRegex(ptc.Error, "output 'y' is too large: the size of its dim 0 leaves 64 bits"):
            loaded(np.zeros(70000, np.float32))

    def test_failures_of_create_and_run(self):
        lookup = model([node("Lookup", ["x", "r"], ["y"])], [value("x", [2], TensorProto.INT32)], [value("y", [2, 1])],
                       {"r": np.array(1, np.int64)})
        made = self.compile(lookup, *flags("Lookup"))
        with self.assertRaisesRegex(ptc.Error, "my_lookup.*Lookup needs keys") as caught:
            ptc.load(made)
        self.assertEqual(caught.exception.status, 13)
        whole = model([node("Lookup", ["x", "r"], ["y"], keys=[1], offsets=[0.0], names=["a"],
                            values=onnx.helper.make_tensor("", 1, [1], [1.0]))],
                      [value("x", [2], TensorProto.INT32)], [value("y", [2, 1])], {"r": np.array(1, np.int64)})
        loaded = ptc.load(self.compile(whole, *flags("Lookup")))
        with self.assertRaisesRegex(ptc.Error, "node 'my_lookup': custom operator Lookup: the key 256") as caught:
            loaded(np.array([1, 256], np.int32))
        self.assertEqual(caught.exception.status, 13)
        np.testing.assert_array_equal(loaded(np.array([1, 0], np.int32))["y"], [[2], [0]])

    def test_where_the_library_is_looked_for(self):
        own = self.folder / "libmine.so"
        shutil.copy(library(), own)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)  # a name without a folder is a file here, when the model is compiled
        made = self.compile(scale(factor=2.0), *flags("Scale", path="libmine.so"))
        x = np.ones(4, np.float32)
        np.testing.assert_array_equal(ptc.load(made)(x)["y"], 2 * x)  # beside the model's library
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        own.rename(elsewhere / "libmine.so")
        os.chdir(elsewhere)  # never the current folder
        with self.assertRaisesRegex(ptc.Error, "'libmine.so'.*cannot be opened") as caught:
            ptc.load(made)
        self.assertEqual(caught.exception.status, 13)
        np.testing.assert_array_equal(ptc.load(made, custom_op_folder=str(elsewhere))(x)["y"], 2 * x)

    def test_an_absolute_path_that_has_moved(self):
        own = self.folder / "libhere.so"
        shutil.copy(library(), own)
        made = self.compile(scale(factor=2.0), *flags("Scale", path=own), name="moved")
        apart = self.folder / "apart"
        apart.mkdir()
        for file in (made, own):
            file.rename(apart / file.name)
        x = np.ones(4, np.float32)
        np.testing.assert_array_equal(ptc.load(apart / made.name)(x)["y"], 2 * x)

    def test_nothing_says_what_is_right(self):
        proto = model([node("Scale", ["x"], ["s"], factor=2.0), onnx.helper.make_node("Neg", ["s"], ["y"])], [value("x", [4])], [value("y", [4])])
        onnx.save(proto, self.folder / "m.onnx")
        run = lambda *words: subprocess.run([models.PTC, "verify", "m.onnx", *words, *flags("Scale")], cwd=self.folder, capture_output=True, text=True)
        done = run()
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("nothing says what is right: node 'my_scale'", done.stderr)
        self.assertIn("--per-node checks the other nodes", done.stderr)
        done = run("--per-node")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 of 2 values compared, all agree", done.stdout)
        self.assertIn("1 not compared, the interpreter does not have their operator: 's'", done.stdout)

    def test_verify_and_run_find_the_library(self):
        onnx.save(scale(factor=2.0), self.folder / "m.onnx")
        for command in (["check", "m.onnx"], ["explain", "m.onnx"], ["inspect", "m.onnx"]):
            done = subprocess.run([models.PTC, *command, *flags("Scale")], cwd=self.folder, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
