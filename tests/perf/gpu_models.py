"""gpu.py models and tuned: whole models of models/export.py at batch 1."""

import copy
import json
import multiprocessing
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from gpu_device import TYPES, DeviceRun, Table, compile_both, compile_model, error, in_turns, kernels_of, load, tune

import export

MODELS = ("resnet50", "mobilenet_v2", "vit_b_16", "bert_base", "convnext_tiny", "gpt2_decode", "segformer_b0", "detr_r50")
# Sizes as users have them where the examples are small: what dims of a size become.
SIZES = {"bert_base": {16: 128}, "minilm_l6": {16: 128}, "segformer_b0": {128: 512, 160: 512}, "detr_r50": {256: 800, 320: 1066}, "gpt2_decode": {20: 127}}
SAMPLES = 8  # of inputs, whose errors are averaged: one error of a model is a matter of luck
PAIRS = 4  # of libraries that take turns


@dataclass
class Model:
    """One of export.MODELS, exported at batch 1: its file, the module on the device, and samples of its inputs there."""

    path: Path
    module: torch.nn.Module
    samples: list

    @property
    def inputs(self):
        return self.samples[0].inputs


@dataclass
class Sample:
    inputs: tuple
    exact: torch.Tensor  # the first result in f64


def prepare(arguments, name, draw=0):
    """`draw`: of weights and inputs."""
    torch.manual_seed(draw)
    module, inputs, axes, outputs = export.MODELS[name]()
    module.eval()
    export._randomize_normalisations(module)
    kind = TYPES["f32" if arguments.autocast else arguments.dtype]
    inputs = [resized(value[:1], SIZES.get(name, {})) for value in inputs]
    drawn = [inputs] + [[value.flatten()[torch.randperm(value.numel())].view_as(value) for value in inputs] for _ in range(SAMPLES - 1)]
    cast = lambda values, to: tuple(value.cuda().to(to) if value.is_floating_point() else value.cuda() for value in values)
    wide = copy.deepcopy(module).double().cuda()
    samples = [Sample(cast(values, kind), first(wide(*cast(values, torch.float64)))) for values in drawn]
    module, path = module.to(kind).cuda(), arguments.folder / f"{name}_{draw}.onnx"
    export_model(module, samples[0].inputs, path, list(axes), outputs)
    return Model(path, module, samples)


def mean_error(model, run):
    """Of the first result of a function of the inputs."""
    return statistics.mean(error(first(run(sample.inputs)), sample.exact) for sample in model.samples)


def mean_error_of_library(model, path):
    def run(inputs):
        library = DeviceRun(path, inputs)
        library()
        torch.cuda.synchronize()
        return library.outputs

    return mean_error(model, run)


def resized(value, sizes):
    """The value, repeated or cut along its dims of these sizes."""
    for dim, size in enumerate(value.shape):
        if dim and size in sizes:
            value = value.index_select(dim, torch.arange(sizes[size]) % size)
    return value


def what(arguments, name):
    return f"{name} {f'autocast {arguments.autocast}' if arguments.autocast else arguments.dtype}"


def flags_of(arguments):
    return [f"--autocast={arguments.autocast}"] if arguments.autocast else []


def models(arguments):
    """Every model has a process of its own, so that all are made ready side by side; then they are measured one by one."""
    table = Table(arguments, "model", "launches", "torch's", "ptc", "torch eager", "torch.compile", "torch / ptc", "error", "torch's")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")  # of each process
    context, workers = multiprocessing.get_context("spawn"), []
    for name in arguments.names or MODELS:
        ours, theirs = context.Pipe()
        workers.append((name, ours, context.Process(target=_model, args=(arguments, name, theirs))))
        workers[-1][2].start()
        theirs.close()
    failed = {name for name, pipe, _ in workers if not _heard(pipe)}  # that it is ready
    for name, pipe, process in workers:
        if name not in failed:
            pipe.send("measure")
            row = _heard(pipe)
            failed |= set() if row else {name}
            if row:
                table.row(*row[0], before=row[1])
        process.join()
    if failed:
        raise SystemExit(f"not measured, for the reasons above: {' '.join(sorted(failed))}")


