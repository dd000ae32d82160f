"""What the modes of gpu.py share: libraries on the device, turns, errors, tables."""

import ctypes
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "runtime" / "python"), str(ROOT / "models")]
import ptc  # noqa: E402
from ptc import _abi  # noqa: E402

CUDA = 2  # of DLPack and ptc_device
ROUNDS, RUNS = 15, 10
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ONNX_TYPES = {"f32": 1, "f16": 10, "bf16": 16}


class DeviceRun:
    """A function of a library on tensors of the device; `outputs` has the results of the last call."""

    def __init__(self, path, inputs):
        self.function = next(iter(ptc.load(path).functions.values()))
        self.table, self.context = self.function._model._table, self.function._model._context()
        self.ctx = self.context.__enter__()
        self.kept = [value.contiguous() for value in inputs]
        self.arguments = self._tensors(self.function.inputs, self.kept)
        shapes = self.function._output_shapes(self.ctx, self.arguments)
        self.outputs = [torch.empty(shape, dtype=getattr(torch, value.dtype), device="cuda") for value, shape in zip(self.function.outputs, shapes)]
        self.results = self._tensors(self.function.outputs, self.outputs)
        self.stream = torch.cuda.Stream()  # runs are enqueued there, as torch's are on its own

    @staticmethod
    def _tensors(values, tensors):
        made = []
        for value, tensor in zip(values, tensors, strict=True):
            shape = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
            made.append(_abi.Tensor(tensor.data_ptr(), _abi.Device(CUDA, 0), tensor.dim(), _abi.DType(*value._type, 1), shape, None, 0))
        return (_abi.Tensor * max(len(made), 1))(*made)

    def __call__(self):
        self.function._check(self.ctx, self.table.run(self.ctx, self.function._index, self.arguments, self.results, None, self.stream.cuda_stream))


def compile_model(arguments, model, *flags, ptc=None, name=None):
    """The library of a model's file, by arguments.ptc unless another is named."""
    path = str(Path(model).with_suffix(".so") if name is None else Path(model).with_name(f"{name}.so"))
    command = [ptc or arguments.ptc, "compile", str(model), "-o", path, "-q", "--target=cuda", f"--gpu={arguments.gpu}", "--mode=reduce-overhead", *flags]
    subprocess.run(command, check=True)
    return path


def compile_both(arguments, model, *flags):
    """The library, and with --against that of the other compiler, by what the table calls them."""
    paths = {"ptc": compile_model(arguments, model, *flags)}
    if arguments.against:
        paths["before"] = compile_model(arguments, model, *flags, ptc=arguments.against, name=f"{Path(model).stem}.before")
    return paths


def by_library(arguments, library, model, path):
    """The library at `path` with all of its kernels left to one of NVIDIA's, as a tuning file names it ("cublaslt")."""
    manifest, file = Path(path).with_suffix(".json"), Path(path).with_suffix(f".{library}.tune.json")
    kernels = [{"kernel": row["name"], "numbers": {library: 1}, "ns": 0, "planned_ns": 0} for row in json.loads(manifest.read_text())["kernels"]]
    header = {"format": 1, "compiler": "", "model": "", "level": arguments.gpu, "processor": "", "threads": 1}
    file.write_text(json.dumps(header | {"kernels": kernels}))
    return compile_model(arguments, model, f"--tune-file={file}", name=f"{Path(model).stem}.{library}")


def tune(arguments, model, *flags):
    """What `ptc tune` writes of a model on this device: the file, its rows."""
    file = Path(model).with_suffix(".tune.json")
    subprocess.run([arguments.ptc, "tune", model, "-o", file, "-q", "--target=cuda", f"--gpu={arguments.gpu}", f"--budget={arguments.budget}", *flags], check=True)
    return file, json.loads(file.read_text())["kernels"]


def load(paths, inputs):
    return {name: DeviceRun(path, inputs) for name, path in paths.items()}


def microseconds(times, name="before", copies=1):
    """A cell: a time, a dash where nothing was measured."""
    return f"{times[name] / copies:.{1 if times[name] < 1000 * copies else 0}f}" if name in times else "-"


def in_turns(programs):
    """Median time of a run of each, us; one synchronisation a burst of RUNS."""
    times = {name: [] for name in programs}
    for run in programs.values():
        for _ in range(5):
            run()
    for _ in range(ROUNDS):
        for name, run in programs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(RUNS):
                run()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - start) / RUNS * 1e6)
    return {name: statistics.median(all) for name, all in times.items()}


def kernels_of(run):
    """Names of the kernels of a run on the device; copies are none."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    on_device = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return [event.name for event in on_device if not event.name.startswith(("Memcpy", "Memset"))]


def error(found, exact):
    """||found - exact|| / ||exact||; of integers how many of them differ, as a share."""
    if not found.is_floating_point():
        return (found != exact).double().mean().item()
    return ((found.double() - exact).norm() / exact.norm()).item()


class Table:
    """A table in Markdown; with --against the column `ptc` is followed by one of the other compiler."""

    def __init__(self, arguments, *columns):
        self.at = columns.index("ptc") + 1 if arguments.against else None
        self._print("before", columns)
        print("|" + "---|" * (len(columns) + bool(self.at)))

    def row(self, *cells, before="-"):
        self._print(before, cells)

    def _print(self, before, cells):
        cells = [*cells[:self.at], before, *cells[self.at:]] if self.at else cells
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def record(work):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def each(run, wait):
    """Median time of a call, us, with its end or without."""
    times = []
    for _ in range(ROUNDS * RUNS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if wait:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)
