"""Operators of one node each, as ONNX's text; layers.py writes them as models beside its layers.

Inputs named w, w2, ... are weights: random constants of the model. What whole numbers stay below is said behind the text; others
are 1 (compare.py).
"""

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'
IMAGE, TOKENS = "float[1, 64, 56, 56] x", "float[1, 128, 768] x"
F = " => (float[] y)"


def _one(inputs, call, outputs=F):
    return f"({inputs}){outputs} {{ y = {call} }}"


def _pointwise():
    for name in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "Softplus", "HardSwish", "Mish", "Elu", "Sin", "Sqrt", "Floor", "Round"):
        yield name.lower(), _one(IMAGE, f"{name}(x)")
    yield "gelu_tanh", _one(IMAGE, 'Gelu<approximate="tanh">(x)')
    yield "pow_2", f"({IMAGE}){F} {{ two = Constant<value = float {{2.0}}>() y = Pow(x, two) }}"
    yield "pow", _one("float[64, 4096] x, float[64, 4096] z", "Pow(x, z)")
    for name, dims in {"same": "1, 64, 56, 56", "channel": "1, 64, 1, 1", "row": "56", "column": "56, 1"}.items():
        yield f"add_{name}", _one(f"{IMAGE}, float[{dims}] z", "Add(x, z)")
    yield "mul_outer", _one("float[512, 1] x, float[1, 512] z", "Mul(x, z)")
    yield "where", _one("bool[1, 1, 128, 128] c, float[1, 12, 128, 128] x, float[1] z", "Where(c, x, z)")
    yield "greater", _one(f"{IMAGE}, float[1] z", "Greater(x, z)", " => (bool[] y)")
    yield "cast_to_int", _one(IMAGE, "Cast<to=7>(x)", " => (int64[] y)")
    yield "cast_from_int", _one("int32[1, 64, 56, 56] x", "Cast<to=1>(x)")
    yield "cast_to_half", _one(IMAGE, "Cast<to=10>(x)", " => (float16[] y)")
    yield "cast_to_byte", _one(IMAGE, "Cast<to=2>(x)", " => (uint8[] y)")
    yield "quantize", f"({IMAGE}) => (uint8[] y) {{ s = Constant<value = float {{0.02}}>() z = Constant<value = uint8 {{128}}>() y = QuantizeLinear(x, s, z) }}"
    yield "dequantize", f"(uint8[1, 64, 56, 56] x){F} {{ s = Constant<value = float {{0.02}}>() z = Constant<value = uint8 {{128}}>() y = DequantizeLinear(x, s, z) }}"
    yield "clip", f"({IMAGE}){F} {{ a = Constant<value = float {{0.0}}>() b = Constant<value = float {{6.0}}>() y = Clip(x, a, b) }}"
    yield "isnan", _one(IMAGE, "IsNaN(x)", " => (bool[] y)")
    yield "mod_int", _one("int64[100000] x, int64[1] z", "Mod(x, z)", " => (int64[] y)"), {"x": 1000, "z": 7}


