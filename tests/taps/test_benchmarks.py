"""The benchmark beside each kernel of --save-temps."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import models

COMPILERS = [name for name in ("gcc", "clang", "clang-22") if shutil.which(name)][:2]


class Benchmarks(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def kernels(self, model, *options):
        temps = self.folder / "temps"
        models.ptc("compile", model, "-o", self.folder / "model.so", "--save-temps", temps, *options)
        kernels = sorted((temps / "kernels").iterdir())
        for kernel in kernels:
            self.assertTrue({"kernel.mlir", "bench.c", "x86-64-v3.s"} <= {p.name for p in kernel.iterdir()}, kernel)
        return kernels

    def time(self, kernel, compiler="cc", sources=("x86-64-v3.s",), flags=(), arguments=()):
        """Builds from another folder, without a word, and runs; returns what is printed."""
        program = self.folder / "bench"
        built = subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", *flags, kernel / "bench.c",
                                *[kernel / source for source in sources], "-o", program, "-lpthread"],
                               capture_output=True, text=True, cwd="/", env={"PATH": os.environ["PATH"]})
        self.assertEqual((built.returncode, built.stdout + built.stderr), (0, ""))
        ran = subprocess.run([program, "-s", "0.01", *arguments], capture_output=True, text=True, cwd="/")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        line = re.fullmatch(r"(\S+), (\S+), (\d+) thread\(s\), \S+ KB of buffers: best (\S+) us, mean \S+ us of \d+ runs"
                            r"(; \S+ GFLOP/s)?; (\S+) GB/s\n", ran.stdout)
        self.assertTrue(line, ran.stdout)
        self.assertEqual(line[1], kernel.name)
        self.assertGreater(float(line[4]), 0)
        self.assertLess(float(line[6]), 10_000, "no memory is that fast")
        return line

    def test_every_kernel_of_a_small_model(self):
        model = models.write(models.convolutions(), self.folder / "model.onnx")
        for compiler in COMPILERS:
            for kernel in self.kernels(model):
                self.time(kernel, compiler)

    def test_special_levels(self):
        """All levels together, of which this processor takes one that it has; one without a file has a lower one's code."""
        model = models.write(models.quantized(), self.folder / "model.onnx")
        for compiler in COMPILERS:
            for kernel in self.kernels(model):
                self.time(kernel, compiler, sorted(file.name for file in kernel.glob("*.s")))

    def test_levels_threads_and_static_programs(self):
        model = models.write(models.layers(2), self.folder / "model.onnx")
        kernel = self.kernels(model, "--dim", "batch=1..4096:1000")[0]
        both = ("x86-64-v3.s", "x86-64-v4.s")
        self.assertEqual(self.time(kernel, sources=both, arguments=["-l", "x86-64-v3", "-t", "2"])[2], "x86-64-v3")
        self.time(kernel, sources=both, flags=["-static"])
        self.assertIn("{32000, 4, 'f'}", (kernel / "bench.c").read_text(), "sizes are those at the hint")
        wrong = subprocess.run([self.folder / "bench", "-l", "x86-64-v9"], capture_output=True, text=True)
        self.assertEqual((wrong.returncode, wrong.stderr), (77, "no such level is linked in\n"))

    def test_indices_are_in_range(self):
        model = models.write(models.narrow(), self.folder / "model.onnx")
        for kernel in self.kernels(model):
            self.time(kernel)

    def test_kernels_of_a_real_model(self):
        real = sorted(Path(models.PTC).parents[1].glob("models/**/*cls*.onnx"))
        if not real:
            self.skipTest("no real model is installed")
        for kernel in self.kernels(real[0], "--cpu=x86-64-v3")[::8]:
            self.time(kernel)
