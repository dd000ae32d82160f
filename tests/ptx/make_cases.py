"""Writes folders that run.py checks on a machine with a GPU: PTX, launches, inputs and onnxruntime's results.

    python tests/ptx/make_cases.py [--build BUILD] [--gpu ARCH] [--filter REGEX] DIR
"""

import argparse
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]

def channels_last(nodes, axes=2):
    """`nodes` make `c` of `xi` and `wi`; x, w and y have channels last."""
    inner, outer = [0, axes + 1, *range(1, axes + 1)], [0, *range(2, axes + 2), 1]
    return (f"{{ xi = Transpose <perm = {inner}> (x) wi = Transpose <perm = {inner}> (w) {nodes}"
            f" y = Transpose <perm = {outer}> (c) }}")


def between(product, x="uint8", zero=120, y="uint8"):
    """A product of floats `a` (of bytes `x`) and `w` (of constant bytes, by channels), rounded to bytes `y`. All scales are powers of
    two, so that every order of the arithmetic has the same result."""
    return (f"{{ s = Constant <value = float {{0.03125}}> () z = Constant <value = {x} {{{zero}}}> () t = Constant <value = float {{16.0}}> ()"
            f" o = Constant <value = {y} {{3}}> () v = Constant <value = int8 {{0}}> () a = DequantizeLinear (x, s, z) {product}"
            f" y = QuantizeLinear (p, t, o) }}")