def _normalisations():
    yield "layer_norm", _one(f"{TOKENS}, float[768] w, float[768] w2", "LayerNormalization(x, w, w2)")
    yield "layer_norm_49", _one("float[1, 3136, 96] x, float[96] w, float[96] w2", "LayerNormalization(x, w, w2)")
    yield "rms_norm", (f"({TOKENS}, float[768] w){F} {{ two = Constant<value = float {{2.0}}>() e = Constant<value = float {{0.00001}}>()"
                       " axis = Constant<value_ints = [-1]>() s = Pow(x, two) m = ReduceMean<keepdims=1>(s, axis) a = Add(m, e) r = Sqrt(a)"
                       " d = Div(x, r) y = Mul(d, w) }")
    yield "batch_norm", _one(f"{IMAGE}, float[64] w, float[64] w2, float[64] w3, float[64] wv", "BatchNormalization(x, w, w2, w3, wv)")
    yield "instance_norm", _one(f"{IMAGE}, float[64] w, float[64] w2", "InstanceNormalization(x, w, w2)")
    yield "group_norm", _one(f"{IMAGE}, float[64] w, float[64] w2", "GroupNormalization<num_groups=8>(x, w, w2)")
    # What a network has around it: channels innermost, and an image that no cache of a core holds.
    for channels, side in ((128, 96), (320, 64), (512, 32)):
        yield f"group_norm_{channels}", (f"(float[1, {side}, {side}, {channels}] x, float[{channels}] w, float[{channels}] w2){F} {{"
                                         " c = Transpose<perm=[0, 3, 1, 2]>(x) n = GroupNormalization<num_groups=32>(c, w, w2)"
                                         " y = Transpose<perm=[0, 2, 3, 1]>(n) }")
    yield "lrn", _one(IMAGE, "LRN<size=5>(x)")
    yield "lp_norm", _one("float[128, 768] x", "LpNormalization<axis=-1, p=2>(x)")
    for name, dims, axis in (("rows", "12, 128, 128", -1), ("classes", "1, 1000", -1), ("vocabulary", "1, 50257", -1), ("pixels", "1, 21, 128, 128", 1),
                             ("middle", "1, 64, 17, 96", 2), ("short", "4096, 10", -1)):
        yield f"softmax_{name}", _one(f"float[{dims}] x", f"Softmax<axis={axis}>(x)")
        yield f"log_softmax_{name}", _one(f"float[{dims}] x", f"LogSoftmax<axis={axis}>(x)")
    yield "hardmax", _one("float[256, 256] x", "Hardmax(x)")


def _reductions():
    shapes = {"last": ("128, 768", "[1]"), "first": ("768, 128", "[0]"), "middle": ("8, 64, 196", "[1]"), "image": ("1, 64, 56, 56", "[2, 3]"),
              "channels": ("1, 64, 56, 56", "[1]"), "all": ("1, 64, 56, 56", "[0, 1, 2, 3]"), "outer": ("16, 64, 196", "[0, 2]")}
    for name, (dims, axes) in shapes.items():
        for kind in ("Sum", "Max", "L2", "LogSumExp") + (("Mean",) if name == "image" else ()) + (("Prod", "Min", "SumSquare") if name == "last" else ()):
            yield f"reduce_{kind.lower()}_{name}", f"(float[{dims}] x){F} {{ a = Constant<value_ints = {axes}>() y = Reduce{kind}<keepdims=0>(x, a) }}"
        if name in ("last", "first", "middle", "channels"):
            yield f"arg_max_{name}", _one(f"float[{dims}] x", f"ArgMax<axis={axes[1]}, keepdims=0>(x)", " => (int64[] y)")
    yield "global_average", _one(IMAGE, "GlobalAveragePool(x)")
    yield "global_max", _one(IMAGE, "GlobalMaxPool(x)")
    yield "cumsum_last", f"(float[128, 768] x){F} {{ a = Constant<value = int64 {{1}}>() y = CumSum(x, a) }}"
    yield "cumsum_first", f"(float[768, 128] x){F} {{ a = Constant<value = int64 {{0}}>() y = CumSum(x, a) }}"
    yield "cumsum_long", f"(float[100000] x){F} {{ a = Constant<value = int64 {{0}}>() y = CumSum(x, a) }}"
    for name, dims, count in (("classes", "1, 1000", 5), ("boxes", "1, 8400", 300), ("vocabulary", "1, 50257", 50), ("rows", "128, 1000", 1), ("sorted", "1, 10000", 10000)):
        yield f"topk_{name}", f"(float[{dims}] x) => (float[] y, int64[] i) {{ k = Constant<value_ints = [{count}]>() y, i = TopK(x, k) }}"
    yield "topk_double", "(double[1, 8400] x) => (double[] y, int64[] i) { k = Constant<value_ints = [300]>() y, i = TopK(x, k) }"
    yield "topk_channels", "(float[1, 64, 56, 56] x) => (float[] y, int64[] i) { k = Constant<value_ints = [4]>() y, i = TopK<axis=1>(x, k) }"
    yield "unique", _one("int64[10000] x", "Unique(x)", " => (int64[] y)"), {"x": 1000}
    yield "nonzero", _one("bool[100, 1000] x", "NonZero(x)", " => (int64[] y)"), {"x": 2}
    yield "nonzero_float", _one(IMAGE, "NonZero(x)", " => (int64[] y)")


