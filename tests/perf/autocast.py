"""How exact `--autocast=bf16` is beside torch's own autocast: the same model, from the same seed, on the same random inputs.

    build/venv-torch/bin/python tests/perf/autocast.py [bert_base vit_b_16 ...] [--dim batch=1] [--dim seq=128]

Models are those of models/export.py by the exporter --exporter, exported into BUILD/models where they are missing. Each
column is ||y - y0|| / ||y0|| over the floats of all inputs, y0 of torch in 32-bit floats, and in brackets the largest of one
input: of ptc's library as it is, of that with --autocast, and of torch under torch.autocast. The last column sets the two
autocasts beside each other: below 1 ptc's is nearer to y0.

Floats are drawn from a normal distribution, whole numbers that differ in the model's example below --below; others, masks,
stay as they are. Weights are random: how much of an error survives in trained ones it does not tell.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "runtime" / "python")]
import export  # noqa: E402
import ptc  # noqa: E402

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def drawn(examples, axes, dims, below, seed):
    """An input for each example, as large as `dims` says where its axis has a name."""
    generator = torch.Generator().manual_seed(seed)
    for example, names in zip(examples, axes.values()):
        shape = [dims.get((names or {}).get(axis), size) for axis, size in enumerate(example.shape)]
        if example.is_floating_point():
            yield torch.randn(shape, generator=generator, dtype=example.dtype)
        elif (example == example.flatten()[0]).all():
            yield example.flatten()[0].expand(shape).contiguous()
        else:
            yield torch.randint(below, shape, generator=generator, dtype=example.dtype)


def compiled(program, model, folder, dims, flags):
    library = Path(folder) / f"{len(flags)}.so"
    pins = [word for name, size in dims.items() for word in ("--dim", f"{name}={size}")]
    subprocess.run([program, "compile", model, "-q", "-o", library, *pins, *flags], check=True)
    return ptc.load(library)


def flat(outputs):
    """The floats of a run in one row; torch gives one tensor or several."""
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    arrays = [value.float().numpy() if isinstance(value, torch.Tensor) else np.asarray(value) for value in outputs]
    return np.concatenate([array.ravel() for array in arrays if np.issubdtype(array.dtype, np.floating)]).astype(np.float64)


def error(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def measure(name, arguments, dims):
    """Rows of floats, by kind, one for each input."""
    path = arguments.build / "models" / f"{name}-{arguments.exporter}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, ROOT / "models" / "export.py", name, arguments.exporter, path], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, examples, axes, _ = export.make(name)
    dims = {dim: size for dim, size in dims.items() if any(dim in (names or {}).values() for names in axes.values())}
    rows = {kind: [] for kind in ("torch", "ptc", "ptc cast", "torch cast")}
    with tempfile.TemporaryDirectory(prefix="ptc-") as folder, torch.no_grad():
        program = arguments.build / "bin" / "ptc"
        plain = compiled(program, path, folder, dims, [])
        cast = compiled(program, path, folder, dims, [f"--autocast={arguments.dtype}"])
        for seed in range(arguments.inputs):
            inputs = list(drawn(examples, axes, dims, arguments.below, seed))
            feeds = {key: tensor.numpy() for key, tensor in zip(axes, inputs)}
            rows["torch"].append(flat(model(*inputs)))
            with torch.autocast("cpu", DTYPES[arguments.dtype]):
                rows["torch cast"].append(flat(model(*inputs)))
            rows["ptc"].append(flat(plain(**feeds).values()))
            rows["ptc cast"].append(flat(cast(**feeds).values()))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["bert_base", "vit_b_16"], help="names of models/export.py (default: bert_base vit_b_16)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder: its program and its models")
    parser.add_argument("--exporter", choices=export.EXPORTERS, default="dynamo")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16", help="what operands are rounded to (default: bf16)")
    parser.add_argument("--inputs", type=int, default=8, metavar="N", help="random inputs (default: 8)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a free dim of models that have it (default: batch=1, seq=128, others as in the example)")
    parser.add_argument("--below", type=int, default=30000, metavar="N", help="tokens are drawn below it (default: 30000)")
    arguments = parser.parse_args()
    dims = {"batch": 1, "seq": 128} | {name: int(size) for name, size in (dim.split("=") for dim in arguments.dim)}
    print(f"| model | ptc | ptc {arguments.dtype} | torch autocast {arguments.dtype} | ptc's / torch's |\n|---|---|---|---|---|")
    for name in arguments.models:
        rows = measure(name, arguments, dims)
        wanted = rows.pop("torch")
        errors = {kind: error(np.concatenate(found), np.concatenate(wanted)) for kind, found in rows.items()}
        cells = [f"{errors[kind]:.2g} ({max(map(error, found, wanted)):.2g})" for kind, found in rows.items()]
        print(f"| {name} | {' | '.join(cells)} | {errors['ptc cast'] / errors['torch cast']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
