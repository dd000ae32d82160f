"""The official ONNX tests as a list of cases.

The `onnx` package builds its node tests in memory; they are written once into a cache folder, since that takes seconds.
The simple, pytorch and light tests are files of the package already, and light models come without inputs: the package
defines those as a ramp from 0 to 1.
"""

import json
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper
from onnx.backend.test import loader

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime" / "python"))
from ptc.backend import arguments  # noqa: E402

SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")

# The operators of CNNs and transformers: what must work before anything else does.
TIER1 = frozenset(
    """Abs Add And ArgMax AveragePool BatchNormalization Cast Ceil Clip Concat Constant ConstantOfShape Conv Cos CumSum Div
    Einsum Elu Equal Exp Expand Flatten Gather GatherElements GatherND Gelu Gemm GlobalAveragePool Greater GreaterOrEqual
    GridSample HardSigmoid HardSwish Identity InstanceNormalization IsNaN LayerNormalization Less LessOrEqual Log MatMul Max
    MaxPool Min Mod Mul Neg Not Pad Pow Range Reciprocal ReduceL2 ReduceMean ReduceSum Relu Reshape Resize ScatterElements
    ScatterND Shape Sigmoid Sign Sin Slice Softmax Softplus Split Sqrt Squeeze Sub Tanh Tile TopK Transpose Unsqueeze
    Where""".split()
)
PLAIN = frozenset(
    getattr(TensorProto, name)
    for name in "FLOAT DOUBLE FLOAT16 BFLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split()
)


@dataclass(frozen=True)
class Case:
    name: str  # suite/test
    model: str
    sets: tuple  # one (inputs, outputs) a data set, each a tuple of files
    rtol: float
    atol: float
    tier1: bool  # only tier-1 operators on plain types
    is_free: bool = False  # dims that the model leaves open stay open

    @property
    def suite(self):
        return self.name.split("/")[0]


def _is_plain(value):
    kind = value.type
    return kind.HasField("tensor_type") and kind.tensor_type.elem_type in PLAIN


def _is_tier1(model):
    graph = model.graph
    values = [*graph.input, *graph.output]
    return all(n.op_type in TIER1 and not n.domain for n in graph.node) and all(map(_is_plain, values))


def _proto(value):
    """The message that holds a value of a data set, and what its file's name ends with: a tensor, a sequence (a list), or
    an optional value that is absent."""
    if isinstance(value, list):
        return numpy_helper.from_list(value), ".seq"
    if value is None:
        return numpy_helper.from_optional(None), ".opt"
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value)), ".pb"


def read(path):
    """The value in a file of a data set: an array, a list of arrays or None."""
    kinds = {".seq": (SequenceProto, numpy_helper.to_list), ".opt": (OptionalProto, lambda proto: None)}
    kind, convert = kinds.get(Path(path).suffix, (TensorProto, numpy_helper.to_array))
    proto = kind()
    proto.ParseFromString(Path(path).read_bytes())
    return convert(proto)


def _write(values, folder, stem):
    """Files of one side of a data set."""
    names = []
    for index, value in enumerate(values):
        proto, suffix = _proto(value)
        names.append(folder / f"{stem}_{index}{suffix}")
        names[-1].write_bytes(proto.SerializeToString())
    return tuple(map(str, names))


def _error_at_zeros(test):
    """How far the expected values of an inverse DFT are from 0 where it is 0: NumPy's own rounding, which its caller's
    absolute tolerance of 1e-7 does not cover. Any other order of summation rounds as much."""
    if "dft_inverse" not in test.name:
        return 0.0
    ((x, *_), (y,)), = test.data_sets
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    exact = np.fft.ifft(x[..., 0] + 1j * x[..., 1], axis=1)
    parts = np.stack([exact.real, exact.imag], -1)
    is_zero = np.abs(parts) < 1e-12 * np.abs(parts).max()
    return float(np.abs(y[is_zero]).max(initial=0))


def _node_case(test, home):
    folder = home / "node" / test.name
    folder.mkdir(parents=True)
    path = folder / "model.onnx"
    path.write_bytes(test.model.SerializeToString())
    sets = []
    for number, (inputs, outputs) in enumerate(test.data_sets):
        place = folder / f"test_data_set_{number}"
        place.mkdir()
        sets.append((_write(inputs, place, "input"), _write(outputs, place, "output")))
    return Case(f"node/{test.name}", str(path), tuple(sets), test.rtol, test.atol + _error_at_zeros(test), _is_tier1(test.model))


def _numbered(folder, stem):
    files = sorted(folder.glob(f"{stem}_*.pb"), key=lambda path: int(path.stem.rsplit("_", 1)[1]))
    return tuple(map(str, files))


def _file_case(kind, test):
    folder = Path(test.model_dir)
    sets = tuple((_numbered(place, "input"), _numbered(place, "output")) for place in sorted(folder.glob("test_data_set_*")))
    path = folder / "model.onnx"
    return Case(f"{kind}/{test.name}", str(path), sets, test.rtol, test.atol, _is_tier1(onnx.load(path)))


def _light_cases(home):
    for path in sorted((Path(loader.DATA_DIR) / "light").glob("light_*.onnx")):
        model = onnx.load(path)
        folder = home / "light" / path.stem
        folder.mkdir(parents=True)
        shapes = [[dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim] for value in arguments(model)]
        ramps = [(np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32) for shape in shapes]
        outputs = tuple(str(path.with_name(f"{path.stem}_output_{i}.pb")) for i in range(len(model.graph.output)))
        yield Case(f"light/{path.stem}", str(path), ((_write(ramps, folder, "input"), outputs),), 1e-3, 1e-7, False)


def _collect(home):
    for test in loader.load_model_tests(kind="node"):
        yield _node_case(test, home)
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        for test in loader.load_model_tests(kind=kind):
            yield _file_case(kind, test)
    yield from _light_cases(home)


def load(cache):
    """All cases, by name. `cache` is a folder; a new version of onnx gets a new one inside it."""
    home = Path(cache) / f"onnx-{onnx.__version__}-values"
    index = home / "cases.json"
    if not index.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        cases = sorted(_collect(home), key=lambda case: case.name)
        staged = index.with_suffix(".part")
        staged.write_text(json.dumps([asdict(case) for case in cases]))
        staged.rename(index)
    return [Case(**row) for row in json.loads(index.read_text())]
