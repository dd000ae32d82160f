"""gpu.py models and tuned: whole models of models/export.py at batch 1."""

import copy
import json
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from gpu_device import TYPES, Table, compile_both, compile_model, error, in_turns, load

import export

MODELS = ("resnet50", "mobilenet_v2", "vit_b_16", "bert_base", "convnext_tiny", "minilm_l6")
PAIRS = 4  # of libraries that take turns


@dataclass
class Model:
    """One of export.MODELS, exported at batch 1: its file, the module and its inputs on the device, the first result in f64."""

    path: Path
    module: torch.nn.Module
    inputs: tuple
    exact: torch.Tensor


def prepare(arguments, name):
    torch.manual_seed(0)
    module, inputs, axes, outputs = export.MODELS[name]()
    module.eval()
    export._randomize_normalisations(module)
    kind = TYPES["f32" if arguments.autocast else arguments.dtype]
    cast = lambda value, to: value[:1].to(to) if value.is_floating_point() else value[:1]
    exact = first(copy.deepcopy(module).double()(*(cast(value, torch.float64) for value in inputs)))
    module, inputs = module.to(kind), tuple(cast(value, kind) for value in inputs)
    path = arguments.folder / f"{name}.onnx"
    export_model(module, inputs, path, list(axes), outputs)
    return Model(path, module.cuda(), tuple(value.cuda() for value in inputs), exact)


def what(arguments, name):
    return f"{name} {f'autocast {arguments.autocast}' if arguments.autocast else arguments.dtype}"


def flags_of(arguments):
    return [f"--autocast={arguments.autocast}"] if arguments.autocast else []


@torch.no_grad()
def models(arguments):
    table = Table(arguments, "model", "launches", "torch's", "ptc", "torch eager", "torch.compile", "error", "torch's")
    under = lambda: torch.autocast("cuda", TYPES.get(arguments.autocast), enabled=bool(arguments.autocast))
    for name in arguments.names or MODELS:
        model = prepare(arguments, name)
        libraries = load(compile_both(arguments, model.path, *flags_of(arguments)), model.inputs)
        programs = {**libraries, "eager": lambda: model.module(*model.inputs)}
        if not arguments.eager:
            compiled = torch.compile(model.module, mode="reduce-overhead")
            programs["compile"] = lambda: compiled(*model.inputs)
        with under():
            theirs = first(model.module(*model.inputs)).cpu()
            times = in_turns(programs)
            kernels = launches_of(programs.popitem()[1])
        torch.cuda.synchronize()
        launches = sum(kernel["launches"] for kernel in json.loads(model.path.with_suffix(".json").read_text())["kernels"])
        times = {who: f"{time:.0f}" for who, time in times.items()}
        table.row(what(arguments, name), launches, kernels, times["ptc"], times["eager"], times.get("compile", "-"),
                  f"{error(libraries['ptc'].outputs[0].cpu(), model.exact):.1e}", f"{error(theirs, model.exact):.1e}", before=times.get("before", "-"))


@torch.no_grad()
def tuned(arguments):
    table = Table(arguments, "model", "took s", "kernels changed", "as planned", "ptc", "planned / ptc", "difference")
    for name in arguments.names or MODELS:
        model = prepare(arguments, name)
        planned = compile_model(arguments, model.path, *flags_of(arguments), name=f"{name}.planned")
        file, start = model.path.with_suffix(".tune.json"), time.perf_counter()
        subprocess.run([arguments.ptc, "tune", model.path, "-o", file, "-q", "--target=cuda", f"--gpu={arguments.gpu}", f"--budget={arguments.budget}",
                        *flags_of(arguments)], check=True)
        took, kernels = time.perf_counter() - start, json.loads(file.read_text())["kernels"]
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
    """By the older exporter, or by the newer one where that fails. Normalisations stay: folded, weights of 16 bits would be
    rounded once more than torch's own."""
    keeps = {"training": torch.onnx.TrainingMode.PRESERVE}
    for newer, opset, more in ((False, 17, keeps), (True, 20, {})):
        try:
            return torch.onnx.export(model, inputs, path, dynamo=newer, input_names=names, output_names=outputs, opset_version=opset, **more)
        except Exception:
            if newer:
                raise


def launches_of(run):
    """Kernels of a run on the device, copies not counted."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    on_device = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return sum(not event.name.startswith(("Memcpy", "Memset")) for event in on_device)


def first(result):
    while not isinstance(result, torch.Tensor):
        result = result[0] if isinstance(result, (tuple, list)) else next(iter(result.values()))
    return result