def _heard(pipe):
    """What a process says next; nothing if it has ended."""
    try:
        return pipe.recv()
    except EOFError:
        return None


@torch.no_grad()
def _model(arguments, name, pipe):
    torch.set_num_threads(1)  # those of several processes would wait for each other
    model = prepare(arguments, name)
    paths = compile_both(arguments, model.path, *flags_of(arguments))
    _tell(name, "exported and compiled by ptc")
    programs = {**load(paths, model.inputs), "eager": lambda: model.module(*model.inputs)}
    if not arguments.eager:
        compiled = torch.compile(model.module, mode="reduce-overhead")
        programs["compile"] = lambda: compiled(*model.inputs)
    with torch.autocast("cuda", TYPES.get(arguments.autocast), enabled=bool(arguments.autocast)):
        theirs = mean_error(model, lambda inputs: model.module(*inputs))
        for run in [run for run in programs.values() for _ in range(3)]:  # what is compiled or recorded at first
            run()
        torch.cuda.synchronize()
        _tell(name, "ready")
        pipe.send("ready")
        pipe.recv()
        times = in_turns(programs)
        kernels = len(kernels_of(programs.popitem()[1]))
    torch.cuda.synchronize()
    launches = sum(kernel["launches"] for kernel in json.loads(model.path.with_suffix(".json").read_text())["kernels"])
    ratio = f"{times['compile'] / times['ptc']:.2f}" if "compile" in times else "-"
    times = {who: f"{time:.0f}" for who, time in times.items()}
    cells = (what(arguments, name), launches, kernels, times["ptc"], times["eager"], times.get("compile", "-"), ratio,
             f"{mean_error_of_library(model, paths['ptc']):.2e}", f"{theirs:.2e}")
    pipe.send((cells, times.get("before", "-")))


def _tell(name, done):
    print(f"{time.process_time():6.1f} s of processor: {name} {done}", file=sys.stderr, flush=True)


@torch.no_grad()
def tuned(arguments):
    table = Table(arguments, "model", "took s", "kernels changed", "as planned", "ptc", "planned / ptc", "difference")
    for name in arguments.names or MODELS:
        model = prepare(arguments, name)
        planned = compile_model(arguments, model.path, *flags_of(arguments), name=f"{name}.planned")
        start = time.perf_counter()
        file, kernels = tune(arguments, model.path, *flags_of(arguments))
        took = time.perf_counter() - start
        paths = compile_both(arguments, model.path, f"--tune-file={file}", *flags_of(arguments))
        pairs = []  # where buffers lie changes a run by a per cent or two
        for _ in range(PAIRS):
            programs = load({"planned": planned, **paths}, model.inputs)
            pairs.append(in_turns(programs))
        both = {who: " ".join(f"{times[who]:.0f}" for times in pairs) for who in pairs[0]}
        ratio = statistics.median(times["planned"] / times["ptc"] for times in pairs)
        table.row(what(arguments, name), f"{took:.1f}", f"{sum(bool(kernel['numbers']) for kernel in kernels)} of {len(kernels)}", both["planned"],
                  both["ptc"], f"{ratio:.3f}", f"{error(programs['ptc'].outputs[0], programs['planned'].outputs[0].double()):.1e}",
                  before=both.get("before", "-"))


def export_model(model, inputs, path, names, outputs):
    """By the older exporter, or by the newer one where that fails or, as of models in f16, writes a graph whose types differ.
    Normalisations stay: folded, weights of 16 bits would be rounded once more than torch's own."""
    keeps = {"training": torch.onnx.TrainingMode.PRESERVE}
    for newer, opset, more in ((False, 17, keeps), (True, 20, {"external_data": False})):
        try:
            torch.onnx.export(model, inputs, path, dynamo=newer, input_names=names, output_names=outputs, opset_version=opset, **more)
            return onnx.checker.check_model(path, full_check=True)
        except Exception:
            if newer:
                raise


def first(result):
    while not isinstance(result, torch.Tensor):
        result = result[0] if isinstance(result, (tuple, list)) else next(iter(result.values()))
    return result
