"""Outputs of a size that the run finds: the generic entry, the typed headers, the tools, faults."""

import ctypes
import json
import os
import subprocess
import unittest

import numpy as np

import models
import ptc
from models import Compiled, sparse

NON_ZERO = "m (float[h, w] x) => (int64[2, n] y) { y = NonZero(x) }"

TYPED_C = r"""
#include "m.h"
#include <stdio.h>
#include <stdlib.h>

static int allocated, released;
static void *allocate(void *state, size_t bytes, size_t alignment) {
  ++allocated;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void release(void *state, void *block, size_t bytes) {
  ++released;
  free(block);
}

int main(void) {
  ptc_options options = {.struct_size = sizeof options, .allocator = {allocate, release, NULL}};
  m_model *model;
  m_ctx *ctx;
  if (m_create(&options, &model) || m_ctx_create(model, &ctx))
    return 1;
  m_dims dims = {.h = 2, .w = 3};
  float x[6] = {0, 1, 0, 2, 0, 3};
  int64_t shape[2], most[2], room[12], *y = NULL, *own = room;
  m_output_shapes(model, &dims, most);
  if (m_warmup(ctx, &dims))
    return 2;
  for (int run = 0; run < 2; ++run) {
    int before = allocated;
    if (m_run(ctx, &dims, x, &y, shape, NULL, NULL))
      return 3;
    printf("most %ld %ld, is %ld %ld:", most[0], most[1], shape[0], shape[1]);
    for (int i = 0; i < shape[0] * shape[1]; ++i)
      printf(" %ld", y[i]);
    printf(", %d allocated\n", allocated - before);
    release(NULL, y, 64);
    y = NULL;
  }
  if (m_run(ctx, &dims, x, &own, shape, NULL, NULL) || own != room)
    return 4;
  printf("own %ld %ld: %ld %ld\n", shape[0], shape[1], room[0], room[5]);
  m_ctx_destroy(ctx);
  m_destroy(model);
  return allocated != released;
}
"""

TYPED_CPP = r"""
#include "m.hpp"
#include <cstdio>

int main() {
  ptc::m::Model model;
  ptc::m::Context context(model);
  const float x[6] = {0, 1, 0, 2, 0, 3};
  ptc::Found<int64_t, 2> y;
  for (int run = 0; run < 2; ++run) // the first result goes
    if (!context.run({2, 3}, x, y))
      return 1;
  std::printf("%zu elements, %ld x %ld, last %ld\n", y.size(), long(y.shape()[0]), long(y.shape()[1]), long(y.data()[5]));
}
"""


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Compiled(NON_ZERO)

    def build(self, compiler, source, name):
        path = self.model.path / name
        path.write_text(source)
        program = path.with_suffix("")
        subprocess.run([compiler, "-Wall", "-Werror", path, self.model.library, f"-Wl,-rpath,{self.model.path}", "-o", program],
                       check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout

    def test_typed_c(self):
        out = self.build("cc", TYPED_C, "typed.c").splitlines()
        self.assertEqual(out[:2], ["most 2 6, is 2 3: 0 1 1 1 0 2, 1 allocated"] * 2)
        self.assertEqual(out[2], "own 2 3: 0 2")

    def test_typed_cpp(self):
        self.assertEqual(self.build("c++", TYPED_CPP, "typed.cpp"), "6 elements, 2 x 3, last 2\n")

    def test_what_the_model_says_of_itself(self):
        self.assertEqual(self.model.ptc.outputs[0].shape, (2, "u0"))
        manifest = json.loads(self.model.library.with_suffix(".json").read_text())
        self.assertEqual(manifest["functions"][0]["outputs"][0]["shape"], [2, "u0"])
        self.assertEqual(manifest["functions"][0]["found"], [{"at_most": "h*w", "name": "u0"}])
        text = subprocess.run([models.PTC, "inspect", self.model.library], capture_output=True, text=True, check=True).stdout
        self.assertIn("output y int64 [2, u0] (its size is found by the run)", text)

    def test_generic_entry(self):
        from ptc import _abi
        model = self.model.ptc
        x = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
        shape, room = (ctypes.c_int64 * 2)(2, 3), np.zeros(12, np.int64)
        given = (ctypes.c_int64 * 2)(2, 2)
        inputs = (_abi.Tensor * 1)(_abi.Tensor(x.ctypes.data, _abi.Device(1, 0), 2, _abi.DType(2, 32, 1), shape, None, 0))
        with model._context() as ctx:
            def run(data, *extents):
                given[:] = extents
                out = (_abi.Tensor * 1)(_abi.Tensor(data, _abi.Device(1, 0), 2, _abi.DType(0, 64, 1), given, None, 0))
                return model._table.run(ctx, 0, inputs, out, None, None), tuple(given), out[0].data
            status, found, data = run(room.ctypes.data, 2, 6)
            self.assertEqual((status, found, data), (0, (2, 3), room.ctypes.data))
            status, found, data = run(None, 0, 0)
            self.assertEqual((status, found), (0, (2, 3)))
            ptc._free(data)
            status, _, data = run(room.ctypes.data, 2, 2)
            self.assertEqual((status, data), (3, room.ctypes.data))
            self.assertEqual(model._table.last_error(ctx), b"output 'y' has 6 elements, and there is room for 4")
            self.assertEqual(run(room.ctypes.data, 3, 6)[0], 3)
            self.assertEqual(run(room.ctypes.data, -1, 6)[0], 3)

    def test_tools(self):
        run = subprocess.run([models.PTC, "run", self.model.library, "-i", "x=ones", "--at", "h=2", "--at", "w=2",
                              "-o", f"y=@{self.model.path}/y.npy"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        np.testing.assert_array_equal(np.load(self.model.path / "y.npy"), [[0, 0, 1, 1], [0, 1, 0, 1]])
        for verb in (["verify", self.model.path / "m.onnx"], ["verify", self.model.path / "m.onnx", "--per-node"],
                     ["bench", self.model.library, "--min-time", "0.01"]):
            done = subprocess.run([models.PTC, *verb], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def test_a_bound_above_64_bits_concerns_its_output_alone(self):
        model = Compiled("""m (float[n] x) => (int64[4, k] a, int64[1, l] b)
            { p = Unsqueeze(x, i) q = Unsqueeze(x, j) pp = Mul(p, q) r = Unsqueeze(pp, j2) s = Unsqueeze(pp, i2) t = Add(r, s)
              a = NonZero(t) b = NonZero(x) }""".replace("{ p", """{ i = Constant<value = int64[1] {0}>() j = Constant<value = int64[1] {1}>()
              j2 = Constant<value = int64[2] {2, 3}>() i2 = Constant<value = int64[2] {0, 1}>() p"""), "--dim", "n=1..")
        for n, most in ((3, 81), (100000, -1)):
            self.assertEqual(model.ptc.output_shapes(x=np.ones(n, np.float32)), {"a": (4, most), "b": (1, n)})
        model.check(self, x=sparse(3))

    def test_many_runs_leave_no_memory_behind(self):
        call = self.model.ptc.prepare(x=sparse(100, 100))
        before = int(open("/proc/self/statm").read().split()[1])
        for _ in range(300):
            call()
        self.assertLess(int(open("/proc/self/statm").read().split()[1]) - before, 4000)  # pages; one result has 20


if __name__ == "__main__":
    unittest.main()
