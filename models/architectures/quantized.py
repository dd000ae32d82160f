"""Quantised forms of exported models, made by onnxruntime's own tools: the files that its users have."""

import numpy as np


class _Calibration:
    """A few seeded batches for the ranges of activations."""

    def __init__(self, shapes):
        rng = np.random.default_rng(0)
        self.batches = iter([{name: make(rng) for name, make in shapes.items()} for _ in range(2)])

    def get_next(self):
        return next(self.batches, None)


def qdq(shapes):
    """Both operands of convolutions and products in 8 bits, as QuantizeLinear and DequantizeLinear around them."""

    def make(source, path):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        reader = type("Reader", (_Calibration, CalibrationDataReader), {})(shapes)
        quantize_static(source, path, reader, quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, per_channel=True)

    return make


def dynamic(source, path):
    """Weights in 8 bits, activations quantised as they come: DynamicQuantizeLinear and MatMulInteger."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, path, weight_type=QuantType.QInt8)


def int4(source, path):
    """Weights of products in blocks of 4 bits: MatMulNBits."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    tool = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True)
    tool.process()
    onnx.save(tool.model.model, path)


def _image(rng):
    return rng.normal(0, 1, (1, 3, 224, 224)).astype(np.float32)


def _tokens(rng):
    return rng.integers(0, 30000, (1, 32))


def _mask(rng):
    return np.ones((1, 32), np.int64)


# Name: the exported model it is made of, and how.
MODELS = {
    "resnet50_qdq": ("resnet50", qdq({"x": _image})),
    "minilm_l6_qdq": ("minilm_l6", qdq({"input_ids": _tokens, "attention_mask": _mask})),
    "minilm_l6_dynamic": ("minilm_l6", dynamic),
    "llama_decode_int4": ("llama_decode", int4),
}
