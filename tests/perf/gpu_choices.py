"""gpu.py choices: what `ptc tune` makes of models of one kernel each, and what comes of it."""

from gpu_convolutions import Layer
from gpu_device import Table, compile_both, compile_model, error, in_turns, load, microseconds, tune
from gpu_products import Products

SHAPES = ("4000x4104x1000:nn", "2048x2048x2048", "4096x4096x4096", "64x4096x4096")


def models(arguments):
    """Of each its name, its file, its inputs."""
    shapes = arguments.shapes.split(",") if arguments.shapes else [] if arguments.layers else SHAPES
    for text in shapes:
        product = Products(arguments, text, 1)
        yield text, product.save(), product.inputs
    for text in arguments.layers.split(",") if arguments.layers else []:
        layer, path = Layer(text, arguments.dtype, 1), arguments.folder / f"{text.replace(':', '_')}.onnx"
        layer.save(path)
        yield text, path, layer.inputs()[2]


def choices(arguments):
    table = Table(arguments, "kernel", "chosen", "as planned", "ptc", "planned / ptc", "difference")
    for text, path, inputs in models(arguments):
        planned = compile_model(arguments, path, name=f"{path.stem}.planned")
        file, kernels = tune(arguments, path)
        libraries = load({"planned": planned, **compile_both(arguments, path, f"--tune-file={file}")}, inputs)
        times = in_turns(libraries)
        numbers = " ".join(f"{name}={number}" for kernel in kernels for name, number in kernel["numbers"].items())
        table.row(text, numbers or "-", microseconds(times, "planned"), microseconds(times, "ptc"), f"{times['planned'] / times['ptc']:.2f}",
                  f"{error(libraries['ptc'].outputs[0], libraries['planned'].outputs[0].double()):.1e}", before=microseconds(times))