# name: graph in ONNX's text form, values of symbolic dims. Inputs called `positive` are positive, integers of 64 bits are indices, which
# reach far if their names begin with `far`; those whose names begin with `fixed` become constants.
CASES = {
    "softmax-1024": ("(float[512, 1024] x) => (float[512, 1024] y) { y = Softmax <axis = -1> (x) }", {}),
    "softmax-64": ("(float[2048, 64] x) => (float[2048, 64] y) { y = Softmax <axis = -1> (x) }", {}),
    "softmax-197": ("(float[300, 197] x) => (float[300, 197] y) { y = Softmax <axis = -1> (x) }", {}),
    "softmax-40000": ("(float[3, 40000] x) => (float[3, 40000] y) { y = Softmax <axis = -1> (x) }", {}),
    "softmax-middle": ("(float[30, 70, 50] x) => (float[30, 70, 50] y) { y = Softmax <axis = 1> (x) }", {}),
    "softmax-symbolic": ("(float[n, len] x) => (float[n, len] y) { y = Softmax <axis = -1> (x) }", {"n": 77, "len": 1333}),
    "layernorm-768": (
        "(float[2048, 768] x, float[768] s, float[768] b) => (float[2048, 768] y)"
        "{ y = LayerNormalization <axis = -1> (x, s, b) }", {}),
    "layernorm-1021": (
        "(float[100, 1021] x, float[1021] s, float[1021] b) => (float[100, 1021] y)"
        "{ y = LayerNormalization <axis = -1> (x, s, b) }", {}),
    "layernorm-symbolic": (
        "(float[n, width] x, float[width] s, float[width] b) => (float[n, width] y)"
        "{ y = LayerNormalization <axis = -1> (x, s, b) }", {"n": 65, "width": 2000}),
    "layernorm-f16": (
        "(float16[128, 512] x, float16[512] s, float16[512] b) => (float16[128, 512] y)"
        "{ y = LayerNormalization <axis = -1> (x, s, b) }", {}),
    "gelu-bias": ("(float[256, 3072] x, float[3072] b) => (float[256, 3072] y) { s = Add (x, b) y = Gelu (s) }", {}),
    "gelu-tail": ("(float[n] x) => (float[n] y) { y = Gelu (x) }", {"n": 1000003}),
    "gelu-f16": ("(float16[256, 3072] x, float16[3072] b) => (float16[256, 3072] y) { s = Add (x, b) y = Gelu (s) }", {}),
    "softmax-f16": ("(float16[512, 1024] x) => (float16[512, 1024] y) { y = Softmax <axis = -1> (x) }", {}),
    "elementary-f16": (
        "(float16[1000, 33] x) => (float16[1000, 33] a, float16[1000, 33] b, float16[1000, 33] c, float16[1000, 33] d, float16[1000, 33] e)"
        "{ a = Exp (x) b = Tanh (x) c = Sigmoid (x) d = Erf (x) e = Div (x, c) }", {}),
    "elementary": (
        "(float[1000, 33] x, float[1000, 33] positive) => (float[1000, 33] a, float[1000, 33] b, float[1000, 33] c,"
        " float[1000, 33] d, float[1000, 33] e, float[1000, 33] f)"
        "{ a = Sin (x) b = Tanh (x) c = Log (positive) d = Pow (positive, x) e = Sigmoid (x) f = Erf (x) }", {}),
    "double": ("(double[100, 300] x) => (double[100, 300] y) { y = Softmax (x) }", {}),
    "mask": ("(float[100, 200] x, float[100, 200] c) => (float[100, 200] y) { l = Less (x, c) y = Where (l, x, c) }", {}),
    "half": ("(float16[64, 128] x) => (float16[64, 128] y) { y = Exp (x) }", {}),
    "transpose": ("(float[64, 96, 40] x) => (float[40, 64, 96] y) { t = Transpose <perm = [2, 0, 1]> (x) y = Neg (t) }", {}),
    "sum-columns": ("(float[500, 300] x) => (float[300] y) { y = ReduceMean <axes = [0], keepdims = 0> (x) }", {}),
    "max-rows": ("(float[100, 777] x) => (float[100] y) { y = ReduceMax <axes = [1], keepdims = 0> (x) }", {}),
    "sum-all": ("(float[700, 300] x) => (float[1, 1] y) { y = ReduceSum (x) }", {}),
    "argmax": ("(float[100, 900] x) => (int64[100] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }", {}),
    "argmin-columns": ("(float[100, 90] x) => (int64[90] y) { y = ArgMin <axis = 0, keepdims = 0> (x) }", {}),
    "split-sum-all": ("(float[262147] x) => (float[1] y) { y = ReduceSum (x) }", {}),
    "split-max-rows": ("(float[3, 40960] x) => (float[3] y) { y = ReduceMax <axes = [1], keepdims = 0> (x) }", {}),
    "split-argmax": ("(float[2, 50000] x) => (int64[2] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }", {}),
    "split-argmin-last": ( # many equal values, in every part
        "(int64[1, 20000] x) => (int64[1] y) { y = ArgMin <axis = 1, keepdims = 0, select_last_index = 1> (x) }", {}),
    "split-mean-columns": ("(float[7001, 12] x) => (float[12] y) { y = ReduceMean <axes = [0], keepdims = 0> (x) }", {}),
    "split-argmax-columns": ("(float[3000, 70] x) => (int64[70] y) { y = ArgMax <axis = 0, keepdims = 0> (x) }", {}),
    "split-mean-pixels": ( # columns whose threads take turns, without parts
        "(float[2, 7, 7, 96] x) => (float[2, 96] y) { y = ReduceMean <axes = [1, 2], keepdims = 0> (x) }", {}),
    "split-symbolic": ("(float[n, len] x) => (float[n] y, float[len] z)"
        "{ y = ReduceL2 <axes = [1], keepdims = 0> (x) z = ReduceMax <axes = [0], keepdims = 0> (x) }", {"n": 3, "len": 9001}),
    "split-symbolic-many": ( # more results than counters: nothing is split
        "(float[n, len] x) => (float[n] y, float[len] z)"
        "{ y = ReduceL1 <axes = [1], keepdims = 0> (x) z = ReduceMin <axes = [0], keepdims = 0> (x) }", {"n": 1100, "len": 70}),
    "split-double": ("(double[2, 9, 3000] x) => (double[9] y) { y = ReduceMean <axes = [0, 2], keepdims = 0> (x) }", {}),
    "remainder-double": ( # exact products, whatever the quotient
        "(double[2000] x, double[2000] positive) => (double[2000] y)"
        "{ far = Constant <value = double {1e30}> () large = Mul (x, far) y = Mod <fmod = 1> (large, positive) }", {}),
    "pool": (
        "(float[4, 8, 31, 33] x) => (float[4, 8, 16, 17] y)"
        "{ y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x) }", {}),
    "mean-image": ("(float[16, 64, 14, 14] x) => (float[16, 64, 1, 1] y) { y = GlobalAveragePool (x) }", {}),
    "instance-norm": (
        "(float[4, 16, 30, 30] x, float[16] s, float[16] b) => (float[4, 16, 30, 30] y)"
        "{ y = InstanceNormalization (x, s, b) }", {}),
    "matmul": ("(float[100, 200] a, float[200, 72] b) => (float[100, 72] y) { y = MatMul (a, b) }", {}),
    "matmul-odd": ("(float[37, 51] a, float[51, 29] b) => (float[37, 29] y) { y = MatMul (a, b) }", {}),
    "matmul-epilogue": (
        "(float[197, 256] a, float[256, 96] b, float[96] c, float[197, 96] r) => (float[197, 96] y)"
        "{ p = MatMul (a, b) q = Add (p, c) s = Add (q, r) y = Relu (s) }", {}),
    "matmul-split": ("(float[33, 2048] a, float[2048, 64] b) => (float[33, 64] y) { y = MatMul (a, b) }", {}),
    "matmul-batch": ("(float[6, 50, 64] a, float[6, 64, 40] b) => (float[6, 50, 40] y) { y = MatMul (a, b) }", {}),
    "matmul-transposed": (
        "(float[64, 80] a, float[48, 64] b) => (float[80, 48] y) { y = Gemm <transA = 1, transB = 1> (a, b) }", {}),
    "matmul-prologue": (
        "(float[70, 96] a, float[96, 64] b) => (float[70, 64] y) { s = Relu (a) t = Transpose <perm = [1, 0]> (b)"
        " u = Transpose <perm = [1, 0]> (t) y = MatMul (s, u) }", {}),
    "matmul-symbolic": (
        "(float[n, len, 128] a, float[128, 96] b) => (float[n, len, 96] y) { y = MatMul (a, b) }", {"n": 3, "len": 29}),
    "matmul-half": (
        "(float16[90, 160] a, float16[160, 72] b, float16[72] c) => (float16[90, 72] y) { p = MatMul (a, b) y = Add (p, c) }", {}),
    "matmul-half-odd": ("(float16[33, 75] a, float16[75, 43] b) => (float16[33, 43] y) { y = MatMul (a, b) }", {}),
    "matmul-half-split": ("(float16[64, 2048] a, float16[2048, 64] b) => (float16[64, 64] y) { y = MatMul (a, b) }", {}),
    "matmul-wide": (
        "(float16[1000, 520] a, float16[520, 1032] b, float16[1032] c, float16[1000, 1032] r) => (float16[1000, 1032] y)"
        "{ p = MatMul (a, b) q = Add (p, c) s = Add (q, r) y = Relu (s) }", {}),
    "matmul-wide-transposed": (
        "(float16[328, 1000] a, float16[1032, 328] b) => (float16[1000, 1032] y) { y = Gemm <transA = 1, transB = 1> (a, b) }", {}),
    "matmul-wide-batch": (
        "(float16[3, 5, 300, 72] a, float16[5, 72, 200] b) => (float16[3, 5, 300, 200] y) { y = MatMul (a, b) }", {}),
    "matmul-row": ("(float16[1, 1000] a, float16[1000, 520] b) => (float16[1, 520] y) { y = MatMul (a, b) }", {}),
    "matmul-rows": ("(float[5, 1000] a, float[1000, 520] b) => (float[5, 520] y) { y = MatMul (a, b) }", {}),
    "matmul-row-floats": ( # rows of the matrix are longer than what a block takes, and its last columns are missing
        "(float[1, 1000] a, float[1000, 3460] b, float[3460] c) => (float[1, 3460] y) { p = MatMul (a, b) y = Add (p, c) }", {}),
    "matmul-row-odd": ("(float[3, 500] a, float[500, 1001] b) => (float[3, 1001] y) { s = Relu (a) y = MatMul (s, b) }", {}),
    "matmul-row-long": ("(float16[2, 9000] a, float16[9000, 72] b) => (float16[2, 72] y) { y = MatMul (a, b) }", {}),
    "matmul-floats": (
        "(float[300, 324] a, float[264, 324] b, float[264] c, float[300, 264] r) => (float[300, 264] y)"
        "{ p = Gemm <transB = 1> (a, b, c) s = Add (p, r) y = Relu (s) }", {}),
    "matmul-floats-split": (
        "(float[128, 3072] a, float[96, 3072] b) => (float[128, 96] y) { y = Gemm <transB = 1> (a, b) }", {}),
    "matmul-floats-cluster": (
        "(float[197, 1536] a, float[384, 1536] b, float[384] c) => (float[197, 384] y) { y = Gemm <transB = 1> (a, b, c) }", {}),
    "matmul-half-cluster": (
        "(float16[130, 1536] a, float16[384, 1536] b, float16[130, 384] c) => (float16[130, 384] y)"
        "{ t = Transpose <perm = [1, 0]> (b) p = MatMul (a, t) y = Add (p, c) }", {}),
    "matmul-floats-large": (
        "(float[1100, 512] a, float[1544, 512] b) => (float[1100, 1544] y) { y = Gemm <transB = 1> (a, b) }", {}),
    "matmul-floats-batch": (
        "(float[7, 300, 256] a, float[7, 200, 256] b) => (float[7, 300, 200] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (b) y = MatMul (a, t) }", {}),
    "matmul-floats-infinite": (
        "(float[130, 256] a, float[256, 256] b) => (float[130, 256] y)"
        "{ z = Constant <value = float {0.0}> () f = Constant <value = float {5.5}> ()"
        " l = Greater (a, f) i = Div (a, z) x = Where (l, i, a) y = Gemm <transB = 1> (x, b) }", {}),
    "matmul-wide-split": (
        "(float16[192, 4096] a, float16[4096, 128] b, float16[128] c) => (float16[192, 128] y) { p = MatMul (a, b) y = Add (p, c) }", {}),
    "matmul-infinite": (
        "(float[40, 64] a, float[64, 32] b) => (float[40, 32] y)"
        "{ z = Constant <value = float {0.0}> () f = Constant <value = float {5.5}> ()"
        " l = Greater (a, f) i = Div (a, z) x = Where (l, i, a) y = MatMul (x, b) }", {}),
    "conv": (
        "(float[2, 32, 14, 15] x, float[48, 32, 3, 3] w, float[48] b) => (float[2, 48, 14, 15] y)"
        "{ c = Conv <pads = [1, 1, 1, 1]> (x, w, b) y = Relu (c) }", {}),
    "conv-stem": (
        "(float[1, 3, 40, 40] x, float[32, 3, 7, 7] w) => (float[1, 32, 20, 20] y)"
        "{ y = Conv <pads = [3, 3, 3, 3], strides = [2, 2]> (x, w) }", {}),
    "conv-half": (
        "(float16[1, 64, 9, 9] x, float16[40, 64, 3, 3] w, float16[40] b) => (float16[1, 40, 5, 5] y)"
        "{ y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w, b) }", {}),
    "conv-group": (
        "(float[1, 64, 8, 8] x, float[64, 32, 3, 3] w) => (float[1, 64, 8, 8] y)"
        "{ y = Conv <group = 2, pads = [1, 1, 1, 1]> (x, w) }", {}),
    # Channels last: windows of an image whose pixels are copied.
    "conv-window-half": (
        "(float16[2, 14, 15, 64] x, float16[128, 3, 3, 64] w, float16[128] b) => (float16[2, 14, 15, 128] y)"
        + channels_last("r = Conv <pads = [1, 1, 1, 1]> (xi, wi, b) c = Relu (r)"), {}),
    "conv-window-half-stride": (
        "(float16[3, 15, 21, 128] x, float16[96, 3, 3, 128] w, float16[96] b) => (float16[3, 7, 10, 96] y)"
        + channels_last("c = Conv <pads = [0, 1, 1, 0], strides = [2, 2]> (xi, wi, b)"), {}),
    "conv-window-half-channels": (
        "(float16[1, 20, 20, 72] x, float16[64, 5, 3, 72] w, float16[64] b) => (float16[1, 20, 20, 64] y)"
        + channels_last("c = Conv <pads = [2, 1, 2, 1]> (xi, wi, b)"), {}),
    "conv-window-half-open": (
        "(float16[1, 33, 31, 64] x, float16[64, 3, 3, 64] w, float16[64] b) => (float16[1, 29, 27, 64] y)"
        + channels_last("c = Conv <dilations = [2, 2]> (xi, wi, b)"), {}),
    "conv-window-half-few": (
        "(float16[1, 7, 7, 512] x, float16[512, 3, 3, 512] w, float16[512] b) => (float16[1, 7, 7, 512] y)"
        + channels_last("c = Conv <pads = [1, 1, 1, 1]> (xi, wi, b)"), {}),
    "conv-window-pixels": (
        "(float16[1, 28, 28, 256] x, float16[512, 1, 1, 256] w, float16[512] b) => (float16[1, 14, 14, 512] y)"
        + channels_last("c = Conv <strides = [2, 2]> (xi, wi, b)"), {}),
    "conv-window-floats": (
        "(float[1, 14, 14, 256] x, float[256, 3, 3, 256] w, float[256] b, float[1, 14, 14, 256] s) => (float[1, 14, 14, 256] y)"
        + channels_last("si = Transpose <perm = [0, 3, 1, 2]> (s) r = Conv <pads = [1, 1, 1, 1]> (xi, wi, b) a = Add (r, si) c = Relu (a)"), {}),
    "conv-window-floats-stride": (
        "(float[2, 28, 28, 96] x, float[128, 3, 3, 96] w, float[128] b) => (float[2, 14, 14, 128] y)"
        + channels_last("c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (xi, wi, b)"), {}),
    "conv-window-floats-few": (
        "(float[1, 7, 7, 1024] x, float[512, 1, 1, 1024] w, float[512] b) => (float[1, 7, 7, 512] y)"
        + channels_last("c = Conv (xi, wi, b)"), {}),
    "conv-window-line": (
        "(float16[2, 200, 64] x, float16[64, 7, 64] w, float16[64] b) => (float16[2, 100, 64] y)"
        + channels_last("c = Conv <pads = [3, 3], strides = [2]> (xi, wi, b)", 1), {}),
    "conv-window-volume": (
        "(float[1, 6, 9, 10, 64] x, float[64, 3, 3, 3, 64] w, float[64] b) => (float[1, 6, 9, 10, 64] y)"
        + channels_last("c = Conv <pads = [1, 1, 1, 1, 1, 1]> (xi, wi, b)", 3), {}),
    # 8-bit integers, of which every bit must be right.
    "bytes-matmul": (
        "(uint8[100, 768] x, int8[768, 200] fixed) => (int32[100, 200] y)"
        "{ z = Constant <value = uint8 {120}> () y = MatMulInteger (x, fixed, z) }", {}),
    "bytes-matmul-odd": (
        "(uint8[37, 100] x, int8[100, 29] fixed) => (int32[37, 29] y) { y = MatMulInteger (x, fixed) }", {}),
    "bytes-matmul-signed": (
        "(int8[70, 272] x, int8[90, 272] b) => (int32[70, 90] y) { t = Transpose <perm = [1, 0]> (b) y = MatMulInteger (x, t) }", {}),
    "bytes-matmul-mixed": (
        "(int8[3, 70, 272] x, uint8[3, 90, 272] b) => (int32[3, 70, 90] y) { t = Transpose <perm = [0, 2, 1]> (b) y = MatMulInteger (x, t) }", {}),
    "bytes-matmul-unsigned": (
        "(uint8[70, 272] x, uint8[90, 272] b) => (int32[70, 90] y) { t = Transpose <perm = [1, 0]> (b) y = MatMulInteger (x, t) }", {}),
    "bytes-matmul-split": (
        "(uint8[40, 4096] x, uint8[4096, 64] fixed) => (int32[40, 64] y)"
        "{ z = Constant <value = uint8 {7}> () w = Constant <value = uint8 {131}> () y = MatMulInteger (x, fixed, z, w) }", {}),
    "bytes-matmul-few": ("(uint8[2, 768] x, int8[768, 256] fixed) => (int32[2, 256] y) { y = MatMulInteger (x, fixed) }", {}),
    "bytes-matmul-cluster": (
        "(uint8[197, 3072] x, int8[3072, 384] fixed) => (int32[197, 384] y)"
        "{ z = Constant <value = uint8 {9}> () y = MatMulInteger (x, fixed, z) }", {}),
    "bytes-matmul-symbolic": ("(uint8[n, len, 128] x, int8[128, 96] fixed) => (int32[n, len, 96] y) { y = MatMulInteger (x, fixed) }",
                              {"n": 3, "len": 29}),
    "bytes-matmul-quantised": (
        "(uint8[197, 256] x, int8[256, 96] fixed, float[96] fixed_scales, float[96] c, float[197, 96] r) => (uint8[197, 96] y)"
        + between("w = DequantizeLinear <axis = 1> (fixed, fixed_scales, fixed_zeros) q = MatMul (a, w) b = Round (c) m = Add (q, b) n = Round (r)"
                  " k = Add (m, n) p = Relu (k)").replace("{ s", "{ fixed_zeros = ConstantOfShape <value = int8[1] {0}> (h) s", 1)
        .replace("{ fixed", "{ h = Constant <value = int64[1] {96}> () fixed", 1), {}),
    "bytes-matmul-large": (
        "(uint8[600, 1040] x, int8[1040, 1096] fixed) => (int8[600, 1096] y)"
        + between("w = DequantizeLinear (fixed, s, v) p = MatMul (a, w)", zero=128, y="int8"), {}),
    "bytes-matmul-turned": ( # neither lies along k
        "(int8[272, 72] x, uint8[272, 96] b) => (int32[72, 96] y) { t = Transpose <perm = [1, 0]> (x) y = MatMulInteger (t, b) }", {}),
    "bytes-matmul-values": ( # of attention: k is the number of keys
        "(int8[2, 3, 50, len] x, int8[2, 3, len, 64] v) => (int32[2, 3, 50, 64] y) { y = MatMulInteger (x, v) }", {"len": 141}),
    "bytes-matmul-large-turned": (
        "(uint8[600, 1000] x, uint8[1000, 516] b) => (int32[600, 516] y) { y = MatMulInteger (x, b) }", {}),
    "bytes-matmul-odd": ( # single bytes
        "(int8[70, 133] x, uint8[133, 90] b) => (int32[70, 90] y) { y = MatMulInteger (x, b) }", {}),
    "bytes-conv": (
        "(uint8[2, 14, 15, 64] x, int8[80, 3, 3, 64] fixed) => (int32[2, 14, 15, 80] y)"
        + channels_last("z = Constant <value = uint8 {117}> () c = ConvInteger <pads = [1, 1, 1, 1]> (xi, wi, z)").replace("(w)", "(fixed)"), {}),
    "bytes-conv-stride": (
        "(uint8[1, 15, 21, 132] x, int8[40, 3, 3, 132] fixed) => (int32[1, 7, 10, 40] y)"
        + channels_last("c = ConvInteger <pads = [0, 1, 1, 0], strides = [2, 2]> (xi, wi)").replace("(w)", "(fixed)"), {}),
    "bytes-conv-stem": (
        "(float[1, 3, 40, 40] x, int8[32, 3, 7, 7] fixed) => (uint8[1, 32, 20, 20] y)"
        "{ s = Constant <value = float {0.03125}> () z = Constant <value = uint8 {120}> () o = Constant <value = uint8 {3}> ()"
        " t = Constant <value = float {4.0}> () v = Constant <value = int8 {0}> () q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z)"
        " w = DequantizeLinear (fixed, s, v) p = Conv <pads = [3, 3, 3, 3], strides = [2, 2]> (a, w) y = QuantizeLinear (p, t, o) }", {}),
    "bytes-conv-residual": ( # of a network's block: padding is no zero, and a sum with what came before
        "(float[1, 48, 20, 20] x, int8[48, 48, 3, 3] fixed, int8[48, 48, 3, 3] fixed_second) => (uint8[1, 48, 20, 20] y)"
        "{ s = Constant <value = float {0.03125}> () z = Constant <value = int8 {5}> () o = Constant <value = uint8 {3}> ()"
        " t = Constant <value = float {4.0}> () v = Constant <value = int8 {0}> () q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z)"
        " w = DequantizeLinear (fixed, s, v) c = Conv <pads = [1, 1, 1, 1]> (a, w) e = QuantizeLinear (c, t, o) f = DequantizeLinear (e, t, o)"
        " h = DequantizeLinear (fixed_second, s, v) g = Conv <pads = [1, 1, 1, 1]> (f, h) l = Add (g, a)"
        " p = Relu (l) u = Constant <value = float {128.0}> () y = QuantizeLinear (p, u, o) }", {}),
    "bytes-conv-window": (
        "(uint8[1, 14, 14, 256] x, int8[256, 3, 3, 256] fixed) => (int32[1, 14, 14, 256] y)"
        + channels_last("c = ConvInteger <pads = [1, 1, 1, 1]> (xi, wi)").replace("(w)", "(fixed)"), {}),
    "bytes-conv-window-few": (
        "(uint8[1, 14, 14, 512] x, int8[512, 3, 3, 512] fixed) => (int32[1, 7, 7, 512] y)"
        + channels_last("c = ConvInteger <pads = [1, 1, 1, 1], strides = [2, 2]> (xi, wi)").replace("(w)", "(fixed)"), {}),
    "bytes-conv-group": (
        "(uint8[1, 9, 11, 64] x, int8[64, 3, 3, 32] fixed) => (int32[1, 9, 11, 64] y)"
        + channels_last("c = ConvInteger <group = 2, pads = [1, 1, 1, 1]> (xi, wi)").replace("(w)", "(fixed)"), {}),
    # A few rows times weights of few bits, which a kernel streams and converts.
    "packed-half-bytes": (
        "(float[1, 2048] x, uint8[200, 64, 16] fixed, float[12800] fixed_scales) => (float[1, 200] y)"
        "{ y = com.microsoft.MatMulNBits <K = 2048, N = 200, bits = 4, block_size = 32> (x, fixed, fixed_scales) }", {}),
    "packed-half-bytes-zeros": (
        "(float[3, 1600] x, uint8[201, 50, 16] fixed, float[10050] fixed_scales, uint8[5025] fixed_zeros) => (float[3, 201] y)"
        "{ y = com.microsoft.MatMulNBits <K = 1600, N = 201, bits = 4, block_size = 32> (x, fixed, fixed_scales, fixed_zeros) }", {}),
    "packed-half-bytes-long": (
        "(float[2, 8192] x, uint8[4100, 64, 64] fixed, float[262400] fixed_scales, float[4100] b, float[2, 4100] r) => (float[2, 4100] y)"
        "{ p = com.microsoft.MatMulNBits <K = 8192, N = 4100, bits = 4, block_size = 128> (x, fixed, fixed_scales) q = Add (p, b)"
        " s = Add (q, r) y = Relu (s) }", {}),
    "packed-bytes": (
        "(float[1, 1024] x, uint8[400, 32, 32] fixed, float[12800] fixed_scales) => (float[1, 400] y)"
        "{ y = com.microsoft.MatMulNBits <K = 1024, N = 400, bits = 8, block_size = 32> (x, fixed, fixed_scales) }", {}),
    "packed-bytes-columns": (
        "(float[1, 1024] x, int8[1024, 400] fixed, float[400] fixed_scales) => (float[1, 400] y)"
        "{ w = DequantizeLinear <axis = 1> (fixed, fixed_scales) y = MatMul (x, w) }", {}),
    "packed-half-bytes-narrow": (
        "(float16[2, 2048] x, uint8[300, 64, 16] fixed, float16[19200] fixed_scales, uint8[9600] fixed_zeros) => (float16[2, 300] y)"
        "{ y = com.microsoft.MatMulNBits <K = 2048, N = 300, bits = 4, block_size = 32> (x, fixed, fixed_scales, fixed_zeros) }", {}),
    # More rows: tensor cores, whose warps convert the weights that they multiply.
    "packed-rows": (
        "(float[70, 2048] x, uint8[200, 64, 16] fixed, float[12800] fixed_scales) => (float[70, 200] y)"
        "{ y = com.microsoft.MatMulNBits <K = 2048, N = 200, bits = 4, block_size = 32> (x, fixed, fixed_scales) }", {}),
    "packed-rows-zeros": ( # a last step that is not whole, blocks smaller than a step
        "(float[37, 1616] x, uint8[201, 101, 8] fixed, float[20301] fixed_scales, uint8[10251] fixed_zeros) => (float[37, 201] y)"
        "{ y = com.microsoft.MatMulNBits <K = 1616, N = 201, bits = 4, block_size = 16> (x, fixed, fixed_scales, fixed_zeros) }", {}),
    "packed-rows-half": (
        "(float16[300, 2048] x, uint8[1096, 64, 16] fixed, float16[70144] fixed_scales) => (float16[300, 1096] y)"
        "{ y = com.microsoft.MatMulNBits <K = 2048, N = 1096, bits = 4, block_size = 32> (x, fixed, fixed_scales) }", {}),
    "packed-rows-half-zeros": (
        "(float16[n, 2080] x, uint8[301, 65, 16] fixed, float16[19565] fixed_scales, uint8[9933] fixed_zeros, float16[301] b) => (float16[n, 301] y)"
        "{ p = com.microsoft.MatMulNBits <K = 2080, N = 301, bits = 4, block_size = 32> (x, fixed, fixed_scales, fixed_zeros) y = Add (p, b) }", {"n": 45}),
    "packed-rows-half-bytes": (
        "(float16[20, 1024] x, uint8[1200, 32, 32] fixed, float16[38400] fixed_scales) => (float16[20, 1200] y)"
        "{ y = com.microsoft.MatMulNBits <K = 1024, N = 1200, bits = 8, block_size = 32> (x, fixed, fixed_scales) }", {}),
    "packed-rows-bytes": (
        "(float[6, 1024] x, uint8[400, 32, 32] fixed, float[12800] fixed_scales) => (float[6, 400] y)"
        "{ y = com.microsoft.MatMulNBits <K = 1024, N = 400, bits = 8, block_size = 32> (x, fixed, fixed_scales) }", {}),
    "packed-rows-columns": (
        "(float[n, 1024] x, int8[1024, 400] fixed, float[400] fixed_scales) => (float[n, 400] y)"
        "{ w = DequantizeLinear <axis = 1> (fixed, fixed_scales) y = MatMul (x, w) }", {"n": 33}),
    "packed-rows-transposed": ( # lhs lies along its rows
        "(float16[1024, 150] x, uint8[600, 32, 16] fixed, float16[19200] fixed_scales) => (float16[150, 600] y)"
        "{ t = Transpose <perm = [1, 0]> (x) y = com.microsoft.MatMulNBits <K = 1024, N = 600, bits = 4, block_size = 32> (t, fixed, fixed_scales) }", {}),
    "concat-side-by-side": ( # two kernels' parts of two buffers, in one launch
        "(float[12, 20, 64] a, float[12, 1, 64] b, float[12, 20, 64] c, float[12, 1, 64] d) => (float[12, 21, 64] x, float[12, 21, 64] y)"
        "{ x = Concat <axis = 1> (a, b) y = Concat <axis = 1> (c, d) }", {}),
    "attention": (
        "(float[2, 3, 37, 64] q, float[2, 3, 45, 64] k, float[2, 3, 45, 64] v) => (float[2, 3, 37, 64] y)"
        "{ t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, t) f = Constant <value = float {0.1}> () c = Mul (s, f)"
        " w = Softmax (c) y = MatMul (w, v) }", {}),
    "attention-mask": (
        "(float[2, 3, 70, 32] q, float[2, 3, 70, 32] k, float[2, 3, 70, 48] v, float[70, 70] m) => (float[2, 3, 70, 48] y)"
        "{ t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, t) f = Constant <value = float {0.1}> () c = Mul (s, f)"
        " a = Add (c, m) w = Softmax (a) y = MatMul (w, v) }", {}),
    "attention-half": (
        "(float16[2, 3, 50, 64] q, float16[2, 3, 75, 64] k, float16[2, 3, 75, 64] v) => (float16[2, 3, 50, 64] y)"
        "{ t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, t) g = Constant <value = float {0.1}> () f = Cast <to = 10> (g) c = Mul (s, f)"
        " w = Softmax (c) y = MatMul (w, v) }", {}),
    "attention-half-mask": (
        "(float16[2, 3, 33, 128] q, float16[2, 3, 33, 128] k, float16[2, 3, 33, 80] v, float16[33, 33] m) => (float16[2, 3, 33, 80] y)"
        "{ t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, t) g = Constant <value = float {0.1}> () f = Cast <to = 10> (g) c = Mul (s, f)"
        " a = Add (c, m) w = Softmax (a) y = MatMul (w, v) }", {}),
    "attention-half-shared": ( # two warps share the keys of their queries
        "(float16[70, 33, 16] q, float16[70, 90, 16] k, float16[70, 90, 16] v) => (float16[70, 33, 16] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) w = Softmax (s) y = MatMul (w, v) }", {}),
    "attention-half-many": ( # each warp has its own queries
        "(float16[140, 21, 16] q, float16[140, 70, 16] k, float16[140, 70, 16] v) => (float16[140, 21, 16] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) w = Softmax (s) y = MatMul (w, v) }", {}),
    "attention-half-tiles": ( # keys in several tiles, the last of which is not whole
        "(float16[9, 100, 32] q, float16[9, 601, 32] k, float16[9, 601, 32] v) => (float16[9, 100, 32] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) g = Constant <value = float {0.2}> () f = Cast <to = 10> (g) c = Mul (s, f)"
        " w = Softmax (c) y = MatMul (w, v) }", {}),
    "attention-half-wide": ( # whole tiles
        "(float16[2, 64, 128] q, float16[2, 1024, 128] k, float16[2, 1024, 128] v) => (float16[2, 64, 128] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) g = Constant <value = float {0.1}> () f = Cast <to = 10> (g) c = Mul (s, f)"
        " w = Softmax (c) y = MatMul (w, v) }", {}),
    "attention-tiles": (
        "(float[3, 40, 64] q, float[3, 300, 64] k, float[3, 300, 64] v) => (float[3, 40, 64] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) f = Constant <value = float {0.1}> () c = Mul (s, f)"
        " w = Softmax (c) y = MatMul (w, v) }", {}),
    "attention-wide": (
        "(float[2, 40, 128] q, float[2, 300, 128] k, float[2, 300, 128] v) => (float[2, 40, 128] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) f = Constant <value = float {0.1}> () c = Mul (s, f)"
        " w = Softmax (c) y = MatMul (w, v) }", {}),
    "attention-causal": (
        "(float[2, 3, 150, 32] q, float[2, 3, 150, 32] k, float[2, 3, 150, 32] v) => (float[2, 3, 150, 32] y)"
        "{ y = Attention <is_causal = 1> (q, k, v) }", {}),
    "attention-decode": ( # one query, whose keys warps share
        "(float[2, 3, 1, 64] q, float[2, 3, 333, 64] k, float[2, 3, 333, 64] v) => (float[2, 3, 1, 64] y)"
        "{ y = Attention (q, k, v) }", {}),
    "attention-decode-half": ( # blocks share the keys of a head; the last tile is not whole
        "(float16[1, 3, 1, 128] q, float16[1, 3, 1001, 128] k, float16[1, 3, 1001, 128] v, float16[1, 1, 1, 1001] m) => (float16[1, 3, 1, 128] y)"
        "{ a = Cast <to = 1> (q) b = Cast <to = 1> (k) c = Cast <to = 1> (v) d = Cast <to = 1> (m) z = Attention (a, b, c, d) y = Cast <to = 10> (z) }", {}),
    "attention-decode-groups": ( # heads that have the same keys
        "(float[2, 8, 1, 64] q, float[2, 2, len, 64] k, float[2, 2, len, 64] v) => (float[2, 8, 1, 64] y)"
        "{ y = Attention (q, k, v) }", {"len": 777}),
    "attention-decode-short": ( # as before, but there are too few keys to share
        "(float16[1, 4, 2, 32] q, float16[1, 4, len, 32] k, float16[1, 4, len, 48] v) => (float16[1, 4, 2, 48] y)"
        "{ a = Cast <to = 1> (q) b = Cast <to = 1> (k) c = Cast <to = 1> (v) z = Attention (a, b, c) y = Cast <to = 10> (z) }", {"len": 21}),
    "attention-decode-masked": ( # no key is seen by the first head, some parts have none in the second
        "(float[1, 2, 3, 32] q, float[1, 2, 900, 32] k, float[1, 2, 900, 32] v, float[1, 2, 3, 900] x) => (float[1, 2, 3, 32] y)"
        "{ f = Constant <value = float {0.5}> () l = Greater (x, f) no = Constant <value = float {-1e30}> () big = Mul (no, no)"
        " z = Constant <value = float {0.0}> () m = Where (l, z, big) y = Attention (q, k, v, m) }", {}),
    "attention-few": (
        "(float[1, 12, 2, 72] q, float[1, 12, 21, 72] k, float[1, 12, 21, 40] v) => (float[1, 12, 2, 40] y)"
        "{ y = Attention (q, k, v) }", {}),
    "attention-symbolic": (
        "(float[2, n, 32] q, float[2, len, 32] k, float[2, len, 32] v) => (float[2, n, 32] y)"
        "{ t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) w = Softmax (s) y = MatMul (w, v) }", {"n": 37, "len": 333}),
    "suppression": ( # several tiles of candidates, and warps that share what is chosen
        "(float[2, 300, 4] x, float[2, 3, 300] s) => (int64[k, 3] y) { limit = Constant <value = int64[1] {50}> ()"
        " iou = Constant <value = float[1] {0.3}> () y = NonMaxSuppression (x, s, limit, iou) }", {}),
    "suppression-symbolic": (
        "(float[1, n, 4] x, float[1, 2, n] s) => (int64[k, 3] y) { limit = Constant <value = int64[1] {1000}> ()"
        " iou = Constant <value = float[1] {0.6}> () least = Constant <value = float[1] {-1.0}> ()"
        " y = NonMaxSuppression <center_point_box = 1> (x, s, limit, iou, least) }", {"n": 700}),
    "scatter-rows": ( # duplicates; lanes share a row
        "(float[40, 200] x, int64[50, 1] i, float[50, 200] u) => (float[40, 200] y)"
        "{ y = ScatterND <reduction = \"add\"> (x, i, u) }", {}),
    "scatter-rows-last": ( # of updates that meet, the last one stays
        "(float16[31, 3] x, int64[n, 1] i, float16[n, 3] u) => (float16[31, 3] y) { y = ScatterND (x, i, u) }", {"n": 70}),
    "scatter-elements": ( # rows tell themselves, blocks share one
        "(float[3, 60] x, int64[3, 40] i, float[3, 40] u) => (float[3, 60] y)"
        "{ y = ScatterElements <axis = 1, reduction = \"add\"> (x, i, u) }", {}),
    "scatter-elements-columns": (
        "(int64[64, 5] x, int64[40, 5] i, int64[40, 5] u) => (int64[64, 5] y)"
        "{ y = ScatterElements <axis = 0, reduction = \"max\"> (x, i, u) }", {}),
    "scatter-elements-few": ( # a thread each
        "(float[40, 300] x, int64[9, 300] i, float[9, 300] u) => (float[40, 300] y)"
        "{ y = ScatterElements <axis = 0, reduction = \"mul\"> (x, i, u) }", {}),
    "scatter-line": (
        "(double[35] x, int64[99] i, double[99] u) => (double[35] y)"
        "{ y = ScatterElements <axis = 0, reduction = \"add\"> (x, i, u) }", {}),
    "scatter-sorted": ( # one digit; sums of a place in order
        "(float[60] x, int64[9000] i, float[9000] u) => (float[60] y)"
        "{ y = ScatterElements <axis = 0, reduction = \"add\"> (x, i, u) }", {}),
    "scatter-sorted-far": ( # three digits of known bits, then of unknown many
        "(double[100000] x, int64[30000] far, double[30000] u, double[m] v, int64[n] far2, double[n] w) => (double[100000] y, double[m] z)"
        "{ y = ScatterElements <axis = 0, reduction = \"add\"> (x, far, u) z = ScatterElements <axis = 0, reduction = \"mul\"> (v, far2, w) }",
        {"m": 70000, "n": 4100}),
    "scatter-sorted-unknown": ( # the kernel is not told how many places there are
        "(float[p, q] x, int64[a, n] i, float[a, n] u) => (float[p, q] y)"
        "{ y = ScatterElements <axis = 1, reduction = \"add\"> (x, i, u) }", {"p": 3, "q": 60, "a": 2, "n": 900}),
    "scatter-sorted-rows": ( # lanes along rows, whose last ones have nothing
        "(float[40, 70] x, int64[n, 1] i, float[n, 70] u) => (float[40, 70] y)"
        "{ y = ScatterND <reduction = \"add\"> (x, i, u) }", {"n": 2100}),
    "scatter-sorted-rows-wide": ( # teams share a row
        "(double[31, 200] x, int64[n, 1] i, double[n, 200] u) => (double[31, 200] y)"
        "{ y = ScatterND <reduction = \"add\"> (x, i, u) }", {"n": 70}),
    "scatter-sorted-rows-narrow": (
        "(float[50, 3] x, int64[n, 1] i, float[n, 3] u) => (float[50, 3] y)"
        "{ y = ScatterND <reduction = \"mul\"> (x, i, u) }", {"n": 3000}),
    "scatter-sorted-columns": ( # of indices of their own
        "(float[64, 5] x, int64[n, 5] i, float[n, 5] u) => (float[64, 5] y)"
        "{ y = ScatterElements <axis = 0, reduction = \"add\"> (x, i, u) }", {"n": 900}),
    "scatter-sorted-bytes": (
        "(uint8[60] x, int64[n] i, uint8[n] u) => (uint8[60] y, uint8[60] z)"
        "{ y = ScatterElements <axis = 0, reduction = \"add\"> (x, i, u) z = ScatterElements <axis = 0, reduction = \"max\"> (x, i, u) }", {"n": 3000}),
    "scatter-any-order": (
        "(int32[40] x, int64[n] i, int32[n] u, float[40] v, float[n] w, float16[40] a, float16[n] b, double[40] c, double[n] d)"
        " => (int32[40] y, int32[40] z, float[40] p, float16[40] q, double[40] r)"
        "{ y = ScatterElements <axis = 0, reduction = \"add\"> (x, i, u) z = ScatterElements <axis = 0, reduction = \"min\"> (x, i, u)"
        " p = ScatterElements <axis = 0, reduction = \"max\"> (v, i, w) q = ScatterElements <axis = 0, reduction = \"min\"> (a, i, b)"
        " r = ScatterElements <axis = 0, reduction = \"max\"> (c, i, d) }", {"n": 500}),
    "scatter-source": ( # is read by the updates, and again
        "(float[60] x, int64[60] i, float[n] v, int64[n] j) => (float[60] z, float[n] t)"
        "{ a = Neg (x) u = Abs (a) y = ScatterElements <axis = 0, reduction = \"add\"> (a, i, u) z = Add (a, y)"
        " b = Neg (v) c = Abs (b) s = ScatterElements <axis = 0> (b, j, c) t = Add (b, s) }", {"n": 90}),
    "scatter-last": (
        "(float[60] x, int64[5000] i, float[5000] u, bool[60, 40] v, int64[n, 40] j, bool[n, 40] w) => (float[60] y, bool[60, 40] z)"
        "{ y = ScatterElements <axis = 0> (x, i, u) z = ScatterElements <axis = 0> (v, j, w) }", {"n": 130}),
    "scan-row": ("(float[1, 30001] x) => (float[1, 30001] y) { z = Constant <value = int64 {1}> () y = CumSum (x, z) }", {}),
    "scan-rows-split": ( # four points at a time, backwards
        "(float[3, 40000] x) => (float[3, 40000] y)"
        "{ z = Constant <value = int64 {1}> () y = CumSum <exclusive = 1, reverse = 1> (x, z) }", {}),
    "scan-rows": ("(float[5, 3000] x) => (float[5, 3000] y) { z = Constant <value = int64 {1}> () y = CumSum <reverse = 1> (x, z) }", {}),
    "scan-rows-many": ("(float[1200, 100] x) => (float[1200, 100] y) { z = Constant <value = int64 {1}> () y = CumSum (x, z) }", {}),
    "scan-columns": ("(float[5003, 12] x) => (float[5003, 12] y) { z = Constant <value = int64 {0}> () y = CumSum (x, z) }", {}),
    "scan-middle": (
        "(double[3, 700, 70] x) => (double[3, 700, 70] y)"
        "{ z = Constant <value = int64 {1}> () y = CumSum <exclusive = 1, reverse = 1> (x, z) }", {}),
    "scan-integers": ("(int64[2, 17000] x) => (int64[2, 17000] y) { z = Constant <value = int64 {1}> () y = CumSum (x, z) }", {}),
    "scan-symbolic": (
        "(float[n, len] x) => (float[n, len] y, float[n, len] v) { z = Constant <value = int64 {1}> () w = Constant <value = int64 {0}> ()"
        " y = CumSum (x, z) v = CumSum <reverse = 1> (x, w) }", {"n": 3, "len": 9001}),
    "scan-symbolic-many": ( # more rows than blocks share
        "(float[n, len] x) => (float[n, len] y) { z = Constant <value = int64 {1}> () y = CumSum (x, z) }", {"n": 600, "len": 70}),
    "scan-fused": ( # a row's threads share the running sum between their other nodes
        "(float[4, 3000] x) => (float[4, 3000] y)"
        "{ z = Constant <value = int64 {1}> () s = Softmax <axis = 1> (x) c = CumSum (s, z) h = Constant <value = float {0.5}> ()"
        " l = Less (c, h) y = Where (l, s, h) }", {}),
    "sort-tile": ("(float[7, 1000] x) => (float[7, 1000] y, int64[7, 1000] i)"
        "{ k = Constant <value = int64[1] {1000}> () y, i = TopK (x, k) }", {}),
    "sort-row": ("(float[1, 9001] x) => (float[1, 9001] y, int64[1, 9001] i)"
        "{ k = Constant <value = int64[1] {9001}> () y, i = TopK <largest = 0> (x, k) }", {}),
    "sort-equal": ( # 60 different keys of 64 bits
        "(int64[2, 5000] x) => (int64[2, 5000] y, int64[2, 5000] i)"
        "{ k = Constant <value = int64[1] {5000}> () y, i = TopK (x, k) }", {}),
    "sort-digits": ("(float[1, 530000] x) => (float[1, 530000] y, int64[1, 530000] i)"
        "{ k = Constant <value = int64[1] {530000}> () y, i = TopK (x, k) }", {}),
    "sort-digits-f16": ( # two digits; tiles are summed
        "(float16[1, 36000] x) => (float16[1, 36000] y, int64[1, 36000] i)"
        "{ k = Constant <value = int64[1] {36000}> () y, i = TopK <largest = 0> (x, k) }", {}),
    "sort-digits-bytes": ( # one digit; most are kept
        "(int8[2, 9000] x, uint8[3, 7000] v) => (int8[2, 9000] y, int64[2, 9000] i, uint8[3, 5000] z, int64[3, 5000] j)"
        "{ k = Constant <value = int64[1] {9000}> () l = Constant <value = int64[1] {5000}> () y, i = TopK <largest = 0> (x, k) z, j = TopK (v, l) }", {}),
    "sort-first": ("(float[2, 20000] x) => (float[2, 50] y, int64[2, 50] i)"
        "{ k = Constant <value = int64[1] {50}> () y, i = TopK (x, k) }", {}),
    "sort-first-many": ("(double[3, 7000] x) => (double[3, 3000] y, int64[3, 3000] i)"
        "{ k = Constant <value = int64[1] {3000}> () y, i = TopK <largest = 0> (x, k) }", {}),
    "sort-axis": ("(float16[6000, 3] x) => (float16[40, 3] y, int64[40, 3] i)"
        "{ k = Constant <value = int64[1] {40}> () y, i = TopK <axis = 0> (x, k) }", {}),
    "sort-symbolic": ("(float[n, len] x) => (float[n, 9] y, int64[n, 9] i)"
        "{ k = Constant <value = int64[1] {9}> () y, i = TopK (x, k) }", {"n": 3, "len": 5001}),
    "sort-symbolic-short": ("(float[n, len] x) => (float[n, 9] y, int64[n, 9] i)"
        "{ k = Constant <value = int64[1] {9}> () y, i = TopK (x, k) }", {"n": 5, "len": 40}),
    "gather": ("(float[100, 64] x, int64[30] i) => (float[30, 64] y) { y = Gather <axis = 0> (x, i) }", {}),
}

TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}


def make_inputs(model, values, random):
    inputs = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or values[dim.dim_param] for dim in tensor.shape.dim]
        dtype = TYPES[tensor.elem_type]
        if dtype == np.int64:
            most = 50000 if value.name.startswith("far") else 30
            inputs[value.name] = random.integers(-most, most, shape)
        elif dtype == bool:
            inputs[value.name] = random.random(shape) < 0.5
        elif np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            inputs[value.name] = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        elif value.name == "fixed_scales":
            inputs[value.name] = (2.0 ** random.integers(-6, -3, shape)).astype(dtype)
        else:
            data = random.standard_normal(shape) * 2
            inputs[value.name] = (abs(data) + 0.1 if value.name == "positive" else data).astype(dtype)
    return inputs


def exactly():
    """Options without rewrites, of which some round operands."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def fix(model, inputs):
    """Makes constants of those inputs that are to be some."""
    for value in [value for value in model.graph.input if value.name.startswith("fixed")]:
        model.graph.input.remove(value)
        tensor = onnx.numpy_helper.from_array(inputs.pop(value.name), value.name)
        model.graph.node.insert(0, onnx.helper.make_node("Constant", [], [value.name], value=tensor))


def cases():
    """Those with symbols also with ranges for them, so that their indices are narrow."""
    for name, (graph, values) in CASES.items():
        yield name, graph, values, []
        if values:
            yield f"{name}-ranged", graph, values, [f"--dim={symbol}=1..{2 * value}" for symbol, value in values.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--gpu", default="sm_80")
    parser.add_argument("--filter", default="")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    random = np.random.default_rng(7)
    for name, graph, values, flags in cases():
        if not re.search(options.filter, name):
            continue
        folder = options.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        opset = 23 if "Attention" in graph else 20 if "Gelu" in graph else 17
        graph = re.sub(r"(?<=[)}]) (\w+ = )", r"\n\1", graph)
        opset = 12 if "ReduceSum" in graph else 18 if "reduction" in graph else opset
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\nm {graph}')
        inputs = make_inputs(model, values, random)
        fix(model, inputs)
        onnx.save(model, folder / "model.onnx")
        compile = [options.build / "bin" / "ptc", "compile", folder / "model.onnx", "--target=cuda", "--gpu=" + options.gpu, *flags]
        subprocess.run([*compile, "--emit=ptx,mlir:plan-memory", "-o", folder / "model.ptx"], check=True)
        np.savez(folder / "inputs.npz", **inputs)
        session = onnxruntime.InferenceSession(folder / "model.onnx", exactly(), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        np.savez(folder / "expected.npz", **dict(zip(names, session.run(None, inputs))))
    print(f"{sum(1 for _ in options.folder.iterdir())} cases in {options.folder}")


if __name__ == "__main__":
    main()