def _movements():
    for name, dims, order in (("heads", "1, 128, 12, 64", "[0, 2, 1, 3]"), ("keys", "1, 12, 128, 64", "[0, 1, 3, 2]"), ("to_nhwc", "1, 64, 56, 56", "[0, 2, 3, 1]"),
                              ("to_nchw", "1, 56, 56, 64", "[0, 3, 1, 2]"), ("rgb", "1, 3, 224, 224", "[0, 2, 3, 1]"), ("from_rgb", "1, 224, 224, 3", "[0, 3, 1, 2]"),
                              ("matrix", "1024, 1024", "[1, 0]"), ("windows", "1, 8, 7, 8, 7, 96", "[0, 1, 3, 2, 4, 5]"), ("shuffle", "1, 2, 58, 28, 28", "[0, 2, 1, 3, 4]"),
                              ("reverse", "16, 32, 48", "[2, 1, 0]"), ("unshuffle", "1, 16, 4, 4, 28, 28", "[0, 1, 4, 2, 5, 3]")):
        yield f"transpose_{name}", _one(f"float[{dims}] x", f"Transpose<perm={order}>(x)")
    yield "transpose_bytes", _one("uint8[1, 224, 224, 3] x", "Transpose<perm=[0, 3, 1, 2]>(x)", " => (uint8[] y)")
    yield "concat_channels", _one(f"{IMAGE}, float[1, 32, 56, 56] z", "Concat<axis=1>(x, z)")
    yield "concat_last", _one("float[128, 768] x, float[128, 64] z", "Concat<axis=1>(x, z)")
    yield "concat_short", _one("float[4096, 1] x, float[4096, 1] z", "Concat<axis=1>(x, z)")
    yield "concat_four", _one("float[8400, 1] x, float[8400, 1] z, float[8400, 1] u, float[8400, 1] v", "Concat<axis=1>(x, z, u, v)")
    yield "split_last", "(float[1, 128, 2304] x) => (float[] y, float[] z, float[] u) { y, z, u = Split<axis=2, num_outputs=3>(x) }"
    yield "split_short", "(float[8400, 4] x) => (float[] y, float[] z) { y, z = Split<axis=1, num_outputs=2>(x) }"
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield f"pad_{mode}", f'({IMAGE}){F} {{ p = Constant<value_ints = [0, 0, 1, 1, 0, 0, 1, 1]>() y = Pad<mode="{mode}">(x, p) }}'
    yield "slice_step", f"({IMAGE}){F} {{ a = Constant<value_ints = [0, 0]>() b = Constant<value_ints = [56, 56]>() c = Constant<value_ints = [2, 3]>() s = Constant<value_ints = [2, 2]>() y = Slice(x, a, b, c, s) }}"
    yield "slice_reverse", f"({IMAGE}){F} {{ a = Constant<value_ints = [-1]>() b = Constant<value_ints = [-100]>() c = Constant<value_ints = [3]>() s = Constant<value_ints = [-1]>() y = Slice(x, a, b, c, s) }}"
    yield "slice_rows", f"({IMAGE}){F} {{ a = Constant<value_ints = [1, 1]>() b = Constant<value_ints = [55, 55]>() c = Constant<value_ints = [2, 3]>() y = Slice(x, a, b, c) }}"
    yield "expand", f"(float[1, 12, 1, 64] x){F} {{ s = Constant<value_ints = [1, 12, 128, 64]>() y = Expand(x, s) }}"
    yield "tile", f"(float[64, 56] x){F} {{ r = Constant<value_ints = [4, 8]>() y = Tile(x, r) }}"
    yield "depth_to_space", _one("float[1, 48, 112, 112] x", "DepthToSpace<blocksize=4>(x)")
    yield "depth_to_space_crd", _one("float[1, 64, 56, 56] x", 'DepthToSpace<blocksize=2, mode="CRD">(x)')
    yield "space_to_depth", _one("float[1, 3, 448, 448] x", "SpaceToDepth<blocksize=2>(x)")
    yield "trilu", _one("float[12, 128, 128] x", "Trilu<upper=0>(x)")
    yield "one_hot", "(int64[512] x) => (float[] y) { d = Constant<value_ints = [1000]>() v = Constant<value = float[2] {0.0, 1.0}>() y = OneHot(x, d, v) }", {"x": 1000}
    yield "embedding", _one("int64[1, 128] i, float[30522, 768] w", "Gather(w, i)"), {"i": 30522}
    yield "embedding_bag", f"(int64[64, 32] i, float[10000, 64] w){F} {{ e = Gather(w, i) a = Constant<value_ints = [1]>() y = ReduceSum<keepdims=0>(e, a) }}", {"i": 10000}
    yield "gather_last", _one("float[512, 512] x, int64[256] i", "Gather<axis=1>(x, i)"), {"i": 512}
    yield "gather_rows_short", _one("float[8400, 4] x, int64[300] i", "Gather(x, i)"), {"i": 8400}
    yield "gather_elements", _one("float[512, 512] x, int64[512, 512] i", "GatherElements<axis=1>(x, i)"), {"i": 512}
    yield "gather_nd", _one("float[64, 64, 32] x, int64[1000, 2] i", "GatherND(x, i)"), {"i": 64}
    yield "scatter_elements", _one("float[512, 512] x, int64[256, 512] i, float[256, 512] z", "ScatterElements<axis=0>(x, i, z)"), {"i": 512}
    yield "scatter_add", _one("float[4096, 64] x, int64[1024, 64] i, float[1024, 64] z", 'ScatterElements<axis=0, reduction="add">(x, i, z)'), {"i": 4096}
    yield "scatter_nd", _one("float[4096, 64] x, int64[128, 1] i, float[128, 64] z", "ScatterND(x, i, z)"), {"i": 4096}


