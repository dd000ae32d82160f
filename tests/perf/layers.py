"""Writes models of one layer each into a folder, for compare.py: what is left where no network is around an operator.

    build/venv/bin/python tests/perf/layers.py build/layers
    build/venv/bin/python tests/perf/compare.py --folder build/layers --folder build/layers/between --filter '^(layers|between)/' --threads 1

Their inputs are as a caller has them, channels first. The folder `between` in it has convolutions and pools between two
1x1 convolutions besides, where layouts are the compiler's own; `operators` some of each other operator (operators.py); `few_bits` weights
of 2 and 4 bits, whose rows may be 8-bit numbers (accuracy_level 4) or, in those named `exact`, may not.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import operators
from onnx import TensorProto, helper, numpy_helper, shape_inference

RNG = np.random.default_rng(0)
# name: operator, dims of x, dims of the weight, attributes
LAYERS = {
    "conv_3x3": ("Conv", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [1] * 4}),
    "conv_3x3_s2": ("Conv", (1, 64, 56, 56), (128, 64, 3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "conv_3x3_dilated": ("Conv", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
    "conv_3x3_groups": ("Conv", (1, 64, 56, 56), (64, 16, 3, 3), {"pads": [1] * 4, "group": 4}),
    "conv_5x5": ("Conv", (1, 64, 56, 56), (64, 64, 5, 5), {"pads": [2] * 4}),
    "conv_depthwise": ("Conv", (1, 128, 56, 56), (128, 1, 3, 3), {"pads": [1] * 4, "group": 128}),
    "conv_depthwise_s2": ("Conv", (1, 128, 56, 56), (128, 1, 5, 5), {"pads": [2] * 4, "group": 128, "strides": [2, 2]}),
    "conv_depthwise_13x13": ("Conv", (1, 256, 28, 28), (256, 1, 13, 13), {"pads": [6] * 4, "group": 256}),
    "conv_depthwise_27x27": ("Conv", (1, 512, 14, 14), (512, 1, 27, 27), {"pads": [13] * 4, "group": 512}),
    "conv_depthwise_31x31": ("Conv", (1, 128, 56, 56), (128, 1, 31, 31), {"pads": [15] * 4, "group": 128}),
    "conv_depthwise_51x5": ("Conv", (1, 96, 56, 56), (96, 1, 51, 5), {"pads": [25, 2, 25, 2], "group": 96}),
    "conv_1d": ("Conv", (1, 128, 1000), (128, 128, 5), {"pads": [2] * 2}),
    "conv_3d": ("Conv", (1, 32, 16, 28, 28), (64, 32, 3, 3, 3), {"pads": [1] * 6}),
    "conv_1d_groups": ("Conv", (1, 768, 99), (768, 48, 128), {"pads": [64] * 2, "group": 16}),
    "conv_3d_s2": ("Conv", (1, 64, 8, 28, 28), (128, 64, 3, 3, 3), {"pads": [1] * 6, "strides": [2] * 3}),
    "conv_3x3_dilated_12": ("Conv", (1, 256, 28, 28), (64, 256, 3, 3), {"pads": [12] * 4, "dilations": [12, 12]}),
    "conv_3x3_dilated_18": ("Conv", (1, 256, 28, 28), (64, 256, 3, 3), {"pads": [18] * 4, "dilations": [18, 18]}),
    "conv_1x7_192": ("Conv", (1, 192, 17, 17), (192, 192, 1, 7), {"pads": [0, 3, 0, 3]}),
    "conv_7x1_192": ("Conv", (1, 192, 17, 17), (192, 192, 7, 1), {"pads": [3, 0, 3, 0]}),
    "conv_3x3_to_3": ("Conv", (1, 64, 64, 64), (3, 64, 3, 3), {"pads": [1] * 4}),
    "transposed_2x2_s2": ("ConvTranspose", (1, 64, 56, 56), (64, 32, 2, 2), {"strides": [2, 2]}),
    "transposed_3x3_s2": ("ConvTranspose", (1, 64, 28, 28), (64, 64, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
    "transposed_4x4_s2": ("ConvTranspose", (1, 64, 28, 28), (64, 64, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
    "transposed_3x3": ("ConvTranspose", (1, 64, 28, 28), (64, 64, 3, 3), {"pads": [1] * 4}),
    "transposed_4x4_small": ("ConvTranspose", (1, 256, 8, 8), (256, 128, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
    "transposed_3x3_to_3": ("ConvTranspose", (1, 64, 64, 64), (64, 3, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
    "transposed_4x4_to_1": ("ConvTranspose", (1, 64, 64, 64), (64, 1, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
    "transposed_5x5_to_3": ("ConvTranspose", (1, 64, 64, 64), (64, 3, 5, 5), {"strides": [2, 2], "pads": [2] * 4, "output_padding": [1, 1]}),
    "transposed_one_pixel": ("ConvTranspose", (1, 100, 1, 1), (100, 512, 4, 4), {}),
    "transposed_bilinear": ("ConvTranspose", (1, 21, 28, 28), (21, 1, 16, 16), {"strides": [8, 8], "pads": [4] * 4, "group": 21}),
    "transposed_1d_s8": ("ConvTranspose", (1, 256, 100), (256, 128, 16), {"strides": [8], "pads": [4] * 2}),
    "max_pool": ("MaxPool", (1, 64, 112, 112), None, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
    "average_pool": ("AveragePool", (1, 64, 56, 56), None, {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "matmul_1": ("MatMul", (1, 1024), (1024, 1024), {}),
    "matmul_16": ("MatMul", (16, 1024), (1024, 1024), {}),
    "matmul_1024": ("MatMul", (1024, 1024), (1024, 1024), {}),
    "gemm_transposed": ("Gemm", (384, 256), (512, 384), {"transA": 1, "transB": 1}),
}

# K, N, rows, bits, terms of a block
FEW_BITS = [(2048, 2048, rows, 4, block) for rows in (1, 2, 8, 128) for block in (32, 128)]
FEW_BITS += [(2048, 2048, 8, 2, 64), (4096, 11008, 1, 4, 32), (4096, 11008, 32, 4, 32)]


def weight(name, *dims):
    return numpy_helper.from_array((RNG.standard_normal(dims) / 10).astype(np.float32), name)


def save(path, nodes, dims, weights):
    graph = helper.make_graph(nodes, path.stem, [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(shape_inference.infer_shapes(model, strict_mode=True), path)


def write(folder, name, operator, dims, weights, attributes):
    own = [weight("w", *weights)] if weights else []
    layer = lambda x, y: helper.make_node(operator, [x, *(w.name for w in own)], [y], name=name, **attributes)
    save(folder / f"{name}.onnx", [layer("x", "y")], dims, own)
    if len(dims) < 3:
        return
    turned, group = operator == "ConvTranspose", attributes.get("group", 1)
    channels = weights[1] * group if turned else weights[0] if weights else dims[1]
    ones = (1,) * (len(dims) - 2)
    around = [weight("before", dims[1], 16, *ones), weight("behind", 16, channels, *ones)]
    nodes = [helper.make_node("Conv", ["x", "before"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), layer("b", "c"),
             helper.make_node("Relu", ["c"], ["d"]), helper.make_node("Conv", ["d", "behind"], ["y"])]
    save(folder / "between" / f"{name}.onnx", nodes, (dims[0], 16, *dims[2:]), own + around)


def write_few_bits(folder, terms, columns, rows, bits, block):
    blocks = -(-terms // block)
    weights = [numpy_helper.from_array(RNG.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8), "w"),
               numpy_helper.from_array(RNG.uniform(1e-4, 2e-3, (columns, blocks)).astype(np.float32), "scales")]
    for suffix, permission in ("", {"accuracy_level": 4}), ("_exact", {}):
        name = f"{rows}x{terms}x{columns}_{bits}_bits_by_{block}{suffix}"
        node = helper.make_node("MatMulNBits", ["x", "w", "scales"], ["y"], name=name, domain="com.microsoft", K=terms, N=columns, bits=bits,
                                block_size=block, **permission)
        values = [helper.make_tensor_value_info(value, TensorProto.FLOAT, dims) for value, dims in (("x", (rows, terms)), ("y", (rows, columns)))]
        graph = helper.make_graph([node], name, values[:1], values[1:], weights)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / f"{name}.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    (folder / "between").mkdir(parents=True, exist_ok=True)
    for inner in ("operators", "few_bits"):
        (folder / inner).mkdir(exist_ok=True)
    for name, layer in LAYERS.items():
        write(folder, name, *layer)
    operators.write(folder / "operators")
    for layer in FEW_BITS:
        write_few_bits(folder / "few_bits", *layer)


if __name__ == "__main__":
    main()
