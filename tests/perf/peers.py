"""What ptc is compared with: each peer makes a function that runs a model once, on inputs and outputs that stay where they are.

A peer that cannot run a model raises what its library raises. All work in 32-bit floats, at the settings that their
documentation gives for the latency of one stream, and know the sizes of the inputs when they compile, as ptc does.
"""

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "inductor": "torch"}  # by peer
CORES = os.sched_getaffinity(0)


def available():
    """The peers whose packages this environment has."""
    return [peer for peer, package in PACKAGES.items() if importlib.util.find_spec(package)]


def version(peer):
    return importlib.metadata.version(PACKAGES[peer]).split("+")[0].split("-")[0]


def _named_sizes(model):
    """Of the dims that the file names; a name that stands for several sizes says nothing."""
    sizes = {}
    for value in onnx.load(model.path, load_external_data=False).graph.input:
        if value.name in model.inputs:
            for dim, size in zip(value.type.tensor_type.shape.dim, model.inputs[value.name].shape):
                sizes.setdefault(dim.dim_param, set()).add(size)
    return {name: size for name, (size, *others) in sizes.items() if name and not others}


def onnxruntime_run(model, threads):
    """Its threads stop spinning at the end of a run, as ptc's do soon after: those of a library that waits must not take a
    core from another."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")
    for name, size in _named_sizes(model).items():
        options.add_free_dimension_override_by_name(name, size)
    session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in model.inputs.items():
        binding.bind_cpu_input(name, array)
    for value in session.get_outputs():
        binding.bind_output(value.name)
    return lambda: session.run_with_iobinding(binding)


def openvino_run(model, threads):
    import openvino

    core = openvino.Core()
    network = core.read_model(model.path)
    network.reshape({name: list(array.shape) for name, array in model.inputs.items()})
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads,
             "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False}
    request = core.compile_model(network, "CPU", hints).create_infer_request()
    for name, array in model.inputs.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
    return lambda: request.infer(share_outputs=True)  # without that it copies them


def inductor_run(model, threads):
    """torch.compile of the module that the model was exported from, with its weights frozen."""
    if not model.export:
        raise ValueError("there is no PyTorch module of it")
    os.sched_setaffinity(0, CORES)  # torch starts as many compilers as it finds cores; turns.py pins its threads afterwards
    import torch
    import torch._inductor.config as settings

    if str(ROOT / "models") not in sys.path:
        sys.path.append(str(ROOT / "models"))
    import export

    settings.freezing = True
    torch.set_num_threads(threads)
    module, _, names, _ = export.make(model.export)
    arguments = [torch.from_numpy(model.inputs[name]) for name in names]
    compiled = torch.compile(module)

    def run():
        with torch.no_grad():
            return compiled(*arguments)

    run()
    return run


RUNS = {"onnxruntime": onnxruntime_run, "openvino": openvino_run, "inductor": inductor_run}