def _images():
    for name, sizes, flags in (("nearest", "112", 'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"'), ("linear", "112", 'mode="linear"'),
                               ("linear_aligned", "112", 'mode="linear", coordinate_transformation_mode="align_corners"'), ("cubic", "112", 'mode="cubic"'),
                               ("linear_down", "28", 'mode="linear"'), ("linear_odd", "75", 'mode="linear"'), ("antialias", "28", 'mode="linear", antialias=1'),
                               ("cubic_antialias", "28", 'mode="cubic", antialias=1'), ("linear_4x", "224", 'mode="linear"')):
        yield f"resize_{name}", f"({IMAGE}){F} {{ s = Constant<value_ints = [1, 64, {sizes}, {sizes}]>() y = Resize<{flags}>(x, , , s) }}"
    yield "resize_rgb", f'(float[1, 3, 480, 640] x){F} {{ s = Constant<value_ints = [1, 3, 224, 224]>() y = Resize<mode="linear">(x, , , s) }}'
    for mode in ("linear", "nearest", "cubic"):
        yield f"grid_sample_{mode}", _one(f"{IMAGE}, float[1, 56, 56, 2] g", f'GridSample<mode="{mode}">(x, g)')
    yield "max_pool_2x2", _one("float[1, 64, 112, 112] x", "MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x)")
    yield "max_pool_5x5", _one(IMAGE, "MaxPool<kernel_shape=[5, 5], pads=[2, 2, 2, 2]>(x)")
    yield "average_pool_2x2", _one("float[1, 64, 112, 112] x", "AveragePool<kernel_shape=[2, 2], strides=[2, 2]>(x)")
    yield "average_pool_7x7", _one("float[1, 512, 7, 7] x", "AveragePool<kernel_shape=[7, 7]>(x)")
    yield "average_pool_1d", _one("float[1, 128, 1000] x", "AveragePool<kernel_shape=[4], strides=[4]>(x)")
    yield "max_pool_8", _one("float[1, 16, 224, 224] x", "MaxPool<kernel_shape=[8, 8], strides=[8, 8]>(x)")
    yield "dft", f"(float[32, 512, 1] x){F} {{ n = Constant<value = int64 {{512}}>() a = Constant<value = int64 {{1}}>() y = DFT<onesided=1>(x, n, a) }}"
    yield "roi_align", _one("float[1, 256, 50, 50] x, float[100, 4] r, int64[100] b", "RoiAlign<output_height=7, output_width=7, sampling_ratio=2>(x, r, b)"), {"b": 1}


