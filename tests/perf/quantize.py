"""Models quantised to 8 bits by onnxruntime, for compare.py.

    build/venv/bin/python tests/perf/quantize.py MODEL.onnx... -o DIR [--dim NAME=N] [--dynamic]
    build/venv/bin/python tests/perf/compare.py --folder DIR [--dim NAME=N] --filter quantized

For each model, with weights per channel: MODEL-qdq (between DequantizeLinear and QuantizeLinear) and MODEL-qop (quantised
operators), calibrated on noise; with --dynamic MODEL-dynamic alone (MatMulInteger, activations quantised in each run). Noise tells
nothing of accuracy; the arithmetic and its speed are the same.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process


class Noise(CalibrationDataReader):
    def __init__(self, path, dims, count=2):
        graph = onnx.load(path, load_external_data=False).graph
        weights = {tensor.name for tensor in graph.initializer}
        values = [value for value in graph.input if value.name not in weights]
        shapes = {v.name: [d.dim_value or dims.get(d.dim_param, 1) for d in v.type.tensor_type.shape.dim] for v in values}
        rng = np.random.default_rng(0)
        self.batches = iter([{n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()} for _ in range(count)])

    def get_next(self):
        return next(self.batches, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("-o", dest="folder", required=True, type=Path)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--dynamic", action="store_true")
    arguments = parser.parse_args()
    dims = {name: int(size) for name, size in (text.split("=") for text in arguments.dim)}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for model in arguments.models:
        if arguments.dynamic:
            quantize_dynamic(model, arguments.folder / f"{model.stem}-dynamic.onnx", weight_type=QuantType.QInt8)
            continue
        with tempfile.TemporaryDirectory() as folder:
            prepared = Path(folder) / "model.onnx"
            quant_pre_process(model, prepared, skip_symbolic_shape=True)
            for suffix, form in (("qdq", QuantFormat.QDQ), ("qop", QuantFormat.QOperator)):
                quantize_static(prepared, arguments.folder / f"{model.stem}-{suffix}.onnx", Noise(model, dims), quant_format=form,
                                per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


if __name__ == "__main__":
    main()