def _products():
    for name, a, b in (("heads", "12, 128, 64", "12, 64, 128"), ("heads_values", "12, 128, 128", "12, 128, 64"), ("windows", "192, 49, 32", "192, 32, 49"), ("tiny", "1000, 4, 4", "1000, 4, 4"),
                       ("rotate", "10000, 3, 3", "3, 1"), ("vector", "1024, 1024", "1024"), ("row", "1, 1024", "1024, 1024"), ("decode", "32, 1, 64", "32, 64, 512"),
                       ("square_256", "256, 256", "256, 256"), ("long", "64, 10000", "10000, 64")):
        yield f"product_{name}", _one(f"float[{a}] x, float[{b}] z", "MatMul(x, z)")
    yield "product_transposed", f"(float[12, 128, 64] x, float[12, 128, 64] z){F} {{ t = Transpose<perm=[0, 2, 1]>(z) y = MatMul(x, t) }}"
    yield "gemv_weight", _one("float[1, 4096] x, float[1000, 4096] w, float[1000] w2", "Gemm<transB=1>(x, w, w2)")
    yield "gemv_column", _one("float[1024, 1024] w, float[1024, 1] x", "MatMul(w, x)")
    yield "linear_128", _one(f"{TOKENS}, float[768, 768] w, float[768] w2", "Gemm(x, w, w2)").replace("float[1, 128, 768] x", "float[128, 768] x")
    yield "linear_3", _one("float[4096, 3] x, float[3, 64] w, float[64] w2", "Gemm(x, w, w2)")
    yield "linear_to_1", _one("float[4096, 64] x, float[64, 1] w, float[1] w2", "Gemm(x, w, w2)")
    yield "einsum_attention", _one("float[1, 128, 12, 64] x, float[1, 128, 12, 64] z", 'Einsum<equation="bqhd,bkhd->bhqk">(x, z)')
    yield "einsum_outer", _one("float[512] x, float[64] z", 'Einsum<equation="i,j->ij">(x, z)')
    yield "einsum_diagonal", _one("float[64, 512, 8] x, float[64, 512, 8] z", 'Einsum<equation="bij,bij->bi">(x, z)')
    yield "matmul_integer", _one("uint8[128, 768] x, uint8[768, 768] z", "MatMulInteger(x, z)", " => (int32[] y)"), {"x": 200, "z": 100}
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for hidden, steps in ((32, 50), (128, 50), (512, 20)):
            inputs = f"float[{steps}, 1, {hidden}] x, float[1, {gates * hidden}, {hidden}] w, float[1, {gates * hidden}, {hidden}] w2, float[1, {2 * gates * hidden}] w3"
            yield f"{kind.lower()}_{hidden}", _one(inputs, f"{kind}<hidden_size={hidden}>(x, w, w2, w3)")
    conv = "Conv<{}>(x, w)"
    for name, x, w, flags in (("1x1", "1, 64, 56, 56", "128, 64, 1, 1", ""), ("1x1_s2", "1, 64, 56, 56", "128, 64, 1, 1", "strides=[2, 2]"), ("stem", "1, 3, 224, 224", "64, 3, 7, 7", "strides=[2, 2], pads=[3, 3, 3, 3]"),
                              ("patches", "1, 3, 224, 224", "768, 3, 16, 16", "strides=[16, 16]"), ("patches_4", "1, 3, 224, 224", "96, 3, 4, 4", "strides=[4, 4]"), ("rgb_3x3", "1, 3, 224, 224", "32, 3, 3, 3", "strides=[2, 2], pads=[1, 1, 1, 1]"),
                              ("3x3_small", "1, 512, 7, 7", "512, 512, 3, 3", "pads=[1, 1, 1, 1]"), ("1d_audio", "1, 1, 16000", "64, 1, 400", "strides=[160]"), ("1d_stride", "1, 512, 1000", "512, 512, 3", "strides=[2]"),
                              ("1d_depthwise", "1, 256, 400", "256, 1, 31", "group=256, pads=[15, 15]"), ("depthwise_7x7", "1, 96, 56, 56", "96, 1, 7, 7", "group=96, pads=[3, 3, 3, 3]"),
                              ("depthwise_3x3_s2", "1, 64, 112, 112", "64, 1, 3, 3", "group=64, strides=[2, 2], pads=[1, 1, 1, 1]"), ("groups_32", "1, 128, 56, 56", "128, 4, 3, 3", "group=32, pads=[1, 1, 1, 1]"),
                              ("to_1", "1, 64, 56, 56", "1, 64, 3, 3", "pads=[1, 1, 1, 1]"), ("1x7", "1, 128, 17, 17", "128, 128, 1, 7", "pads=[0, 3, 0, 3]"), ("3d_depthwise", "1, 32, 8, 28, 28", "32, 1, 3, 3, 3", "group=32, pads=[1, 1, 1, 1, 1, 1]")):
        yield f"conv_{name}", _one(f"float[{x}] x, float[{w}] w", conv.format(flags))
    for name, x, w, flags in (("depthwise", "1, 64, 28, 28", "64, 1, 4, 4", "group=64, strides=[2, 2], pads=[1, 1, 1, 1]"), ("3d", "1, 32, 8, 14, 14", "32, 16, 2, 2, 2", "strides=[2, 2, 2]"),
                              ("to_3", "1, 64, 56, 56", "64, 3, 4, 4", "strides=[2, 2], pads=[1, 1, 1, 1]"), ("8x8_s4", "1, 32, 28, 28", "32, 32, 8, 8", "strides=[4, 4], pads=[2, 2, 2, 2]"),
                              ("5x5_s3", "1, 32, 28, 28", "32, 32, 5, 5", "strides=[3, 3], pads=[1, 1, 1, 1]")):
        yield f"transposed_{name}", _one(f"float[{x}] x, float[{w}] w", f"ConvTranspose<{flags}>(x, w)")


def _model(text, below):
    model = onnx.parser.parse_model(f"{HEADER} m {text}".replace("<>(", "("))
    graph = model.graph
    for value in list(graph.input):
        if value.name.startswith("w"):
            dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            array = np.random.default_rng(0).standard_normal(dims).astype(np.float32) / 10
            graph.initializer.append(numpy_helper.from_array(abs(array) if value.name == "wv" else array, value.name))
            graph.input.remove(value)
        elif value.name in below:
            value.doc_string = f"below {below[value.name]}"
    return shape_inference.infer_shapes(model)


def write(folder):
    for family in (_pointwise, _normalisations, _reductions, _movements, _images, _products):
        for row in family():
            name, text, below = row if isinstance(row[-1], dict) else (*row, {})
            try:
                onnx.save(_model(text, below), folder / f"{name}.onnx")
            except Exception as error:
                raise ValueError(f"{name}: {text}") from error
